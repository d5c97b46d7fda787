"""(IV) Evidence: which columns of an alignment are more than chance, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from align_rudder._compile import njit
from align_rudder.null import Null
from align_rudder.sequences import GAP

__all__ = ["Kept", "chain_evidence", "directed_evidence", "embedding", "kept_columns"]

_PRIOR = 10.0  # of a column's share, Beta(10, 1): most demonstrations hold what matters
_LITTLE, _SHARED = 2.0, 1.0  # nats that a column costs which this share of demonstrations holds
_SMALL = 2.0**-500  # below, probabilities are scaled
_NEVER = -1e6  # logarithm of what cannot happen
_MOST_LEFT_OUT = 20  # with more columns, leaving each out once takes long and changes little


@njit(cache=True)
def embedding(chain, start, transition, length):
    """Return the probability that a random sequence of each length 0…`length` holds the chain.

    The chain need not be held in one piece: other events may stand between its own.

    Args:
        chain: Event ids (m,).
        start: Probability of each event to be the first (n,).
        transition: Probability of each event after each other (n, n); (1, n) where events do
            not depend on the one before.
        length: The longest sequence.
    """
    m, out = len(chain), np.zeros(length + 1)
    if m == 0:
        out[:] = 1.0
        return out
    if transition.shape[0] == 1:
        state = np.zeros(m + 1)
        state[0] = 1.0
        for t in range(length):
            # Who is further behind cannot reach the end any more.
            for j in range(min(t, m - 1), max(m - length + t, 0) - 1, -1):
                p = transition[0, chain[j]]
                if t == 0:
                    p = start[chain[j]]
                state[j + 1] += state[j] * p
                state[j] -= state[j] * p
            out[t + 1] = state[m]
        return out
    # Having matched an event, a sequence is at that event: when it comes to the next one does not
    # depend on what was before. `spare` is how many other events may stand between, and one.
    spare = length - m + 1
    if spare < 1:
        return out
    waits = _waits(chain, start, transition, spare)
    found = waits[0].copy()
    for j in range(1, m):
        before, found = found, np.zeros(spare)
        for d in range(spare):
            p = waits[j, d]
            for e in range(spare - d):
                found[d + e] += p * before[e]
    out[m:] = np.cumsum(found)
    return out


@njit(cache=True)
def _waits(chain, start, transition, steps):
    """Return the probability that each event of a chain comes 1, 2, … steps after the one before.

    That is for the first time, and for the first event after the beginning: (m, steps).
    """
    n, back = len(transition), transition.T.copy()
    out, reach = np.zeros((len(chain), steps)), np.zeros((steps, n))
    for event in np.unique(chain):
        reach[0] = back[event]
        for t in range(1, steps):
            reach[t] = 0.0
            for c in range(n):
                if c != event:
                    for a in range(n):
                        reach[t, a] += back[c, a] * reach[t - 1, c]
        for j in range(1, len(chain)):
            if chain[j] == event:
                out[j] = reach[:, chain[j - 1]]
        if chain[0] == event:
            out[0, 0] = start[event]
            for t in range(1, steps):
                for a in range(n):
                    if a != event:
                        out[0, t] += start[a] * reach[t - 1, a]
    return out


@njit(cache=True)
def _log_embedding(chain, start, transition, length):
    """Return the logarithm of what `embedding` has for one length, also where that is too small.

    Event by event, the probabilities of all lengths are scaled up as they fall.
    """
    m, shift = len(chain), 0.0
    spare = length - m + 1
    if spare < 1:
        return -np.inf
    if transition.shape[0] == 1:
        found = np.ones(length + 1)
        for j in range(m):
            p, before = transition[0, chain[j]], found
            found = np.zeros(length + 1)
            for t in range(1, length + 1):
                chance = start[chain[0]] if j == 0 and t == 1 else p
                found[t] = (1.0 - chance) * found[t - 1] + chance * before[t - 1]
            while 0.0 < found[length] < _SMALL:
                found *= 1.0 / _SMALL
                shift += np.log(_SMALL)
        last = found[length]
    else:
        waits = _waits(chain, start, transition, spare)
        found = waits[0].copy()
        for j in range(1, m):
            before, found = found, np.zeros(spare)
            for d in range(spare):
                for e in range(spare - d):
                    found[d + e] += waits[j, d] * before[e]
            while 0.0 < found.max() < _SMALL:
                found *= 1.0 / _SMALL
                shift += np.log(_SMALL)
        last = found.sum()
    return np.log(last) + shift if last > 0.0 else -np.inf


@njit(cache=True)
def _surprise(chain, held, lengths, start, transition, enough):
    """Return −Σ ln of the probability that sequences hold by chance what they hold of a chain.

    Sequences are left out once the sum is above `enough`; each would only add to it.
    """
    total = 0.0
    for i in range(len(held)):
        if total > enough:
            break
        seen = False
        for k in range(i):  # the same events in a sequence of the same length
            if lengths[k] == lengths[i] and (held[k] == held[i]).all():
                seen = True
                break
        if seen:
            continue
        times = 0
        for k in range(i, len(held)):
            if lengths[k] == lengths[i] and (held[k] == held[i]).all():
                times += 1
        p = embedding(chain[held[i]], start, transition, lengths[i])[lengths[i]]
        if p > _SMALL:
            total -= times * np.log(p)
        else:
            long = _log_embedding(chain[held[i]], start, transition, lengths[i])
            total -= times * max(long, _NEVER)
    return total


@njit(cache=True)
def _code(counts, n, prior):
    """Return −ln of the probability, under the prior, that these of n sequences hold a column."""
    total = 0.0
    for k in counts:
        # ∫ q^k (1−q)^(n−k) · a q^(a−1) dq = a Γ(k+a) Γ(n−k+1) / Γ(n+a+1)
        total += np.log(n + prior) - np.log(prior)
        for j in range(1, n - k + 1):
            total += np.log(n + prior - j) - np.log(j)
    return total


def chain_evidence(
    chain: np.ndarray,
    held: np.ndarray,
    lengths: np.ndarray,
    null: Null,
    *,
    markov: bool = True,
    enough: float = np.inf,
) -> float:
    """Return the evidence, in nats, that sequences hold a chain of events beyond chance.

    Args:
        chain: Event ids (m,).
        held: Which of them each sequence holds, in this order (N, m).
        lengths: Number of events of each sequence.
        null: What sequences look like by chance.
        markov: Whether an event depends on the one before; without, the sum is quick.
        enough: Evidence above which no more sequences are looked at.

    Notes:
        ln E with E = w(c) Π_j B(k_j) / Π_i P₀(sequence i holds its part of c). B(k) is the
        probability that just these k of N sequences hold a column whose share has the prior
        Beta(10, 1). w(c) is the probability of the chain c by itself: (2n)^−m, one among the
        chains of n events, or, with `markov`, that the null takes this way straight, if that is
        more. Summed over all parts and chains, the expectation of E under the null is at most 1,
        so that a value of x or more has a probability of at most exp(−x), however the chain was
        found.
    """
    m, n = len(chain), len(null.p)
    if not m:
        return 0.0
    chain = chain.astype(np.int64)
    cost = m * np.log(2 * n)
    if markov:
        straight = null.start[chain[0]] * np.prod(null.transition[chain[:-1], chain[1:]])
        cost = min(m * np.log(n), -np.log(max(straight, 1e-300)))
    cost += _code(held.sum(axis=0), len(held), _PRIOR)
    surprise = _surprise(
        chain,
        np.ascontiguousarray(held),
        np.asarray(lengths, np.int64),
        null.start if markov else null.p,
        null.transition if markov else null.p[None],
        float(enough + cost),
    )
    return float(surprise - cost)


@dataclass(frozen=True, eq=False)
class Kept:
    """Columns of an alignment that are more than chance.

    Attributes:
        columns: The columns.
        events: The event that most hold in each of them.
        evidence: Evidence for all of them, against events that are drawn one by one.
        nearest: The most evidence that was found for two columns or more, below 0 as well: how
            near the alignment is to one with columns to keep.
    """

    columns: np.ndarray
    events: np.ndarray
    evidence: float
    nearest: float


def kept_columns(matrix: np.ndarray, null: Null, *, quick: bool = False) -> Kept:
    """Return the columns of an alignment for which there is most evidence together.

    Args:
        matrix: Event ids (N, L), gap -1.
        null: What sequences look like by chance.
        quick: Whether to do without the last round of the search.

    Notes:
        Candidates are columns whose top event more than half of the sequences hold. They are
        sorted by how surprising it is that so many sequences hold the event at all, and a growing
        number of the first ones is tried; then each is left out once. No column is tested alone:
        of keys in a fixed order, it is the order that cannot be chance.
    """
    matrix = np.ascontiguousarray(matrix, np.int32)
    return Kept(*_search(matrix, null.p, 0 if quick else _MOST_LEFT_OUT))


def directed_evidence(matrix: np.ndarray, kept: Kept, null: Null, enough: float) -> float:
    """Return the evidence for kept columns against the null's chain, which walks as they may do.

    Evidence above `enough` is not looked for.
    """
    held, lengths = matrix[:, kept.columns] == kept.events, (matrix != GAP).sum(axis=1)
    return chain_evidence(kept.events, held, lengths, null, enough=enough)


@njit(cache=True)
def _hold(within, first, matrix, column, event, p):
    """Let the sequences that hold one more event, in a column, wait for it, in place.

    Args:
        within: Probability that a random sequence of each length holds what each of the sequences
            holds (N + 3, lengths). Where events are independent, their order does not matter. The
            last three rows are for nothing.
        first: How many events each of them holds, for which a sequence must at least be so long.
        matrix: The alignment (N, L).
        column: The column.
        event: The event.
        p: Its probability.

    Notes:
        F'(t) = (1 − p) F'(t−1) + p F(t−1), F'(0) = 0. Four rows are done at once, as each step must
        wait for the one before.
    """
    n, last, stay = len(matrix), within.shape[1], 1.0 - p
    held, size = np.empty(n + 3, np.int64), 0
    for i in range(n):
        if matrix[i, column] == event:
            held[size] = i
            size += 1
    held[size : size + 3] = n, n + 1, n + 2
    first[n:] = last - 1
    for k in range(0, size, 4):
        i, j, x, y = held[k], held[k + 1], held[k + 2], held[k + 3]
        a, b, c, d = within[i], within[j], within[x], within[y]
        begin = min(min(first[i], first[j]), min(first[x], first[y]))
        old_a, old_b, old_c, old_d = a[begin], b[begin], c[begin], d[begin]
        a[begin] = b[begin] = c[begin] = d[begin] = 0.0
        new_a = new_b = new_c = new_d = 0.0
        for t in range(begin + 1, last):
            new_a, new_b = stay * new_a + p * old_a, stay * new_b + p * old_b
            new_c, new_d = stay * new_c + p * old_c, stay * new_d + p * old_d
            old_a, old_b, old_c, old_d = a[t], b[t], c[t], d[t]
            a[t], b[t], c[t], d[t] = new_a, new_b, new_c, new_d
    for k in range(size):
        first[held[k]] += 1


@njit(cache=True)
def _rescale(within, shift, lengths):
    """Scale rows up, in place, whose probability has become very small; note the logarithm."""
    for i in range(len(lengths)):
        while 0.0 < within[i, lengths[i]] < _SMALL:
            within[i] *= 1.0 / _SMALL
            shift[i] += np.log(_SMALL)


@njit(cache=True)
def _value(within, shift, lengths, cost):
    """Return the evidence for what sequences hold, if it costs so much to say what that is."""
    surprise = 0.0
    for i in range(len(lengths)):
        surprise -= np.log(max(within[i, lengths[i]], 1e-300)) + shift[i]
    return surprise - cost


@njit(cache=True)
def _within(kept, matrix, tops, p, lengths):
    """Return what `_hold` makes of the columns that are marked as kept, and its scales."""
    n, longest = len(matrix), lengths.max() if len(lengths) else 0
    within, first, shift = np.ones((n + 3, longest + 1)), np.zeros(n + 3, np.int64), np.zeros(n)
    for j in np.flatnonzero(kept):
        _hold(within, first, matrix, j, tops[j], p[tops[j]])
        _rescale(within, shift, lengths)
    return within, first, shift


@njit(cache=True)
def _search(matrix, p, left_out):
    """Return the columns that have most evidence together, and the rest of `Kept`."""
    n, length = matrix.shape
    lengths = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(length):
            lengths[i] += matrix[i, j] >= 0
    tops, counts = _tops(matrix, len(p))
    kept, best = np.zeros(length, np.bool_), 0.0
    order = _in_order(tops, counts, n, p, lengths.mean() if n else 0.0)
    costs = np.zeros(length)
    for j in order:
        costs[j] = _code(counts[j : j + 1], n, _PRIOR) + np.log(2.0 * len(p))
    within, first, shift = _within(kept, matrix, tops, p, lengths)
    cost = 0.0
    found, size, done, nearest = 0, 0, 0, -np.inf
    growth = 1.25 if left_out else 1.5
    while done < len(order):
        # A growing number of the first ones, in steps that grow as well.
        size = min(max(size + 1, int(size * growth)), len(order))
        for j in order[done:size]:
            _hold(within, first, matrix, j, tops[j], p[tops[j]])
            _rescale(within, shift, lengths)
            cost += costs[j]
        done = size
        value = _value(within, shift, lengths, cost)
        if size > 1:
            nearest = max(nearest, value)
        if value > best:
            best, found = value, size
    kept[order[:found]] = True
    if found and left_out:
        if found <= left_out:
            for j in order[:found][::-1]:
                kept[j] = False
                within, first, shift = _within(kept, matrix, tops, p, lengths)
                value = _value(within, shift, lengths, costs[kept].sum())
                if value > best:
                    best = value
                else:
                    kept[j] = True
        data = (matrix, tops, counts, lengths, costs, p)
        _add_shared(kept, best, order, left_out, data)
    columns = np.flatnonzero(kept)
    return columns, tops[columns], best, nearest


@njit(cache=True)
def _in_order(tops, counts, n, p, length):
    """Return the columns whose top event more than half hold, the most surprising ones first."""
    found = np.flatnonzero(2 * counts > n)
    share = p[tops[found]]
    rare = -counts[found] * np.log(share)
    absent = (1 - share) ** max(length, 1.0)
    weight = -counts[found] * np.log1p(-np.minimum(absent, 1 - 1e-9))
    order = np.argsort(-rare, kind="mergesort")
    return found[order[np.argsort(-weight[order], kind="mergesort")]]


@njit(cache=True)
def _add_shared(kept, best, order, most, data):
    """Keep, in place, columns that all hold and that are a little more than chance.

    That there is a strategy is shown by the others; it need not be shown again by each of these.
    """
    matrix, tops, counts, lengths, costs, p = data
    spared = np.log(2.0 * len(p)) - _LITTLE
    within, first, shift = _within(kept, matrix, tops, p, lengths)
    tried = 0
    for j in order:
        if kept[j] or counts[j] < _SHARED * len(matrix) or tried == most:
            continue
        tried += 1
        more, waited, scaled = within.copy(), first.copy(), shift.copy()
        _hold(more, waited, matrix, j, tops[j], p[tops[j]])
        _rescale(more, scaled, lengths)
        kept[j] = True
        value = _value(more, scaled, lengths, costs[kept].sum())
        if value + spared > best:
            best, within, first, shift = value, more, waited, scaled
        else:
            kept[j] = False


@njit(cache=True)
def _tops(matrix, n_events):
    """Return the most frequent event of each column, and how many hold it.

    Columns in which at most half of the sequences have an event count as empty.
    """
    n, length = matrix.shape
    filled = np.zeros(length, np.int64)
    for i in range(n):
        for j in range(length):
            filled[j] += matrix[i, j] >= 0
    tops, most = np.zeros(length, np.int64), np.zeros(length, np.int64)
    counts = np.zeros(n_events, np.int64)
    for j in range(length):
        if 2 * filled[j] <= n:
            continue
        counts[:] = 0
        for i in range(n):
            if matrix[i, j] >= 0:
                counts[matrix[i, j]] += 1
        tops[j] = counts.argmax()
        most[j] = counts[tops[j]]
    return tops, most
