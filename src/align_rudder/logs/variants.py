"""Equal runs once: the distinct sequences of a log, and how many runs of each outcome they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from align_rudder.data.logs import Entry, Run

__all__ = ["Chosen", "Variants", "choose", "outcomes_of", "variants_of"]


class Chosen(NamedTuple):
    """The events of a run.

    Attributes:
        ids: Their ids (T,); as many as there are symbols for one that the model does not know.
        messages: The index of the message of each (T,).
    """

    ids: np.ndarray
    messages: np.ndarray


@dataclass(frozen=True, eq=False)
class Variants:
    """Distinct sequences of a log.

    Attributes:
        events: The event ids of each.
        groups: The task of each; None where tasks do not matter.
        of: Which of them each run is (R,).
        successes: How many successes each is (N,).
        failures: How many failures (N,).
    """

    events: tuple[np.ndarray, ...]
    groups: tuple[str | None, ...]
    of: np.ndarray
    successes: np.ndarray
    failures: np.ndarray

    @property
    def tasks(self) -> np.ndarray:
        """A number from 0 on for the task of each (N,)."""
        known = {group: i for i, group in enumerate(dict.fromkeys(self.groups))}
        return np.array([known[group] for group in self.groups], int)

    def __len__(self) -> int:
        return len(self.events)


def choose(
    run: Run, chooser: Callable[[Entry], Hashable | None], ids: Mapping[Hashable, int]
) -> Chosen:
    """Return the events of a run that a chooser makes of its entries."""
    symbols, places = run.events(chooser)
    return Chosen(
        np.array([ids.get(symbol, len(ids)) for symbol in symbols], int),
        np.array([run.entries[i].message for i in places], int),
    )


def variants_of(
    runs: Sequence[Run], events: Sequence[np.ndarray], by_task: bool = False
) -> Variants:
    """Return the distinct sequences of runs.

    Args:
        runs: The runs.
        events: The event ids of each.
        by_task: Whether equal sequences of different tasks count as different.
    """
    seen: dict[tuple[bytes, str | None], int] = {}
    of, firsts = np.empty(len(runs), int), []
    for i, (run, ids) in enumerate(zip(runs, events, strict=True)):
        key = ids.tobytes(), run.group if by_task else None
        of[i] = seen.setdefault(key, len(seen))
        if of[i] == len(firsts):
            firsts.append(ids)
    n = len(seen)
    success = np.array([run.success is True for run in runs], float)
    failure = np.array([run.success is False for run in runs], float)
    return Variants(
        tuple(firsts),
        tuple(group for _, group in seen),
        of,
        np.bincount(of, success, n),
        np.bincount(of, failure, n),
    )


def outcomes_of(runs: Sequence[Run]) -> dict[str | None, tuple[int, int]]:
    """Return how many successes and failures each task has.

    Example:
        >>> outcomes_of([Run("a", (), success=True, group="x"), Run("b", (), success=False)])
        {'x': (1, 0), None: (0, 1)}
    """
    out: dict[str | None, tuple[int, int]] = {}
    for run in runs:
        if run.success is not None:
            good, bad = out.get(run.group, (0, 0))
            out[run.group] = good + run.success, bad + (not run.success)
    return out
