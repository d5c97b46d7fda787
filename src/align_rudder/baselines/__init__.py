"""What Align-RUDDER is compared with, and its own learner on tables, all compiled.

Q-learning and Q(λ), Align-RUDDER, events without aligning (also round and round), DQfD, SQIL, GAIL
(also on event logs), RUDDER, IRCR and RRD; `protocol` says how a trial is run and judged, `lstm` is
RUDDER's network.
"""

from align_rudder.baselines.dqfd import learn_dqfd
from align_rudder.baselines.gail import learn_gail
from align_rudder.baselines.gail_events import learn_gail_events
from align_rudder.baselines.ircr import learn_ircr
from align_rudder.baselines.learners import learn_align_rudder, learn_q
from align_rudder.baselines.protocol import (
    OptimalProtocol,
    Protocol,
    Result,
    Trial,
    behavioural_cloning,
)
from align_rudder.baselines.rounds import learn_rounds
from align_rudder.baselines.rrd import learn_rrd
from align_rudder.baselines.rudder import learn_rudder
from align_rudder.baselines.sqil import learn_sqil
from align_rudder.baselines.unordered import learn_unordered
from align_rudder.tasks.mdp import TabularMDP, optimal_policy, rollout

__all__ = [
    "OptimalProtocol",
    "Protocol",
    "Result",
    "TabularMDP",
    "Trial",
    "behavioural_cloning",
    "learn_align_rudder",
    "learn_dqfd",
    "learn_gail",
    "learn_gail_events",
    "learn_ircr",
    "learn_q",
    "learn_rounds",
    "learn_rrd",
    "learn_rudder",
    "learn_sqil",
    "learn_unordered",
    "optimal_policy",
    "rollout",
]
