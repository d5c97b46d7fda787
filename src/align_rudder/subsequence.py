"""(III) What all sequences hold in the same order, and the alignment that it gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder._compile import njit
from align_rudder.sequences import GAP

__all__ = ["along", "common_subsequence"]

_BEAM = 50  # beginnings that are gone on with
_LARGEST = 50_000_000  # entries of the tables beyond which nothing is looked for


def common_subsequence(
    sequences: Sequence[np.ndarray], n_events: int, beam: int = _BEAM
) -> np.ndarray:
    """Return where each sequence holds the events of a long common subsequence (N, m).

    Args:
        sequences: Event ids of each.
        n_events: Number of kinds of events.
        beam: Beginnings of each length that are gone on with.

    Notes:
        The longest one of many sequences is hard to find. Beginnings grow by one event at a time,
        each taken as early as possible; of all that are equally long, those are gone on with that
        have used least of the sequences.

    Example:
        >>> rows = [np.array([0, 3, 1, 2]), np.array([0, 1, 3, 2]), np.array([3, 0, 1, 2])]
        >>> common_subsequence(rows, 4).tolist()
        [[0, 2, 3], [0, 1, 3], [1, 2, 3]]
    """
    lengths = np.array([len(row) for row in sequences], np.int64)
    shortest, longest = int(lengths.min(initial=2**31)), int(lengths.max(initial=0))
    largest = len(sequences) * max((longest + 1) * n_events, shortest * beam)
    if not longest or not shortest or largest > _LARGEST:
        return np.zeros((len(sequences), 0), np.int64)
    padded = np.full((len(sequences), longest), GAP, np.int64)
    for line, row in zip(padded, sequences, strict=True):
        line[: len(row)] = row
    at, came, m = _search(padded, lengths, n_events, beam)
    places, one = np.empty((len(sequences), m), np.int64), 0
    for k in range(m - 1, -1, -1):
        places[:, k] = at[k, one] - 1
        one = came[k, one]
    return places


@njit(cache=True)
def _search(rows, lengths, n_events, beam):
    """Return the beginnings of each length, the best first, whose they were, and how many lengths.

    A beginning is how much of each sequence it has used.
    """
    n, longest = rows.shape
    following = np.full((n, longest + 1, n_events), -1, np.int64)  # where each event comes next
    for i in range(n):
        for t in range(lengths[i] - 1, -1, -1):
            following[i, t] = following[i, t + 1]
            following[i, t, rows[i, t]] = t
    most = lengths.min()
    at, came = np.empty((most, beam, n), np.int64), np.empty((most, beam), np.int64)
    new, whose = np.empty((beam * n_events, n), np.int64), np.empty(beam * n_events, np.int64)
    used, now, count = np.empty(beam * n_events), np.zeros((1, n), np.int64), 1
    for k in range(most):
        size = 0
        for b in range(count):
            for event in range(n_events):
                mean, top, held = 0.0, 0.0, True
                for i in range(n):
                    t = following[i, now[b, i], event]
                    if t < 0:
                        held = False
                        break
                    new[size, i] = t + 1
                    mean += (t + 1) / lengths[i] / n
                    top = max(top, (t + 1) / lengths[i])
                if held:
                    whose[size], used[size] = b, mean + top
                    size += 1
        if size == 0:
            return at, came, k
        count = 0
        for j in np.argsort(used[:size], kind="mergesort"):
            twice = False
            for c in range(count):
                twice = twice or (at[k, c] == new[j]).all()
            if not twice:
                at[k, count], came[k, count] = new[j], whose[j]
                count += 1
            if count == beam:
                break
        now = at[k]
    return at, came, most


def along(sequences: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Return the alignment with a column for each event of a common subsequence (N, L).

    What stands between two of them follows the first in columns of its own.

    Example:
        >>> rows = [np.array([0, 3, 1, 2]), np.array([0, 1, 3, 2])]
        >>> along(rows, common_subsequence(rows, 4))
        array([[ 0,  3,  1, -1,  2],
               [ 0, -1,  1,  3,  2]], dtype=int32)
    """
    n = len(places)
    ends = np.hstack([np.full((n, 1), -1), places, np.array([[len(row)] for row in sequences])])
    begins = np.concatenate([[-1], np.cumsum(np.diff(ends, axis=1).max(axis=0)) - 1])
    matrix = np.full((n, begins[-1]), GAP, np.int32)
    for i, row in enumerate(sequences):
        t = np.arange(len(row))
        k = np.searchsorted(ends[i], t, side="right") - 1
        matrix[i, begins[k] + t - ends[i, k]] = row
    return matrix
