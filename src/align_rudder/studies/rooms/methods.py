"""The methods that are compared, each named once: learner, grid, what tuning chose, colors.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from inspect import signature
from typing import Any

from align_rudder.files import Table
from align_rudder.presets import PAPER
from align_rudder.studies.hyperparameters import kind_of, parameters_in
from align_rudder.studies.rooms.fair import FAIR_METHODS, REPLAYED_METHODS
from align_rudder.studies.rooms.method import RoomsMethod

__all__ = [
    "COMPARED",
    "FAIR",
    "KEY_CHEST",
    "LONGER",
    "METHODS",
    "MODELS",
    "POOR",
    "REPLAYED",
    "VARIANTS",
    "Model",
    "chosen_parameters",
    "read_parameters",
]


_MEANS = (0.0, 0.02, 0.05)
_SQIL = {
    "initial_mean": _MEANS,
    "gamma": (0.8, 0.95),
    "learning_rate": (0.1, 0.2),
    "temperature": (1e-3, 1e-4),
}


_AS_IN_THE_PAPER = {
    "bootstrap": False,
    "gamma": 1.0,
    "settlement": None,
    "progress": False,
    "options": PAPER,
}
"""The paper's learner: from the shares of the redistribution alone, no discount but the trace."""


def _variant(label: str, color: str, marker: str, **fixed: Any) -> RoomsMethod:
    """Return a variant of Align-RUDDER."""
    learner, always = "learn_align_rudder", _AS_IN_THE_PAPER
    return RoomsMethod(label, color, marker, {}, learner=learner, fixed=fixed, always=always)


_PAPER: dict[str, RoomsMethod] = {
    "align-rudder": RoomsMethod(
        "Align-RUDDER",
        "vermillion",
        "o",
        {
            "initial_mean": _MEANS,
            "initial_scale": (0.3, 0.5),
            "learning_rate": (0.1, 0.2),
            "trace": (0.8, 0.9),
        },
        learner="learn_align_rudder",
        always=_AS_IN_THE_PAPER,
    ),
    "bc-q": RoomsMethod(
        "BC+Q",
        "blue",
        "s",
        {
            "initial_mean": _MEANS,
            "initial_scale": (0.1, 0.3),
            "learning_rate": (0.3, 0.1, 0.03, 0.01),
        },
        learner="learn_q",
    ),
    "control": RoomsMethod(
        "BC+Q(λ)",
        "green",
        "D",
        {
            "initial_mean": _MEANS,
            "learning_rate": (0.1, 0.2),
            "trace": (0.5, 0.7, 0.8, 0.9),
        },
        learner="learn_q",
    ),
    "dqfd": RoomsMethod(
        "DQfD",
        "orange",
        "^",
        {
            "initial_mean": _MEANS,
            "learning_rate": (0.01, 0.02),
            "n_step": (5, 10),
            "pretraining_steps": (0, 100),
        },
        learner="learn_dqfd",
    ),
    "rudder": RoomsMethod(
        "RUDDER (LSTM)",
        "sky",
        "P",
        {
            "initial_mean": _MEANS[:2],
            "learning_rate": (0.03, 0.1),
            "random_episodes": (5, 20),
            "trace": (0.0, 0.8, 0.9),
        },
        learner="learn_rudder",
        network=("random_episodes",),
    ),
    "sqil": RoomsMethod(
        "SQIL", "purple", "v", _SQIL, learner="learn_sqil", fixed={"absorbing": False}
    ),
    "sqil-absorbing": RoomsMethod(
        "SQIL, absorbing end",
        "#8F4E73",
        "<",
        _SQIL,
        learner="learn_sqil",
        fixed={"absorbing": True},
    ),
    "gail": RoomsMethod(
        "GAIL",
        "gray",
        "X",
        {
            "discriminator_rate": (0.03, 0.1),
            "entropy": (0.01, 0.1),
            "policy_rate": (0.05, 0.1, 0.3),
            "value_rate": (0.1, 0.3),
        },
        learner="learn_gail",
        fixed={"absorbing": False, "reward": "positive"},
    ),
    "gail-absorbing": RoomsMethod(
        "GAIL, absorbing end",
        "#333333",
        "*",
        {
            "discriminator_rate": (0.1, 0.3),
            "policy_rate": (0.1, 0.3),
            "reward": ("positive", "negative", "difference"),
            "value_rate": (0.1, 0.3),
        },
        learner="learn_gail",
        fixed={"absorbing": True},
    ),
    "kappa": _variant("A, κ window", "green", "D", method="kappa"),
    "direct": _variant("A, direct", "orange", "^", method="direct"),
    "method-c": _variant("C, Q-learning on R", "sky", "P", method="q-learning"),
    "subtasks": _variant("A, one table per sub-task", "purple", "v", subtasks=True),
    "settled": _variant("A, correction on last step", "#8F4E73", "<", settlement="last"),
}

COMPARED = tuple(name for name, method in _PAPER.items() if method.grid)
VARIANTS = tuple(name for name, method in _PAPER.items() if not method.grid)

METHODS: dict[str, RoomsMethod] = {**_PAPER, **FAIR_METHODS, **REPLAYED_METHODS}
FAIR = tuple(name for name, method in FAIR_METHODS.items() if method.grid)
REPLAYED = tuple(REPLAYED_METHODS)
POOR = (*(name for name in FAIR_METHODS if name != "undiscounted"), *REPLAYED)
LONGER = (*FAIR, "undiscounted")


@dataclass(frozen=True)
class Model:
    """A model whose redistributed reward is looked at on KeyChest.

    Attributes:
        label: How tables and figures name it.
        color: Its color in figures, by its name in the palette.
        events: Name of its events in `align_rudder.events` and their options; None for the LSTM.
    """

    label: str
    color: str
    events: tuple[str, Mapping[str, Any]] | None = None


KEY_CHEST = "key-chest"
MODELS = {
    "alignment": Model(
        "alignment, state differences, large clusters removed",
        "vermillion",
        ("DeltaEvents", {"max_share": 0.25}),
    ),
    "alignment-all": Model("alignment, state differences", "orange", ("DeltaEvents", {})),
    "alignment-states": Model(
        "alignment, clusters of states", "gray", ("StateEvents", {"max_events": 15})
    ),
    "lstm": Model("LSTM (RUDDER)", "sky"),
}


def read_parameters(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of the methods that a file holds, as `tune` writes it."""
    kinds = {name: _arguments_of(method) for name, method in METHODS.items()}
    return parameters_in(path, kinds, "`align-rudder tune` writes such a file")


def _arguments_of(method: RoomsMethod) -> Table:
    """Return what a method's hyper-parameters may be: arguments of its learner with a default."""
    given = {
        name: argument.default for name, argument in signature(method.function).parameters.items()
    }
    plain = (bool, int, float, str, tuple)
    kinds = {k: kind_of(k, v) for k, v in given.items() if isinstance(v, plain) and k != "seed"}
    return Table(kinds, optional=tuple(kinds))


def chosen_parameters(
    path: str | os.PathLike[str] | None = None, study: str = ""
) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every method, as `align-rudder tune` chose them.

    Args:
        path: A file that `align-rudder tune` wrote; None for the one in the package. A method that
            it does not hold has the package's.
        study: The study, if it has hyper-parameters of its own.
    """
    folder = files("align_rudder.studies.rooms")
    found = read_parameters(str(folder / "hyperparameters.json"))
    own = folder / f"hyperparameters-{study}.json"
    others = [str(own)] if own.is_file() else []
    for other in others if path is None else [*others, path]:
        found = {**found, **read_parameters(other)}
    return {
        name: {**found.get(name, found.get(method.base, {})), **method.fixed}
        for name, method in METHODS.items()
    }
