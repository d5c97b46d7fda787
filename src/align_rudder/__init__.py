"""Align-RUDDER: reward redistribution from a handful of demonstrations.

Importing it registers the environments with Gymnasium and loads nothing else: each name is
imported when it is first used.
"""

from __future__ import annotations

from align_rudder import _interrupted  # noqa: F401 - first, as what follows takes a while

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from align_rudder import _display, _moved, _registration
from align_rudder._warnings import AlignRudderWarning

if TYPE_CHECKING:  # what `_WHERE` says, for type checkers and editors
    from align_rudder import baselines, tasks
    from align_rudder import baselines as tabular
    from align_rudder import tasks as envs
    from align_rudder.alignment import Alignment, align
    from align_rudder.baselines.lstm import LstmRudder
    from align_rudder.data.logs import RunLog, read_log
    from align_rudder.episodes import Episode, load_episodes, save_episodes
    from align_rudder.events import (
        CombinedEvents,
        DeltaEvents,
        EventClustering,
        EventEncoder,
        FeatureEvents,
        FunctionEvents,
        StateEvents,
        SymbolEvents,
    )
    from align_rudder.gym import live, vector
    from align_rudder.gym.keyboard import Keyboard
    from align_rudder.gym.limits import TerminalTimeLimit
    from align_rudder.gym.record import Recording, record, replay
    from align_rudder.gym.subtasks import SubTaskReward
    from align_rudder.gym.wrapper import RedistributeReward
    from align_rudder.logs import LogModel, turn_advantages
    from align_rudder.model import AlignRudder, Strategy
    from align_rudder.profile import Profile
    from align_rudder.redistribution import Redistribution
    from align_rudder.settlement import Settlement
    from align_rudder.show import figures
    from align_rudder.show import figures as plot
    from align_rudder.show.report import write_report
    from align_rudder.subtasks import Progress, Segment, SubGoal, SubTask

__version__ = "0.2.0.dev0"

__all__ = [
    "AlignRudder",
    "AlignRudderWarning",
    "Alignment",
    "CombinedEvents",
    "DeltaEvents",
    "Episode",
    "EventClustering",
    "EventEncoder",
    "FeatureEvents",
    "FunctionEvents",
    "Keyboard",
    "LogModel",
    "LstmRudder",
    "Profile",
    "Progress",
    "Recording",
    "RedistributeReward",
    "Redistribution",
    "RunLog",
    "Segment",
    "Settlement",
    "StateEvents",
    "Strategy",
    "SubGoal",
    "SubTask",
    "SubTaskReward",
    "SymbolEvents",
    "TerminalTimeLimit",
    "align",
    "baselines",
    "envs",
    "figures",
    "live",
    "load_episodes",
    "plot",
    "read_log",
    "record",
    "replay",
    "save_episodes",
    "tabular",
    "tasks",
    "turn_advantages",
    "vector",
    "write_report",
]

_WHERE = {
    "alignment": ("Alignment", "align"),
    "baselines.lstm": ("LstmRudder",),
    "data.logs": ("RunLog", "read_log"),
    "episodes": ("Episode", "load_episodes", "save_episodes"),
    "events": (
        "CombinedEvents",
        "DeltaEvents",
        "EventClustering",
        "EventEncoder",
        "FeatureEvents",
        "FunctionEvents",
        "StateEvents",
        "SymbolEvents",
    ),
    "gym.keyboard": ("Keyboard",),
    "gym.limits": ("TerminalTimeLimit",),
    "gym.record": ("Recording", "record", "replay"),
    "gym.subtasks": ("SubTaskReward",),
    "gym.wrapper": ("RedistributeReward",),
    "logs": ("LogModel", "turn_advantages"),
    "model": ("AlignRudder", "Strategy"),
    "profile": ("Profile",),
    "redistribution": ("Redistribution",),
    "settlement": ("Settlement",),
    "show.report": ("write_report",),
    "subtasks": ("Progress", "Segment", "SubGoal", "SubTask"),
}
_MODULES = {
    "baselines": "baselines",
    "figures": "show.figures",
    "live": "gym.live",
    "tasks": "tasks",
    "vector": "gym.vector",
    # as version 0.1 called them
    "envs": "tasks",
    "plot": "show.figures",
    "tabular": "baselines",
}

_moved.install()
_registration.register_tasks()
_display.set_renderer(lambda thing: import_module(f"{__name__}.show.notebook").html_of(thing))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    for module, names in _WHERE.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
