"""SQIL on a table: soft Q-learning that is paid for what was demonstrated, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode
from align_rudder.tabular.kernels import act, take_step, uniform
from align_rudder.tabular.mdp import TabularMDP
from align_rudder.tabular.protocol import Protocol, Result, Trial, behavioural_cloning
from align_rudder.tabular.replay import next_slot

__all__ = ["learn_sqil", "soft_backup", "soft_value"]


@njit(cache=True, nogil=True)
def soft_value(q, s, temperature):
    """Return V(s) = τ log Σ_a exp(Q(s, a) / τ), from the largest value on, which keeps it finite."""
    top = q[s, 0]
    for a in range(1, q.shape[1]):
        top = max(top, q[s, a])
    total = 0.0
    for a in range(q.shape[1]):
        total += np.exp((q[s, a] - top) / temperature)
    return top + temperature * np.log(total)


@njit(cache=True, nogil=True)
def soft_backup(q, links, i, reward, rule):
    """Move Q towards reward + γ V(next) for transition i; −1 as the next state is the end."""
    learning_rate, gamma, temperature, end_value = rule
    s, a, following = links[i, 0], links[i, 1], links[i, 2]
    future = end_value if following < 0 else soft_value(q, following, temperature)
    q[s, a] += learning_rate * (reward + gamma * future - q[s, a])


@njit(cache=True, nogil=True)
def _train(tables, starts, q, memory, rule, batch, epsilon, episodes, rng):
    """Learn q in place for some episodes, a batch for each step; return the steps taken."""
    next_states, cumulative, _, terminal, time_factor = tables
    shown, seen, cursor = memory
    steps = 0
    for _ in range(episodes):
        s = starts[int(uniform(rng) * len(starts))]
        for _ in range(1, len(time_factor)):
            a = act(q, s, epsilon, rng)
            k = take_step(cumulative, s, a, rng)
            slot = next_slot(cursor, 0, len(seen))
            seen[slot, 0], seen[slot, 1] = s, a
            s, ended = next_states[s, a, k], terminal[s, a, k]
            seen[slot, 2] = -1 if ended else s
            filled = min(cursor[0], len(seen))
            for _ in range(batch // 2):
                soft_backup(q, shown, int(uniform(rng) * len(shown)), 1.0, rule)
                soft_backup(q, seen, int(uniform(rng) * filled), 0.0, rule)
            steps += 1
            if ended:
                break
    return steps


def learn_sqil(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    gamma: float = 0.99,
    temperature: float = 0.01,
    batch: int = 10,
    capacity: int = 30_000,
    absorbing: bool = True,
    initial_scale: float = 0.3,
    protocol: Protocol | None = None,
) -> Result:
    """Learn by soft Q imitation learning (Reddy et al. 2020).
    """
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale)
    memory: Any = (
        _links_of(trial),
        np.zeros((capacity, 3), np.int32),
        np.zeros(1, np.int64),
    )
    end_value = 1.0 / (1.0 - gamma) if absorbing else 0.0
    rule: Any = (float(learning_rate), float(gamma), float(temperature), end_value)
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(
            trial.tables, trial.starts, q, memory, rule, int(batch), epsilon, episodes, trial.rng
        )

    return trial.run(q, train)


def _links_of(trial: Trial) -> np.ndarray:
    """Return state, action and next state of each demonstrated step; −1 for the end."""
    parts = []
    for episode, (states, actions, _, following, _) in zip(
        trial.demonstrations, trial.transitions()
    ):
        links = np.stack([states, actions, following], axis=1).astype(np.int32)
        if not episode.truncated:
            links[-1, 2] = -1
        parts.append(links)
    return np.concatenate(parts)
