"""Tabular learners, one compiled call a trial: Align-RUDDER (methods A and C), Q-learning, Q(λ)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.model import AlignRudder
from align_rudder.redistribution import advance
from align_rudder.tabular.kernels import act, evaluate, greedy, seeded, take_step, uniform
from align_rudder.tabular.mdp import TabularMDP

__all__ = ["Protocol", "Result", "behavioural_cloning", "learn_align_rudder", "learn_q"]

_Q, _TRACE, _WINDOW = 0, 1, 2


@dataclass(frozen=True)
class Protocol:
    """How every learner is run and judged.

    Attributes:
        epsilon: Exploration while learning.
        evaluate_every: Episodes between evaluations; the first is after as many.
        evaluation_episodes: Episodes of an evaluation, over the start states in turn.
        evaluation_epsilon: Exploration while being evaluated.
        target: Share of the demonstrations' mean return at which a trial has succeeded and ends.
        max_episodes: Cap; a trial that reaches it has failed and counts as the cap.
    """

    epsilon: float = 0.2
    evaluate_every: int = 10
    evaluation_episodes: int = 40
    evaluation_epsilon: float = 0.1
    target: float = 0.8
    max_episodes: int = 20_000


@dataclass(frozen=True)
class Result:
    """One trial.

    Attributes:
        episodes: Episodes until the target was reached, or the cap.
        solved: Whether it was reached.
        curve: Mean return at each evaluation.
        steps: Environment steps taken while learning.
        q: The learned table.
    """

    episodes: int
    solved: bool
    curve: np.ndarray
    steps: int
    q: np.ndarray


def behavioural_cloning(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    seed: int,
    scale: float = 0.3,
    noise: float = 0.01,
) -> np.ndarray:
    """Return a Q-table initialised by behavioural cloning.

    Where demonstrations were, an action's value is the share with which it was taken there times
    `scale`; elsewhere values are drawn from a normal distribution.
    """
    rng = np.random.default_rng(seed)
    q = rng.normal(0.0, noise, (mdp.n_states, mdp.n_actions))
    counts = np.zeros_like(q)
    for episode in demonstrations:
        np.add.at(counts, (np.asarray(episode.observations)[:-1], episode.actions), 1.0)
    seen = counts.sum(axis=1) > 0
    q[seen] = scale * counts[seen] / counts[seen].sum(axis=1, keepdims=True)
    return q


@njit(cache=True, nogil=True)
def _learn(
    tables,
    starts,
    q,
    event_of,
    pssm,
    bounds,
    gap,
    scale,
    settle,
    method,
    learning_rate,
    trace,
    window,
    every,
    episodes,
    epsilon,
    evaluation_epsilon,
    target,
    max_episodes,
    seed,
):
    """Learn q in place; return the curve, how many evaluations it has, and the steps taken.

    With an empty `event_of` the reward is the environment's, otherwise the redistributed one.
    """
    next_states, cumulative, rewards, terminal, time_factor = tables
    horizon = len(time_factor) - 1
    rng = seeded(seed)
    states, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains = np.empty(horizon)
    row = np.zeros(pssm.shape[1])
    curve = np.empty(max_episodes // every)
    redistributing = len(event_of) > 0
    evaluations, steps = 0, 0
    for episode in range(1, max_episodes + 1):
        s = starts[int(uniform(rng) * len(starts))]
        states[0] = s
        event, score, cell, given, ret, n = -1, 0.0, 0, 0.0, 0.0, 0
        if redistributing:
            row[:] = 0.0
            event = event_of[s]
            if event >= 0:
                score, cell = advance(row, event, pssm, bounds, gap, 0)
        for t in range(1, horizon + 1):
            a = act(q, s, epsilon, rng)
            k = take_step(cumulative, s, a, rng)
            following, ended = next_states[s, a, k], terminal[s, a, k]
            gain = rewards[s, a, k] * time_factor[t]
            ret += gain
            if redistributing:
                gain = 0.0
                entered = event_of[following]
                if entered >= 0 and entered != event:
                    event = entered
                    new, cell = advance(row, event, pssm, bounds, gap, cell)
                    gain = (new - score) * scale
                    score = new
                    given += gain
                if settle and (ended or t == horizon):
                    gain += ret - given
            if method == _Q:
                future = 0.0 if ended or t == horizon else q[following, greedy(q, following)]
                q[s, a] += learning_rate * (gain + future - q[s, a])
            states[t], actions[t - 1], gains[t - 1] = following, a, gain
            n, s = t, following
            if ended:
                break
        steps += n
        if method == _TRACE:
            _trace(q, states, actions, gains, n, learning_rate, trace, not redistributing)
        elif method == _WINDOW:
            _window(q, states, actions, gains, n, learning_rate, window)
        if episode % every == 0:
            mean = evaluate(tables, starts, q, evaluation_epsilon, episodes, rng)
            curve[evaluations] = mean
            evaluations += 1
            if mean >= target:
                break
    return curve[:evaluations], steps


@njit(cache=True, nogil=True)
def _trace(q, states, actions, gains, n, learning_rate, trace, bootstrap):
    """Update backwards with G_t = R_{t+1} + λ G_{t+1}; bootstrapping adds (1−λ) max Q."""
    g = 0.0
    for t in range(n - 1, -1, -1):
        future = trace * g
        if bootstrap and t < n - 1:
            future += (1.0 - trace) * q[states[t + 1], greedy(q, states[t + 1])]
        g = gains[t] + future
        q[states[t], actions[t]] += learning_rate * (g - q[states[t], actions[t]])


@njit(cache=True, nogil=True)
def _window(q, states, actions, gains, n, learning_rate, window):
    """Update with the sum of the next rewards: κ of that many steps; 1 is the reward alone."""
    total = 0.0
    for t in range(n - 1, -1, -1):
        total += gains[t]
        if t + window < n:
            total -= gains[t + window]
        q[states[t], actions[t]] += learning_rate * (total - q[states[t], actions[t]])


def _run(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    q: np.ndarray,
    protocol: Protocol,
    seed: int,
    learning_rate: float,
    method: int,
    trace: float,
    window: int,
    profile: tuple[Any, ...],
) -> Result:
    tables = mdp.next_states, mdp.cumulative, mdp.rewards, mdp.terminal, mdp.time_factor
    target = protocol.target * float(np.mean([e.ret for e in demonstrations]))
    arguments: tuple[Any, ...] = (
        tables,
        np.flatnonzero(mdp.starts),
        q,
        *profile,
        method,
        learning_rate,
        trace,
        window,
        protocol.evaluate_every,
        protocol.evaluation_episodes,
        protocol.epsilon,
        protocol.evaluation_epsilon,
        target,
        protocol.max_episodes,
        seed,
    )
    curve, steps = _learn(*arguments)
    solved = bool(len(curve) and curve[-1] >= target)
    episodes = len(curve) * protocol.evaluate_every if solved else protocol.max_episodes
    return Result(episodes, solved, curve, int(steps), q)


_NOTHING = (np.empty(0, np.int64), np.empty((1, 1)), np.array([0, 1]), 0.0, 0.0, False)


def learn_q(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.0,
    initial_scale: float = 0.3,
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
        protocol: How the trial is run and judged.
    """
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale)
    method = _TRACE if trace > 0 else _Q
    return _run(
        mdp,
        demonstrations,
        q,
        protocol or Protocol(),
        seed,
        learning_rate,
        method,
        trace,
        1,
        _NOTHING,
    )


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
    initial_scale: float = 0.3,
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
        initial_scale: Value of a demonstrated action.
        model: A model fitted with `StateEvents`; None to fit one to the demonstrations.
        protocol: How the trial is run and judged.
    """
    if model is None:
        model = AlignRudder(StateEvents(max_events=15), strategies=1).fit(demonstrations)
    events = model.events_
    if not isinstance(events, StateEvents) or events.states_.shape[1] != 1:
        raise ValueError(
            "a tabular learner needs a model fitted with StateEvents on single whole numbers, this "
            f"one has {type(events).__name__}"
        )
    event_of = np.full(mdp.n_states, -1, np.int64)
    event_of[events.states_[:, 0]] = events.labels_
    methods = {"trace": _TRACE, "kappa": _WINDOW, "direct": _WINDOW, "q-learning": _Q}
    if method not in methods:
        raise ValueError(f"method={method!r} is not known; use one of {sorted(methods)}")
    q = behavioural_cloning(mdp, demonstrations, seed, initial_scale)
    return _run(
        mdp,
        demonstrations,
        q,
        protocol or Protocol(),
        seed,
        learning_rate,
        methods[method],
        trace,
        1 if method == "direct" else window,
        (event_of, *model.scorer_.tables, model.scale_, settle),
    )
