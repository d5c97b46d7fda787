"""(IV) Columns that an alignment missed: an event that most sequences hold between two others."""

from __future__ import annotations

from itertools import product

import numpy as np

from align_rudder.evidence import Kept, kept_columns
from align_rudder.null import Null
from align_rudder.sequences import GAP

__all__ = ["filled"]

_OVER = 2  # kept columns that may lie where an event gets one of its own
_TRIED = 12  # places in a round, those with most evidence first
_GAIN = 2.0  # nats that a column must add: among keys in noise, one more is found by chance
_MISSED = 0.1  # share of sequences that may lack what matters


def filled(matrix: np.ndarray, kept: Kept, null: Null) -> tuple[np.ndarray, Kept]:
    """Line up events that most sequences hold between kept columns, while that adds evidence.

    An alignment adds the scores of all events, so what is superfluous in many sequences may pull
    the same event of the others into different columns. Here each event is looked for between two
    kept columns, or where one or two of them are, and gets a column there.

    Args:
        matrix: Event ids (N, L), gap -1.
        kept: Its columns that are more than chance.
        null: What sequences look like by chance.

    Returns:
        The alignment and its kept columns, the same if nothing is missing.

    Example:
        >>> rows = ["A-BC--DE", "AB-C--DE", "A----BDE", "A--CB-DE"] * 2  # B is torn apart
        >>> matrix = np.array([["-ABCDE".index(event) - 1 for event in row] for row in rows])
        >>> null = Null.of([row[row != GAP] for row in matrix], np.full(5, 0.2))
        >>> before = kept_columns(matrix, null)
        >>> after = filled(matrix, before, null)[1]
        >>> before.events.tolist(), after.events.tolist()
        ([0, 2, 3, 4], [0, 1, 3, 4])
    """
    while len(kept.columns):
        better = _better(matrix, kept, null)
        if better is None:
            break
        matrix, kept = better
    return matrix, kept


def _better(matrix: np.ndarray, kept: Kept, null: Null) -> tuple[np.ndarray, Kept] | None:
    """Return the alignment with one column more for which there is more evidence, if any."""
    for first, last, event in _places(matrix, kept, null):
        for side in ("first", "last"):
            new = _lined_up(matrix, first, last, event, side)
            found = kept_columns(new, null)
            if found.evidence > kept.evidence + _GAIN:
                return new, found
    return None


def _places(matrix: np.ndarray, kept: Kept, null: Null) -> list[tuple[int, int, int]]:
    """Return the most evident events between kept columns: begin and end of the gap, the event.

    A sequence with w events in the gap has one of probability p there by chance with 1 − (1−p)^w.
    """
    ends = np.concatenate([[-1], kept.columns, [matrix.shape[1]]])
    values: dict[tuple[int, int, int], float] = {}
    for k, over in product(range(len(ends) - 1), range(_OVER + 1)):
        if k + over + 1 >= len(ends):
            continue
        first, last = int(ends[k]) + 1, int(ends[k + over + 1])
        inside = matrix[:, first:last]
        width = (inside != GAP).sum(axis=1)
        for event in np.unique(inside[inside != GAP]).tolist():
            held = (inside == event).any(axis=1)
            there = (inside == event).sum(axis=0).max()
            if 2 * held.sum() <= len(matrix) or held.sum() == there:
                continue
            chance = np.clip(1 - (1 - null.p[event]) ** width, 1e-9, 1 - 1e-9)
            ratio = np.where(held, (1 - _MISSED) / chance, _MISSED / (1 - chance))
            values[first, last, event] = float(np.log(ratio).sum())
    return sorted(values, key=lambda place: -values[place])[:_TRIED]


def _lined_up(matrix: np.ndarray, first: int, last: int, event: int, side: str) -> np.ndarray:
    """Return an alignment with a column for an event between two of its columns.

    What a sequence has before the event stays in columns to its left, the rest in others to its
    right; the `side` says which of several is taken.
    """
    inside = matrix[:, first:last]
    there, at = inside == event, np.arange(last - first)
    found = np.argmax(there, axis=1)
    if side == "last":
        found = last - first - 1 - np.argmax(there[:, ::-1], axis=1)
    found[~there.any(axis=1)] = last - first
    column = np.where(there.any(axis=1), event, GAP)
    left = np.where(at < found[:, None], inside, GAP)
    right = np.where(at > found[:, None], inside, GAP)
    new = np.hstack([matrix[:, :first], left, column[:, None], right, matrix[:, last:]])
    return np.ascontiguousarray(new[:, (new != GAP).any(axis=0)]).astype(matrix.dtype)
