"""A memory of whole episodes as a learner was paid for them, and Q(λ) on some drawn from it."""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import trace_backup, uniform
from align_rudder.baselines.protocol import Trial

__all__ = ["CAPACITY", "NOT_SHOWN", "Paid", "keep", "new_paid", "outcome", "replay", "shown_paths"]

CAPACITY = 150
"""Episodes of the agent that are kept; then the oldest is overwritten."""

Paid = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows of the table of values, actions, rewards and parts of each episode, lengths, and two
counts: episodes kept so far, and how many of the first stay for good."""

NOT_SHOWN = (np.empty((0, 1), np.int64), np.empty((0, 1), np.int64), np.empty(0, np.int64))
"""No demonstrations to be followed: the agent acts by itself."""


def new_paid(trial: Trial, replays: int) -> Paid:
    """Return an empty memory for the episodes of a trial; without replays it has no room."""
    stay = len(trial.paths) if replays else 0
    size, steps = (stay + CAPACITY, trial.mdp.horizon) if replays else (0, 0)
    whole = np.zeros((size, steps + 1), np.int64), np.zeros((size, steps), np.int64)
    paid = np.zeros((size, steps)), np.zeros((size, steps), np.int64)
    return *whole, *paid, np.zeros(size, np.int64), np.array([0, stay])


def shown_paths(trial: Trial) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states, actions and lengths of the demonstrations, cut at the time limit."""
    steps, n = trial.mdp.horizon, len(trial.paths)
    states, actions = np.zeros((n, steps + 1), np.int64), np.zeros((n, steps), np.int64)
    lengths = np.zeros(n, np.int64)
    for i, (path, taken, _) in enumerate(trial.paths):
        lengths[i] = m = min(len(taken), steps)
        states[i, : m + 1], actions[i, :m] = path[: m + 1], taken[:m]
    return states, actions, lengths


@njit(cache=True, nogil=True)
def outcome(tables, s, a, there):
    """Return which outcome of an action leads to a state; the first if none does."""
    for k in range(tables[0].shape[2]):
        below = tables[1][s, a, k - 1] if k else 0.0
        if tables[0][s, a, k] == there and tables[1][s, a, k] > below:
            return k
    return 0


@njit(cache=True, nogil=True)
def keep(memory, rows, actions, gains, parts, n):
    """Keep an episode of n steps."""
    counts = memory[5]
    size, i = len(memory[4]), counts[0]
    if i >= size:
        i = counts[1] + (i - counts[1]) % (size - counts[1])
    memory[0][i, : n + 1], memory[1][i, :n] = rows[: n + 1], actions[:n]
    memory[2][i, :n], memory[3][i, :n] = gains[:n], parts[:n]
    memory[4][i] = n
    counts[0] += 1


@njit(cache=True, nogil=True)
def replay(q, memory, replays, learning_rate, trace, bootstrap, gamma, rng):
    """Learn from so many episodes of the memory, each as likely as every other."""
    rows, actions, gains, parts, lengths, counts = memory
    there = min(counts[0], len(lengths))
    for _ in range(replays):
        i = int(uniform(rng) * there)
        n = lengths[i]
        trace_backup(
            q, rows[i], actions[i], gains[i], parts[i], n, learning_rate, trace, bootstrap, gamma
        )
