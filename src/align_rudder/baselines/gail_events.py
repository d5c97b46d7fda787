"""GAIL on event logs: a discriminator pays a policy for events that look like those of logs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.gail import (
    advantages,
    discriminate,
    gail_rule,
    imitation_reward,
    policy_step,
    softmax,
)
from align_rudder.baselines.kernels import begin, draw, horizon_of, uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.files import Whole, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_gail_events", "remembered_pairs"]

_TINY = 1e-300


def remembered_pairs(log: Sequence[Hashable], symbols: Sequence[Hashable]) -> np.ndarray:
    """Return each event of a log with what happened before it (T, 2), as `remembering` counts.

    Example:
        >>> remembered_pairs("BAB", symbols="AB").tolist()
        [[0, 1], [2, 0], [1, 1]]
    """
    index = {symbol: i for i, symbol in enumerate(symbols)}
    events = np.array([index[symbol] for symbol in log], np.int64)
    return np.stack([np.concatenate([[0], events[:-1] + 1]), events], axis=1)


@njit(cache=True, nogil=True)
def _play(logits, episode, observed, known, labels, tables, epsilon, rng):
    """Play one episode into its arrays; return its length and whether it terminated."""
    rows, actions, chances, places, events = episode
    n_actions = logits.shape[1]
    s, n, ended = begin(tables, rng), 0, False
    while n < len(actions) and not ended:
        softmax(logits, observed[s], chances[n])
        a, u = 0, uniform(rng)
        if uniform(rng) < epsilon:
            a = int(u * n_actions)
        else:
            while a < n_actions - 1 and u >= chances[n, a]:
                u -= chances[n, a]
                a += 1
        k = draw(tables, s, a, rng)
        rows[n], actions[n], places[n], events[n] = observed[s], a, known[s], labels[s, a, k]
        n += 1
        ended = tables[3][s, a, k]
        s = tables[0][s, a, k]
    rows[n] = observed[s]
    return n, ended


@njit(cache=True, nogil=True)
def _train_discriminator(scores, episode, n, ends, shown, rate, rng):
    """Train on the events of n steps and `ends` of the absorbing end, and as many of the logs."""
    _, _, _, places, events = episode
    happened = np.flatnonzero(events[:n] >= 0)
    total = len(happened) + ends
    for _ in range(total):
        i, j = int(uniform(rng) * total), int(uniform(rng) * len(shown))
        if i < len(happened):
            t = happened[i]
            discriminate(scores, places[t], events[t], 0.0, rate)
        else:
            discriminate(scores, len(scores) - 1, 0, 0.0, rate)
        discriminate(scores, shown[j, 0], shown[j, 1], 1.0, rate)


@njit(cache=True, nogil=True)
def _train(logits, values, scores, shown, rule, seen, tables, epsilon, episodes, rng):
    """Learn policy, values and discriminator in place for some episodes; return the steps taken."""
    policy_rate, value_rate, discriminator_rate, gamma, trace, entropy, kind, ends = rule
    observed, known, labels = seen
    horizon = horizon_of(tables)
    rows, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    places, events = np.empty(horizon, np.int64), np.empty(horizon, np.int64)
    chances = np.empty((horizon, logits.shape[1]))
    rewards, before, gains = np.zeros(horizon), np.empty(horizon), np.empty(horizon)
    episode = (rows, actions, chances, places, events)
    steps = 0
    for _ in range(episodes):
        n, ended = _play(logits, episode, observed, known, labels, tables, epsilon, rng)
        steps += n
        repeated = ends if ended else 0
        _train_discriminator(scores, episode, n, repeated, shown, discriminator_rate, rng)
        last = values[rows[n]]
        if ended:
            last = imitation_reward(scores[len(scores) - 1, 0], kind) / (1.0 - gamma)
        for t in range(n):
            rewards[t] = 0.0
            if events[t] >= 0:
                rewards[t] = imitation_reward(scores[places[t], events[t]], kind)
            before[t] = values[rows[t]]
        advantages(rewards[:n], before, last, gamma, trace, gains)
        square = 0.0
        for t in range(n):
            square += gains[t] * gains[t]
        scale = 1.0 / (np.sqrt(square / n) + _TINY)
        for t in range(n):
            o, weight = rows[t], gains[t] * scale
            values[o] += value_rate * (gains[t] + before[t] - values[o])
            policy_step(logits, o, actions[t], chances[t], weight, epsilon, entropy, policy_rate)
    return steps


def learn_gail_events(
    mdp: TabularMDP,
    shown: Sequence[np.ndarray],
    known: np.ndarray,
    *,
    seed: int = 0,
    policy_rate: float = 0.1,
    value_rate: float = 0.1,
    discriminator_rate: float = 0.1,
    gamma: float = 0.95,
    trace: float = 0.95,
    entropy: float = 0.01,
    reward: Literal["positive", "negative", "difference"] = "positive",
    ends: int = 10,
    protocol: Protocol | None = None,
) -> Result:
    r"""Learn by GAIL from event logs, where there are no states and actions to imitate.

    As `learn_gail`, but the discriminator D(m, e) sees what is known before an event and the event:
    what happened last, say, or what is held. Steps without an event are paid nothing. Policy and
    critic see what the agent sees of a state. What the environment pays is not used.

    Args:
        mdp: The environment, which names what happens.
        shown: Of each log what was known before each event, and the event (T, 2), as
            `remembered_pairs` returns them.
        known: What is known in each state (S,), counted as in the logs.
        seed: Seed of the trial.
        policy_rate: Learning rate of the policy's logits.
        value_rate: Learning rate of the critic.
        discriminator_rate: Learning rate of the discriminator's logits.
        gamma: Discount γ, below 1.
        trace: λ of the advantages.
        entropy: Weight of the policy's entropy.
        reward: "positive" for −log(1 − D), "negative" for log D, or "difference" for their sum, the
            logit. With "negative" it pays to keep away from all events.
        ends: How often the absorbing end follows a log, or an episode of the agent that ended by
            itself, for the discriminator. Its value is that of staying there for ever.
        protocol: How the trial is run and judged; ε-greedily, with the policy's logits as values.

    Returns:
        The trial; its q is the table of the policy's logits.
    """
    check_values(ends=(ends, Whole(0)))
    rates = gail_rule(policy_rate, value_rate, discriminator_rate, gamma, trace, entropy, reward)
    pairs = np.concatenate([np.reshape(log, (-1, 2)) for log in shown]).astype(np.int64)
    known = np.asarray(known, np.int64)
    if not mdp.labels.size or known.shape != (mdp.n_states,) or not len(pairs):
        raise ValueError(
            "needed are a table that names what happens, logs with an event in them, and what is "
            f"known in each of the {mdp.n_states} states; known has shape {known.shape}"
        )
    trial = Trial(mdp, [], protocol, seed, [1.0])
    logits, values = np.zeros((mdp.n_observations, mdp.n_actions)), np.zeros(mdp.n_observations)
    end = int(max(known.max(), pairs[:, 0].max())) + 1
    scores = np.zeros((end + 1, len(mdp.symbols)))
    closed = np.concatenate([pairs, np.tile([end, 0], (ends * len(shown), 1))])
    rule = (*rates, int(ends))
    seen = (trial.observed, known, mdp.labels.astype(np.int64))
    return trial.run(logits, partial(_train, logits, values, scores, closed, rule, seen))
