"""Equal runs once: the distinct sequences of a log, and how many runs of each outcome they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from align_rudder.data.logs import Entry, Run

__all__ = ["Chosen", "Variants", "choose", "variants_of"]


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
    runs: Sequence[Run], events: Sequence[np.ndarray], per_group: bool = False
) -> Variants:
    """Return the distinct sequences of runs.

    Args:
        runs: The runs.
        events: The event ids of each.
        per_group: Whether equal sequences of different tasks count as different.
    """
    seen: dict[tuple[bytes, str | None], int] = {}
    of, firsts = np.empty(len(runs), int), []
    for i, (run, ids) in enumerate(zip(runs, events, strict=True)):
        key = ids.tobytes(), run.group if per_group else None
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
