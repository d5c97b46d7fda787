"""Environments as tables, and learners compiled for them."""

from align_rudder.tabular.dqfd import learn_dqfd
from align_rudder.tabular.gail import learn_gail
from align_rudder.tabular.learners import learn_align_rudder, learn_q
from align_rudder.tabular.mdp import TabularMDP, optimal_policy, rollout
from align_rudder.tabular.protocol import Protocol, Result, Trial, behavioural_cloning
from align_rudder.tabular.rudder import learn_rudder
from align_rudder.tabular.sqil import learn_sqil

__all__ = [
    "Protocol",
    "Result",
    "TabularMDP",
    "Trial",
    "behavioural_cloning",
    "learn_align_rudder",
    "learn_dqfd",
    "learn_gail",
    "learn_q",
    "learn_rudder",
    "learn_sqil",
    "optimal_policy",
    "rollout",
]
