"""Compiled pieces that all tabular learners share: random numbers, steps, backups, evaluation.

The random numbers are the kernels' own (xorshift64*), so that a trial is the same on every machine,
whatever else runs. `tables` are the arrays of a `TabularMDP` (next states, cumulative
probabilities, rewards, ends, time factors) and the start states. Such arguments are plain tuples,
not named ones: Numba's cache refers to their classes by name, and cannot be read any more once one
is renamed.
"""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit

__all__ = [
    "act",
    "begin",
    "draw",
    "evaluate",
    "greedy",
    "horizon_of",
    "max_value",
    "q_backup",
    "seeded",
    "step",
    "trace_backup",
    "uniform",
]


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
    """Return the greedy action, the first one among equals."""
    best = 0
    for a in range(1, q.shape[1]):
        if q[s, a] > q[s, best]:
            best = a
    return best


@njit(cache=True, nogil=True)
def max_value(q, s):
    """Return max_a Q(s, a); without branches, as no processor could predict them."""
    top = q[s, 0]
    for a in range(1, q.shape[1]):
        top = max(top, q[s, a])
    return top


@njit(cache=True, nogil=True)
def act(q, s, epsilon, rng):
    """Return an ε-greedy action."""
    if uniform(rng) < epsilon:
        return int(uniform(rng) * q.shape[1])
    return greedy(q, s)


@njit(cache=True, nogil=True)
def horizon_of(tables):
    """Return the time limit of an episode."""
    return len(tables[4]) - 1


@njit(cache=True, nogil=True)
def begin(tables, rng):
    """Return a start state."""
    starts = tables[5]
    return starts[int(uniform(rng) * len(starts))]


@njit(cache=True, nogil=True)
def draw(tables, s, a, rng):
    """Return which outcome an action has."""
    cumulative = tables[1]
    u, k = uniform(rng), 0
    while cumulative[s, a, k] <= u:
        k += 1
    return k


@njit(cache=True, nogil=True)
def step(tables, s, a, t, rng):
    """Take an action as step t (from 1); return next state, reward and whether it terminates."""
    next_states, _, rewards, terminal, time_factor, _ = tables
    k = draw(tables, s, a, rng)
    return next_states[s, a, k], rewards[s, a, k] * time_factor[t], terminal[s, a, k]


@njit(cache=True, nogil=True)
def q_backup(q, s, a, reward, future, learning_rate):
    """Move Q(s, a) towards reward + future."""
    q[s, a] += learning_rate * (reward + future - q[s, a])


@njit(cache=True, nogil=True)
def trace_backup(q, states, actions, rewards, parts, n, learning_rate, trace, bootstrap, gamma=1.0):
    """Learn from an episode of n steps, backwards, with G_t = R_{t+1} + γ λ G_{t+1}.

    Bootstrapping adds γ (1−λ) max Q. From one part of an episode to the next, G begins anew.
    """
    g = 0.0
    for t in range(n - 1, -1, -1):
        if t < n - 1 and parts[t] != parts[t + 1]:
            g = 0.0
        future = trace * g
        if bootstrap and t < n - 1:
            future += (1.0 - trace) * max_value(q, states[t + 1])
        g = rewards[t] + gamma * future
        q[states[t], actions[t]] += learning_rate * (g - q[states[t], actions[t]])


@njit(cache=True, nogil=True)
def evaluate(q, observed, tables, epsilon, episodes, rng):
    """Return the mean return of the ε-greedy policy, spread evenly over the start states."""
    policy = np.empty(len(observed), np.int64)
    for s in range(len(observed)):
        policy[s] = greedy(q, observed[s])
    starts, total = tables[5], 0.0
    for i in range(episodes):
        s = starts[i * len(starts) // episodes]
        for t in range(1, horizon_of(tables) + 1):
            a = policy[s]
            if uniform(rng) < epsilon:
                a = int(uniform(rng) * q.shape[1])
            s, reward, ended = step(tables, s, a, t, rng)
            total += reward
            if ended:
                break
    return total / episodes
