"""The methods that are compared on recipes, each named once: learner, values, colors.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from align_rudder.studies.hyperparameters import kinds_of, parameters_in
from align_rudder.studies.method import Method

__all__ = [
    "BUDGET",
    "METHODS",
    "OURS",
    "OURS_UNTUNED",
    "TUNED",
    "RecipeMethod",
    "chosen_parameters",
    "read_parameters",
]

BUDGET = 24
"""Configurations that are tried of each method."""

OURS = "align-rudder"
OURS_UNTUNED = "defaults"


@dataclass(frozen=True, kw_only=True)
class RecipeMethod(Method):
    """A method that learns recipes; its grid is that from which configurations are drawn.

    Attributes:
        knows: What it is given beside the environment's reward and where it stands.
        like: The method whose hyper-parameters it has, where it differs from that in what is given
            alone; empty for its own.
        first: The configuration that is tried first: the learner's defaults for all that learn as
            ours does, for most others the best that was seen on the seeds of tuning while the lists
            were made. A method without a grid is not tuned.
    """

    knows: str
    like: str = ""
    first: Mapping[str, Any]

    def configurations(self) -> list[dict[str, Any]]:
        """Return the first configuration and others, drawn so that all values come as often."""
        rng = np.random.default_rng(0)
        columns = []
        for values in self.grid.values():
            repeated = [values[i % len(values)] for i in range(BUDGET)]
            columns.append([repeated[i] for i in rng.permutation(BUDGET)])
        drawn = [dict(zip(self.grid, row, strict=True)) for row in zip(*columns, strict=True)]
        return [dict(self.first), *drawn[1:]]


_Q_FIRST = {"gamma": 0.99, "learning_rate": 0.2, "trace": 0.8, "initial_mean": 0.02}
_DISCOUNTS = (0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_Q = {
    "gamma": _DISCOUNTS,
    "learning_rate": (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0),
    "trace": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97, 1.0),
    "initial_mean": (0.0, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3),
}
_SETTLED_FIRST = {**_Q_FIRST, "settlement": "mean"}
_SETTLED = {**_Q, "settlement": ("mean", "even", "annealed")}
_ROUNDS = {**_SETTLED, "share": (0.7, 0.8, 0.9, 1.0)}
_ROUNDS_FIRST = {**_SETTLED_FIRST, "share": 0.8}
_GAIL_FIRST = {
    "gamma": 0.95,
    "policy_rate": 0.3,
    "value_rate": 0.1,
    "discriminator_rate": 0.3,
    "trace": 0.95,
    "entropy": 0.01,
    "reward": "positive",
}
_GAIL = {
    "gamma": (0.8, 0.9, 0.95, 0.99, 0.995),
    "policy_rate": (0.03, 0.1, 0.3, 1.0, 3.0),
    "value_rate": (0.01, 0.03, 0.1, 0.3, 0.6),
    "discriminator_rate": (0.03, 0.1, 0.3, 1.0, 3.0),
    "trace": (0.5, 0.8, 0.9, 0.95, 0.99),
    "entropy": (0.0, 0.003, 0.01, 0.03, 0.1, 0.3),
    # Log D is never positive, so that it pays to do nothing: fewer of the draws have it.
    "reward": ("positive", "difference", "positive", "difference", "negative"),
}
_MEMORY = "the last event"
_LOGS = "all logs"

METHODS: dict[str, RecipeMethod] = {
    OURS: RecipeMethod(
        "Align-RUDDER",
        "vermillion",
        "o",
        _SETTLED,
        knows=f"{_LOGS}, its position",
        first=_SETTLED_FIRST,
    ),
    OURS_UNTUNED: RecipeMethod(
        "Align-RUDDER, not tuned",
        "orange",
        "^",
        {},
        knows=f"{_LOGS}, its position",
        first={},
    ),
    "consensus-alone": RecipeMethod(
        "Align-RUDDER, not tuned, without turns",
        "yellow",
        "<",
        {},
        knows=f"{_LOGS}, its position",
        first={},
    ),
    "replayed": RecipeMethod(
        "Align-RUDDER, not tuned, replayed",
        "#E39A4F",
        "3",
        {},
        knows=f"{_LOGS}, its position",
        first={},
    ),
    "median-replayed": RecipeMethod(
        "median string of the logs, in order, not tuned, replayed",
        "#9575CD",
        "4",
        {},
        knows=f"{_LOGS}, its position",
        first={},
    ),
    "shortest-log": RecipeMethod(
        "shortest log, in order",
        "blue",
        "s",
        _SETTLED,
        knows="one log, its position",
        first=_SETTLED_FIRST,
    ),
    "common-subsequence": RecipeMethod(
        "longest common subsequence, in order",
        "purple",
        "v",
        _SETTLED,
        knows=f"{_LOGS}, its position",
        first=_SETTLED_FIRST,
    ),
    "median": RecipeMethod(
        "median string of the logs, in order",
        "#5B2A86",
        ">",
        _SETTLED,
        knows=f"{_LOGS}, its position",
        first=_SETTLED_FIRST,
    ),
    "in-turn": RecipeMethod(
        "the logs in turn, each in order",
        "#1F6F8B",
        "d",
        _SETTLED,
        knows=f"{_LOGS}, its position",
        first=_SETTLED_FIRST,
    ),
    "median-in-turn": RecipeMethod(
        "median string, then the logs in turn",
        "#B5651D",
        "H",
        _SETTLED,
        knows=f"{_LOGS}, its position",
        first=_SETTLED_FIRST,
    ),
    "unordered": RecipeMethod(
        "events without aligning",
        "green",
        "D",
        _SETTLED,
        knows=f"{_LOGS}, how many kinds it saw",
        first=_SETTLED_FIRST,
    ),
    "rounds": RecipeMethod(
        "events without aligning, round and round",
        "#C2185B",
        "8",
        _ROUNDS,
        knows=f"{_LOGS}, which kind is next",
        first=_ROUNDS_FIRST,
    ),
    "collect": RecipeMethod(
        "events without aligning, any order, round after round",
        "#00897B",
        "x",
        _ROUNDS,
        knows=f"{_LOGS}, which kinds this round has seen",
        first=_ROUNDS_FIRST,
    ),
    "collect-told": RecipeMethod(
        "events without aligning, any order, told what is lost",
        "#2E7D32",
        "1",
        {},
        knows=f"{_LOGS}, which kinds this round holds",
        like="collect",
        first={},
    ),
    "collect-told-defaults": RecipeMethod(
        "events without aligning, any order, told what is lost, not tuned",
        "#66BB6A",
        "2",
        {},
        knows=f"{_LOGS}, which kinds this round holds",
        first={},
    ),
    "gail-events": RecipeMethod(
        "GAIL on events, absorbing end",
        "gray",
        "X",
        _GAIL,
        knows=f"{_LOGS}, {_MEMORY}",
        first=_GAIL_FIRST,
    ),
    "q-memory": RecipeMethod(
        "Q(λ)",
        "sky",
        "P",
        _Q,
        knows=_MEMORY,
        first={"gamma": 0.8, "learning_rate": 0.1, "trace": 0.97, "initial_mean": 0.01},
    ),
    "rrd": RecipeMethod(
        "RRD",
        "#7A4A2B",
        "h",
        {**_Q, "reward_rate": (0.03, 0.1, 0.3, 0.5, 1.0)},
        knows=_MEMORY,
        first={
            "gamma": 0.8,
            "learning_rate": 0.05,
            "trace": 0.9,
            "initial_mean": 0.0,
            "reward_rate": 0.5,
        },
    ),
    "ircr-absorbing": RecipeMethod(
        "IRCR, absorbing end",
        "#8C7A00",
        "p",
        {**_Q, "gamma": (*_DISCOUNTS[:-1], 0.995)},
        knows=_MEMORY,
        first=_Q_FIRST,
    ),
    "gail-inventory": RecipeMethod(
        "GAIL, given the inventory",
        "#333333",
        "*",
        _GAIL,
        knows=f"{_LOGS}, how many items are right",
        first={**_GAIL_FIRST, "discriminator_rate": 1.0, "trace": 0.9, "entropy": 0.1},
    ),
}

TUNED = tuple(name for name, method in METHODS.items() if method.grid)


def read_parameters(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of the methods that a file holds, as `tune` writes it."""
    kinds = {name: kinds_of(METHODS[name].grid) for name in TUNED}
    return parameters_in(path, kinds, "`align-rudder tune recipes` writes such a file")


def chosen_parameters(path: str | os.PathLike[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every method, as tuning chose them, or none.

    Args:
        path: A file that `align-rudder tune recipes` wrote; None for the one in the
            package. A method that it does not hold has the package's.
    """
    found = read_parameters(str(files("align_rudder.studies.recipes") / "hyperparameters.json"))
    if path is not None:
        found = {**found, **read_parameters(path)}
    return {name: found.get(method.like or name, {}) for name, method in METHODS.items()}
