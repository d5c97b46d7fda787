"""Checks at the door of the model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.alignment import ENGINES
from align_rudder.episodes import Episode
from align_rudder.files import LARGEST, Flag, Maybe, Number, Whole

__all__ = [
    "PARAMETERS",
    "check_episodes",
    "check_parameters",
    "check_returns",
    "check_sequences",
]

_MOST = 1e6  # beside costs above it, scores of profiles (about 1) would vanish
PARAMETERS = {
    "alpha": Number(-_MOST, _MOST),
    "epsilon": Number(0, below=1),
    "gap": Number(0, _MOST),
    "skip": Number(0, _MOST),
    "done": Flag(),
    "engine": ENGINES,
    "refine": Whole(),
    "strategies": Maybe(Whole(1)),
    "min_conservation": Maybe(Number(0, below=1)),
    "top_n": Maybe(Whole(2)),
    "baseline": Maybe(Number()),
    "weigh_returns": Flag(),
    "subgoal_threshold": Maybe(Number(0)),
    "subgoal_conservation": Maybe(Number(above=0, high=1)),
    "subgoal_value": Maybe(Number()),
    "progress": Flag(),
}
"""What the parameters of the model may be, but for `events`, `scoring` and `undo`."""


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


def check_sequences(
    sequences: Sequence[Iterable[Hashable]], name: str = "sequences"
) -> list[list[Hashable]]:
    """Return sequences of symbols as lists."""
    if isinstance(sequences, (str, bytes)):
        raise ValueError(f"got one sequence ({sequences!r}); a list of sequences is needed")
    if isinstance(sequences, Mapping):
        raise ValueError(
            f"{name} is a mapping; a list of sequences is needed: give its values, "
            f"[*{name}.values()]"
        )
    listed = []
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, Episode):
            raise ValueError(f"{name}[{i}] is an Episode; use fit or update for episodes")
        try:
            listed.append(list(sequence))
        except TypeError as error:
            raise ValueError(
                f"{name}[{i}] is {sequence!r}; a sequence of symbols is needed"
            ) from error
    return listed


def check_returns(returns: Sequence[float] | None, n: int) -> list[float]:
    """Return n finite returns; 1 each where none are given."""
    try:
        values = np.ones(n) if returns is None else np.asarray(returns, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"returns must be numbers, one for each sequence: {error}") from error
    if values.shape != (n,):
        raise ValueError(
            f"there are {n} sequences but returns of shape {values.shape}; give one each"
        )
    if not (np.abs(values) <= LARGEST).all():
        bad = values[~(np.abs(values) <= LARGEST)][0]
        raise ValueError(f"a return is {bad}; every return must be finite, below {LARGEST:g}")
    return values.tolist()


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise a `ValueError` for a parameter of the model that cannot be meant."""
    for name, kind in PARAMETERS.items():
        kind.check(parameters[name], name)
