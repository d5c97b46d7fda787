"""Align-RUDDER on tables (methods A and C), Q-learning and the control Q(λ)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

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
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.files import Number, Whole, check_values
from align_rudder.model import AlignRudder
from align_rudder.redistribution import advance
from align_rudder.tasks.mdp import TabularMDP
from align_rudder.validation import PAPER

__all__ = ["learn_align_rudder", "learn_q"]

_Q, _TRACE, _WINDOW = 0, 1, 2


# Of a learner that is paid by the environment: `event_of` is empty.
_NO_PROFILE = (
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty((1, 1)),
    np.array([0, 1]),
    0.0,
    0.0,
    False,
)


@njit(cache=True, nogil=True)
def _train(q, profile, rule, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken.

    With an empty `event_of` the reward is the environment's, otherwise the redistributed one.
    Sub-task k has rows k·S to (k+1)·S of q; `offset_of` says where the table begins for a cell.
    """
    method, learning_rate, trace, window = rule
    event_of, offset_of, pssm, bounds, gap, scale, settle = profile
    horizon = horizon_of(tables)
    rows, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains, parts = np.empty(horizon), np.empty(horizon, np.int64)
    row = np.zeros(pssm.shape[1])
    redistributing = len(event_of) > 0
    steps = 0
    for _ in range(episodes):
        s = begin(tables, rng)
        event, score, cell, given, ret, n, offset = -1, 0.0, 0, 0.0, 0.0, 0, 0
        if redistributing:
            row[:] = 0.0
            event = event_of[s]
            if event >= 0:
                score, cell = advance(row, event, pssm, bounds, gap, 0)
            offset = offset_of[cell]
        rows[0] = s + offset
        for t in range(1, horizon + 1):
            a = act(q, s + offset, epsilon, rng)
            s, gain, ended = step(tables, s, a, t, rng)
            ret += gain
            parts[t - 1] = offset
            if redistributing:
                gain = 0.0
                entered = event_of[s]
                if entered >= 0 and entered != event:
                    event = entered
                    new, cell = advance(row, event, pssm, bounds, gap, cell)
                    gain = (new - score) * scale
                    score = new
                    given += gain
                    offset = offset_of[cell]
                if settle and (ended or t == horizon):
                    gain += ret - given
            if method == _Q:
                # What another sub-agent will earn is not this one's.
                last = ended or t == horizon or offset != parts[t - 1]
                future = 0.0 if last else max_value(q, s + offset)
                q_backup(q, rows[t - 1], a, gain, future, learning_rate)
            rows[t], actions[t - 1], gains[t - 1] = s + offset, a, gain
            n = t
            if ended:
                break
        steps += n
        if method == _TRACE:
            bootstrap = not redistributing
            trace_backup(q, rows, actions, gains, parts, n, learning_rate, trace, bootstrap)
        elif method == _WINDOW:
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
def _evaluate_subtasks(q, profile, tables, epsilon, episodes, rng):
    """Return the mean return of sub-agents that take over from each other along the alignment."""
    event_of, offset_of, pssm, bounds, gap, _, _ = profile
    row, starts, total = np.zeros(pssm.shape[1]), tables[5], 0.0
    for i in range(episodes):
        s = starts[i * len(starts) // episodes]
        row[:] = 0.0
        event, cell = event_of[s], 0
        if event >= 0:
            _, cell = advance(row, event, pssm, bounds, gap, 0)
        for t in range(1, horizon_of(tables) + 1):
            a = act(q, s + offset_of[cell], epsilon, rng)
            s, reward, ended = step(tables, s, a, t, rng)
            total += reward
            if ended:
                break
            entered = event_of[s]
            if entered >= 0 and entered != event:
                event = entered
                _, cell = advance(row, event, pssm, bounds, gap, cell)
    return total / episodes


def learn_q(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.0,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
) -> Result:
    """Learn by behavioural cloning and Q-learning on the environment's own reward.

    Args:
        mdp: The environment.
        demonstrations: For the initial table and the target; observations are states.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ; 0 is one-step Q-learning, above it Q(λ): the control that has the same traces as
            Align-RUDDER but no redistribution.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.
    """
    check_values(learning_rate=(learning_rate, Number(0, 1)), trace=(trace, Number(0, 1)))
    trial = Trial(mdp, demonstrations, protocol, seed)
    q = trial.cloned(initial_scale, initial_mean)
    rule = (_TRACE if trace > 0 else _Q, float(learning_rate), float(trace), 1)
    return trial.run(q, partial(_train, q, _NO_PROFILE, rule))


def learn_align_rudder(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    method: Literal["trace", "kappa", "direct", "q-learning"] = "trace",
    trace: float = 0.95,
    window: int = 20,
    settle: bool = False,
    subtasks: bool = False,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    max_events: int = 15,
    model: AlignRudder | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn on the redistributed reward.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        method: The paper's method A by eligibility "trace", with the rewards of the next `window`
            steps ("kappa"), with the immediate one alone ("direct"), or its method C,
            "q-learning".
        trace: λ of the trace.
        window: Steps of the κ window.
        settle: Whether the correction is added to the last step.
        subtasks: Whether each sub-task has a Q-table of its own, all of them cloned from the
            demonstrations; a sub-agent takes over where the alignment passes a sub-goal, and earns
            only what it is paid until the next one.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        max_events: Most events, where the model is fitted here.
        model: A model fitted with `StateEvents`; None to fit one to the demonstrations. Where
            their returns are negative, give one with a baseline:
            `AlignRudder(StateEvents(), baseline=…).fit(demonstrations)`.
        protocol: How the trial is run and judged.
    """
    methods = {"trace": _TRACE, "kappa": _WINDOW, "direct": _WINDOW, "q-learning": _Q}
    if method not in methods:
        raise ValueError(f"method={method!r} is not known; use one of {sorted(methods)}")
    if subtasks and method in ("kappa", "direct"):
        raise ValueError(
            f"subtasks go with method='trace' or 'q-learning', not {method!r}, whose window would "
            "reach over the end of a sub-task"
        )
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        window=(window, Whole(1)),
    )
    trial = Trial(mdp, demonstrations, protocol, seed)
    if model is None:
        model = AlignRudder(StateEvents(max_events=max_events), strategies=1, **PAPER)
        model.fit(demonstrations)
    profile, n_tables = _profile_of(model, mdp.n_states, settle, subtasks)
    q = np.tile(trial.cloned(initial_scale, initial_mean), (n_tables, 1))
    seen = 1 if method == "direct" else int(window)
    rule = (methods[method], float(learning_rate), float(trace), seen)
    train = partial(_train, q, profile, rule)
    if not subtasks:
        return trial.run(q, train)
    judge = partial(_evaluate_subtasks, q, profile)
    return trial.run(q.reshape(n_tables, mdp.n_states, -1), train, judge)


def _profile_of(
    model: AlignRudder, n_states: int, settle: bool, subtasks: bool
) -> tuple[tuple[Any, ...], int]:
    """Return what the kernels need of a model, and how many tables its sub-tasks have."""
    events = getattr(model, "events_", None)
    if not isinstance(events, StateEvents) or events.states_.shape[1] != 1:
        what = "is not fitted" if events is None else f"has {type(events).__name__}"
        raise ValueError(
            "a tabular learner needs a model fitted with StateEvents on single whole numbers, this "
            f"one {what}"
        )
    if events.states_.min() < 0 or events.states_.max() >= n_states:
        raise ValueError(
            f"the model knows states up to {events.states_.max()}, this table has {n_states}; it "
            "was fitted to another environment"
        )
    event_of = np.full(n_states, -1, np.int64)
    event_of[events.states_[:, 0]] = events.labels_
    offset_of = np.zeros(model.scorer_.n_cells, np.int64)
    n_tables = 1
    if subtasks:
        counts = [len(strategy.subgoals) + 1 for strategy in model.strategies_]
        widths = np.diff(model.scorer_.bounds)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        offset_of = (model.subgoal_table() + np.repeat(first, widths)) * n_states
        n_tables = sum(counts)
    profile = (event_of, offset_of, *model.scorer_.tables, float(model.scale_), bool(settle))
    return profile, n_tables
