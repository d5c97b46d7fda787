"""RUDDER (LSTM) on tables: Q-learning on the reward that an LSTM redistributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, greedy, take_step, uniform
from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.lstm.weights import advance
from align_rudder.baselines.protocol import (
    Protocol,
    Result,
    Trial,
    behavioural_cloning,
    check_numbers,
)
from align_rudder.episodes import Episode
from align_rudder.tasks.mdp import TabularMDP, rollout

__all__ = ["learn_rudder", "random_episodes_of"]


@njit(cache=True, nogil=True)
def _train(tables, starts, q, lstm, rule, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken."""
    next_states, cumulative, rewards, terminal, time_factor = tables
    row_of, z, gate, recurrent, head, scale, settle = lstm
    learning_rate, trace = rule
    horizon = len(time_factor) - 1
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains = np.empty(horizon)
    hidden = len(recurrent)
    c, h, room = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32), gate[0].copy()
    zero = float(head[hidden])  # the prediction before the first step
    steps = 0
    for _ in range(episodes):
        s = starts[int(uniform(rng) * len(starts))]
        c[:] = 0.0
        h[:] = 0.0
        score, ret, n = 0.0, 0.0, 0
        states[0] = s
        for t in range(1, horizon + 1):
            a = act(q, s, epsilon, rng)
            k = take_step(cumulative, s, a, rng)
            following, ended = next_states[s, a, k], terminal[s, a, k]
            ret += rewards[s, a, k] * time_factor[t]
            row = row_of[s, a]
            new = (float(advance(z[row], gate[row], recurrent, head, c, h, room)) - zero) * scale
            gain = new - score
            score = new
            last = ended or t == horizon
            if settle and last:
                gain += ret - score
            if trace == 0.0:
                future = 0.0 if last else q[following, greedy(q, following)]
                q[s, a] += learning_rate * (gain + future - q[s, a])
            states[t], actions[t - 1], gains[t - 1] = following, a, gain
            n, s = t, following
            if ended:
                break
        steps += n
        if trace > 0.0:
            _trace(q, states, actions, gains, n, learning_rate, trace)
    return steps


@njit(cache=True, nogil=True)
def _trace(q, states, actions, gains, n, learning_rate, trace):
    """Update backwards with G_t = R_{t+1} + λ G_{t+1} + (1−λ) max Q."""
    g = 0.0
    for t in range(n - 1, -1, -1):
        future = 0.0
        if t < n - 1:
            future = trace * g + (1.0 - trace) * q[states[t + 1], greedy(q, states[t + 1])]
        g = gains[t] + future
        q[states[t], actions[t]] += learning_rate * (g - q[states[t], actions[t]])


def random_episodes_of(mdp: TabularMDP, n: int, seed: int) -> list[Episode]:
    """Return n episodes of a policy that acts at random."""
    rng = np.random.default_rng([seed, 2])
    policy = np.zeros(mdp.n_states, np.int64)
    return [rollout(mdp, policy, rng, exploration=1.0) for _ in range(n)]


def learn_rudder(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.0,
    settle: bool = True,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    random_episodes: int = 20,
    model: LstmRudder | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn by behavioural cloning and Q-learning on the reward that an LSTM redistributes.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ; 0 is one-step Q-learning, above it Q(λ).
        settle: Whether the correction is added to the last step.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        random_episodes: Episodes of a random policy to train the LSTM with, where it is fitted
            here.
        model: A model fitted to episodes of these states; None to fit one.
        protocol: How the trial is run and judged.
    """
    trial = Trial(mdp, demonstrations, protocol, seed)
    check_numbers(
        learning_rate=(learning_rate, 0, 1),
        trace=(trace, 0, 1),
        initial_scale=(initial_scale, -1e9, 1e9),
        initial_mean=(initial_mean, -1e9, 1e9),
    )
    if model is not None and not hasattr(model, "weights_"):
        raise ValueError("the model is not a fitted LstmRudder; fit it first, or leave it out")
    if model is None:
        model = LstmRudder(seed=seed, max_steps=mdp.horizon)
        model.fit(demonstrations, random_episodes_of(mdp, random_episodes, seed))
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale, initial_mean)
    lstm = _tables(model, mdp, settle)
    rule: Any = (float(learning_rate), float(trace))
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(trial.tables, trial.starts, q, lstm, rule, epsilon, episodes, trial.rng)

    return trial.run(q, train)


def _tables(model: LstmRudder, mdp: TabularMDP, settle: bool) -> Any:
    """Return what the kernel needs of a model; cell inputs and gates are made once for each row."""
    weights, n = model.weights_, model.inputs_.n_rows
    z, gate = weights.inputs(np.arange(n)[:, None], np.empty((n, 0), np.float32))
    row_of = model.inputs_.pair_rows(mdp.n_states, mdp.n_actions)
    return row_of, z, gate, weights.recurrent, weights.head, float(model.scale_), bool(settle)
