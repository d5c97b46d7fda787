"""GAIL on a table: a discriminator pays a policy for what looks like the demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import begin, horizon_of, max_value, step, uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.episodes import Episode
from align_rudder.files import Number, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = [
    "REWARDS",
    "advantages",
    "discriminate",
    "gail_rule",
    "imitation_reward",
    "learn_gail",
    "policy_step",
    "softmax",
]

_POSITIVE, _NEGATIVE, _DIFFERENCE = 0, 1, 2
_TINY = 1e-300
REWARDS = {"positive": _POSITIVE, "negative": _NEGATIVE, "difference": _DIFFERENCE}
"""What the discriminator may pay, as the kernels count it."""


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
    top, total = max_value(logits, s), 0.0
    for a in range(len(out)):
        out[a] = np.exp(logits[s, a] - top)
        total += out[a]
    for a in range(len(out)):
        out[a] /= total


@njit(cache=True, nogil=True)
def discriminate(scores, s, a, label, rate):
    """Take one step of logistic regression for a state and action: label 1 is demonstrated."""
    scores[s, a] += rate * (label - 1.0 / (1.0 + np.exp(-scores[s, a])))


@njit(cache=True, nogil=True)
def _play(logits, episode, tables, epsilon, rng):
    """Play one episode into its arrays; return its length and whether it terminated."""
    states, actions, chances = episode
    n_actions = logits.shape[1]
    s, n, ended = begin(tables, rng), 0, False
    while n < len(actions) and not ended:
        softmax(logits, s, chances[n])
        a, u = 0, uniform(rng)
        if uniform(rng) < epsilon:
            a = int(u * n_actions)
        else:
            while a < n_actions - 1 and u >= chances[n, a]:
                u -= chances[n, a]
                a += 1
        states[n], actions[n] = s, a
        n += 1
        s, _, ended = step(tables, s, a, n, rng)
    states[n] = s
    return n, ended


@njit(cache=True, nogil=True)
def _train_discriminator(scores, episode, n, length, shown, rate, rng):
    """Train the discriminator on n steps of the agent and n of the demonstrations.

    The agent's are drawn as if its episode of n steps went on to `length` in its last state.
    """
    states, actions, _ = episode
    for _ in range(n):
        t, i = int(uniform(rng) * length), int(uniform(rng) * len(shown))
        if t < n:
            discriminate(scores, states[t], actions[t], 0.0, rate)
        else:
            discriminate(scores, states[n], 0, 0.0, rate)
        discriminate(scores, shown[i, 0], shown[i, 1], 1.0, rate)


@njit(cache=True, nogil=True)
def advantages(rewards, values, last, gamma, trace, out):
    """Write the advantages A_t = δ_t + γλ A_{t+1} (GAE) into `out`; `last` is V(s_T)."""
    future, advantage = last, 0.0
    for t in range(len(rewards) - 1, -1, -1):
        advantage = rewards[t] + gamma * future - values[t] + gamma * trace * advantage
        future = values[t]
        out[t] = advantage


@njit(cache=True, nogil=True)
def policy_step(logits, s, a, chances, weight, epsilon, entropy, rate):
    """Move the logits of s along weight · ∇ log b(a) + entropy · ∇ H(π), b = (1 − ε) π + ε/A."""
    n_actions = len(chances)
    taken = (1.0 - epsilon) * chances[a]
    share = taken / (taken + epsilon / n_actions) if taken > 0.0 else 0.0
    disorder = 0.0
    if entropy > 0.0:
        for b in range(n_actions):
            disorder -= chances[b] * np.log(chances[b] + _TINY)
    for b in range(n_actions):
        change = weight * share * ((1.0 if b == a else 0.0) - chances[b])
        if entropy > 0.0:
            change -= entropy * chances[b] * (np.log(chances[b] + _TINY) + disorder)
        logits[s, b] += rate * change


@njit(cache=True, nogil=True)
def _train(logits, values, scores, shown, rule, tables, epsilon, episodes, rng):
    """Learn policy, values and discriminator in place for some episodes; return the steps taken."""
    policy_rate, value_rate, discriminator_rate, gamma, trace, entropy, kind, absorbing = rule
    horizon = horizon_of(tables)
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    chances = np.empty((horizon, logits.shape[1]))
    rewards, before, gains = np.empty(horizon), np.empty(horizon), np.empty(horizon)
    episode = (states, actions, chances)
    steps = 0
    for _ in range(episodes):
        n, ended = _play(logits, episode, tables, epsilon, rng)
        steps += n
        length = horizon if absorbing and ended else n
        _train_discriminator(scores, episode, n, length, shown, discriminator_rate, rng)
        last = 0.0 if ended else values[states[n]]
        if ended and absorbing:
            last = imitation_reward(scores[states[n], 0], kind) / (1.0 - gamma)
        for t in range(n):
            rewards[t] = imitation_reward(scores[states[t], actions[t]], kind)
            before[t] = values[states[t]]
        advantages(rewards[:n], before, last, gamma, trace, gains)
        square = 0.0
        for t in range(n):
            square += gains[t] * gains[t]
        scale = 1.0 / (np.sqrt(square / n) + _TINY)
        for t in range(n):
            s, a, weight = states[t], actions[t], gains[t] * scale
            values[s] += value_rate * (gains[t] + before[t] - values[s])
            policy_step(logits, s, a, chances[t], weight, epsilon, entropy, policy_rate)
    return steps


def gail_rule(
    policy_rate: float,
    value_rate: float,
    discriminator_rate: float,
    gamma: float,
    trace: float,
    entropy: float,
    reward: str,
) -> tuple[Any, ...]:
    """Return the hyper-parameters of GAIL as its kernels take them, each seen to be possible."""
    if reward not in REWARDS:
        raise ValueError(f"reward={reward!r} is not known; use one of {sorted(REWARDS)}")
    check_values(
        policy_rate=(policy_rate, Number(above=0)),
        value_rate=(value_rate, Number(above=0, high=1)),
        discriminator_rate=(discriminator_rate, Number(above=0)),
        gamma=(gamma, Number(0, below=1)),
        trace=(trace, Number(0, 1)),
        entropy=(entropy, Number(0)),
    )
    rates = map(float, (policy_rate, value_rate, discriminator_rate, gamma, trace, entropy))
    return (*rates, REWARDS[reward])


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
    absorbing: bool = True,
    initial_scale: float = 3.0,
    protocol: Protocol | None = None,
) -> Result:
    r"""Learn by GAIL, generative adversarial imitation (Ho & Ermon 2016), on a table.

    A discriminator D(s, a), one logit for each state and action, tells steps of the demonstrations
    from those of the agent. A softmax policy is paid for being taken for the former, and learns by
    actor and critic after each episode. What the environment pays is not used.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        seed: Seed of the trial.
        policy_rate: Learning rate of the policy's logits.
        value_rate: Learning rate of the critic.
        discriminator_rate: Learning rate of the discriminator's logits.
        gamma: Discount γ, below 1.
        trace: λ of the advantages.
        entropy: Weight of the policy's entropy.
        reward: "positive" for −log(1 − D), as in the paper, "negative" for log D, or "difference"
            for log D − log(1 − D), the logit, as in adversarial inverse reinforcement learning.
        absorbing: Whether an episode stays in the state where it ended until the time limit, with
            action 0, for the discriminator to judge as any other; otherwise nothing is earned after
            the end, and a reward that is never negative makes it pay not to get there.
        initial_scale: Logit of a demonstrated action; larger than the values of other learners, as
            the policy samples from logits and does not take the best.
        protocol: How the trial is run and judged; ε-greedily, with the policy's logits as values.

    Returns:
        The trial; its q is the table of the policy's logits.

    Notes:
        The acting policy is b = (1 − ε) π + ε/A with π the softmax of the logits θ. After an
        episode of n steps, n steps of it and n of the demonstrations are drawn; each moves its
        logit by the rate times (label − D), where the label of demonstrations is 1. Then

        .. math:: A_t = δ_t + γ λ A_{t+1}, \quad δ_t = r_t + γ V(s_{t+1}) - V(s_t)

        with r_t the reward given by D; V moves towards A_t + V(s_t), and θ by its rate times
        (A_t / rms A) ∇ log b(a_t) plus the slope of the entropy of π. V continues at the time
        limit, of which the state is not aware; in an absorbing state it is r / (1 − γ).
    """
    rates = gail_rule(policy_rate, value_rate, discriminator_rate, gamma, trace, entropy, reward)
    trial = Trial(mdp, demonstrations, protocol, seed)
    logits = trial.cloned(initial_scale)
    values, scores = np.zeros(mdp.n_states), np.zeros_like(logits)
    rule = (*rates, bool(absorbing))
    shown = _pairs_of(trial, absorbing)
    return trial.run(logits, partial(_train, logits, values, scores, shown, rule))


def _pairs_of(trial: Trial, absorbing: bool) -> np.ndarray:
    """Return state and action of each demonstrated step, those in an absorbing end included."""
    pairs = []
    for (states, actions, _), ended in zip(trial.paths, trial.ended, strict=True):
        pairs.append(np.stack([states[:-1], actions], axis=1))
        rest = max(trial.mdp.horizon - len(actions), 0)
        if absorbing and ended:
            pairs.append(np.tile([states[-1], 0], (rest, 1)))
    return np.concatenate(pairs)
