"""Environments as tables, and learners compiled for them."""

from align_rudder.tabular.learners import (
    Protocol,
    Result,
    behavioural_cloning,
    learn_align_rudder,
    learn_q,
)
from align_rudder.tabular.mdp import TabularMDP, optimal_policy, rollout

__all__ = [
    "Protocol",
    "Result",
    "TabularMDP",
    "behavioural_cloning",
    "learn_align_rudder",
    "learn_q",
    "optimal_policy",
    "rollout",
]
