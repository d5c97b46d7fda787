"""Checks at the door of the model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from align_rudder.episodes import Episode

__all__ = ["check_episodes", "check_parameters", "check_returns", "check_sequences"]


def check_episodes(episodes: Sequence[Episode], name: str = "episodes") -> list[Episode]:
    """Return the episodes as a list, each seen to be one."""
    if isinstance(episodes, Episode):
        raise ValueError(f"{name} is a single Episode; a list of episodes is needed: [episode]")
    try:
        listed = list(episodes)
    except TypeError as error:
        raise ValueError(f"{name} is {episodes!r}; a list of episodes is needed") from error
    for i, episode in enumerate(listed):
        if not isinstance(episode, Episode):
            raise ValueError(
                f"{name}[{i}] is a {type(episode).__name__}; an Episode is needed. Make one with "
                "Episode(observations, actions, rewards), or use fit_events for symbols"
            )
    return listed


def check_sequences(sequences: Sequence[Iterable[Hashable]]) -> list[list[Hashable]]:
    """Return sequences of symbols as lists."""
    if isinstance(sequences, (str, bytes)):
        raise ValueError(f"got one sequence ({sequences!r}); a list of sequences is needed")
    listed = []
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, Episode):
            raise ValueError(f"sequences[{i}] is an Episode; use fit or update for episodes")
        try:
            listed.append(list(sequence))
        except TypeError as error:
            raise ValueError(
                f"sequences[{i}] is {sequence!r}; a sequence of symbols is needed"
            ) from error
    return listed


def check_returns(returns: Sequence[float] | None, n: int) -> list[float]:
    """Return n finite returns; 1 each where none are given."""
    values = np.ones(n) if returns is None else np.asarray(returns, dtype=float)
    if values.shape != (n,):
        raise ValueError(
            f"there are {n} sequences but returns of shape {values.shape}; give one each"
        )
    if not np.isfinite(values).all():
        raise ValueError("a return is NaN or infinite; every return must be finite")
    return values.tolist()


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise an error for a parameter of the model that cannot be meant."""
    for name in ("alpha", "epsilon", "baseline", "subgoal_threshold", "subgoal_value"):
        value = parameters[name]
        if value is not None and not (isinstance(value, Real) and np.isfinite(float(value))):
            raise ValueError(f"{name}={value!r} must be a finite number")
    for name, low in (("refine", 0), ("top_n", 2)):
        value = parameters[name]
        if value is not None and (not isinstance(value, Integral) or int(value) < low):
            raise ValueError(f"{name}={value!r} must be a whole number of at least {low}")
    share = parameters["min_conservation"]
    if not (isinstance(share, Real) and 0 <= float(share) < 1):
        raise ValueError(f"min_conservation={share!r} is a share, at least 0 and below 1")
