"""Losses: changes that take back what was gained, found in what demonstrations hold.

A key that is dropped is the reverse of a key that is taken: −1 of what was +1, and nothing else
that is held changes. Demonstrations that succeed hardly ever show it. Where they do, it counts as
a loss only if at most half of them show it, and they make it good each time: what they spend (a key
at a door, planks for a table) is not regained, and what most of them do is the way to go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.files import Array, Floats, Ints
from align_rudder.sequences import Lost

__all__ = ["LOSS_ARRAYS", "Losses", "find_losses", "named"]

LOSS_ARRAYS: dict[str, Array] = {
    "held": Ints("width", high=2, optional=True),
    "patterns": Floats("patterns", "width", optional=True),
    "pattern_events": Ints("patterns", optional=True),
    "lost_by": Ints("symbols", low=-1, optional=True),
}
"""What a file holds of losses, beside the arrays of an encoder; nothing where none were found."""

_CLOCK = 0.9  # a number that changes in more than this share of the steps is nothing that is held
_CHANGES = Callable[[np.ndarray], str]


@dataclass(frozen=True, eq=False)
class Losses:
    """Which changes are losses, and of what.

    Attributes:
        held: Which numbers of an observation are held things (d,): whole, at least zero and not a
            clock. Others may change as they like.
        patterns: Changes that are losses (m, d), zero where nothing is held.
        events: The event of each (m,).
        lost_by: For each event the one that takes it back, -1 for none (n,).
    """

    held: np.ndarray
    patterns: np.ndarray
    events: np.ndarray
    lost_by: np.ndarray

    def mark(self, deltas: np.ndarray, events: np.ndarray) -> None:
        """Put losses in place of the events of changes (T, d), in place."""
        _mark(deltas, self._at, self.patterns, self.events, events)

    @cached_property
    def _at(self) -> np.ndarray:
        return np.flatnonzero(self.held)

    def table(self) -> np.ndarray:
        """Return for each event those that it takes back (n + 1, w), filled up with -1."""
        n = len(self.lost_by)
        kinds = [np.flatnonzero(self.lost_by == e) for e in range(n)]
        table = np.full((n + 1, max(map(len, kinds))), -1, np.int64)
        for e, taken in enumerate(kinds):
            table[e, : len(taken)] = taken
        return table

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what to save, by the names of `LOSS_ARRAYS`."""
        return {
            "held": self.held.astype(np.int64),
            "patterns": self.patterns,
            "pattern_events": self.events,
            "lost_by": self.lost_by,
        }

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], n_events: int) -> Losses | None:
        """Return the losses of a file, None if it has none, or say what cannot be."""
        found = [name for name in LOSS_ARRAYS if name in arrays]
        if not found:
            return None
        if len(found) < len(LOSS_ARRAYS):
            missing = next(name for name in LOSS_ARRAYS if name not in arrays)
            raise ValueError(f"it has {found[0]!r} of losses, but not {missing!r}")
        held, patterns, events, lost_by = (arrays[name] for name in LOSS_ARRAYS)
        if len(lost_by) != n_events:
            raise ValueError(f"'lost_by' is of {len(lost_by)} events; there are {n_events}")
        losses = set(lost_by.tolist()) - {-1}
        if losses != set(events.tolist()) or not losses or max(losses) >= n_events:
            raise ValueError("'lost_by' and 'pattern_events' do not name the same events as losses")
        if (lost_by[sorted(losses)] >= 0).any():
            raise ValueError("an event is both a loss and lost")
        return cls(held.astype(bool), patterns, events, lost_by)


def named(symbols: Sequence[str], losses: Losses | None) -> list[Hashable]:
    """Return the symbols of a file, those of losses known as such."""
    of = set() if losses is None else set(losses.events.tolist())
    return [Lost(symbol) if e in of else symbol for e, symbol in enumerate(symbols)]


@njit(cache=True)
def _mark(deltas, held, patterns, labels, events):
    for t in range(len(deltas)):
        for k in range(len(patterns)):
            same = True
            for j in held:
                if deltas[t, j] != patterns[k, j]:
                    same = False
                    break
            if same:
                events[t] = labels[k]
                break


def find_losses(
    rows: Sequence[np.ndarray],
    events: Sequence[np.ndarray],
    n_events: int,
    name: _CHANGES,
    width: int | None = None,
) -> tuple[Losses | None, list[Lost]]:
    """Return the losses of demonstrations, None if nothing they gain can be lost, and their names.

    Args:
        rows: What is held after each step of each demonstration (T+1, d).
        events: The events of its steps (T,).
        n_events: Number of events; losses are numbered from here on.
        name: What a change is called.
        width: Only the first of the numbers can be held; None for all.
    """
    deltas = [np.diff(one, axis=0) for one in rows]
    flat, label = np.concatenate(deltas), np.concatenate(events)
    held = _held(np.concatenate(rows), flat)
    if width is not None:
        held[width:] = False
    changes = np.where(held, flat, 0.0)
    gains: dict[bytes, tuple[np.ndarray, list[int], list[np.ndarray]]] = {}
    for event in range(n_events):
        change = _most_frequent(changes[label == event])
        if change is not None and (change > 0).any():
            gain = np.maximum(change, 0.0)
            kind = gains.setdefault(gain.tobytes(), (gain, [], [-gain]))
            kind[1].append(event)
            kind[2].append(-change)
    lost_by = np.full(n_events, -1, np.int64)
    patterns: list[np.ndarray] = []
    of: list[int] = []
    names: list[Lost] = []
    for gain, taken, reverses in gains.values():
        found = [
            pattern
            for pattern in np.unique(np.array(reverses) + 0.0, axis=0)
            if _is_loss(pattern, held, deltas, events, taken)
        ]
        if found:
            lost = n_events + len(names)
            lost_by[taken] = lost
            patterns += found
            of += [lost] * len(found)
            alone = any((pattern == -gain).all() for pattern in found)
            names.append(Lost(name(-gain if alone else found[0])))
    if not names:
        return None, []
    lost_by = np.concatenate([lost_by, np.full(len(names), -1, np.int64)])
    return Losses(held, np.array(patterns), np.array(of, np.int64), lost_by), names


def _held(rows: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return which numbers count things: whole, at least zero, and not always changing."""
    counts = (rows >= 0).all(axis=0) & (rows == np.floor(rows)).all(axis=0)
    return counts & ((deltas != 0).mean(axis=0) <= _CLOCK)


def _most_frequent(changes: np.ndarray) -> np.ndarray | None:
    """Return the change that most of these are, None if none is that frequent."""
    kinds, counts = np.unique(changes, axis=0, return_counts=True)
    return kinds[counts.argmax()] if len(kinds) and counts.max() > counts.sum() / 2 else None


def _is_loss(
    pattern: np.ndarray, held: np.ndarray, deltas: Any, events: Any, taken: list[int]
) -> bool:
    """Return whether a change is a loss: rare in demonstrations, and made good by them."""
    shown = 0
    for change, event in zip(deltas, events, strict=True):
        lost = (change[:, held] == pattern[held]).all(axis=1)
        if lost.any():
            shown += 1
            left = np.cumsum((np.isin(event, taken) & ~lost).astype(int)[::-1] - lost[::-1])
            if left.min() < 0:
                return False
    return shown <= len(deltas) / 2
