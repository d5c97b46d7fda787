"""GAIL on a table: a discriminator pays a policy for what looks like the demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode
from align_rudder.tabular.kernels import take_step, uniform
from align_rudder.tabular.mdp import TabularMDP
from align_rudder.tabular.protocol import Protocol, Result, Trial, behavioural_cloning

__all__ = ["learn_gail"]

_POSITIVE, _NEGATIVE, _DIFFERENCE = 0, 1, 2


@njit(cache=True, nogil=True)
def imitation_reward(logit, kind):
    """Return −log(1 − D), log D or their sum, for D = 1/(1 + exp(−logit))."""
    if kind == _DIFFERENCE:
        return logit
    size = np.log1p(np.exp(-abs(logit)))
    if kind == _POSITIVE:
        return max(logit, 0.0) + size
    return min(logit, 0.0) - size


@njit(cache=True, nogil=True)
def softmax(logits, s, out):
    """Write the probabilities of the actions of a state into `out`."""
    top = logits[s, 0]
    for a in range(1, len(out)):
        top = max(top, logits[s, a])
    total = 0.0
    for a in range(len(out)):
        out[a] = np.exp(logits[s, a] - top)
        total += out[a]
    for a in range(len(out)):
        out[a] /= total


@njit(cache=True, nogil=True)
def discriminate(scores, s, a, label, step):
    """Take one step of logistic regression for one state and action: label 1 is demonstrated."""
    scores[s, a] += step * (label - 1.0 / (1.0 + np.exp(-scores[s, a])))


@njit(cache=True, nogil=True)
def _train(tables, starts, learned, shown, rule, epsilon, episodes, rng):
    """Learn policy, values and discriminator in place for some episodes; return the steps taken."""
    next_states, cumulative, _, terminal, time_factor = tables
    logits, values, scores = learned
    policy_rate, value_rate, discriminator_rate, gamma, trace, entropy, kind, absorbing = rule
    horizon, n_actions = len(time_factor) - 1, logits.shape[1]
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    chances, advantages = np.empty((horizon, n_actions)), np.empty(horizon)
    steps = 0
    for _ in range(episodes):
        s = starts[int(uniform(rng) * len(starts))]
        n, ended = 0, False
        while n < horizon and not ended:
            softmax(logits, s, chances[n])
            a, u = 0, uniform(rng)
            if uniform(rng) < epsilon:
                a = int(u * n_actions)
            else:
                while a < n_actions - 1 and u >= chances[n, a]:
                    u -= chances[n, a]
                    a += 1
            k = take_step(cumulative, s, a, rng)
            states[n], actions[n] = s, a
            s, ended = next_states[s, a, k], terminal[s, a, k]
            n += 1
        states[n] = s
        steps += n
        # As many samples as there were steps, from the episode as if it went on until the horizon.
        length = horizon if absorbing and ended else n
        for _ in range(n):
            t = int(uniform(rng) * length)
            i = shown[int(uniform(rng) * len(shown))]
            if t < n:
                discriminate(scores, states[t], actions[t], 0.0, discriminator_rate)
            else:
                discriminate(scores, len(values), 0, 0.0, discriminator_rate)
            discriminate(scores, i[0], i[1], 1.0, discriminator_rate)
        future, advantage = values[s], 0.0
        if ended:
            future = 0.0
            if absorbing:
                future = imitation_reward(scores[len(values), 0], kind) / (1.0 - gamma)
        spread = 0.0
        for t in range(n - 1, -1, -1):
            here, a = states[t], actions[t]
            reward = imitation_reward(scores[here, a], kind)
            error = reward + gamma * future - values[here]
            future = values[here]
            advantage = error + gamma * trace * advantage
            advantages[t] = advantage
            spread += advantage * advantage
        scale = 1.0 / (np.sqrt(spread / n) + 1e-8)
        for t in range(n):
            here, a = states[t], actions[t]
            values[here] += value_rate * advantages[t]
            # The policy that acts is (1 − ε) π + ε/A; this is the slope of its logarithm.
            taken = (1.0 - epsilon) * chances[t, a]
            weight = taken / (taken + epsilon / n_actions) * advantages[t] * scale
            disorder = 0.0
            if entropy > 0.0:
                for b in range(n_actions):
                    disorder -= chances[t, b] * np.log(chances[t, b] + 1e-300)
            for b in range(n_actions):
                change = weight * ((1.0 if b == a else 0.0) - chances[t, b])
                if entropy > 0.0:
                    change -= (
                        entropy * chances[t, b] * (np.log(chances[t, b] + 1e-300) + disorder)
                    )
                logits[here, b] += policy_rate * change
    return steps


def learn_gail(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    policy_rate: float = 0.1,
    value_rate: float = 0.1,
    discriminator_rate: float = 0.1,
    gamma: float = 0.99,
    trace: float = 0.95,
    entropy: float = 0.01,
    reward: Literal["positive", "negative", "difference"] = "positive",
    absorbing: bool = False,
    initial_scale: float = 3.0,
    protocol: Protocol | None = None,
) -> Result:
    """Learn by generative adversarial imitation (Ho & Ermon 2016).
    """
    kinds = {"positive": _POSITIVE, "negative": _NEGATIVE, "difference": _DIFFERENCE}
    trial = Trial(mdp, demonstrations, protocol, seed)
    logits = behavioural_cloning(mdp, demonstrations, seed, initial_scale)
    learned: Any = logits, np.zeros(mdp.n_states), np.zeros((mdp.n_states + 1, mdp.n_actions))
    shown = _pairs_of(trial, absorbing)
    rule: Any = (
        float(policy_rate),
        float(value_rate),
        float(discriminator_rate),
        float(gamma),
        float(trace),
        float(entropy),
        kinds[reward],
        bool(absorbing),
    )
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(
            trial.tables, trial.starts, learned, shown, rule, epsilon, episodes, trial.rng
        )

    return trial.run(logits, train)


def _pairs_of(trial: Trial, absorbing: bool) -> np.ndarray:
    """Return state and action of each demonstrated step, and of those in the absorbing state."""
    pairs = []
    for episode, (states, actions, _, _, _) in zip(trial.demonstrations, trial.transitions()):
        pairs.append(np.stack([states, actions], axis=1))
        rest = max(trial.mdp.horizon - len(states), 0)
        if absorbing and not episode.truncated:
            pairs.append(np.tile([trial.mdp.n_states, 0], (rest, 1)))
    return np.concatenate(pairs)
