"""The methods that are compared with networks, each named once: learner, values, colors.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from align_rudder.studies.hyperparameters import kinds_of, parameters_in
from align_rudder.studies.method import Method

__all__ = ["METHODS", "OURS", "NetworkMethod", "chosen_parameters", "read_parameters"]

OURS = "align-rudder"


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(Method):
    """A method that learns the level with PPO.

    Attributes:
        knows: What it is given beside the environment's reward and the view.
        first: The configuration that is tried first, from which the others differ in one value.
        more: Whether it is given more than logs of events, so that it is no rival on equal terms.
    """

    knows: str
    first: Mapping[str, Any]
    more: bool = False

    def configurations(self) -> list[dict[str, Any]]:
        """Return the first configuration, and those that differ from it in one value.

        Example:
            >>> len(METHODS["align-rudder"].configurations())
            10
        """
        first = dict(self.first)
        others = [
            {**first, name: value}
            for name, values in self.grid.items()
            for value in values
            if value != first[name]
        ]
        return [first, *others]


_PPO_FIRST = {"learning_rate": 1e-3, "ent_coef": 0.03, "gamma": 0.99}
_PPO = {
    "learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
    "ent_coef": (0.003, 0.01, 0.03, 0.1),
    "gamma": (0.97, 0.98, 0.99, 0.995),
}
# With more to choose, fewer values of each: every method has ten configurations.
_FEWER = {
    "learning_rate": (3e-4, 1e-3, 3e-3),
    "ent_coef": (0.01, 0.03, 0.1),
    "gamma": (0.98, 0.99, 0.995),
}
_GAIL_FIRST = {**_PPO_FIRST, "discriminator_rate": 0.1, "reward": "positive"}
_GAIL = {**_FEWER, "discriminator_rate": (0.03, 0.1, 0.3), "reward": ("positive", "difference")}
_CLONED_FIRST = {
    "learning_rate": 1e-4,
    "ent_coef": 0.003,
    "gamma": 0.99,
    "epochs": 30,
    "burn_in": 50_000,
}
_CLONED = {
    "learning_rate": (3e-5, 1e-4, 3e-4),
    "ent_coef": (0.001, 0.003, 0.01),
    "gamma": (0.98, 0.99, 0.995),
    "epochs": (10, 30, 100),
    "burn_in": (10_000, 50_000),
}
_MEMORY = "the last event"
_LOGS = "all logs"

METHODS: dict[str, NetworkMethod] = {
    OURS: NetworkMethod(
        "Align-RUDDER",
        "vermillion",
        "o",
        _PPO,
        knows=f"{_LOGS}, its position",
        first=_PPO_FIRST,
    ),
    "shortest-log": NetworkMethod(
        "shortest log, in order",
        "blue",
        "s",
        _PPO,
        knows="one log, its position",
        first=_PPO_FIRST,
    ),
    "median": NetworkMethod(
        "median string of the logs, in order",
        "#5B2A86",
        ">",
        _PPO,
        knows=f"{_LOGS}, its position",
        first=_PPO_FIRST,
    ),
    "unordered": NetworkMethod(
        "events without aligning",
        "green",
        "D",
        _PPO,
        knows=f"{_LOGS}, how many kinds it saw",
        first=_PPO_FIRST,
    ),
    "rounds": NetworkMethod(
        "events without aligning, round and round",
        "#C2185B",
        "8",
        _PPO,
        knows=f"{_LOGS}, which kind is next",
        first=_PPO_FIRST,
    ),
    "gail-events": NetworkMethod(
        "GAIL on events, absorbing end",
        "gray",
        "X",
        _GAIL,
        knows=f"{_LOGS}, {_MEMORY}",
        first=_GAIL_FIRST,
    ),
    "ppo-memory": NetworkMethod(
        "PPO, discounted",
        "sky",
        "P",
        _PPO,
        knows=_MEMORY,
        first=_PPO_FIRST,
    ),
    "gail-inventory": NetworkMethod(
        "GAIL, given the inventory",
        "#333333",
        "*",
        _GAIL,
        knows=f"{_LOGS}, how many items are right",
        first=_GAIL_FIRST,
        more=True,
    ),
    "ppo-cloned": NetworkMethod(
        "PPO, cloned from states and actions",
        "#7A4A2B",
        "h",
        _CLONED,
        knows=f"observations and actions of the logs, {_MEMORY}",
        first=_CLONED_FIRST,
        more=True,
    ),
}


def read_parameters(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of the methods that a file holds, as `tune` writes it."""
    kinds = {name: kinds_of(method.grid) for name, method in METHODS.items()}
    return parameters_in(path, kinds, "`align-rudder tune networks` writes such a file")


def chosen_parameters(path: str | os.PathLike[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every method, as tuning chose them.

    Args:
        path: A file that `align-rudder tune networks` wrote; None for the one in the package. A
            method that it does not hold has the package's.
    """
    found = read_parameters(str(files("align_rudder.studies.networks") / "hyperparameters.json"))
    return found if path is None else {**found, **read_parameters(path)}
