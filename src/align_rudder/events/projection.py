"""Wide observations (pictures) in few numbers, with memory for d·k of them and never for d·d."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

__all__ = ["CHUNK", "SAMPLED", "WIDE", "places_of_sample", "principal_axes"]

WIDE = 256
"""Observations of more numbers are projected before anything is done with them."""
SAMPLED = 256
"""So many observations are looked at to find the projection."""
CHUNK = 64
"""So many wide observations are in memory as real numbers at a time."""


def principal_axes(rows: np.ndarray, rank: int) -> np.ndarray:
    """Return the directions (d, k) in which centred rows (n, d) vary most; k is at most `rank`.

    Notes:
        Of the n × n products of the rows, not of the d × d ones of the components: if
        X Xᵀ u = σ² u, then Xᵀ u / σ is a principal axis of X. Signs are such that the largest
        entry of each axis is positive.

    Example:
        >>> principal_axes(np.array([[3.0, 4.0], [-3.0, -4.0]]), 2).T.round(2)
        array([[0.6, 0.8]])
    """
    values, vectors = np.linalg.eigh(rows @ rows.T)
    order = np.argsort(-values, kind="stable")[:rank]
    order = order[values[order] > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)]
    axes = rows.T @ vectors[:, order] / np.sqrt(values[order])
    if not axes.shape[1]:
        return np.eye(rows.shape[1], 1)
    top = np.abs(axes).argmax(axis=0)
    return axes * np.sign(axes[top, np.arange(axes.shape[1])])


def places_of_sample(lengths: list[int]) -> list[np.ndarray]:
    """Return which rows of each episode are looked at, evenly over all of them."""
    total = sum(lengths)
    chosen = np.unique(np.linspace(0, total - 1, min(total, SAMPLED)).astype(int))
    first = np.concatenate([[0], np.cumsum(lengths)])
    return [chosen[(chosen >= a) & (chosen < b)] - a for a, b in pairwise(first)]
