"""Tables of values, one for each position: how they are learned and judged; compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import (
    act,
    begin,
    draw,
    evaluate,
    horizon_of,
    max_value,
    q_backup,
    trace_backup,
)
from align_rudder.baselines.positions import add_event, step_event
from align_rudder.baselines.protocol import Result, Trial
from align_rudder.baselines.replayed import (
    NOT_SHOWN,
    Paid,
    keep,
    new_paid,
    outcome,
    replay,
    shown_paths,
)
from align_rudder.settlement import ENOUGH, FAILURE

__all__ = [
    "ONE_STEP",
    "SETTLED",
    "TRACE",
    "WINDOW",
    "Tables",
    "run_tables",
    "tables_of",
    "trace_rule",
]

ONE_STEP, TRACE, WINDOW = range(3)  # how values are learned
_SHARES, _ANNEALED, _EVEN, _MEAN, _POTENTIAL, _LAST, _BESIDE = range(7)
SETTLED = {
    None: _SHARES,
    "annealed": _ANNEALED,
    "even": _EVEN,
    "mean": _MEAN,
    "potential": _POTENTIAL,
    "last": _LAST,
    "beside": _BESIDE,
}
"""Numbers of the settlements, which the kernels know them by."""


class Tables(NamedTuple):
    """Values that are learned.

    Attributes:
        q: The values (O, A), or (positions, O, A).
        train: Learns for some more episodes, and returns the steps taken; see `Trial.run`.
        judge: Returns the mean return of the policy.
    """

    q: np.ndarray
    train: Callable[..., int]
    judge: Callable[..., float]


def tables_of(
    trial: Trial, initial: np.ndarray, profile: tuple[Any, ...], n_tables: int, rule: Any
) -> Tables:
    """Return a table of values for each position, all of them the same at first.

    Args:
        trial: The trial.
        initial: The first values (O, A).
        profile: What the kernels need of a model.
        n_tables: How many positions there are.
        rule: How values are learned.
    """
    q, replays = np.tile(initial, (n_tables, 1)), rule[-1]
    memory = new_paid(trial, replays)
    if replays:
        _fill(q, profile, rule, memory, trial)
    train = partial(_train, q, profile, rule, memory, NOT_SHOWN, trial.observed)
    if n_tables == 1:
        return Tables(q, train, partial(evaluate, q, trial.observed))
    judge = partial(_evaluate_places, q, profile, trial.observed)
    return Tables(q.reshape(n_tables, *initial.shape), train, judge)


def run_tables(
    trial: Trial, initial: np.ndarray, profile: tuple[Any, ...], n_tables: int, rule: Any
) -> Result:
    """Run a trial with a table of values for each position; see `tables_of`."""
    return trial.run(*tables_of(trial, initial, profile, n_tables, rule))


def trace_rule(
    learning_rate: float, trace: float, gamma: float, replays: int = 0
) -> tuple[Any, ...]:
    """Return the rule of Q(λ) by a trace that bootstraps."""
    return TRACE, float(learning_rate), float(trace), 1, float(gamma), True, int(replays)


def _fill(q: np.ndarray, profile: tuple[Any, ...], rule: Any, memory: Paid, trial: Trial) -> None:
    """Put the demonstrations into the memory, as the agent would be paid for them."""
    method, _, *others = rule
    unchanged = (method, 0.0, *others[:-1], 0)
    *account, repaid = profile[-1]
    for_now = (*profile[:-1], (*account, repaid.copy()))  # what they succeed in is no repayment
    shown = shown_paths(trial)
    n = len(trial.paths)
    _train(q, for_now, unchanged, memory, shown, trial.observed, trial.tables, 0.0, n, trial.rng)


@njit(cache=True, nogil=True)
def _train(q, profile, rule, memory, shown, observed, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken.

    With an empty `event_of` the reward is the environment's, otherwise the redistributed one,
    settled. `offset_of` says where in q the table begins that is used at a cell, `part_of` which
    sub-task that is. Episodes that are `shown` are followed instead of played.
    """
    method, learning_rate, trace, window, gamma, bootstrap, replays = rule
    events, scorer, offset_of, part_of, scale, account = profile
    settled, shaping, fade, successes, low, high, repaid = account
    horizon = horizon_of(tables)
    rows, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains, parts = np.empty(horizon), np.empty(horizon, np.int64)
    row, history = np.zeros(len(scorer[3])), np.empty(horizon + 1, np.int64)
    redistributing = len(events[0]) > 0
    steps = 0
    following = len(shown[2]) > 0
    for i in range(episodes):
        s = shown[0][i, 0] if following else begin(tables, rng)
        last, score, cell, given, level, n, offset, count = -1, 0.0, 0, 0.0, 0.0, 0, 0, 0
        reward, ret, weight = 0.0, 0.0, 1.0
        if settled == _ANNEALED:
            weight = max(0.0, 1.0 - repaid[0] / successes) if successes > 0 else 0.0
        if redistributing:
            row[:] = 0.0
            if not events[1].size:
                last = events[0][s]
                if last >= 0:
                    score, cell, count = add_event(
                        row, history, count, last, score, cell, events, scorer
                    )
            offset = offset_of[cell]
        rows[0] = observed[s] + offset
        limit = shown[2][i] if following else horizon
        for t in range(1, limit + 1):
            if following:
                a = shown[1][i, t - 1]
                k = outcome(tables, s, a, shown[0][i, t])
            else:
                a = act(q, observed[s] + offset, epsilon, rng)
                k = draw(tables, s, a, rng)
            parts[t - 1] = part_of[cell]
            share = 0.0
            if redistributing:
                event = step_event(events, tables, s, a, k, last)
                if event >= 0:
                    last = event
                    new, cell, count = add_event(
                        row, history, count, event, score, cell, events, scorer
                    )
                    share = (new - score) * scale
                    score = new
                    given += share
                    offset = offset_of[cell]
            reward = tables[2][s, a, k] * tables[4][t]
            ret += reward
            ended = tables[3][s, a, k]
            s = tables[0][s, a, k]
            over = ended or t == limit
            gain = reward
            if redistributing:
                if settled == _SHARES:
                    gain = share
                elif settled == _POTENTIAL:
                    before = level
                    level = 0.0 if ended else (1.0 - fade) * level + share
                    gain = reward + shaping * level - before
                else:
                    gain = reward + weight * share
                    if settled == _LAST and over:
                        gain = share + (reward - given)
            if method == ONE_STEP:
                # What another sub-agent will earn is not this one's.
                final = over or part_of[cell] != parts[t - 1]
                future = 0.0 if final else gamma * max_value(q, observed[s] + offset)
                q_backup(q, rows[t - 1], a, gain, future, learning_rate)
            rows[t], actions[t - 1], gains[t - 1] = observed[s] + offset, a, gain
            n = t
            if ended:
                break
        steps += n
        if redistributing and settled == _EVEN:
            gains[n - 1] -= reward
            gains[:n] += (reward - given) / n
        elif redistributing and settled == _MEAN:
            gains[:n] -= given / n
        part = (ret - low) / (high - low) if high > low else 0.0
        repaid[0] += min(1.0, part) if part >= ENOUGH else FAILURE
        if method == TRACE:
            trace_backup(q, rows, actions, gains, parts, n, learning_rate, trace, bootstrap, gamma)
            if len(memory[4]):
                keep(memory, rows, actions, gains, parts, n)
                replay(q, memory, replays, learning_rate, trace, bootstrap, gamma, rng)
        elif method == WINDOW:
            _window_backup(q, rows, actions, gains, n, learning_rate, window)
    return steps


@njit(cache=True, nogil=True)
def _window_backup(q, rows, actions, gains, n, learning_rate, window):
    """Update with the sum of the next rewards: κ of that many steps; 1 is the reward alone."""
    total = 0.0
    for t in range(n - 1, -1, -1):
        total += gains[t]
        if t + window < n:
            total -= gains[t + window]
        q_backup(q, rows[t], actions[t], total, 0.0, learning_rate)


@njit(cache=True, nogil=True)
def _evaluate_places(q, profile, observed, tables, epsilon, episodes, rng):
    """Return the mean return of a policy that knows where on the alignment an episode stands."""
    events, scorer, offset_of, _, _, _ = profile
    row, starts, total = np.zeros(len(scorer[3])), tables[5], 0.0
    history = np.empty(horizon_of(tables) + 1, np.int64)
    tracking = len(events[0]) > 0
    for i in range(episodes):
        s = starts[i * len(starts) // episodes]
        row[:] = 0.0
        last, score, cell, count = -1, 0.0, 0, 0
        if tracking and not events[1].size:
            last = events[0][s]
            if last >= 0:
                score, cell, count = add_event(
                    row, history, count, last, score, cell, events, scorer
                )
        for t in range(1, horizon_of(tables) + 1):
            a = act(q, observed[s] + offset_of[cell], epsilon, rng)
            k = draw(tables, s, a, rng)
            event = step_event(events, tables, s, a, k, last) if tracking else -1
            total += tables[2][s, a, k] * tables[4][t]
            ended = tables[3][s, a, k]
            s = tables[0][s, a, k]
            if ended:
                break
            if event >= 0:
                last = event
                score, cell, count = add_event(
                    row, history, count, event, score, cell, events, scorer
                )
    return total / episodes
