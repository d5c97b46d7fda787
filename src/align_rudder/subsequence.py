"""(III) What all sequences hold in the same order, and the alignment that it gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder._compile import njit
from align_rudder.sequences import GAP

__all__ = ["along", "common_subsequence"]

_BEAM = 100  # beginnings that are gone on with
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
    longest = int(lengths.max(initial=0))
    nothing = np.zeros((len(sequences), 0), np.int64)
    if not lengths.all() or len(sequences) * (longest + 1) * n_events > _LARGEST:
        return nothing
    following = np.full((len(sequences), longest + 1, n_events), -1, np.int32)
    for table, row in zip(following, sequences, strict=True):
        for t in range(len(row) - 1, -1, -1):
            table[t] = table[t + 1]
            table[t, row[t]] = t
    at, came = _grow(following, lengths, beam)
    m = len(at)
    if not m:
        return nothing
    places, one = np.empty((len(sequences), m), np.int64), 0
    for k in range(m - 1, -1, -1):
        places[:, k] = at[k][one] - 1
        one = came[k][one]
    return places


def _grow(
    following: np.ndarray, lengths: np.ndarray, beam: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the beginnings of each length, the best first: where they end, and whose they were."""
    at, came = [], []
    now = np.zeros((1, len(lengths)), np.int64)
    while True:
        new, parents, used = _longer(now, following, lengths)
        if not len(new):
            return at, came
        order = np.argsort(used, kind="stable")
        new, parents = new[order], parents[order]
        _, first = np.unique(new, axis=0, return_index=True)
        chosen = np.sort(first)[:beam]
        now = new[chosen]
        at.append(now)
        came.append(parents[chosen])


@njit(cache=True)
def _longer(now, following, lengths):
    """Return all beginnings with one event more, whose they were, and how much they have used."""
    most, (n, n_events) = len(now) * following.shape[2], (len(lengths), following.shape[2])
    new, parents = np.empty((most, n), np.int64), np.empty(most, np.int64)
    used, size = np.empty(most), 0
    for b in range(len(now)):
        for event in range(n_events):
            mean, top, held = 0.0, 0.0, True
            for i in range(n):
                t = following[i, now[b, i], event]
                if t < 0:
                    held = False
                    break
                new[size, i] = t + 1
                part = (t + 1) / lengths[i]
                mean += part / n
                top = max(top, part)
            if held:
                parents[size], used[size] = b, mean + top
                size += 1
    return new[:size], parents[:size], used[:size]


def along(sequences: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Return the alignment with a column for each event of a common subsequence (N, L).

    What stands between two of them is put into columns that nothing else is in, one event in each.

    Example:
        >>> rows = [np.array([0, 3, 1, 2]), np.array([0, 1, 3, 2])]
        >>> along(rows, common_subsequence(rows, 4))
        array([[ 0,  3,  1, -1,  2],
               [ 0, -1,  1,  3,  2]], dtype=int32)
    """
    n, m = places.shape
    ends = np.hstack([np.full((n, 1), -1), places, np.array([[len(row)] for row in sequences])])
    blocks = []
    for k in range(m + 1):
        for i, row in enumerate(sequences):
            between = row[ends[i, k] + 1 : ends[i, k + 1]]
            block = np.full((n, len(between)), GAP, np.int32)
            block[i] = between
            blocks.append(block)
        if k < m:
            shared = [row[t] for row, t in zip(sequences, places[:, k], strict=True)]
            blocks.append(np.array(shared, np.int32)[:, None])
    return np.hstack(blocks)
