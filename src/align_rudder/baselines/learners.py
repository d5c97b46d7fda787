"""Align-RUDDER on tables (methods A and C), Q-learning and the control Q(λ)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import act, greedy, take_step, uniform
from align_rudder.baselines.protocol import (
    Protocol,
    Result,
    Trial,
    behavioural_cloning,
    check_numbers,
)
from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.model import AlignRudder
from align_rudder.redistribution import advance
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_align_rudder", "learn_q"]

_Q, _TRACE, _WINDOW = 0, 1, 2
_LARGE = 1e9


@njit(cache=True, nogil=True)
def _train(tables, starts, q, profile, rule, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken.

    With an empty `event_of` the reward is the environment's, otherwise the redistributed one.
    Sub-task k has rows k·S to (k+1)·S of q; `offset_of` says where the table begins for a cell.
    """
    next_states, cumulative, rewards, terminal, time_factor = tables
    event_of, offset_of, pssm, bounds, gap, scale, settle = profile
    method, learning_rate, trace, window = rule
    horizon = len(time_factor) - 1
    rows, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains, parts = np.empty(horizon), np.empty(horizon, np.int64)
    row = np.zeros(pssm.shape[1])
    redistributing = len(event_of) > 0
    steps = 0
    for _ in range(episodes):
        s = starts[int(uniform(rng) * len(starts))]
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
            k = take_step(cumulative, s, a, rng)
            following, ended = next_states[s, a, k], terminal[s, a, k]
            gain = rewards[s, a, k] * time_factor[t]
            ret += gain
            parts[t - 1] = offset
            if redistributing:
                gain = 0.0
                entered = event_of[following]
                if entered >= 0 and entered != event:
                    event = entered
                    new, cell = advance(row, event, pssm, bounds, gap, cell)
                    gain = (new - score) * scale
                    score = new
                    given += gain
                    offset = offset_of[cell]
                if settle and (ended or t == horizon):
                    gain += ret - given
            here, there = rows[t - 1], following + offset
            if method == _Q:
                # What another sub-agent will earn is not this one's.
                last = ended or t == horizon or offset != parts[t - 1]
                future = 0.0 if last else q[there, greedy(q, there)]
                q[here, a] += learning_rate * (gain + future - q[here, a])
            rows[t], actions[t - 1], gains[t - 1] = there, a, gain
            n, s = t, following
            if ended:
                break
        steps += n
        if method == _TRACE:
            _trace(q, rows, actions, gains, parts, n, learning_rate, trace, not redistributing)
        elif method == _WINDOW:
            _window(q, rows, actions, gains, n, learning_rate, window)
    return steps


@njit(cache=True, nogil=True)
def _trace(q, rows, actions, gains, parts, n, learning_rate, trace, bootstrap):
    """Update backwards with G_t = R_{t+1} + λ G_{t+1}; bootstrapping adds (1−λ) max Q."""
    g = 0.0
    for t in range(n - 1, -1, -1):
        if t < n - 1 and parts[t] != parts[t + 1]:
            g = 0.0
        future = trace * g
        if bootstrap and t < n - 1:
            future += (1.0 - trace) * q[rows[t + 1], greedy(q, rows[t + 1])]
        g = gains[t] + future
        q[rows[t], actions[t]] += learning_rate * (g - q[rows[t], actions[t]])


@njit(cache=True, nogil=True)
def _window(q, rows, actions, gains, n, learning_rate, window):
    """Update with the sum of the next rewards: κ of that many steps; 1 is the reward alone."""
    total = 0.0
    for t in range(n - 1, -1, -1):
        total += gains[t]
        if t + window < n:
            total -= gains[t + window]
        q[rows[t], actions[t]] += learning_rate * (total - q[rows[t], actions[t]])


@njit(cache=True, nogil=True)
def _evaluate_subtasks(tables, starts, q, profile, epsilon, episodes, rng):
    """Return the mean return of sub-agents that take over from each other along the alignment."""
    next_states, cumulative, rewards, terminal, time_factor = tables
    event_of, offset_of, pssm, bounds, gap, _, _ = profile
    row = np.zeros(pssm.shape[1])
    total = 0.0
    for i in range(episodes):
        s = starts[i * len(starts) // episodes]
        row[:] = 0.0
        event, cell = event_of[s], 0
        if event >= 0:
            _, cell = advance(row, event, pssm, bounds, gap, 0)
        for t in range(1, len(time_factor)):
            a = act(q, s + offset_of[cell], epsilon, rng)
            k = take_step(cumulative, s, a, rng)
            total += rewards[s, a, k] * time_factor[t]
            if terminal[s, a, k]:
                break
            s = next_states[s, a, k]
            entered = event_of[s]
            if entered >= 0 and entered != event:
                event = entered
                _, cell = advance(row, event, pssm, bounds, gap, cell)
    return total / episodes


_NOTHING: Any = (
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty((1, 1)),
    np.array([0, 1]),
    0.0,
    0.0,
    False,
)


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
    trial = Trial(mdp, demonstrations, protocol, seed)
    check_numbers(
        learning_rate=(learning_rate, 0, 1),
        trace=(trace, 0, 1),
        initial_scale=(initial_scale, -_LARGE, _LARGE),
        initial_mean=(initial_mean, -_LARGE, _LARGE),
    )
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale, initial_mean)
    rule: Any = (_TRACE if trace > 0 else _Q, float(learning_rate), float(trace), 1)
    epsilon = trial.protocol.epsilon

    def train(episodes: int) -> int:
        return _train(trial.tables, trial.starts, q, _NOTHING, rule, epsilon, episodes, trial.rng)

    return trial.run(q, train)


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
    trial = Trial(mdp, demonstrations, protocol, seed)
    check_numbers(
        learning_rate=(learning_rate, 0, 1),
        trace=(trace, 0, 1),
        window=(window, 1, _LARGE),
        initial_scale=(initial_scale, -_LARGE, _LARGE),
        initial_mean=(initial_mean, -_LARGE, _LARGE),
    )
    if model is None:
        model = AlignRudder(StateEvents(max_events=max_events), strategies=1).fit(demonstrations)
    profile, n_tables = _profile(model, mdp.n_states, settle, subtasks)
    q = np.tile(
        behavioural_cloning(mdp, demonstrations, seed, initial_scale, initial_mean), (n_tables, 1)
    )
    rule: Any = (
        methods[method],
        float(learning_rate),
        float(trace),
        1 if method == "direct" else int(window),
    )
    p = trial.protocol

    def train(episodes: int) -> int:
        return _train(trial.tables, trial.starts, q, profile, rule, p.epsilon, episodes, trial.rng)

    if not subtasks:
        return trial.run(q, train)
    result = trial.run(
        q.reshape(n_tables, mdp.n_states, -1),
        train,
        lambda: _evaluate_subtasks(
            trial.tables,
            trial.starts,
            q,
            profile,
            p.evaluation_epsilon,
            p.evaluation_episodes,
            trial.rng,
        ),
    )
    return result


def _profile(model: AlignRudder, n_states: int, settle: bool, subtasks: bool) -> tuple[Any, int]:
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
