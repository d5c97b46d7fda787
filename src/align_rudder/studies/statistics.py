"""Confidence intervals of means and of shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, bootstrap

__all__ = ["mean_interval", "wilson_interval"]


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of a mean: percentiles of 2000 means of resampled values.

    The same values always give the same interval.

    Example:
        >>> mean_interval([10.0, 10.0, 10.0])
        (10.0, 10.0)
    """
    array = np.asarray(values, float)
    if len(array) < 2:
        return float(array.mean()), float(array.mean())
    rng = np.random.default_rng(0)
    found = bootstrap((array,), np.mean, n_resamples=2000, method="percentile", rng=rng)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def wilson_interval(successes: ArrayLike, trials: ArrayLike) -> tuple[Any, Any]:
    """Return the 95 % Wilson interval of a share.

    Args:
        successes: How many succeeded; an array for several shares.
        trials: Of how many.

    Example:
        >>> low, high = wilson_interval(0, 10_000)
        >>> f"{low:.2%} to {high:.2%}"
        '0.00% to 0.04%'
    """
    counts = np.broadcast_arrays(successes, trials)
    pairs = [(int(k), int(n)) for k, n in zip(*(array.ravel() for array in counts), strict=True)]
    if any(not 0 <= k <= n or n < 1 for k, n in pairs):
        raise ValueError(f"{successes} successes of {trials} trials: give 0 to all of 1 or more")
    ends = [binomtest(k, n).proportion_ci(method="wilson") for k, n in pairs]
    low, high = (np.array(end).reshape(counts[0].shape) for end in zip(*ends, strict=True))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)
