"""SQIL on a table: soft Q-learning that is paid for what was demonstrated, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import (
    act,
    begin,
    horizon_of,
    max_value,
    q_backup,
    step,
    uniform,
)
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.replay import next_slot
from align_rudder.episodes import Episode
from align_rudder.files import Number, Whole, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_sqil", "soft_backup", "soft_value"]

_NEGLIGIBLE = -40.0  # exp(−40) does not change a sum of 1 or more


@njit(cache=True, nogil=True)
def soft_value(q, s, temperature):
    """Return V(s) = τ log Σ_a exp(Q(s, a) / τ), summed from the largest on to keep it finite."""
    top, total = max_value(q, s), 0.0
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
    q_backup(q, s, a, reward, gamma * future, learning_rate)


@njit(cache=True, nogil=True)
def _train(q, shown, seen, cursor, rule, batch, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes, a batch for each step; return the steps taken."""
    steps = 0
    for _ in range(episodes):
        s = begin(tables, rng)
        for t in range(1, horizon_of(tables) + 1):
            a = act(q, s, epsilon, rng)
            slot = next_slot(cursor, 0, len(seen))
            seen[slot, 0], seen[slot, 1] = s, a
            s, _, ended = step(tables, s, a, t, rng)
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
    check_values(
        learning_rate=(learning_rate, Number(above=0, high=1)),
        gamma=(gamma, Number(0, below=1)),
        temperature=(temperature, Number(above=0)),
        batch=(batch, Whole(2)),
        capacity=(capacity, Whole(1)),
    )
    if batch % 2:
        raise ValueError(f"batch={batch} must be even: half of it is demonstrated")
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = trial.cloned(initial_scale, initial_mean)
    shown, seen = _links_of(trial), np.zeros((int(capacity), 3), np.int32)
    end_values = np.zeros(mdp.n_states)
    if absorbing:
        end_values[-1 - shown[shown[:, 2] < 0, 2]] = 1.0 / (1.0 - gamma)
    rule = (float(learning_rate), float(gamma), float(temperature), end_values)
    cursor = np.zeros(1, np.int64)
    return trial.run(q, partial(_train, q, shown, seen, cursor, rule, int(batch)))


def _links_of(trial: Trial) -> np.ndarray:
    """Return state, action and next state s of each demonstrated step; −1 − s for an end."""
    parts = []
    for (states, actions, _), ended in zip(trial.paths, trial.ended, strict=True):
        links = np.stack([states[:-1], actions, states[1:]], axis=1).astype(np.int32)
        if ended:
            links[-1, 2] = -1 - links[-1, 2]
        parts.append(links)
    return np.concatenate(parts)
