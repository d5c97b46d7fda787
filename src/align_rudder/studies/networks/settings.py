"""What is run: the settings of the study with networks.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from align_rudder.files import Kind, Text, Whole
from align_rudder.studies.method import check_methods
from align_rudder.studies.networks.methods import METHODS

__all__ = [
    "FIRST_SEED",
    "LENGTH",
    "LOGS",
    "NETWORKS",
    "PACES",
    "STEPS",
    "TRIALS",
    "VIEW",
    "Setting",
    "settings_of",
]

NETWORKS = "networks"
FIRST_SEED = 60_000
TRIALS = 5
LENGTH = 6
"""Items of the recipe."""
LOGS = 10
VIEW = 5
"""Width of the view: with MiniGrid's 7, the 4096 entries of `ProgressSpace` hold ten positions,
fewer than some of the shortest logs have."""
PACES = (20, 40)
"""Time limits, in steps for each item: two and four times what the scripted player needs."""
STEPS = 400_000
"""Most environment steps of a trial."""


@dataclass(frozen=True, order=True)
class Setting:
    """One row of the table, in which trials differ by their seed alone.

    Attributes:
        length: Items of the recipe.
        logs: Number of logs.
        pace: Time limit, in steps for each item.
        method: Name of the method.
        variant: Index of a configuration of the method; -1 for the chosen one.
    """

    length: int = LENGTH
    logs: int = LOGS
    pace: int = PACES[-1]
    method: str = ""
    variant: int = -1

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        "length": Whole(1, 100),
        "logs": Whole(1),
        "pace": Whole(1),
        "method": Text(),
        "variant": Whole(-1),
    }


def settings_of(methods: Sequence[str] = (), logs: Sequence[int] = ()) -> list[Setting]:
    """Return the settings of the study.

    Args:
        methods: Names of methods; all of them if empty.
        logs: Numbers of logs; that of the study if empty.
    """
    names = tuple(dict.fromkeys(methods)) or tuple(METHODS)
    check_methods(names, METHODS)
    return [
        Setting(logs=n, pace=pace, method=name)
        for n in logs or (LOGS,)
        for pace in PACES
        for name in names
    ]
