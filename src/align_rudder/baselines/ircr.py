"""IRCR on a table: each step is paid the mean return of the episodes that took it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.replay import next_slot
from align_rudder.baselines.trajectories import filled, learn_and_replay, new_memory, play
from align_rudder.episodes import Episode
from align_rudder.files import Flag, Number, Whole, check_values
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["guide", "learn_ircr", "tally"]


@njit(cache=True, nogil=True)
def tally(sums, counts, memory, i, sign):
    """Add the return of episode i to all pairs it holds, once each; a sign of −1 takes it away."""
    states, actions, lengths, returns, _, _ = memory
    done = set()
    for t in range(lengths[i]):
        s, a = states[i, t], actions[i, t]
        pair = s * counts.shape[1] + a
        if pair not in done:
            done.add(pair)
            sums[s, a] += sign * returns[i]
            counts[s, a] += sign


@njit(cache=True, nogil=True)
def guide(guidance, sums, counts, returns):
    """Write the guidance rewards: mean returns of pairs, from 0 (the worst of `returns`) to 1."""
    low, high = returns.min(), returns.max()
    for s in range(counts.shape[0]):
        for a in range(counts.shape[1]):
            if counts[s, a] == 0:
                guidance[s, a] = 0.0
            elif high > low:
                guidance[s, a] = (sums[s, a] / counts[s, a] - low) / (high - low)
            else:
                guidance[s, a] = 1.0


@njit(cache=True, nogil=True)
def _train(q, observed, credit, memory, kept, replays, rule, room, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken."""
    guidance, sums, counts = credit
    steps = 0
    for _ in range(episodes):
        slot = next_slot(memory[5], kept, len(memory[2]) - kept)
        tally(sums, counts, memory, slot, -1)  # the oldest, which is overwritten
        steps += play(q, observed, memory, slot, tables, epsilon, rng)
        tally(sums, counts, memory, slot, 1)
        guide(guidance, sums, counts, memory[3][: filled(memory, kept)])
        learn_and_replay(q, guidance, memory, slot, kept, replays, rule, room, rng)
    return steps


def learn_ircr(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.5,
    gamma: float = 0.95,
    replays: int = 10,
    capacity: int = 150,
    absorbing: bool = True,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
    returns: Sequence[float] | None = None,
) -> Result:
    r"""Learn by IRCR, iterative relative credit refinement (Gangwani et al. 2020), on a table.

    Every step of an episode is paid the same, its return, made comparable by the best and the worst
    of the episodes in memory; a step that several of them took is paid their mean. What the
    environment pays is seen in the return alone.

    Args:
        mdp: The environment.
        demonstrations: Kept in the memory for good; observations are states. May be empty, if
            `returns` are given.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ; 0 is one-step Q-learning, above it Q(λ).
        gamma: Discount γ; below 1 with an absorbing end.
        replays: Episodes drawn from the memory after each episode.
        capacity: Episodes of the agent that are kept; then the oldest is overwritten.
        absorbing: Whether the last step of an episode that ends by itself is paid for ever;
            otherwise nothing is earned after the end, and it pays not to get there.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.
        returns: The returns that set the target; None for those of the demonstrations.

    Notes:
        The guidance reward of a pair, over the episodes τ in memory that hold it, is

        .. math:: r_g(s, a) = \operatorname{mean}_{τ \ni (s, a)}
            \frac{R(τ) - R_{\min}}{R_{\max} - R_{\min}}

        with the least and the largest return in memory; 1 where all are equal. An episode counts
        once for a pair, however often it was there.

        Departures from the paper: demonstrations are in the memory and the table is cloned from
        them, as for all learners here. Q-learning takes whole episodes, backwards: the new one,
        then `replays` drawn from the memory, with traces if wanted; the authors' agents draw single
        steps. The mean over episodes is exact for a table, where their networks average over the
        returns of the episodes that similar steps were drawn from. Their tasks have episodes of one
        length, or such in which it is good to live on. Where success ends an episode, a pay that is
        never negative makes it better not to succeed; hence `absorbing`, which is not in the paper:
        the last step of an episode that ended by itself is paid r_g / (1 − γ), so that an end is
        worth what the episodes were that came to it.
    """
    check_values(absorbing=(absorbing, Flag()))
    check_values(
        learning_rate=(learning_rate, Number(above=0, high=1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, below=1) if absorbing else Number(0, 1)),
        replays=(replays, Whole(0)),
        capacity=(capacity, Whole(1)),
    )
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    q = trial.cloned(initial_scale, initial_mean)
    memory, kept = new_memory(trial, int(capacity)), len(trial.paths)
    credit = np.zeros_like(q), np.zeros_like(q), np.zeros(q.shape, np.int64)
    for i in range(kept):
        tally(*credit[1:], memory, i, 1)
    width = memory[1].shape[1]
    rule = (float(learning_rate), float(trace), float(gamma), bool(absorbing))
    room = np.empty(width), np.zeros(width, np.int64)
    train = partial(_train, q, trial.observed, credit, memory, kept, int(replays), rule, room)
    return trial.run(q, train)
