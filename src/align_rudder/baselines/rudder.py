"""RUDDER (LSTM) on tables: Q-learning on the reward that an LSTM redistributes."""

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
    trace_backup,
)
from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.lstm.weights import advance
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.episodes import Episode
from align_rudder.files import Number, check_values
from align_rudder.tasks.mdp import TabularMDP, rollout

__all__ = ["learn_rudder", "random_episodes_of"]


@njit(cache=True, nogil=True)
def _train(q, lstm, learning_rate, trace, gamma, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken."""
    row_of, z, gate, recurrent, head, scale, settle = lstm
    horizon = horizon_of(tables)
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains, parts = np.empty(horizon), np.zeros(horizon, np.int64)
    hidden = len(recurrent)
    c, h, room = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32), gate[0].copy()
    zero = float(head[hidden])  # the prediction before the first step
    steps = 0
    for _ in range(episodes):
        s = begin(tables, rng)
        c[:] = 0.0
        h[:] = 0.0
        score, ret, n = 0.0, 0.0, 0
        states[0] = s
        for t in range(1, horizon + 1):
            a = act(q, s, epsilon, rng)
            row = row_of[s, a]
            s, reward, ended = step(tables, s, a, t, rng)
            ret += reward
            new = (float(advance(z[row], gate[row], recurrent, head, c, h, room)) - zero) * scale
            gain = new - score
            score = new
            last = ended or t == horizon
            if settle and last:
                gain += ret - score
            if trace == 0.0:
                future = 0.0 if last else gamma * max_value(q, s)
                q_backup(q, states[t - 1], a, gain, future, learning_rate)
            states[t], actions[t - 1], gains[t - 1] = s, a, gain
            n = t
            if ended:
                break
        steps += n
        if trace > 0.0:
            trace_backup(q, states, actions, gains, parts, n, learning_rate, trace, True, gamma)
    return steps


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
    gamma: float = 1.0,
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
        gamma: Discount.
        settle: Whether the correction is added to the last step.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        random_episodes: Episodes of a random policy to train the LSTM with, where it is fitted
            here.
        model: A model fitted to episodes of these states; None to fit one.
        protocol: How the trial is run and judged.
    """
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
    )
    trial = Trial(mdp, demonstrations, protocol, seed)
    if model is None:
        model = LstmRudder(seed=seed, max_steps=mdp.horizon)
        model.fit(demonstrations, random_episodes_of(mdp, random_episodes, seed))
    elif not hasattr(model, "weights_"):
        raise ValueError("the model is not a fitted LstmRudder; fit it first, or leave it out")
    q = trial.cloned(initial_scale, initial_mean)
    # The input of the cells and of the gates is the same at every visit: made once for each row.
    weights, n = model.weights_, model.inputs_.n_rows
    lstm = (
        model.inputs_.pair_rows(mdp.n_states, mdp.n_actions),
        *weights.inputs(np.arange(n)[:, None], np.empty((n, 0), np.float32)),
        weights.recurrent,
        weights.head,
        float(model.scale_),
        bool(settle),
    )
    numbers = (float(learning_rate), float(trace), float(gamma))
    return trial.run(q, partial(_train, q, lstm, *numbers))
