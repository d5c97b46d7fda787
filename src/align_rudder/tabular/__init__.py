"""Environments as tables, and learners compiled for them."""

from align_rudder.tabular.learners import learn_align_rudder, learn_q
from align_rudder.tabular.mdp import TabularMDP, optimal_policy, rollout
from align_rudder.tabular.protocol import Protocol, Result, Trial, behavioural_cloning

__all__ = [
    "Protocol",
    "Result",
    "TabularMDP",
    "Trial",
    "behavioural_cloning",
    "learn_align_rudder",
    "learn_q",
    "optimal_policy",
    "rollout",
]
