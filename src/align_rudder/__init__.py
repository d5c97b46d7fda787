"""Align-RUDDER: reward redistribution from a handful of demonstrations."""

from align_rudder import envs, live, plot, tabular, vector
from align_rudder._warnings import AlignRudderWarning
from align_rudder.alignment import Alignment, align
from align_rudder.episodes import Episode, load_episodes, save_episodes
from align_rudder.events import (
    DeltaEvents,
    EventClustering,
    EventEncoder,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)
from align_rudder.model import AlignRudder, Strategy
from align_rudder.profile import Profile
from align_rudder.redistribution import Redistribution
from align_rudder.rudder import LstmRudder
from align_rudder.subtasks import Progress, Segment, SubGoal, SubTask
from align_rudder.wrappers import RedistributeReward

__version__ = "0.1.0"

__all__ = [
    "AlignRudder",
    "AlignRudderWarning",
    "Alignment",
    "DeltaEvents",
    "Episode",
    "EventClustering",
    "EventEncoder",
    "FeatureEvents",
    "FunctionEvents",
    "LstmRudder",
    "Profile",
    "Progress",
    "RedistributeReward",
    "Redistribution",
    "Segment",
    "StateEvents",
    "Strategy",
    "SubGoal",
    "SubTask",
    "SymbolEvents",
    "align",
    "envs",
    "live",
    "load_episodes",
    "plot",
    "save_episodes",
    "tabular",
    "vector",
]
