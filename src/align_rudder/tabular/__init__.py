"""Environments as tables, and learners compiled for them."""

from align_rudder.tabular.mdp import TabularMDP, optimal_policy, rollout

__all__ = ["TabularMDP", "optimal_policy", "rollout"]
