"""What is run: the settings of the study of recipes.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from align_rudder.files import Choice, Kind, Number, Text, Whole
from align_rudder.studies.method import check_methods
from align_rudder.studies.recipes.methods import METHODS, OURS, OURS_UNTUNED

__all__ = [
    "AXES",
    "FIRST_SEED",
    "LOGS",
    "RECIPES",
    "TIGHT",
    "TRIALS",
    "Axis",
    "Setting",
    "settings_of",
]

RECIPES = "recipes"
FIRST_SEED = 40_000
TRIALS = 40
LOGS = (2, 5, 10, 20, 50)
PACES = (25, 16, 12, 9)
TIGHT = 9  # steps for each item


@dataclass(frozen=True, order=True)
class Setting:
    """One cell of a table, in which trials differ by their seed alone.

    Attributes:
        length: Items of the recipe.
        wrong: What a wrong item does.
        logs: Number of logs.
        detours: Share of items before which logs make a detour.
        missing: Probability with which each event of a log is lost.
        foreign: Logs that are shuffled.
        pace: Time limit, in steps for each item.
        method: Name of the method.
        variant: Index of a configuration of the method; -1 for the chosen one.
    """

    length: int
    wrong: str = "nothing"
    logs: int = 10
    detours: float = 0.5
    missing: float = 0.0
    foreign: int = 0
    pace: int = 25
    method: str = ""
    variant: int = -1

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        "length": Whole(1, 100),
        "wrong": Choice(("nothing", "undo")),
        "logs": Whole(1),
        "detours": Number(0, 1),
        "missing": Number(0, 1),
        "foreign": Whole(0),
        "pace": Whole(1),
        "method": Text(),
        "variant": Whole(-1),
    }


@dataclass(frozen=True)
class Axis:
    """One table of the study, whose columns differ in one thing.

    Attributes:
        name: What differs, as a field of `Setting`.
        title: What the table says of the rest.
        tasks: The tasks, without a method.
        methods: The methods that are compared.
    """

    name: str
    title: str
    tasks: tuple[Setting, ...]
    methods: tuple[str, ...]


_TOLD = ("collect-told", "collect-told-defaults")  # differ from others where something is lost
_REPLAYED = ("replayed", "median-replayed")
_EVERYWHERE = tuple(name for name in METHODS if name not in (*_TOLD, *_REPLAYED))
_ON_CLEAN_LOGS = tuple(name for name in METHODS if name not in _TOLD)
_SPOILED = tuple(name for name in METHODS if name not in _REPLAYED)
_WITH_LOGS = (
    OURS,
    OURS_UNTUNED,
    "consensus-alone",
    "shortest-log",
    "common-subsequence",
    "median",
    "in-turn",
    "median-in-turn",
    "unordered",
    "rounds",
    "collect",
    "gail-events",
)

AXES = (
    Axis(
        "length",
        "items of the recipe, 10 logs",
        tuple(Setting(n) for n in (4, 8, 12, 24)),
        _ON_CLEAN_LOGS,
    ),
    Axis(
        "length",
        f"items of the recipe, 10 logs, {TIGHT} steps for each item",
        tuple(Setting(n, pace=TIGHT) for n in (8, 12, 24)),
        _ON_CLEAN_LOGS,
    ),
    Axis("logs", "logs, 12 items", tuple(Setting(12, logs=n) for n in LOGS), _EVERYWHERE),
    Axis(
        "detours",
        "detours, 12 items",
        tuple(Setting(12, detours=x) for x in (0.0, 0.5, 1.0)),
        _EVERYWHERE,
    ),
    Axis(
        "length",
        "items of the recipe, wrong items undo, 10 logs",
        tuple(Setting(n, "undo") for n in (4, 6, 8)),
        _SPOILED,
    ),
    Axis(
        "pace",
        "steps for each item until the time is over, 12 items",
        tuple(Setting(12, pace=n) for n in PACES),
        _EVERYWHERE,
    ),
    Axis(
        "missing",
        "events missing in the logs, 12 items",
        tuple(Setting(12, missing=x) for x in (0.0, 0.05, 0.1)),
        _WITH_LOGS,
    ),
    Axis(
        "foreign",
        "shuffled logs among the 10, 12 items",
        tuple(Setting(12, foreign=n) for n in (0, 1, 2)),
        _WITH_LOGS,
    ),
    Axis(
        "missing",
        f"events missing in the logs, 12 items, {TIGHT} steps for each",
        tuple(Setting(12, missing=x, pace=TIGHT) for x in (0.0, 0.05, 0.1)),
        _WITH_LOGS,
    ),
    Axis(
        "foreign",
        f"shuffled logs among the 10, 12 items, {TIGHT} steps for each",
        tuple(Setting(12, foreign=n, pace=TIGHT) for n in (0, 1, 2)),
        _WITH_LOGS,
    ),
)


def settings_of(methods: Sequence[str] = (), logs: Sequence[int] = ()) -> list[Setting]:
    """Return the settings of the study, each once.

    Args:
        methods: Names of methods; all of them if empty.
        logs: Numbers of logs: only these tasks. Those of the study if empty.
    """
    names = tuple(dict.fromkeys(methods)) or tuple(METHODS)
    check_methods(names, METHODS)
    known = {task.logs for axis in AXES for task in axis.tasks}
    for n in logs:
        if n not in known:
            raise ValueError(f"{n} logs were asked for; the study has {sorted(known)}")
    wanted = (
        replace(task, method=name)
        for axis in AXES
        for task in axis.tasks
        if not logs or task.logs in logs
        for name in names
        if name in axis.methods
    )
    return list(dict.fromkeys(wanted))
