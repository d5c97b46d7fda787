"""The methods that are compared on recipes, each named once: learner, values, colors.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from align_rudder.files import Choice, Table, Text, kind_like, read_json

__all__ = ["BUDGET", "METHODS", "OURS", "Method", "chosen_parameters", "read_parameters"]

BUDGET = 24
"""Configurations that are tried of each method."""

OURS = "align-rudder"


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Attributes:
        label: How tables and figures name it.
        knows: What it is given beside the environment's reward and where it stands.
        color: Its color in figures, by its name in the palette if it is of it.
        marker: Its marker, for print without color.
        first: The configuration that is tried first: the library's defaults for ours, for most
            rivals the best that was seen on the seeds of tuning while the lists were made.
        values: The values of each hyper-parameter from which the others are drawn.
    """

    label: str
    knows: str
    color: str
    marker: str
    first: Mapping[str, Any]
    values: Mapping[str, Sequence[Any]]

    def configurations(self) -> list[dict[str, Any]]:
        """Return the first configuration and others, drawn so that all values come as often."""
        rng = np.random.default_rng(0)
        columns = []
        for values in self.values.values():
            repeated = [values[i % len(values)] for i in range(BUDGET)]
            columns.append([repeated[i] for i in rng.permutation(BUDGET)])
        drawn = [dict(zip(self.values, row, strict=True)) for row in zip(*columns, strict=True)]
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

METHODS: dict[str, Method] = {
    OURS: Method(
        "Align-RUDDER", f"{_LOGS}, its position", "vermillion", "o", _SETTLED_FIRST, _SETTLED
    ),
    "shortest-log": Method(
        "shortest log, in order",
        "one log, its position",
        "blue",
        "s",
        {
            "gamma": 1.0,
            "learning_rate": 0.4,
            "trace": 0.5,
            "initial_mean": 0.0,
            "settlement": "even",
        },
        _SETTLED,
    ),
    "unordered": Method(
        "events without aligning",
        f"{_LOGS}, how many kinds it saw",
        "green",
        "D",
        _SETTLED_FIRST,
        _SETTLED,
    ),
    "gail-events": Method(
        "GAIL on events, absorbing end", f"{_LOGS}, {_MEMORY}", "gray", "X", _GAIL_FIRST, _GAIL
    ),
    "q-memory": Method(
        "Q(λ)",
        _MEMORY,
        "sky",
        "P",
        {"gamma": 0.8, "learning_rate": 0.1, "trace": 0.97, "initial_mean": 0.01},
        _Q,
    ),
    "rrd": Method(
        "RRD",
        _MEMORY,
        "#7A4A2B",
        "h",
        {
            "gamma": 0.8,
            "learning_rate": 0.05,
            "trace": 0.9,
            "initial_mean": 0.0,
            "reward_rate": 0.5,
        },
        {**_Q, "reward_rate": (0.03, 0.1, 0.3, 0.5, 1.0)},
    ),
    "ircr-absorbing": Method(
        "IRCR, absorbing end",
        _MEMORY,
        "#8C7A00",
        "p",
        _Q_FIRST,
        {**_Q, "gamma": (*_DISCOUNTS[:-1], 0.995)},
    ),
    "gail-inventory": Method(
        "GAIL, given the inventory",
        f"{_LOGS}, how many items are right",
        "#333333",
        "*",
        {**_GAIL_FIRST, "discriminator_rate": 1.0, "trace": 0.9, "entropy": 0.1},
        _GAIL,
    ),
}


def read_parameters(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of the methods that a file holds, as `tune` writes it."""
    kinds = {name: _parameters_of(method) for name, method in METHODS.items()}
    held = Table(kinds, optional=tuple(kinds))
    kind = Table({"how": Text(), "parameters": held}, optional=("how",))
    remedy = "`align-rudder tune recipes` writes such a file"
    return read_json(path, kind, remedy=remedy)["parameters"]


def _parameters_of(method: Method) -> Table:
    return Table(
        {
            name: Choice(tuple(values)) if isinstance(values[0], str) else kind_like(values[0])
            for name, values in method.values.items()
        }
    )


def chosen_parameters(path: str | os.PathLike[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every method, as tuning chose them.

    Args:
        path: A file that `align-rudder tune recipes` wrote; None for the one in the
            package. A method that it does not hold has the package's.
    """
    found = read_parameters(str(files("align_rudder.studies.recipes") / "hyperparameters.json"))
    return found if path is None else {**found, **read_parameters(path)}
