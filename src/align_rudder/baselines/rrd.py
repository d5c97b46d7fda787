"""RRD on a table: per-step rewards by least squares of returns on random parts of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import uniform
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.replay import next_slot
from align_rudder.baselines.trajectories import drawn, learn_and_replay, new_memory, play
from align_rudder.episodes import Episode
from align_rudder.files import Flag, Number, Whole, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["decompose", "learn_rrd", "subsequence"]


@njit(cache=True, nogil=True)
def subsequence(picks, n, rng):
    """Draw len(picks) of n steps, all sets alike, in order; all n if there are no more.

    Returns:
        How many were drawn.
    """
    size = min(len(picks), n)
    k = 0
    for t in range(n):
        if uniform(rng) * (n - t) < size - k:
            picks[k] = t
            k += 1
            if k == size:
                break
    return k


@njit(cache=True, nogil=True)
def decompose(rewards, memory, i, picks, room, rate, unbiased):
    """Take one gradient step for the picked steps of episode i; return the error before it."""
    states, actions, lengths, returns, _, _ = memory
    n, k = lengths[i], len(picks)
    mean = 0.0
    for j in range(k):
        room[j] = rewards[states[i, picks[j]], actions[i, picks[j]]]
        mean += room[j] / k
    error = returns[i] / n - mean
    spread = (1.0 - k / n) / (k - 1) if unbiased and k > 1 else 0.0
    for j in range(k):
        change = error + spread * (room[j] - mean)
        rewards[states[i, picks[j]], actions[i, picks[j]]] += rate / k * change
    return error


@njit(cache=True, nogil=True)
def _train(q, observed, model, memory, kept, counts, rule, room, tables, epsilon, episodes, rng):
    """Learn q and the rewards in place for some episodes; return the steps taken."""
    rewards, rate, unbiased, picks, values = model
    updates, replays = counts
    steps = 0
    for _ in range(episodes):
        slot = next_slot(memory[5], kept, len(memory[2]) - kept)
        n = play(q, observed, memory, slot, tables, epsilon, rng)
        steps += n
        # Where nothing was paid yet there is nothing to learn, and rewards stay 0.
        paid = memory[3].any() or rewards.any()
        for _ in range(n * updates if paid else 0):
            i = drawn(memory, kept, rng)
            k = subsequence(picks, memory[2][i], rng)
            decompose(rewards, memory, i, picks[:k], values, rate, unbiased)
        learn_and_replay(q, rewards, memory, slot, kept, replays, rule, room, rng)
    return steps


def learn_rrd(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.5,
    gamma: float = 0.95,
    reward_rate: float = 0.5,
    length: int = 32,
    updates: int = 1,
    unbiased: bool = False,
    replays: int = 10,
    capacity: int = 150,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
    returns: Sequence[float] | None = None,
) -> Result:
    r"""Learn by RRD, randomized return decomposition (Ren et al. 2022), on a table.

    A table of rewards is fitted so that those of an episode sum to its return; the sum is estimated
    from a random part of the episode. Q-learning is paid by this table, whatever the environment
    pays.

    Args:
        mdp: The environment.
        demonstrations: Kept in the memory for good; observations are states. May be empty, if
            `returns` are given.
        seed: Seed of the trial.
        learning_rate: Learning rate of the values.
        trace: λ; 0 is one-step Q-learning, above it Q(λ).
        gamma: Discount.
        reward_rate: Learning rate of the rewards, at most 1.
        length: K, steps in a random part of an episode; all of a shorter one.
        updates: Random parts for each step of the agent.
        unbiased: Whether the variance of the estimated sum is taken off the loss, as far as the
            part shows it; otherwise rewards that differ within an episode are penalised.
        replays: Episodes drawn from the memory after each episode, for the values.
        capacity: Episodes of the agent that are kept; then the oldest is overwritten.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.
        returns: The returns that set the target; None for those of the demonstrations.

    Notes:
        For an episode τ of T steps and a set I of K of them, drawn without replacement, the loss is

        .. math:: \frac{1}{2 T^2} \left(R(τ) - \frac{T}{K} \sum_{t \in I} \hat r(s_t, a_t)\right)^2

        Its mean over I is the squared error of the whole sum and the variance of its estimate, 0
        for K = T. `unbiased` subtracts an estimate of this variance,

        .. math:: \frac{1}{2 K} \left(1 - \frac{K}{T}\right) \frac{1}{K - 1}
            \sum_{t \in I} \left(\hat r(s_t, a_t) - \bar r\right)^2

        so that the mean over I is the squared error alone.

        Departures from the paper: demonstrations are in the memory and the table of values is
        cloned from them, as for all learners here. The paper's loss has no 1/T²; the authors'
        program has, and with it one learning rate fits episodes of all lengths. Rewards are a table
        of states and actions, from 0 on, changed by plain gradient steps, one part after the other,
        instead of Adam on batches; an episode shorter than K is taken whole instead of drawn from
        with replacement, and episodes are drawn evenly, not by their lengths. Q-learning takes
        whole episodes, backwards: the new one, then `replays` drawn from the memory, with traces if
        wanted; the authors' agents draw single steps.
    """
    check_values(
        learning_rate=(learning_rate, Number(above=0, high=1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        reward_rate=(reward_rate, Number(above=0, high=1)),
        length=(length, Whole(1)),
        updates=(updates, Whole(1)),
        unbiased=(unbiased, Flag()),
        replays=(replays, Whole(0)),
        capacity=(capacity, Whole(1)),
    )
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    q = trial.cloned(initial_scale, initial_mean)
    memory, kept = new_memory(trial, int(capacity)), len(trial.paths)
    picks, values = np.empty(int(length), np.int64), np.empty(int(length))
    model = np.zeros_like(q), float(reward_rate), bool(unbiased), picks, values
    width = memory[1].shape[1]
    rule = (float(learning_rate), float(trace), float(gamma), False)
    room = np.empty(width), np.zeros(width, np.int64)
    counts = int(updates), int(replays)
    train = partial(_train, q, trial.observed, model, memory, kept, counts, rule, room)
    return trial.run(q, train)
