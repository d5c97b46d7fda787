"""A memory of whole episodes, and Q(λ) on them with a table of rewards in place of the task's own.

The memory is a tuple of arrays: states as they are seen (episodes, steps + 1), actions (episodes,
steps), and of each episode its length, its return and whether it came to an end by itself; `cursor`
counts the episodes of the agent. Demonstrations fill the first slots and stay, the agent's
overwrite the oldest of their own.
"""

from __future__ import annotations

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, begin, horizon_of, step, trace_backup, uniform
from align_rudder.baselines.protocol import Trial

__all__ = ["Memory", "drawn", "filled", "learn_and_replay", "learn_from", "new_memory", "play"]

Memory = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""States, actions, lengths, returns, ends and the cursor."""


def new_memory(trial: Trial, capacity: int) -> Memory:
    """Return a memory with the demonstrations of a trial, and room for `capacity` episodes."""
    kept = len(trial.paths)
    size, width = kept + capacity, max([trial.mdp.horizon, *(len(a) for _, a, _ in trial.paths)])
    states, actions = np.zeros((size, width + 1), np.int32), np.zeros((size, width), np.int32)
    lengths, returns, ends = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.bool_)
    for i, (path, taken, rewards) in enumerate(trial.paths):
        n = len(taken)
        states[i, : n + 1], actions[i, :n] = trial.observed[path], taken
        lengths[i], returns[i], ends[i] = n, rewards.sum(), trial.ended[i]
    return states, actions, lengths, returns, ends, np.zeros(1, np.int64)


@njit(cache=True, nogil=True)
def play(q, observed, memory, slot, tables, epsilon, rng):
    """Play one ε-greedy episode into a slot of the memory; return its length."""
    states, actions, lengths, returns, ends, _ = memory
    s, n, ret, ended = begin(tables, rng), 0, 0.0, False
    states[slot, 0] = observed[s]
    while n < horizon_of(tables) and not ended:
        a = act(q, observed[s], epsilon, rng)
        s, reward, ended = step(tables, s, a, n + 1, rng)
        actions[slot, n], states[slot, n + 1] = a, observed[s]
        ret += reward
        n += 1
    lengths[slot], returns[slot], ends[slot] = n, ret, ended
    return n


@njit(cache=True, nogil=True)
def filled(memory, kept):
    """Return how many episodes are in the memory, the first `kept` of them demonstrations."""
    return min(kept + memory[5][0], len(memory[2]))


@njit(cache=True, nogil=True)
def drawn(memory, kept, rng):
    """Return one of the episodes in the memory, each with the same probability."""
    return int(uniform(rng) * filled(memory, kept))


@njit(cache=True, nogil=True)
def learn_from(q, rewards, memory, i, rule, room):
    """Learn by Q(λ) from episode i, each step paid by the table of rewards (S, A).

    With `absorbing`, an episode that ended by itself is paid its last reward for ever.
    """
    states, actions, lengths, _, ends, _ = memory
    learning_rate, trace, gamma, absorbing = rule
    gains, parts = room
    n = lengths[i]
    for t in range(n):
        gains[t] = rewards[states[i, t], actions[i, t]]
    if absorbing and ends[i]:
        gains[n - 1] /= 1.0 - gamma
    path, taken = states[i], actions[i]
    trace_backup(q, path, taken, gains, parts, n, learning_rate, trace, True, gamma)


@njit(cache=True, nogil=True)
def learn_and_replay(q, rewards, memory, slot, kept, replays, rule, room, rng):
    """Learn from the episode just played, then from so many drawn from the memory."""
    learn_from(q, rewards, memory, slot, rule, room)
    for _ in range(replays):
        learn_from(q, rewards, memory, drawn(memory, kept, rng), rule, room)
