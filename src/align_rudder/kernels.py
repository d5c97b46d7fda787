"""Compiled alignment kernels.

At zero gap cost an alignment is a chain of matches with positive score, so only those are visited
(`chain`); with a gap cost the whole table is filled (`table`). Both are exact. The
scores lie on a binary grid (`scoring.quantise`), so sums are exact and ties are repeatable.

A group of aligned sequences is given by its columns in compressed form: `ptr`, and for each entry
an event and how often it stands in that column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["chain", "columns_of", "cross_score", "pair_scores", "sum_of_pairs", "table"]

_DIAGONAL, _UP, _LEFT = np.uint8(0), np.uint8(1), np.uint8(2)


@njit(cache=True)
def columns_of(matrix, n_events):
    """Return the columns of an alignment matrix in compressed form: ptr, events, counts."""
    n, length = matrix.shape
    ptr = np.zeros(length + 1, np.int64)
    events = np.empty(matrix.size, np.int32)
    counts = np.empty(matrix.size, np.int64)
    seen = np.full(n_events, -1, np.int64)
    size = 0
    for j in range(length):
        start = size
        for i in range(n):
            e = matrix[i, j]
            if e < 0:
                continue
            if seen[e] >= start:
                counts[seen[e]] += 1
            else:
                seen[e] = size
                events[size] = e
                counts[size] = 1
                size += 1
        ptr[j + 1] = size
    return ptr, events[:size].copy(), counts[:size].copy()


@njit(cache=True)
def sum_of_pairs(ptr, events, counts, n, scores, gap):
    """Return the sum over columns and pairs of rows; an event beside a gap costs `gap`."""
    total = 0.0
    for j in range(len(ptr) - 1):
        occupied = 0
        for x in range(ptr[j], ptr[j + 1]):
            e, c = events[x], counts[x]
            occupied += c
            total += scores[e, e] * (c * (c - 1) // 2)
            for y in range(x + 1, ptr[j + 1]):
                total += scores[e, events[y]] * (c * counts[y])
        total -= gap * (occupied * (n - occupied))
    return total


@njit(cache=True)
def cross_score(matrix, row, scores, gap):
    """Return the sum of pairs between one row of an alignment and all the others."""
    n, length = matrix.shape
    total = 0.0
    for j in range(length):
        e = matrix[row, j]
        for i in range(n):
            if i == row:
                continue
            f = matrix[i, j]
            if e >= 0 and f >= 0:
                total += scores[e, f]
            elif e >= 0 or f >= 0:
                total -= gap
    return total


@njit(cache=True)
def _partners(ptr, events, scores):
    """For each event, the columns (falling) that hold an event it scores positively with."""
    n, length = scores.shape[0], len(ptr) - 1
    likes_ptr = np.zeros(n + 1, np.int64)
    for f in range(n):
        likes_ptr[f + 1] = likes_ptr[f] + (scores[:, f] > 0).sum()
    likes = np.empty(likes_ptr[n], np.int32)
    for f in range(n):
        likes[likes_ptr[f] : likes_ptr[f + 1]] = np.flatnonzero(scores[:, f] > 0)
    out_ptr = np.zeros(n + 1, np.int64)
    out = np.empty(0, np.int32)
    at = np.zeros(n, np.int64)
    for filling in range(2):
        mark = np.full(n, -1, np.int64)
        for j in range(length - 1, -1, -1):
            for x in range(ptr[j], ptr[j + 1]):
                f = events[x]
                for y in range(likes_ptr[f], likes_ptr[f + 1]):
                    e = likes[y]
                    if mark[e] == j:
                        continue
                    mark[e] = j
                    if filling:
                        out[at[e]] = j
                        at[e] += 1
                    else:
                        out_ptr[e + 1] += 1
        if not filling:
            out_ptr = np.cumsum(out_ptr)
            out = np.empty(out_ptr[n], np.int32)
            at = out_ptr[:n].copy()
    return out_ptr, out


@njit(cache=True)
def _candidates(a_ptr, a_events, i, part_ptr, part, mark, buffer):
    """Write the columns of B that column i of A may match, falling; return how many."""
    size = 0
    for x in range(a_ptr[i], a_ptr[i + 1]):
        e = a_events[x]
        for y in range(part_ptr[e], part_ptr[e + 1]):
            j = part[y]
            if mark[j] != i:
                mark[j] = i
                buffer[size] = j
                size += 1
    if a_ptr[i + 1] - a_ptr[i] > 1:
        buffer[:size].sort()
        buffer[:size] = buffer[:size][::-1].copy()
    return size


@njit(cache=True)
def chain(a_ptr, a_events, a_counts, b_ptr, b_events, b_counts, scores):
    """Return the best chain of matched columns at zero gap cost: (score, columns of A, of B).

    `row[j]` is the best score with the columns of A so far and columns below j of B; it never
    falls along j, so a new value is carried to the right only as far as it is larger.
    """
    n_a, n_b = len(a_ptr) - 1, len(b_ptr) - 1
    part_ptr, part = _partners(b_ptr, b_events, scores)
    row = np.zeros(n_b + 1)
    node = np.full(n_b + 1, -1, np.int64)
    mark = np.full(n_b, -1, np.int64)
    buffer = np.empty(n_b, np.int32)
    node_i, node_j = np.empty(1024, np.int32), np.empty(1024, np.int32)
    node_before = np.empty(1024, np.int64)
    size = 0
    for i in range(n_a):
        for c in range(_candidates(a_ptr, a_events, i, part_ptr, part, mark, buffer)):
            j = buffer[c]
            score = 0.0
            for x in range(a_ptr[i], a_ptr[i + 1]):
                for y in range(b_ptr[j], b_ptr[j + 1]):
                    score += scores[a_events[x], b_events[y]] * (a_counts[x] * b_counts[y])
            if score <= 0:
                continue
            value = row[j] + score
            if value <= row[j + 1]:
                continue
            if size == len(node_i):
                node_i = np.concatenate((node_i, np.empty_like(node_i)))
                node_j = np.concatenate((node_j, np.empty_like(node_j)))
                node_before = np.concatenate((node_before, np.empty_like(node_before)))
            node_i[size], node_j[size], node_before[size] = i, j, node[j]
            k = j + 1
            while k <= n_b and row[k] < value:
                row[k] = value
                node[k] = size
                k += 1
            size += 1
    length = 0
    at = node[n_b]
    while at >= 0:
        length += 1
        at = node_before[at]
    match_a, match_b = np.empty(length, np.int32), np.empty(length, np.int32)
    at = node[n_b]
    for k in range(length - 1, -1, -1):
        match_a[k], match_b[k] = node_i[at], node_j[at]
        at = node_before[at]
    return row[n_b], match_a, match_b


@njit(cache=True)
def table(a_ptr, a_events, a_counts, n_a, b_ptr, b_events, b_counts, n_b, scores, gap):
    """Return the best alignment of two groups by the full table: (score, columns of A, of B).

    `n_a` and `n_b` are the numbers of sequences in the groups: a column against a gap costs
    `gap` for each of its events and each sequence of the other group.
    """
    length_a, length_b = len(a_ptr) - 1, len(b_ptr) - 1
    n_events = scores.shape[0]
    against_b = np.zeros((n_events, length_b))
    skip_b = np.zeros(length_b)
    holes_b = np.zeros(length_b)
    filled_b = np.zeros(length_b)
    for j in range(length_b):
        filled = 0
        for y in range(b_ptr[j], b_ptr[j + 1]):
            filled += b_counts[y]
            for e in range(n_events):
                against_b[e, j] += scores[e, b_events[y]] * b_counts[y]
        skip_b[j] = -gap * filled * n_a
        filled_b[j] = filled
        holes_b[j] = n_b - filled
    moves = np.empty((length_a + 1, length_b + 1), np.uint8)
    row = np.zeros(length_b + 1)
    moves[0, :] = _LEFT
    for j in range(length_b):
        row[j + 1] = row[j] + skip_b[j]
    match = np.empty(length_b)
    for i in range(length_a):
        filled = 0
        match[:] = 0.0
        for x in range(a_ptr[i], a_ptr[i + 1]):
            filled += a_counts[x]
            for j in range(length_b):
                match[j] += a_counts[x] * against_b[a_events[x], j]
        skip_a = -gap * filled * n_b
        for j in range(length_b):
            match[j] -= gap * (filled * holes_b[j] + (n_a - filled) * filled_b[j])
        before = row[0]
        row[0] += skip_a
        moves[i + 1, 0] = _UP
        for j in range(length_b):
            diagonal = before + match[j]
            up = row[j + 1] + skip_a
            left = row[j] + skip_b[j]
            before = row[j + 1]
            best, move = up, _UP
            if left > best:
                best, move = left, _LEFT
            if diagonal > best:
                best, move = diagonal, _DIAGONAL
            row[j + 1] = best
            moves[i + 1, j + 1] = move
    match_a = np.empty(min(length_a, length_b), np.int32)
    match_b = np.empty(min(length_a, length_b), np.int32)
    i, j, size = length_a, length_b, 0
    while i > 0 or j > 0:
        move = moves[i, j]
        if move == _DIAGONAL:
            i -= 1
            j -= 1
            match_a[size], match_b[size] = i, j
            size += 1
        elif move == _UP:
            i -= 1
        else:
            j -= 1
    return row[length_b], match_a[:size][::-1].copy(), match_b[:size][::-1].copy()


@njit(cache=True, nogil=True)
def _chain_score(a, against_b, row):
    row[:] = 0.0
    for e in a:
        gain = against_b[e]
        before = 0.0
        running = 0.0
        for j in range(len(gain)):
            matched = before + gain[j]
            before = row[j]
            running = max(running, max(before, matched))
            row[j] = running
    return row[-1] if len(row) else 0.0


@njit(cache=True, nogil=True)
def _table_score(a, b, scores, gap, row):
    n_b = len(row) - 1
    for j in range(n_b + 1):
        row[j] = -gap * j
    for e in a:
        before = row[0]
        row[0] -= gap
        for j in range(n_b):
            best = max(before + scores[e, b[j]], row[j + 1] - gap, row[j] - gap)
            before = row[j + 1]
            row[j + 1] = best
    return row[n_b]


@njit(cache=True, nogil=True)
def pair_scores(flat, offsets, pairs, scores, gap):
    """Return the alignment score of each pair of sequences (rows of `pairs`, sorted by the second).

    `flat` holds all sequences one after the other, sequence i from offsets[i] to offsets[i + 1].
    """
    out = np.empty(len(pairs))
    last = -1
    b = flat[:0]
    row = np.empty(1)
    against_b = np.empty((0, 0))
    for p in range(len(pairs)):
        if pairs[p, 1] != last:
            last = pairs[p, 1]
            b = flat[offsets[last] : offsets[last + 1]]
            row = np.empty(len(b) + (gap != 0.0))
            if gap == 0.0:
                against_b = scores[:, b]
        a = flat[offsets[pairs[p, 0]] : offsets[pairs[p, 0] + 1]]
        if gap == 0.0:
            out[p] = _chain_score(a, against_b, row)
        else:
            out[p] = _table_score(a, b, scores, gap, row)
    return out
