"""The methods that are compared: their learners, their grids, and what tuning chose."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from inspect import signature
from itertools import product
from typing import Any

from align_rudder.baselines.dqfd import learn_dqfd
from align_rudder.baselines.gail import learn_gail
from align_rudder.baselines.learners import learn_align_rudder, learn_q
from align_rudder.baselines.protocol import Result
from align_rudder.baselines.rudder import learn_rudder
from align_rudder.baselines.sqil import learn_sqil
from align_rudder.files import Flag, Kind, Many, Number, Table, Text, Whole, read_json

__all__ = [
    "METHODS",
    "VARIANTS",
    "Method",
    "all_methods",
    "check_methods",
    "chosen_parameters",
    "read_parameters",
]

GRID_SIZE = 24
_LARGE = 1e9  # hyper-parameters beyond it are none


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Attributes:
        label: How tables and figures name it.
        learn: The learner.
        grid: Values of its hyper-parameters; every method has the same number of combinations.
        fixed: Arguments that are not searched.
        network: Names of the hyper-parameters with which its network is trained, if it has one.
    """

    label: str
    learn: Callable[..., Result]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    network: tuple[str, ...] | None = None

    def configurations(self) -> list[dict[str, Any]]:
        """Return every combination of the grid."""
        return [
            {**dict(zip(self.grid, values, strict=True)), **self.fixed}
            for values in product(*self.grid.values())
        ]


_MEANS = (0.0, 0.02, 0.05)
_SQIL = {
    "initial_mean": _MEANS,
    "gamma": (0.8, 0.95),
    "learning_rate": (0.1, 0.2),
    "temperature": (1e-3, 1e-4),
}

METHODS: dict[str, Method] = {
    "align-rudder": Method(
        "Align-RUDDER",
        learn_align_rudder,
        {
            "initial_mean": _MEANS,
            "initial_scale": (0.3, 0.5),
            "learning_rate": (0.1, 0.2),
            "trace": (0.8, 0.9),
        },
    ),
    "bc-q": Method(
        "BC+Q",
        learn_q,
        {
            "initial_mean": _MEANS,
            "initial_scale": (0.1, 0.3),
            "learning_rate": (0.3, 0.1, 0.03, 0.01),
        },
    ),
    "control": Method(
        "BC+Q(λ)",
        learn_q,
        {
            "initial_mean": _MEANS,
            "learning_rate": (0.1, 0.2),
            "trace": (0.5, 0.7, 0.8, 0.9),
        },
    ),
    "dqfd": Method(
        "DQfD",
        learn_dqfd,
        {
            "initial_mean": _MEANS,
            "learning_rate": (0.01, 0.02),
            "n_step": (5, 10),
            "pretraining_steps": (0, 100),
        },
    ),
    "rudder": Method(
        "RUDDER (LSTM)",
        learn_rudder,
        {
            "initial_mean": _MEANS[:2],
            "learning_rate": (0.03, 0.1),
            "random_episodes": (5, 20),
            "trace": (0.0, 0.8, 0.9),
        },
        network=("random_episodes",),
    ),
    "sqil": Method("SQIL", learn_sqil, _SQIL, {"absorbing": False}),
    "sqil-absorbing": Method("SQIL, absorbing end", learn_sqil, _SQIL, {"absorbing": True}),
    "gail": Method(
        "GAIL",
        learn_gail,
        {
            "discriminator_rate": (0.03, 0.1),
            "entropy": (0.01, 0.1),
            "policy_rate": (0.05, 0.1, 0.3),
            "value_rate": (0.1, 0.3),
        },
        {"absorbing": False, "reward": "positive"},
    ),
    "gail-absorbing": Method(
        "GAIL, absorbing end",
        learn_gail,
        {
            "discriminator_rate": (0.1, 0.3),
            "policy_rate": (0.1, 0.3),
            "reward": ("positive", "negative", "difference"),
            "value_rate": (0.1, 0.3),
        },
        {"absorbing": True},
    ),
}

VARIANTS: dict[str, Method] = {
    "kappa": Method("A, κ window", learn_align_rudder, fixed={"method": "kappa"}),
    "direct": Method("A, direct", learn_align_rudder, fixed={"method": "direct"}),
    "method-c": Method("C, Q-learning on R", learn_align_rudder, fixed={"method": "q-learning"}),
    "subtasks": Method("A, one table per sub-task", learn_align_rudder, fixed={"subtasks": True}),
    "settled": Method("A, correction on last step", learn_align_rudder, fixed={"settle": True}),
}


def all_methods() -> dict[str, Method]:
    """Return methods and variants by name."""
    return {**METHODS, **VARIANTS}


def check_methods(names: Sequence[str]) -> None:
    """Say which name is not a method."""
    for name in names:
        if name not in all_methods():
            raise ValueError(
                f"method {name!r} is not known; use some of {', '.join(all_methods())}"
            )


def read_parameters(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of the methods that a file holds, as `tune` writes it."""
    methods = {name: _arguments_of(method) for name, method in all_methods().items()}
    held = Table(methods, optional=tuple(methods))
    kind = Table({"how": Text(), "parameters": held}, optional=("how",))
    return read_json(path, kind, remedy="`align-rudder tune` writes such a file")["parameters"]


def _arguments_of(method: Method) -> Table:
    """Return what a method's hyper-parameters may be: arguments of its learner with a default."""
    kinds: dict[str, Kind] = {}
    for name, argument in signature(method.learn).parameters.items():
        default = argument.default
        if isinstance(default, bool):
            kinds[name] = Flag()
        elif isinstance(default, (int, float)) and name != "seed":
            whole = isinstance(default, int)
            kinds[name] = Whole() if whole else Number(-_LARGE, _LARGE)
        elif isinstance(default, str):
            kinds[name] = Text()  # the learner says which there are
        elif isinstance(default, tuple):
            kinds[name] = Many(Number(-_LARGE, _LARGE), len(default), len(default))
    return Table(kinds, optional=tuple(kinds))


def chosen_parameters(path: str | os.PathLike[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every method, as `align-rudder tune` chose them.

    Args:
        path: A file that `align-rudder tune` wrote; None for the one in the package. A method that
            it does not hold has the package's.
    """
    found = read_parameters(str(files("align_rudder.studies.rooms") / "hyperparameters.json"))
    if path is not None:
        found = {**found, **read_parameters(path)}
    return {
        name: {**found.get(name, found["align-rudder"]), **method.fixed}
        for name, method in all_methods().items()
    }
