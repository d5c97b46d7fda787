"""DQfD on a table: Q-learning from demonstrations with prioritised replay and a margin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, begin, horizon_of, max_value, step, uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.replay import find, new_tree, next_slot, put, store
from align_rudder.episodes import Episode
from align_rudder.files import Number, Whole, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["descend", "learn_dqfd", "targets"]


@njit(cache=True, nogil=True)
def targets(q, links, gains, i, gamma=1.0, far=1.0):
    """Return the one-step and the n-step target of transition i; `far` is γⁿ."""
    one, many = gains[i, 0], gains[i, 1]
    if links[i, 2] >= 0:
        one += gamma * max_value(q, links[i, 2])
    if links[i, 3] >= 0:
        many += far * max_value(q, links[i, 3])
    return one, many


@njit(cache=True, nogil=True)
def descend(q, s, a, goals, weights, margin, rate):
    """Take one gradient step on the loss of one transition; return its one-step TD error.

    A margin of 0 leaves out the expert's loss, as for the agent's own transitions.
    """
    one, many = goals
    weight_one, weight_many, weight_expert = weights
    error = one - q[s, a]
    change = weight_one * error + weight_many * (many - q[s, a])
    if margin > 0.0 and weight_expert > 0.0:
        rival, best = a, q[s, a]
        for b in range(q.shape[1]):
            if b != a and q[s, b] + margin > best:
                rival, best = b, q[s, b] + margin
        if rival != a:
            q[s, rival] -= rate * weight_expert
            change += weight_expert
    q[s, a] += rate * change
    return error


@njit(cache=True, nogil=True)
def _error(q, links, gains, i, gamma):
    """Return the one-step TD error of transition i."""
    return targets(q, links, gains, i, gamma, 1.0)[0] - q[links[i, 0], links[i, 1]]


@njit(cache=True, nogil=True)
def _replay(q, memory, rule, weights, rng):
    """Learn from one batch, drawn by priority; the first `kept` transitions are demonstrations."""
    links, gains, tree, kept, _, picks, priorities = memory
    learning_rate, wanted, n_step, alpha, beta, demonstration_bonus, agent_bonus, gamma = rule
    far = gamma**n_step
    sums, _, offsets = tree
    batch, lowest = len(picks), np.inf
    for j in range(batch):
        picks[j] = find(tree, (j + uniform(rng)) / batch * sums[offsets[-1]])
        lowest = min(lowest, sums[picks[j]])
    for j in range(batch):
        i = picks[j]
        shown = i < kept
        rate = learning_rate * (lowest / sums[i]) ** beta
        goals = targets(q, links, gains, i, gamma, far)
        margin = wanted if shown else 0.0
        error = descend(q, links[i, 0], links[i, 1], goals, weights, margin, rate)
        bonus = demonstration_bonus if shown else agent_bonus
        priorities[j] = (abs(error) + bonus) ** alpha
    for j in range(batch):
        put(tree, picks[j], priorities[j])


@njit(cache=True, nogil=True)
def _train(q, memory, rule, weights, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes, a batch for each step; return the steps taken."""
    links, gains, tree, kept, cursor, _, _ = memory
    _, _, n_step, alpha, _, _, bonus, gamma = rule
    horizon = horizon_of(tables)
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    rewards = np.zeros(horizon)
    steps = 0
    for _ in range(episodes):
        s = begin(tables, rng)
        states[0] = s
        for t in range(1, horizon + 1):
            a = act(q, s, epsilon, rng)
            s, reward, ended = step(tables, s, a, t, rng)
            ended = ended or t == horizon
            rewards[t - 1], actions[t - 1], states[t] = reward, a, -1 if ended else s
            # A step joins the memory when the n after it are known; the end makes all known.
            for known in range(max(t - n_step, 0), t if ended else max(t + 1 - n_step, 0)):
                i = next_slot(cursor, kept, len(links) - kept)
                store(links, gains, i, states, actions, rewards, known, t, n_step, gamma)
                put(tree, i, (abs(_error(q, links, gains, i, gamma)) + bonus) ** alpha)
            _replay(q, memory, rule, weights, rng)
            steps += 1
            if ended:
                break
    return steps


def learn_dqfd(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.01,
    gamma: float = 1.0,
    n_step: int = 10,
    margin: float = 0.8,
    pretraining_steps: int = 100,
    batch: int = 10,
    capacity: int = 30_000,
    alpha: float = 0.4,
    beta: float = 0.6,
    demonstration_bonus: float = 1.0,
    agent_bonus: float = 0.001,
    pretraining_weights: tuple[float, float, float] = (0.01, 0.01, 1.0),
    weights: tuple[float, float, float] = (1.0, 1.0, 0.01),
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
) -> Result:
    r"""Learn by DQfD, deep Q-learning from demonstrations (Hester et al. 2018), on a table.

    The table is cloned from the demonstrations, trained on them, and then on a memory of
    demonstrations and the agent's own steps, from which a batch is drawn at every step. The reward
    is the environment's own.

    Args:
        mdp: The environment.
        demonstrations: Kept in the memory for good; observations are states.
        seed: Seed of the trial.
        learning_rate: Learning rate η, at most 0.5: two errors are corrected at once.
        gamma: Discount γ.
        n_step: Rewards in the n-step target.
        margin: By how much a demonstrated action shall lead.
        pretraining_steps: Batches from the demonstrations before the first episode.
        batch: Transitions drawn at every step.
        capacity: Steps of the agent that are kept; then the oldest is overwritten.
        alpha: Exponent of the priorities; 0 draws evenly.
        beta: Exponent of the importance-sampling weights; 0 leaves them out.
        demonstration_bonus: What is added to the priority of a demonstration.
        agent_bonus: What is added to the priority of a step of the agent.
        pretraining_weights: λ₁, λₙ and λ_E before the first episode.
        weights: λ₁, λₙ and λ_E from then on.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.

    Notes:
        The loss of a transition is

        .. math:: \tfrac{λ_1}{2} (y_1 - Q(s, a))^2 + \tfrac{λ_n}{2} (y_n - Q(s, a))^2
            + λ_E \left(\max_b [Q(s, b) + ℓ(a, b)] - Q(s, a)\right)

        where y₁ = r + γ max Q(s′, ·) and yₙ = r + γ r′ + … + γⁿ max Q(s⁽ⁿ⁾, ·), both without the
        maximum after the end of the episode, by the target or by the time limit; ℓ(a, b) is the
        margin for b ≠ a, else 0; the last term is there for demonstrations only. Targets are held
        fixed, so the slope of the first two is −λ(y − Q(s, a)), and the third lowers the rival that
        attains the maximum and raises a, both by λ_E. Transitions of a batch are taken one after
        the other, each with step η w; the sum of a batch is not divided by its size.

        Transition i is drawn with probability P(i) ∝ (abs(y₁ − Q) + bonus)^α, one from each of as
        many equal parts of the total as the batch has, and weighs w = (P(i) / min P)^−β, with the
        least P of the batch. A step joins the memory with its true error, which costs a table
        nothing, once the n steps after it are known. There is no target network (so that double
        Q-learning is Q-learning) and no decay of weights: a table needs neither.
    """
    check_values(
        learning_rate=(learning_rate, Number(above=0, high=0.5)),
        gamma=(gamma, Number(0, 1)),
        n_step=(n_step, Whole(1)),
        margin=(margin, Number(0)),
        pretraining_steps=(pretraining_steps, Whole(0)),
        batch=(batch, Whole(1)),
        capacity=(capacity, Whole(1)),
        alpha=(alpha, Number(0, 1)),
        beta=(beta, Number(0, 1)),
        demonstration_bonus=(demonstration_bonus, Number(above=0)),
        agent_bonus=(agent_bonus, Number(above=0)),
    )
    for name, given in (("pretraining_weights", pretraining_weights), ("weights", weights)):
        if len(given) != 3 or not min(given) >= 0:
            raise ValueError(f"{name}={given} must be three numbers of at least 0")
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = trial.cloned(initial_scale, initial_mean)
    rates = map(float, (alpha, beta, demonstration_bonus, agent_bonus))
    rule = (float(learning_rate), float(margin), int(n_step), *rates, float(gamma))
    memory = _memory_of(trial, int(n_step), int(capacity), int(batch), float(gamma))
    links, gains, tree, kept = memory[:4]
    for i in range(kept):
        put(tree, i, (abs(_error(q, links, gains, i, rule[-1])) + demonstration_bonus) ** alpha)
    for _ in range(pretraining_steps):
        _replay(q, memory, rule, tuple(map(float, pretraining_weights)), trial.rng)
    return trial.run(q, partial(_train, q, memory, rule, tuple(map(float, weights))))


def _memory_of(
    trial: Trial, n_step: int, capacity: int, batch: int, gamma: float
) -> tuple[Any, ...]:
    """Return the memory of the kernels, with the demonstrations in it.

    It is links, gains, tree, the number of demonstrated steps, the cursor of the agent's, and room
    for the picks and priorities of a batch.
    """
    kept = sum(len(actions) for _, actions, _ in trial.paths)
    size = kept + capacity
    links, gains = np.zeros((size, 4), np.int32), np.zeros((size, 2))
    slot = 0
    for states, actions, rewards in trial.paths:
        n = len(actions)
        path = np.append(states[:-1], -1)
        for t in range(n):
            store(links, gains, slot, path, actions, rewards, t, n, n_step, gamma)
            slot += 1
    picks, priorities = np.empty(batch, np.int64), np.empty(batch)
    return links, gains, new_tree(size), kept, np.zeros(1, np.int64), picks, priorities
