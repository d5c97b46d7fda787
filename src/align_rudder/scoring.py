"""(II) Scoring matrices: what it is worth to align one event with another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Scoring",
    "background",
    "inverse_frequency",
    "karlin_altschul",
    "log_frequency",
    "on_grid",
    "quantise",
    "scoring_matrix",
    "solve_lambda",
]

Scoring = str | np.ndarray | Sequence[Sequence[float]] | Callable[[np.ndarray], np.ndarray]
"""A name ("inverse", "log", "karlin-altschul"), a matrix, or a function from p to a matrix."""


def background(sequences: Sequence[np.ndarray], n_events: int) -> np.ndarray:
    """Return p, the relative frequency of each event over all sequences."""
    counts = np.zeros(n_events)
    counts += np.bincount(np.concatenate([np.empty(0, np.int64), *sequences]), minlength=n_events)
    return counts / max(counts.sum(), 1.0)


def _diagonal(diagonal: np.ndarray, alpha: float) -> np.ndarray:
    matrix = np.full((len(diagonal), len(diagonal)), float(alpha))
    np.fill_diagonal(matrix, diagonal)
    return matrix


def _safe(p: np.ndarray) -> np.ndarray:
    """Give events that never occur the smallest frequency; they are aligned with nothing."""
    p = np.asarray(p, dtype=float)
    if p.ndim != 1 or not np.isfinite(p).all() or (p < 0).any():
        raise ValueError(f"p must be a vector of frequencies, none negative; got {p}")
    positive = p[p > 0]
    return np.where(p > 0, p, positive.min() if len(positive) else 1.0)


def inverse_frequency(p: np.ndarray, alpha: float = -1.0) -> np.ndarray:
    """Return the matrix with 1/p_i on the diagonal and α elsewhere (the paper's choice).

    Example:
        >>> inverse_frequency(np.array([0.5, 0.25, 0.25]))
        array([[ 2., -1., -1.],
               [-1.,  4., -1.],
               [-1., -1.,  4.]])
    """
    return _diagonal(1.0 / _safe(p), alpha)


def log_frequency(p: np.ndarray, alpha: float = -1.0) -> np.ndarray:
    """Return the matrix with −ln p_i on the diagonal and α elsewhere.

    An only event has p = 1 and would score 0; it scores a little instead, so that it is aligned.
    """
    return _diagonal(np.maximum(-np.log(_safe(p)), 1e-3), alpha)


def solve_lambda(p: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return λ* for each column of scores: the positive root of Σ_i p_i exp(λ s_i) = 1.

    Args:
        p: Background frequencies (n,).
        scores: Unscaled scores (n, L); −∞ counts as zero in the sum.

    Returns:
        λ* (L,), NaN where there is no positive root, as no score is positive or the mean is not
        negative.

    Notes:
        The sum is convex in λ, at most 1 at λ = 0, and at least 1 where p_i exp(λ s_i) = 1 for
        a single i, so bisection between the two finds the only positive root.
    """
    p = np.asarray(p, float)
    with np.errstate(divide="ignore"):
        log_p = np.log(p)[:, None]
    positive = (scores > 0) & (p[:, None] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(positive, -log_p / scores, np.inf).min(axis=0, initial=np.inf)
    used = np.isfinite(scores) & (p[:, None] > 0)
    terms = np.where(used, p[:, None] * np.where(used, scores, 0.0), 0.0)
    falls = (p[:, None] * used).sum(axis=0) < 1 - 1e-12
    falls |= terms.sum(axis=0) < -1e-12 * np.abs(terms).sum(axis=0)
    found = np.isfinite(high) & (high > 0) & falls
    low, high = np.zeros(found.sum()), high[found]
    columns = scores[:, found]
    for _ in range(100):
        middle = (low + high) / 2
        above = np.exp(log_p + middle * columns).sum(axis=0) > 1.0
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    out = np.full(scores.shape[1], np.nan)
    out[found] = high
    return out


def karlin_altschul(p: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    """Return s_ij = ln(q_ij / (p_i p_j)) / λ* with q_ii = p_i − ε and q_ij = ε/(n−1).

    Notes:
        λ* is the positive root of Σ_ij p_i p_j exp(λ s_ij) = 1 for the unscaled log-odds. The
        q_ij sum to 1 only if Σ_i (p_i − ε) + n ε = 1, which holds for every ε, so λ* = 1 and no
        scaling is needed. With ε = 0 a mismatch scores −∞; a large negative number, minus the
        sum of all match scores, stands for it.
    """
    p = _safe(p)
    n = len(p)
    if n == 0:
        return np.empty((0, 0))
    if not 0 <= epsilon < p.min():
        raise ValueError(
            f"ε = {epsilon} must be at least 0 and below the smallest frequency of an event "
            f"({p.min():.3g}), or an event would not be aligned with itself"
        )
    q_off = epsilon / (n - 1) if n > 1 else 0.0
    diagonal = np.log((p - epsilon) / p**2)
    if q_off > 0:
        matrix = np.log(q_off / np.outer(p, p))
    else:
        matrix = np.full((n, n), -max(float(np.abs(diagonal).sum()), 1.0))
    if epsilon == 0:
        diagonal = np.maximum(diagonal, 1e-3)  # an only event has p = 1 and would score 0
    others = np.where(np.eye(n, dtype=bool), -np.inf, matrix).max(axis=1)
    if (diagonal <= np.maximum(others, 0.0)).any():
        raise ValueError(
            f"with ε = {epsilon} an event scores no more with itself than with another one or with "
            "a gap; use a smaller ε"
        )
    np.fill_diagonal(matrix, diagonal)
    return matrix


def quantise(matrix: np.ndarray, terms: float) -> tuple[np.ndarray, float]:
    """Round scores to a binary grid on which sums of `terms` of them are exact in float64.

    The grid has 2³⁰ steps up to the largest score, fewer only if so many terms need it.

    Returns:
        The rounded matrix and the grid's step.
    """
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest == 0.0:
        return matrix, 2.0**-30
    fine = np.floor(np.log2(largest)) - 30
    exact = np.ceil(np.log2(largest) + np.log2(max(terms, 1.0))) - 52
    step = 2.0 ** max(fine, exact)
    return np.round(matrix / step) * step, step


def on_grid(gap: float, step: float) -> float:
    """Return a gap cost on the grid; one that is not zero stays so."""
    return max(round(gap / step), 1) * step if gap > 0 else 0.0


def scoring_matrix(
    scoring: Scoring, p: np.ndarray, *, alpha: float = -1.0, epsilon: float = 0.0
) -> np.ndarray:
    """Return the scoring matrix for events of frequencies p.

    Args:
        scoring: "inverse" (1/p_i), "log" (−ln p_i), "karlin-altschul", a symmetric matrix (prior
            knowledge about events goes in here), or a function from p to such a matrix.
        p: Relative frequency of each event.
        alpha: Score of a mismatch for the first two.
        epsilon: ε of the Karlin–Altschul form.
    """
    if isinstance(scoring, str):
        forms: dict[str, Callable[[], np.ndarray]] = {
            "inverse": lambda: inverse_frequency(p, alpha),
            "log": lambda: log_frequency(p, alpha),
            "karlin-altschul": lambda: karlin_altschul(p, epsilon),
        }
        if scoring not in forms:
            raise ValueError(f"scoring={scoring!r} is not known; use one of {sorted(forms)}")
        return forms[scoring]()
    value: Any = scoring(np.asarray(p)) if callable(scoring) else scoring
    matrix = np.array(value, dtype=float)
    n = len(p)
    if matrix.shape != (n, n):
        raise ValueError(
            f"the scoring matrix has shape {matrix.shape}; for {n} events it must be ({n}, {n})"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("the scoring matrix has entries that are NaN or infinite")
    if not np.allclose(matrix, matrix.T):
        raise ValueError("the scoring matrix is not symmetric; s_ij must equal s_ji")
    return matrix
