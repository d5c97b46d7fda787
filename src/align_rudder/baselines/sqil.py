"""SQIL on a table: soft Q-learning that is paid for what was demonstrated, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, take_step, uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial, behavioural_cloning
from align_rudder.baselines.replay import next_slot
from align_rudder.episodes import Episode
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_sqil", "soft_backup", "soft_value"]

_NEGLIGIBLE = -40.0  # exp(−40) does not change a sum of 1 or more


@njit(cache=True, nogil=True)
def soft_value(q, s, temperature):
    """Return V(s) = τ log Σ_a exp(Q(s, a) / τ), summed from the largest on to keep it finite."""
    top = q[s, 0]
    for a in range(1, q.shape[1]):
        top = max(top, q[s, a])
    total = 0.0
    for a in range(q.shape[1]):
        gap = (q[s, a] - top) / temperature
        if gap > _NEGLIGIBLE:
            total += np.exp(gap) if gap < 0.0 else 1.0
    return top + temperature * np.log(total) if total > 1.0 else top


@njit(cache=True, nogil=True)
def soft_backup(q, links, i, reward, rule):
    """Move Q towards reward + γ V(next) for transition i; an end in state s is stored as −1 − s."""
    learning_rate, gamma, temperature, end_values = rule
    s, a, following = links[i, 0], links[i, 1], links[i, 2]
    if following < 0:
        future = end_values[-1 - following]
    else:
        future = soft_value(q, following, temperature)
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
            seen[slot, 2] = -1 - s if ended else s
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
    gamma: float = 0.95,
    temperature: float = 1e-4,
    batch: int = 10,
    capacity: int = 30_000,
    absorbing: bool = True,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
) -> Result:
    r"""Learn by SQIL, soft Q imitation learning (Reddy et al. 2020), on a table.

    A demonstrated step is paid 1 and a step of the agent 0, whatever the environment pays; half of
    each batch, drawn at every step, comes from either. The agent acts ε-greedily, as all learners.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        seed: Seed of the trial.
        learning_rate: Learning rate η.
        gamma: Discount γ, below 1: with a pay of 1 at every step values grow up to 1/(1 − γ), and
            beyond all bounds without a discount.
        temperature: τ; what the soft maximum adds for the freedom of choice, up to τ log A at every
            step, must be small next to the pay of 1.
        batch: Transitions drawn at every step, an even number.
        capacity: Steps of the agent that are kept; then the oldest is overwritten.
        absorbing: Whether a state in which demonstrations end is one where they stay, paid 1 for
            ever; otherwise nothing is earned after the end, and it pays not to get there.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.

    Notes:
        For every transition drawn,

        .. math:: Q(s, a) \leftarrow Q(s, a) + η \left(r + γ V(s') - Q(s, a)\right), \quad
            V(s) = τ \log \sum_a \exp(Q(s, a) / τ)

        with r = 1 for demonstrations and r = 0 for the agent. After an end, V is 1/(1 − γ) where a
        demonstration ended in this state and that is absorbing, else 0. The time limit is no end:
        the state is not aware of the time, and no reward is lost there.
    """
    for name, value, right, needed in (
        ("learning_rate", learning_rate, 0 < learning_rate <= 1, "above 0 and at most 1"),
        ("gamma", gamma, 0 <= gamma < 1, "at least 0 and below 1, or values grow without bound"),
        ("temperature", temperature, temperature > 0, "above 0"),
        ("batch", batch, batch >= 2 and batch % 2 == 0, "an even number of at least 2"),
        ("capacity", capacity, capacity >= 1, "at least 1"),
    ):
        if not right:
            raise ValueError(f"{name}={value} must be {needed}")
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale, initial_mean)
    seen = np.zeros((int(capacity), 3), np.int32)
    shown = _links_of(trial)
    memory: Any = (shown, seen, np.zeros(1, np.int64))
    end_values = np.zeros(mdp.n_states)
    if absorbing:
        end_values[-1 - shown[shown[:, 2] < 0, 2]] = 1.0 / (1.0 - gamma)
    rule: Any = (float(learning_rate), float(gamma), float(temperature), end_values)
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(
            trial.tables, trial.starts, q, memory, rule, int(batch), epsilon, episodes, trial.rng
        )

    return trial.run(q, train)


def _links_of(trial: Trial) -> np.ndarray:
    """Return state, action and next state s of each demonstrated step; −1 − s for an end."""
    parts = []
    for episode, (states, actions, _, following, _) in zip(
        trial.demonstrations, trial.transitions()
    ):
        links = np.stack([states, actions, following], axis=1).astype(np.int32)
        if not episode.truncated:
            links[-1, 2] = -1 - links[-1, 2]
        parts.append(links)
    return np.concatenate(parts)
