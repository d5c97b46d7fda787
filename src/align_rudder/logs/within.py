"""Comparisons within tasks: exact tests of many two-by-two tables, one for each task, together.

What goes with hard tasks goes with failures, though it makes no run of any task fail. So successes
and failures of the same task are compared, and what the tasks say is added up: the exact form of
the test of Cochran, Mantel and Haenszel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import hypergeom

from align_rudder.logs.shares import differ, fisher, least_p

__all__ = ["Tables", "differ_within", "exact_test", "standard", "uneven_p"]

_LEAST = 1e-290  # below this p is 0 for a computer, and its logarithm is summed by itself
_STEEP = 60.0  # no logarithm of odds is steeper
_ODDS = np.linspace(-10, 10, 81)  # logarithms of odds ratios
_GRID = 0.05  # the statistic of `uneven_p` is rounded to this
_MOST = 30.0  # and a task has no more of it than this


class Tables(NamedTuple):
    """Two-by-two tables of M marks in G tasks, each (M, G).

    Attributes:
        k: How many successes show each mark.
        n: How many successes there are that could.
        j: How many failures show it.
        m: How many failures could.
    """

    k: np.ndarray
    n: np.ndarray
    j: np.ndarray
    m: np.ndarray

    def rows(self, which: np.ndarray) -> Tables:
        """Return the tables of some of the marks."""
        return Tables(*(part[which] for part in self))

    @property
    def together(self) -> Tables:
        """The tables of all tasks as one (M, 1)."""
        return Tables(*(part.sum(axis=1, keepdims=True) for part in self))

    @property
    def mixed(self) -> np.ndarray:
        """Whether a task has successes and failures to compare (M, G)."""
        return (self.n > 0) & (self.m > 0)

    @property
    def excess(self) -> np.ndarray:
        """How many more failures show it than would as often as successes of their task (M,)."""
        share = np.divide(self.k, self.n, out=np.zeros(self.k.shape), where=self.mixed)
        return ((self.j - self.m * share) * self.mixed).sum(axis=1)


class Exact(NamedTuple):
    """An exact test of each mark.

    Attributes:
        p: Two-sided: twice the smaller tail, at most 1 (M,).
        more: One-sided: that no larger share of the failures show it (M,).
        least: The least two-sided p that is possible (Tarone), (M,).
        log_p: The logarithm of p, also where p is too small to be told from 0 (M,).
    """

    p: np.ndarray
    more: np.ndarray
    least: np.ndarray
    log_p: np.ndarray


def exact_test(tables: Tables) -> Exact:
    """Return the exact test of each mark, given how many runs of each task show it.

    Notes:
        Given the margins of its table, the number of a task's successes that show a mark is
        hypergeometric if outcome and mark have nothing to do with each other. The statistic is the
        sum over tasks, its distribution their convolution. A task without any success, or without
        any failure, adds a constant: it says nothing.

    Example:
        >>> one = Tables(*(np.array([[x]]) for x in (9, 10, 1, 10)))
        >>> exact_test(one).p.round(5).tolist()
        [0.00109]
        >>> hard_and_easy = Tables(*map(np.array, ([[0, 9]], [[1, 9]], [[0, 1]], [[9, 1]])))
        >>> exact_test(hard_and_easy).p.tolist()
        [1.0]
    """
    if tables.k.shape[1] == 1:
        k, n, j, m = (part[:, 0] for part in tables)
        some = n + m > 0

        def known(p: np.ndarray) -> np.ndarray:
            return np.where(some, p, 1.0)

        p = known(fisher(k, n, j, m))
        more, least = known(_tail(k, n, j, m)), known(least_p(k, n, j, m))
    else:
        cache: dict[bytes, np.ndarray] = {}
        rows = [_tails(tables, i, cache) for i in range(len(tables.k))]
        p, more, least = np.array(rows).reshape(-1, 3).T
    log_p = np.log(np.maximum(p, _LEAST))
    for i in np.flatnonzero(p <= _LEAST).tolist():
        log_p[i] = _log_p(*(part[i] for part in tables))
    return Exact(p, more, least, log_p)


def _tail(k: np.ndarray, n: np.ndarray, j: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return p of Fisher's test that no larger share of the failures, j in m, show a mark."""
    return hypergeom.cdf(k, n + m, k + j, n)


def _tails(tables: Tables, i: int, cache: dict[bytes, np.ndarray]) -> tuple[float, float, float]:
    pmf, t = _sum_of(tables, i, cache)
    low, high = float(pmf[: t + 1].sum()), float(pmf[t:].sum())
    least = 2 * min(float(pmf[0]), float(pmf[-1]))
    p = 1.0 if len(pmf) == 1 else min(1.0, 2 * min(low, high))
    return p, min(low, 1.0), 1.0 if len(pmf) == 1 else min(1.0, least)


def _sum_of(tables: Tables, i: int, cache: dict[bytes, np.ndarray]) -> tuple[np.ndarray, int]:
    """Return the distribution of the sum over tasks from its least value on, and where it is."""
    k, n, j, m = (part[i].astype(int) for part in tables)
    shown = k + j
    says = (n > 0) & (m > 0) & (shown > 0) & (shown < n + m)
    least = np.maximum(0, shown - m)
    # Tasks with the same margins have the same distribution; in order, so that it is found again.
    margins = np.stack([n, m, shown])[:, says]
    margins = margins[:, np.lexsort(margins)]
    key = margins.tobytes()
    if key not in cache:
        cache[key] = _convolved([hypergeometric(*one) for one in margins.T.tolist()])
    return cache[key], int((k - least)[says].sum())


def hypergeometric(n: int, m: int, shown: int) -> np.ndarray:
    """Return the distribution of how many of n successes are among those shown of n + m runs.

    From the least that is possible to the most.

    Example:
        >>> hypergeometric(2, 2, 1).tolist()
        [0.5, 0.5]
    """
    out = np.exp(_log_hypergeometric(n, m, shown))
    return out / out.sum()


def _log_hypergeometric(n: int, m: int, shown: int) -> np.ndarray:
    x = np.arange(max(0, shown - m), min(shown, n) + 1)

    def choose(a: int, b: np.ndarray) -> np.ndarray:
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    return choose(n, x) + choose(m, shown - x) - choose(n + m, np.array(shown))


def _log_p(k: np.ndarray, n: np.ndarray, j: np.ndarray, m: np.ndarray) -> float:
    """Return the logarithm of the two-sided p of one mark, however small.

    Notes:
        The distribution of each task is multiplied by e^{c x} and normalised, with the c that makes
        the sum's mean what was seen. Then nothing near it is too small for a number, and the tail
        is weighed back.
    """
    k, n, j, m = (part.astype(int) for part in (k, n, j, m))
    shown = k + j
    says = (n > 0) & (m > 0) & (shown > 0) & (shown < n + m)
    logs = [_log_hypergeometric(*one) for one in np.stack([n, m, shown], 1)[says].tolist()]
    t = int((k - np.maximum(0, shown - m))[says].sum())

    def tilted(c: float) -> list[np.ndarray]:
        return [log + c * np.arange(len(log)) for log in logs]

    def mean(c: float) -> float:
        return sum(float(np.exp(one - _sum(one)) @ np.arange(len(one))) for one in tilted(c))

    low, high = -_STEEP, _STEEP
    if not mean(low) < t < mean(high):  # all that show it, or none, are of one outcome
        edge = 0 if t <= mean(low) else -1
        return min(0.0, math.log(2) + sum(float(log[edge]) for log in logs))
    while high - low > 1e-3:
        c = (low + high) / 2
        low, high = (c, high) if mean(c) < t else (low, c)
    wholes = [_sum(one) for one in tilted(low)]
    pmf = _convolved(np.exp(one - z) for one, z in zip(tilted(low), wholes, strict=True))
    x = np.arange(len(pmf))
    tail = x <= t if low < 0 else x >= t
    with np.errstate(divide="ignore"):
        p = sum(wholes) + _sum((np.log(pmf) - low * x)[tail])
    return min(0.0, math.log(2) + p)


def _sum(logs: np.ndarray) -> float:
    """Return the logarithm of a sum, of the logarithms of its parts."""
    return float(np.logaddexp.reduce(logs))


def _convolved(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the distribution of a sum; neighbours first, so that long ones are few."""
    parts = list(parts) or [np.ones(1)]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [np.convolve(a, b) for a, b in pairs] + parts[len(parts) & ~1 :]
    return parts[0]


def standard(tables: Tables) -> Tables:
    """Return the tables of all tasks as one, as if both outcomes were of the same tasks (M, 1).

    Notes:
        The shares are means over the tasks with both outcomes, weighed by n m / (n + m) as Mantel
        and Haenszel do; there are as many successes and failures as those tasks have. Of a log
        without tasks these are the counts themselves.
    """
    if tables.k.shape[1] == 1:
        return tables
    k, n, j, m = (part * tables.mixed for part in tables)
    weight = np.divide(n * m, n + m, out=np.zeros(n.shape), where=tables.mixed)
    whole = weight.sum(axis=1, keepdims=True)

    def share(shown: np.ndarray, of: np.ndarray) -> np.ndarray:
        each = np.divide(shown, of, out=np.zeros(of.shape), where=tables.mixed)
        summed = (weight * each).sum(axis=1, keepdims=True)
        return np.divide(summed, whole, out=np.zeros(whole.shape), where=whole > 0)

    all_n, all_m = n.sum(axis=1, keepdims=True), m.sum(axis=1, keepdims=True)
    return Tables(share(k, n) * all_n, all_n, share(j, m) * all_m, all_m)


def differ_within(tables: Tables) -> np.ndarray:
    """Return the probability that successes and failures of the same task differ in a mark (M,).

    Notes:
        B / (1 + B) with the Bayes factor B of a common odds ratio against none, in the conditional
        distribution of the sum over tasks. The logarithm of the odds ratio is as likely beforehand
        as that of two shares of which each is equally likely: f(x) = e^x ((x − 2) e^x + x + 2) /
        (e^x − 1)³. Of a log without tasks `shares.differ`, which needs no odds ratio.
    """
    if tables.k.shape[1] == 1:
        return differ(*(part[:, 0] for part in tables))
    cache: dict[bytes, np.ndarray] = {}
    prior = np.log(_prior(_ODDS))
    prior -= logsumexp(prior)
    out = np.empty(len(tables.k))
    for i in range(len(out)):
        pmf, t = _sum_of(tables, i, cache)
        with np.errstate(divide="ignore"):
            logs = np.log(pmf)
        tilted = logs + _ODDS[:, None] * (np.arange(len(pmf)) - t)
        # ln P(t | odds ratio) = ln P(t | 1) − ln Σ_x P(x | 1) e^{odds (x − t)}
        out[i] = np.exp(-np.logaddexp(0, -logsumexp(prior - logsumexp(tilted, axis=1))))
    return out


def _prior(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    e = np.exp(-x)
    near = x < 1e-3
    with np.errstate(divide="ignore", invalid="ignore"):
        far = e * ((x - 2) + (x + 2) * e) / (1 - e) ** 3
    return np.where(near, 1 / 6, far)


def uneven_p(tables: Tables) -> np.ndarray:
    """Return p that in no task the mark has to do with the outcome, in one way or the other (M,).

    What makes some tasks fail and others succeed cancels in `exact_test`; here it adds up.

    Notes:
        The statistic is Σ_g z_g², z_g the standardised number of task g's successes that show the
        mark. It is rounded to a grid, and its distribution is the convolution of the tasks'.
    """
    out = np.ones(len(tables.k))
    for i in range(len(out)):
        k, n, j, m = (part[i].astype(int) for part in tables)
        shown, got, dist = k + j, 0, np.ones(1)
        for g in np.flatnonzero((n > 0) & (m > 0) & (shown > 0) & (shown < n + m)).tolist():
            pmf = hypergeometric(n[g], m[g], shown[g])
            x = np.arange(len(pmf)) + max(0, shown[g] - m[g])
            mean = float(pmf @ x)
            z2 = np.minimum((x - mean) ** 2 / float(pmf @ (x - mean) ** 2), _MOST)
            steps = np.rint(z2 / _GRID).astype(int)
            got += int(steps[x == k[g]][0])
            part = np.bincount(steps, pmf)
            dist = np.convolve(dist, part)
        out[i] = min(1.0, float(dist[got:].sum()))
    return out
