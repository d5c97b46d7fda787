"""DQfD on a table: Q-learning from demonstrations with prioritised replay and a margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, take_step, uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial, behavioural_cloning
from align_rudder.baselines.replay import find, new_tree, next_slot, put, store
from align_rudder.episodes import Episode
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["descend", "learn_dqfd", "targets"]


@njit(cache=True, nogil=True)
def _best(q, s):
    """Return the largest value of a state; without a branch, which none could predict."""
    top = q[s, 0]
    for a in range(1, q.shape[1]):
        top = max(top, q[s, a])
    return top


@njit(cache=True, nogil=True)
def targets(q, links, gains, i):
    """Return the one-step and the n-step target of transition i: rewards and max Q, no discount."""
    one, many = gains[i, 0], gains[i, 1]
    if links[i, 2] >= 0:
        one += _best(q, links[i, 2])
    if links[i, 3] >= 0:
        many += _best(q, links[i, 3])
    return one, many


@njit(cache=True, nogil=True)
def descend(q, s, a, goals, weights, margin, step):
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
            q[s, rival] -= step * weight_expert
            change += weight_expert
    q[s, a] += step * change
    return error


@njit(cache=True, nogil=True)
def _replay(q, memory, tree, kept, rule, weights, scratch, rng):
    """Learn from one batch, drawn by priority; the first `kept` transitions are demonstrations."""
    learning_rate, margin, batch, alpha, beta, bonus, small = rule
    links, gains = memory
    sums, before, offsets = tree
    picks, priorities = scratch
    lowest = np.inf
    for j in range(batch):
        picks[j] = find(sums, before, offsets, (j + uniform(rng)) / batch * sums[offsets[-1]])
        lowest = min(lowest, sums[picks[j]])
    for j in range(batch):
        i = picks[j]
        shown = i < kept
        step = learning_rate * (lowest / sums[i]) ** beta
        goals = targets(q, links, gains, i)
        error = descend(q, links[i, 0], links[i, 1], goals, weights, margin if shown else 0.0, step)
        priorities[j] = (abs(error) + (bonus if shown else small)) ** alpha
    for j in range(batch):
        put(sums, before, offsets, picks[j], priorities[j])


@njit(cache=True, nogil=True)
def _pretrain(q, memory, tree, kept, rule, weights, steps, rng):
    """Learn from the demonstrations alone."""
    scratch = np.empty(rule[2], np.int64), np.empty(rule[2])
    for _ in range(steps):
        _replay(q, memory, tree, kept, rule, weights, scratch, rng)


@njit(cache=True, nogil=True)
def _train(tables, starts, q, replay, rule, weights, n_step, epsilon, episodes, rng):
    """Learn q in place for some episodes, a batch for each step; return the steps taken."""
    next_states, cumulative, rewards, terminal, time_factor = tables
    memory, tree, kept, capacity, cursor = replay
    links, gains = memory
    sums, before, offsets = tree
    alpha, small = rule[3], rule[6]
    horizon = len(time_factor) - 1
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    returns = np.zeros(horizon + 1)
    scratch = np.empty(rule[2], np.int64), np.empty(rule[2])
    steps = 0
    for _ in range(episodes):
        s = starts[int(uniform(rng) * len(starts))]
        states[0] = s
        for t in range(horizon):
            a = act(q, s, epsilon, rng)
            k = take_step(cumulative, s, a, rng)
            returns[t + 1] = returns[t] + rewards[s, a, k] * time_factor[t + 1]
            ended = terminal[s, a, k] or t + 1 == horizon
            s = next_states[s, a, k]
            actions[t], states[t + 1] = a, -1 if ended else s
            # A step joins the memory when the n after it are known; the end makes all known.
            for known in range(max(t + 1 - n_step, 0), t + 1 if ended else max(t + 2 - n_step, 0)):
                i = next_slot(cursor, kept, capacity)
                store(links, gains, i, states, actions, returns, known, t + 1, n_step)
                error = targets(q, links, gains, i)[0] - q[states[known], actions[known]]
                put(sums, before, offsets, i, (abs(error) + small) ** alpha)
            _replay(q, memory, tree, kept, rule, weights, scratch, rng)
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

        where y₁ = r + max Q(s′, ·) and yₙ = r + … + max Q(s⁽ⁿ⁾, ·), both without the maximum after
        the end of the episode, by the target or by the time limit; ℓ(a, b) is the margin for b ≠ a,
        else 0; the last term is there for demonstrations only. Targets are held fixed, so the slope
        of the first two is −λ(y − Q(s, a)), and the third lowers the rival that attains the maximum
        and raises a, both by λ_E. Transitions of a batch are taken one after the other, each with
        step η w; the sum of a batch is not divided by its size.

        Transition i is drawn with probability P(i) ∝ (abs(y₁ − Q) + bonus)^α, one from each of as
        many equal parts of the total as the batch has, and weighs w = (P(i) / min P)^−β, with the
        least P of the batch. A step joins the memory with its true error, which costs a table
        nothing, once the n steps after it are known. There is no discount, no target network (so
        that double Q-learning is Q-learning) and no decay of weights: a table needs none of them.
    """
    _check(
        learning_rate=(learning_rate, 0 < learning_rate <= 0.5, "above 0 and at most 0.5"),
        n_step=(n_step, n_step >= 1, "at least 1"),
        margin=(margin, margin >= 0, "at least 0"),
        pretraining_steps=(pretraining_steps, pretraining_steps >= 0, "at least 0"),
        batch=(batch, batch >= 1, "at least 1"),
        capacity=(capacity, capacity >= 1, "at least 1"),
        alpha=(alpha, 0 <= alpha <= 1, "0 to 1"),
        beta=(beta, 0 <= beta <= 1, "0 to 1"),
        demonstration_bonus=(demonstration_bonus, demonstration_bonus > 0, "above 0"),
        agent_bonus=(agent_bonus, agent_bonus > 0, "above 0"),
        pretraining_weights=(
            pretraining_weights,
            len(pretraining_weights) == 3 and min(pretraining_weights) >= 0,
            "three numbers of at least 0",
        ),
        weights=(weights, len(weights) == 3 and min(weights) >= 0, "three numbers of at least 0"),
    )
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale, initial_mean)
    replay: Any = _memory_of(trial, n_step, capacity)
    memory, tree, kept = replay[:3]
    for i in range(kept):
        error = targets(q, *memory, i)[0] - q[memory[0][i, 0], memory[0][i, 1]]
        put(*tree, i, (abs(error) + demonstration_bonus) ** alpha)
    rule: Any = (
        float(learning_rate),
        float(margin),
        int(batch),
        float(alpha),
        float(beta),
        float(demonstration_bonus),
        float(agent_bonus),
    )
    first: Any = tuple(float(w) for w in pretraining_weights)
    then: Any = tuple(float(w) for w in weights)
    _pretrain(q, memory, tree, kept, rule, first, int(pretraining_steps), trial.rng)
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(
            trial.tables,
            trial.starts,
            q,
            replay,
            rule,
            then,
            int(n_step),
            epsilon,
            episodes,
            trial.rng,
        )

    return trial.run(q, train)


def _check(**parameters: tuple[Any, bool, str]) -> None:
    """Raise an error for the first parameter, given as (value, whether it is right, needed)."""
    for name, (value, right, needed) in parameters.items():
        if not right:
            raise ValueError(f"{name}={value} must be {needed}")


def _memory_of(trial: Trial, n_step: int, capacity: int) -> tuple[Any, ...]:
    """Return memory, tree, how many transitions are kept, capacity for more, and the cursor."""
    shown = trial.transitions()
    kept = sum(len(part[0]) for part in shown)
    memory = (np.zeros((kept + capacity, 4), np.int32), np.zeros((kept + capacity, 2)))
    slot = 0
    for states, actions, rewards, _, _ in shown:
        n = len(states)
        path = np.append(states, -1)
        returns = np.concatenate([[0.0], np.cumsum(rewards)])
        for t in range(n):
            store(*memory, slot, path, actions, returns, t, n, n_step)
            slot += 1
    return memory, new_tree(kept + capacity), kept, int(capacity), np.zeros(1, np.int64)
