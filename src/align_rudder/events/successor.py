"""Successor representation of discrete states and successor features of vector states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder._compile import njit

__all__ = ["successor_features", "successor_representation"]


@njit(cache=True)
def _sweep(m, states, lengths, learning_rate, gamma):
    n = m.shape[0]
    end = len(states)
    for k in range(len(lengths) - 1, -1, -1):
        start = end - lengths[k]
        # From the end to the start, so that one sweep carries the future all the way back.
        for t in range(end - 1, start - 1, -1):
            s = states[t]
            for j in range(n):
                target = gamma * m[states[t + 1], j] if t + 1 < end else 0.0
                if j == s:
                    target += 1.0
                m[s, j] += learning_rate * (target - m[s, j])
        end = start


def successor_representation(
    trajectories: Sequence[np.ndarray],
    n_states: int,
    learning_rate: float = 0.1,
    gamma: float = 0.99,
    sweeps: int = 50,
) -> np.ndarray:
    """Return M (n, n): the discounted expected visits of state j when starting in state i.

    Args:
        trajectories: Sequences of state indices.
        n_states: Number of states n.
        learning_rate: Step size of temporal-difference learning.
        gamma: Discount of future visits.
        sweeps: How often all transitions are used.

    Notes:
        M(s, ·) ← M(s, ·) + lr (1_s + γ M(s', ·) − M(s, ·)); after the last state there is no
        future.

    Example:
        >>> m = successor_representation([np.array([0, 1, 2])], 3, gamma=0.5, sweeps=500)
        >>> m.round(2)
        array([[1.  , 0.5 , 0.25],
               [0.  , 1.  , 0.5 ],
               [0.  , 0.  , 1.  ]])
    """
    m = np.zeros((n_states, n_states))
    states = np.concatenate([np.asarray(t, np.int64) for t in trajectories])
    lengths = np.array([len(t) for t in trajectories], np.int64)
    for _ in range(sweeps):
        _sweep(m, states, lengths, learning_rate, gamma)
    return m


def successor_features(
    trajectories: Sequence[np.ndarray], gamma: float = 0.99, ridge: float = 1e-3
) -> np.ndarray:
    """Return W with ψ(s) = φ(s) W, the discounted sum of future features, by least squares.

    Args:
        trajectories: Features φ of the states of each episode (T+1, d).
        gamma: Discount.
        ridge: Regularisation, a share of the mean feature variance.

    Notes:
        LSTD: W = (Φᵀ(Φ − γΦ') + ρ I)⁻¹ ΦᵀΦ; after the last state there is no future.
    """
    d = trajectories[0].shape[1]
    a, b = np.zeros((d, d)), np.zeros((d, d))
    for phi in trajectories:
        following = np.vstack([phi[1:], np.zeros((1, d))])
        a += phi.T @ (phi - gamma * following)
        b += phi.T @ phi
    return np.linalg.solve(a + ridge * max(np.trace(b) / d, 1e-12) * np.eye(d), b)
