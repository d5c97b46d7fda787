"""Shares of runs, with their intervals, and tests of two shares against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaln, expit
from scipy.stats import hypergeom

__all__ = ["differ", "fisher", "fisher_more", "least_p", "share_data", "wilson"]

_Z = 1.959963984540054


def wilson(k: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of k in n; (0, 1) for n = 0.

    Example:
        >>> low, high = wilson(8, 10)
        >>> round(low, 3), round(high, 3)
        (0.49, 0.943)
    """
    if not n:
        return 0.0, 1.0
    share, z2 = k / n, _Z**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def share_data(k: float, n: float) -> dict[str, Any]:
    """Return a share as plain data: how many of how many, the share (None of none), its interval.

    Example:
        >>> share_data(1, 2)
        {'count': 1, 'of': 2, 'share': 0.5, 'low': 0.0945, 'high': 0.9055}
    """
    low, high = wilson(k, n)
    share = round(float(k / n), 4) if n else None
    return {
        "count": int(k),
        "of": int(n),
        "share": share,
        "low": round(float(low), 4),
        "high": round(float(high), 4),
    }


def fisher(k: np.ndarray, n: np.ndarray, j: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return p of Fisher's exact test that shares of k in n and j in m are the same.

    Two-sided: twice the smaller tail, at most 1.

    Example:
        >>> fisher(np.array([9]), np.array([10]), np.array([1]), np.array([10])).round(5).tolist()
        [0.00109]
    """
    low = hypergeom.cdf(k, n + m, k + j, n)
    high = hypergeom.sf(k - 1, n + m, k + j, n)
    return np.minimum(1.0, 2.0 * np.minimum(low, high))


def fisher_more(k: int, n: int, j: int, m: int) -> float:
    """Return p of Fisher's exact test that k in n is no larger share than j in m."""
    return float(hypergeom.sf(k - 1, n + m, k + j, n))


def least_p(k: np.ndarray, n: np.ndarray, j: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the least p that Fisher's test can give (Tarone): all that show it are of one kind."""
    shown, everyone = k + j, n + m
    least, most = np.maximum(0, shown - m), np.minimum(shown, n)
    low = hypergeom.pmf(least, everyone, shown, n)
    high = hypergeom.pmf(most, everyone, shown, n)
    return np.minimum(1.0, 2.0 * np.minimum(low, high))


def differ(k: np.ndarray, n: np.ndarray, j: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the probability that two shares, k in n and j in m, are not the same.

    Notes:
        B / (1 + B) with the Bayes factor B of two shares against one, each share equally likely.

    Example:
        >>> few = differ(np.array([0]), np.array([60]), np.array([2]), np.array([40]))
        >>> many = differ(np.array([1]), np.array([60]), np.array([38]), np.array([40]))
        >>> few.round(2).tolist(), many.round(2).tolist()
        ([0.2], [1.0])
    """
    apart = betaln(k + 1, n - k + 1) + betaln(j + 1, m - j + 1)
    return expit(apart - betaln(k + j + 1, n + m - k - j + 1))
