"""(III) What all or most sequences hold in the same order, and the alignment that it gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder._compile import njit
from align_rudder.sequences import GAP

__all__ = ["along", "central_subsequence", "common_subsequence"]

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
    at, came, m = _search(_padded(sequences, longest), lengths, n_events, beam)
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


def central_subsequence(
    sequences: Sequence[np.ndarray], n_events: int, share: float, starts: int = 3
) -> np.ndarray:
    """Return where each sequence holds the events of a subsequence that most share (N, m).

    An event that a sequence lacks is at -1: unlike with `common_subsequence`, some may.

    Args:
        sequences: Event ids of each.
        n_events: Number of kinds of events.
        share: Share of the sequences that must hold an event for it to be worth its place.
        starts: Sequences to begin with, the most central ones first.

    Notes:
        Sought is the c for which Σᵢ LCS(c, sequence i) − share · N · |c| is largest, with LCS the
        length of the longest common subsequence; with half of the sequences as share it is their
        median under insertions and deletions. Beginning with a whole sequence, the best insertion,
        deletion or substitution of one event is made until none helps.

    Example:
        >>> rows = [np.array([0, 3, 1, 2]), np.array([0, 1, 3, 2]), np.array([3, 0, 2])]
        >>> central_subsequence(rows, 4, 0.6).tolist()
        [[0, 2, 3], [0, 1, 3], [1, -1, 2]]
    """
    n = len(sequences)
    lengths = np.array([len(row) for row in sequences], np.int64)
    longest = int(lengths.max(initial=0))
    if not longest or n * (longest + 1) ** 2 > _LARGEST:
        return np.zeros((n, 0), np.int64)
    rows = _padded(sequences, longest)
    distance = [lengths[i] + lengths.sum() / n - 2 * _shared(rows, lengths, i) for i in range(n)]
    best, most = np.zeros(0, np.int64), 0.0
    for i in np.argsort(distance, kind="stable")[:starts]:
        found, value = _climb(rows[i, : lengths[i]].copy(), rows, lengths, n_events, share)
        if value > most + 1e-9:
            best, most = found, value
    return _places_of(best, rows, lengths)


def _padded(sequences: Sequence[np.ndarray], longest: int) -> np.ndarray:
    rows = np.full((len(sequences), longest), GAP, np.int64)
    for line, row in zip(rows, sequences, strict=True):
        line[: len(row)] = row
    return rows


@njit(cache=True)
def _heads(c, row):
    """Return the longest common subsequence of each beginning of c with each of a sequence."""
    out = np.zeros((len(c) + 1, len(row) + 1), np.int64)
    for t in range(len(c)):
        for j in range(len(row)):
            if c[t] == row[j]:
                out[t + 1, j + 1] = out[t, j] + 1
            else:
                out[t + 1, j + 1] = max(out[t, j + 1], out[t + 1, j])
    return out


@njit(cache=True)
def _shared(rows, lengths, i):
    """Return the mean length of what a sequence has in common with each."""
    total = 0
    for k in range(len(rows)):
        total += _heads(rows[i, : lengths[i]], rows[k, : lengths[k]])[-1, -1]
    return total / len(rows)


@njit(cache=True)
def _climb(c, rows, lengths, n_events, share):
    """Return a subsequence after the best changes of one event, and its value.

    With the common subsequences of all beginnings and all ends of c, each change is a maximum over
    the places of a sequence.
    """
    n, price = len(rows), share * len(rows)
    value = -price * len(c)
    for i in range(n):
        value += _heads(c, rows[i, : lengths[i]])[-1, -1]
    while True:
        m = len(c)
        without = np.zeros(m)
        added, instead = np.zeros((m + 1, n_events)), np.zeros((m, n_events))
        for i in range(n):
            row = rows[i, : lengths[i]]
            head, tail = _heads(c, row), _heads(c[::-1], row[::-1])[::-1, ::-1]
            for t in range(m + 1):
                kept = 0
                with_event = np.zeros(n_events, np.int64)
                for j in range(len(row)):
                    with_event[row[j]] = max(with_event[row[j]], head[t, j] + 1 + tail[t, j + 1])
                for j in range(len(row) + 1):
                    kept = max(kept, head[t, j] + tail[t, j])
                for e in range(n_events):
                    added[t, e] += max(with_event[e], kept)
                if t < m:
                    kept, with_event[:] = 0, 0
                    for j in range(len(row)):
                        here = head[t, j] + 1 + tail[t + 1, j + 1]
                        with_event[row[j]] = max(with_event[row[j]], here)
                    for j in range(len(row) + 1):
                        kept = max(kept, head[t, j] + tail[t + 1, j])
                    without[t] += kept
                    for e in range(n_events):
                        instead[t, e] += max(with_event[e], kept)
        best, where, what = value, -1, -1
        for t in range(m + 1):
            if t < m and without[t] - price * (m - 1) > best + 1e-9:
                best, where, what = without[t] - price * (m - 1), t, -1
            for e in range(n_events):
                if added[t, e] - price * (m + 1) > best + 1e-9:
                    best, where, what = added[t, e] - price * (m + 1), t, e
                if t < m and instead[t, e] - price * m > best + 1e-9:
                    best, where, what = instead[t, e] - price * m, t, n_events + e
        if where < 0:
            return c, value
        value = best
        if what < 0:
            c = np.concatenate((c[:where], c[where + 1 :]))
        elif what < n_events:
            c = np.concatenate((c[:where], np.array([what]), c[where:]))
        else:
            c = c.copy()
            c[where] = what - n_events


@njit(cache=True)
def _places_of(c, rows, lengths):
    """Return where each sequence holds the events of c, -1 for those that it lacks."""
    places = np.full((len(rows), len(c)), -1, np.int64)
    for i in range(len(rows)):
        row = rows[i, : lengths[i]]
        head, t, j = _heads(c, row), len(c), len(row)
        while t > 0 and j > 0:
            if head[t, j] == head[t - 1, j]:
                t -= 1
            elif head[t, j] == head[t, j - 1]:
                j -= 1
            else:
                t, j = t - 1, j - 1
                places[i, t] = j
    return places


def along(sequences: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Return the alignment with a column for each event of a subsequence (N, L).

    What stands between two of them follows the first in columns of its own.

    Args:
        sequences: Event ids of each.
        places: Where each holds the events of the subsequence (N, m), -1 for those that it lacks.

    Example:
        >>> rows = [np.array([0, 3, 1, 2]), np.array([0, 1, 3, 2])]
        >>> along(rows, common_subsequence(rows, 4))
        array([[ 0,  3,  1, -1,  2],
               [ 0, -1,  1,  3,  2]], dtype=int32)
    """
    n, m = places.shape
    behind = np.zeros((n, m + 1), np.int64)  # events after each column, those before the first too
    last = []
    for i, row in enumerate(sequences):
        held = np.flatnonzero(places[i] >= 0)
        at = np.concatenate([[-1], places[i, held], [len(row)]])
        column = np.concatenate([[0], held + 1])
        behind[i, column] = np.diff(at) - 1
        last.append((at, column))
    begins = np.cumsum(np.concatenate([[-1], 1 + behind.max(axis=0)]))[:-1]
    matrix = np.full((n, int(begins[-1] + 1 + behind[:, -1].max())), GAP, np.int32)
    for i, row in enumerate(sequences):
        at, column = last[i]
        t = np.arange(len(row))
        k = np.searchsorted(at, t, side="right") - 1
        matrix[i, begins[column[k]] + t - at[k]] = row
    return matrix
