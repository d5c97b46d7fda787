"""Compiled alignment kernels.

At zero gap cost an alignment is a chain of matches, and a row of the table is a running maximum
over the row before (`chain`, `pair_scores`); with a gap cost the whole table is filled (`table`).
Both are exact. The scores lie on a binary grid (`scoring.quantise`), so sums are exact and ties are
repeatable.

A group of aligned sequences is given by its columns in compressed form: `ptr`, and for each entry
an event and how often it stands in that column.
"""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit

__all__ = [
    "against",
    "chain",
    "columns_of",
    "cross_score",
    "improve_row",
    "interleave",
    "join",
    "join_in_order",
    "pair_scores",
    "refine",
    "sum_of_pairs",
    "table",
    "whole_chain",
    "without_row",
]

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
        if e < 0 and gap == 0.0:
            continue
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
def without_row(matrix, row):
    """Return an alignment without one of its rows, and which columns are left; no empty ones."""
    n, length = matrix.shape
    columns, size = np.empty(length, np.int64), 0
    for j in range(length):
        for i in range(n):
            if i != row and matrix[i, j] >= 0:
                columns[size] = j
                size += 1
                break
    out = np.empty((n - 1, size), np.int32)
    for i in range(n - 1):
        source = i if i < row else i + 1
        for j in range(size):
            out[i, j] = matrix[source, columns[j]]
    return out, columns[:size]


@njit(cache=True)
def interleave(a, b, match_a, match_b):
    """Lay out two groups so that matched columns coincide; between matches, A's columns first."""
    (n_a, length_a), (n_b, length_b) = a.shape, b.shape
    place_a, place_b = np.empty(length_a, np.int64), np.empty(length_b, np.int64)
    i = j = place = 0
    for k in range(len(match_a) + 1):
        last = k == len(match_a)
        while i < (length_a if last else match_a[k]):
            place_a[i] = place
            i, place = i + 1, place + 1
        while j < (length_b if last else match_b[k]):
            place_b[j] = place
            j, place = j + 1, place + 1
        if not last:
            place_a[i] = place_b[j] = place
            i, j, place = i + 1, j + 1, place + 1
    out = np.full((n_a + n_b, place), -1, np.int32)
    for i in range(n_a):
        for k in range(length_a):
            out[i, place_a[k]] = a[i, k]
    for i in range(n_b):
        for k in range(length_b):
            out[n_a + i, place_b[k]] = b[i, k]
    return out


@njit(cache=True)
def against(ptr, events, counts, scores):
    """Return the score of each event against each column of a group (n_events, L)."""
    n, length = scores.shape[0], len(ptr) - 1
    out = np.zeros((n, length))
    for e in range(n):
        for j in range(length):
            for y in range(ptr[j], ptr[j + 1]):
                out[e, j] += scores[e, events[y]] * counts[y]
    return out


@njit(cache=True, nogil=True)
def _advance(row, gain, times):
    """Set row to cummax(max(row, shift(row) + times · gain)); row[0] is a boundary."""
    before, running = row[0], row[0]
    for j in range(len(gain)):
        matched = before + times * gain[j]
        before = row[j + 1]
        running = max(running, max(before, matched))
        row[j + 1] = running


@njit(cache=True)
def _gain_of(ptr, events, counts, i, against, mixed):
    """Return the score of column i against each column of the other group, and a factor."""
    first, last = ptr[i], ptr[i + 1]
    if last - first == 1:
        return against[events[first]], float(counts[first])
    mixed[:] = 0.0
    for x in range(first, last):
        gain = against[events[x]]
        for j in range(len(mixed)):
            mixed[j] += counts[x] * gain[j]
    return mixed, 1.0


@njit(cache=True)
def _fill(a_scores, b_ptr, b_events, b_counts):
    """Return the table of best scores at zero gap cost: the first j columns of B, the first i of A.

    `a_scores` holds the score of each event against each column of A (`against`).
    """
    length_a, length_b = a_scores.shape[1], len(b_ptr) - 1
    table, mixed = np.empty((length_b + 1, length_a + 1)), np.empty(length_a)
    table[0] = 0.0
    for j in range(length_b):
        gain, times = _gain_of(b_ptr, b_events, b_counts, j, a_scores, mixed)
        before, row = table[j], table[j + 1]
        running = row[0] = before[0]
        for i in range(length_a):
            running = max(running, max(before[i + 1], before[i] + times * gain[i]))
            row[i + 1] = running
    return table


@njit(cache=True)
def _trace(table, a_scores, b_ptr, b_events, b_counts):
    """Return the columns of A and of B that the best chain matches; of equal ones, A skips late."""
    i, j = a_scores.shape[1], len(b_ptr) - 1
    size = min(i, j)
    match_a, match_b = np.empty(size, np.int32), np.empty(size, np.int32)
    while i > 0 and j > 0:
        here, left = table[j, i], table[j - 1, i]
        if table[j, i - 1] == here:
            i -= 1
            continue
        matched = here
        if left == here:
            matched = table[j - 1, i - 1]
            for x in range(b_ptr[j - 1], b_ptr[j]):
                matched += b_counts[x] * a_scores[b_events[x], i - 1]
        j -= 1
        if matched >= left:
            i -= 1
            size -= 1
            match_a[size], match_b[size] = i, j
    return match_a[size:].copy(), match_b[size:].copy()


@njit(cache=True)
def whole_chain(a_ptr, a_events, a_counts, b_ptr, b_events, b_counts, scores):
    """Return what `chain` returns, with the whole table in memory: quicker, where it is small."""
    a_scores = against(a_ptr, a_events, a_counts, scores)
    table = _fill(a_scores, b_ptr, b_events, b_counts)
    match_a, match_b = _trace(table, a_scores, b_ptr, b_events, b_counts)
    return table[-1, -1], match_a, match_b


@njit(cache=True)
def join(a, b, scores):
    """Return two groups as one, aligned at zero gap cost with the whole table in memory."""
    columns_a, columns_b = columns_of(a, len(scores)), columns_of(b, len(scores))
    score, match_a, match_b = whole_chain(*columns_a, *columns_b, scores)
    return score, interleave(a, b, match_a, match_b)


@njit(cache=True)
def join_in_order(a, rows_a, b, rows_b, scores):
    """Return two groups as one (`join`), sorted by the numbers of their rows, and these."""
    joined = join(a, b, scores)[1]
    rows = np.concatenate((rows_a, rows_b))
    order = np.argsort(rows)
    out = np.empty_like(joined)
    for i in range(len(order)):
        out[i] = joined[order[i]]
    return out, rows[order]


@njit(cache=True)
def refine(matrix, rounds, scores):
    """Give each row in turn its best place beside the others, at zero gap cost (`improve_row`).

    The rounds end early when no row has moved since each was looked at.
    """
    n, still = len(matrix), 0
    totals = against(*columns_of(matrix, len(scores)), scores)
    for k in range(rounds * n):
        if still == n:
            break
        better, matrix = improve_row(matrix, k % n, totals, scores)
        if better:
            totals = against(*columns_of(matrix, len(scores)), scores)
        still = 1 if better else still + 1
    return matrix


@njit(cache=True)
def improve_row(matrix, row, totals, scores):
    """Return whether one row has a better place beside the others at zero gap cost, and that.

    Args:
        matrix: The alignment.
        row: Which row.
        totals: The score of each event against each column (`against`); left as it was.
        scores: The scoring matrix.
    """
    columns = np.flatnonzero(matrix[row] >= 0)
    sequence = matrix[row][columns]
    now = 0.0
    for e, j in zip(sequence, columns):
        for f in range(len(scores)):
            totals[f, j] -= scores[f, e]
        now += totals[e, j]
    ptr, counts = np.arange(len(sequence) + 1), np.ones(len(sequence), np.int64)
    table = _fill(totals, ptr, sequence, counts)
    better = table[-1, -1] > now
    if better:
        others, held = without_row(matrix, row)
        match_a, match_b = _trace(table, totals, ptr, sequence, counts)
        match_a = np.searchsorted(held, match_a).astype(np.int32)
        joined = interleave(others, sequence.reshape(1, -1), match_a, match_b)
        out = np.empty_like(joined)
        out[:row], out[row], out[row + 1 :] = joined[:row], joined[-1], joined[row:-1]
        return True, out
    for e, j in zip(sequence, columns):
        for f in range(len(scores)):
            totals[f, j] += scores[f, e]
    return False, matrix


@njit(cache=True)
def _tile_moves(top, left, a_ptr, a_events, a_counts, first, against, moves):
    """Fill the moves of one tile from its upper edge `top` (in place) and its left edge."""
    for r in range(len(left)):
        before = top[0]
        top[0] = left[r]
        for c in range(against.shape[1]):
            gain = 0.0
            for x in range(a_ptr[first + r], a_ptr[first + r + 1]):
                gain += a_counts[x] * against[a_events[x], c]
            matched, up = before + gain, top[c + 1]
            before = up
            if max(matched, top[c]) <= up:
                moves[r, c] = _UP
            elif matched >= top[c]:
                moves[r, c], top[c + 1] = _DIAGONAL, matched
            else:
                moves[r, c], top[c + 1] = _LEFT, top[c]


@njit(cache=True)
def chain(a_ptr, a_events, a_counts, b_ptr, b_events, b_counts, scores, tile=64):
    """Return the best chain of matched columns at zero gap cost: (score, columns of A, of B).

    Only every `tile`-th row and column of the table is kept; going back, the tiles that the path
    crosses are filled again. Memory is 16 / tile bytes a cell.
    """
    n_a, n_b = len(a_ptr) - 1, len(b_ptr) - 1
    scores_b = against(b_ptr, b_events, b_counts, scores)
    row, mixed = np.zeros(n_b + 1), np.empty(n_b)
    rows = np.empty((n_a // tile + 1, n_b + 1))
    edges = np.zeros((n_a + 1, n_b // tile + 1))
    for i in range(n_a):
        if i % tile == 0:
            rows[i // tile] = row
        gain, times = _gain_of(a_ptr, a_events, a_counts, i, scores_b, mixed)
        _advance(row, gain, times)
        for k in range(edges.shape[1]):
            edges[i + 1, k] = row[k * tile]
    size = min(n_a, n_b)
    match_a, match_b = np.empty(size, np.int32), np.empty(size, np.int32)
    moves = np.empty((tile, tile), np.uint8)
    i, j = n_a, n_b
    while i > 0 and j > 0:
        up, left = (i - 1) // tile, (j - 1) // tile
        i0, j0 = up * tile, left * tile
        top = rows[up, j0 : j + 1].copy()
        side = edges[i0 + 1 : i + 1, left]
        _tile_moves(top, side, a_ptr, a_events, a_counts, i0, scores_b[:, j0:j], moves)
        while i > i0 and j > j0:
            move = moves[i - 1 - i0, j - 1 - j0]
            if move != _LEFT:
                i -= 1
            if move != _UP:
                j -= 1
            if move == _DIAGONAL:
                size -= 1
                match_a[size], match_b[size] = i, j
    return row[n_b], match_a[size:].copy(), match_b[size:].copy()


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
        _advance(row, against_b[e], 1.0)
    return row[-1]


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
            row = np.empty(len(b) + 1)
            if gap == 0.0:
                against_b = scores[:, b]
        a = flat[offsets[pairs[p, 0]] : offsets[pairs[p, 0] + 1]]
        if gap == 0.0:
            out[p] = _chain_score(a, against_b, row)
        else:
            out[p] = _table_score(a, b, scores, gap, row)
    return out
