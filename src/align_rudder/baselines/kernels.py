"""Compiled pieces that all tabular learners share: random numbers, steps, evaluation.

The random numbers are the kernels' own (xorshift64*), so that a trial is the same on every machine,
whatever else runs.
"""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit

__all__ = ["act", "evaluate", "greedy", "seeded", "take_step", "uniform"]


@njit(cache=True, nogil=True)
def seeded(seed):
    """Return the state of a generator; neighbouring seeds give unrelated numbers."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    state = np.empty(1, np.uint64)
    state[0] = z if z != 0 else np.uint64(1)
    return state


@njit(cache=True, nogil=True)
def uniform(rng):
    """Return a number in [0, 1)."""
    x = rng[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    rng[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def greedy(q, s):
    """Return the first action of the largest value."""
    best = 0
    for a in range(1, q.shape[1]):
        if q[s, a] > q[s, best]:
            best = a
    return best


@njit(cache=True, nogil=True)
def act(q, s, epsilon, rng):
    """Return an ε-greedy action."""
    if uniform(rng) < epsilon:
        return int(uniform(rng) * q.shape[1])
    return greedy(q, s)


@njit(cache=True, nogil=True)
def take_step(cumulative, s, a, rng):
    """Return which outcome of state and action happens."""
    u, k = uniform(rng), 0
    while cumulative[s, a, k] <= u:
        k += 1
    return k


@njit(cache=True, nogil=True)
def evaluate(tables, starts, q, epsilon, episodes, rng):
    """Return the mean return of the ε-greedy policy, spread evenly over the start states."""
    next_states, cumulative, rewards, terminal, time_factor = tables
    policy = np.empty(q.shape[0], np.int64)
    for s in range(q.shape[0]):
        policy[s] = greedy(q, s)
    total = 0.0
    for i in range(episodes):
        s = starts[i * len(starts) // episodes]
        for t in range(1, len(time_factor)):
            a = policy[s]
            if uniform(rng) < epsilon:
                a = int(uniform(rng) * q.shape[1])
            k = take_step(cumulative, s, a, rng)
            total += rewards[s, a, k] * time_factor[t]
            if terminal[s, a, k]:
                break
            s = next_states[s, a, k]
    return total / episodes
