"""Align-RUDDER on tables, Q-learning and the control Q(λ)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from align_rudder._compile import njit
from align_rudder.baselines.kernels import (
    act,
    begin,
    draw,
    horizon_of,
    max_value,
    q_backup,
    trace_backup,
)
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.episodes import Episode
from align_rudder.events import DoneEvents, EventEncoder, StateEvents, SymbolEvents
from align_rudder.files import Number, Whole, check_values
from align_rudder.model import AlignRudder
from align_rudder.redistribution import advance
from align_rudder.settlement import ENOUGH, FAILURE, Settlement
from align_rudder.tasks.mdp import TabularMDP
from align_rudder.tracking import take_back

__all__ = [
    "account_of",
    "events_of",
    "learn_align_rudder",
    "learn_q",
    "note_kind",
    "run_tables",
    "trace_rule",
]

_Q, _TRACE, _WINDOW = 0, 1, 2
_SHARES, _ANNEALED, _EVEN, _MEAN, _POTENTIAL, _LAST, _BESIDE = range(7)
_SETTLED = {
    None: _SHARES,
    "annealed": _ANNEALED,
    "even": _EVEN,
    "mean": _MEAN,
    "potential": _POTENTIAL,
    "last": _LAST,
    "beside": _BESIDE,
}

# Of a learner that is paid by the environment: `event_of` is empty.
_NO_EVENTS = (
    np.empty(0, np.int64),
    np.empty((0, 0, 0), np.int64),
    np.inf,
    -1,
    np.empty((0, 1), np.int64),
)
_NO_PROFILE = (
    _NO_EVENTS,
    (np.empty((1, 1)), np.array([0, 1]), 0.0, np.zeros(1), np.zeros((1, 4), np.int64)),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
    0.0,
    (_SHARES, 1.0, 0.0, 0.0, 0.0, 1.0, np.zeros(1)),
)


@njit(cache=True, nogil=True)
def _event(events, tables, s, a, k, last):
    """Return the event of a step with outcome k, -1 for none; `last` is the region before."""
    event_of, labels, level, done, _ = events
    if tables[2][s, a, k] >= level:
        return done
    if labels.size:
        label = labels[s, a, k]
        return event_of[label] if label >= 0 else -1
    entered = event_of[tables[0][s, a, k]]
    return -1 if entered == last else entered


@njit(cache=True, nogil=True)
def note_kind(row, history, count, event, score, cell, undoes, wide):
    """Add an event where each kind is paid once, in any order; return as `_moved` does.

    `row` holds how often each kind is there, and the cell is how many kinds that pay are.
    """
    change, kind = 1, event
    if len(undoes):
        if undoes[event, 0] >= 0:
            at = count - 1
            while at >= 0 and not (undoes[event] == history[at]).any():
                at -= 1
            if at < 0:
                return score, cell, count
            change, kind = -1, history[at]
            history[at : count - 1] = history[at + 1 : count].copy()
        else:
            history[count] = event
        count += change
    held = row[kind]
    row[kind] += change
    if (held == 0.0 or row[kind] == 0.0) and wide[kind, 0] > 0.0:
        return score + change * wide[kind, 0], cell + change, count
    return score, cell, count


@njit(cache=True, nogil=True)
def _moved(row, history, count, event, score, cell, events, scorer):
    """Add an event; return score, cell and the number of events that count.

    A scorer without bounds knows no order: each kind of event is paid once.
    """
    wide, bounds, gap, skipped, places = scorer
    undoes = events[4]
    if not len(bounds):
        return note_kind(row, history, count, event, score, cell, undoes, wide)
    if len(undoes):
        if undoes[event, 0] >= 0:
            before = (score, cell, 0)
            found = take_back(
                row, history, count, undoes[event], before, wide, bounds, gap, skipped, places
            )
            return found[1], found[2], found[0]
        history[count] = event
        count += 1
    score, cell = advance(row, event, wide, bounds, gap, skipped, cell)
    return score, cell, count


@njit(cache=True, nogil=True)
def _train(q, profile, rule, observed, tables, epsilon, episodes, rng):
    """Learn q in place for some episodes; return the steps taken.

    With an empty `event_of` the reward is the environment's, otherwise the redistributed one,
    settled. `offset_of` says where in q the table begins that is used at a cell, `part_of` which
    sub-task that is.
    """
    method, learning_rate, trace, window, gamma, bootstrap = rule
    events, scorer, offset_of, part_of, scale, account = profile
    settled, shaping, fade, successes, low, high, repaid = account
    horizon = horizon_of(tables)
    rows, actions = np.empty(horizon + 1, np.int64), np.empty(horizon, np.int64)
    gains, parts = np.empty(horizon), np.empty(horizon, np.int64)
    row, history = np.zeros(len(scorer[3])), np.empty(horizon + 1, np.int64)
    redistributing = len(events[0]) > 0
    steps = 0
    for _ in range(episodes):
        s = begin(tables, rng)
        last, score, cell, given, level, n, offset, count = -1, 0.0, 0, 0.0, 0.0, 0, 0, 0
        reward, ret, weight = 0.0, 0.0, 1.0
        if settled == _ANNEALED:
            weight = max(0.0, 1.0 - repaid[0] / successes) if successes > 0 else 0.0
        if redistributing:
            row[:] = 0.0
            if not events[1].size:
                last = events[0][s]
                if last >= 0:
                    score, cell, count = _moved(
                        row, history, count, last, score, cell, events, scorer
                    )
            offset = offset_of[cell]
        rows[0] = observed[s] + offset
        for t in range(1, horizon + 1):
            a = act(q, observed[s] + offset, epsilon, rng)
            k = draw(tables, s, a, rng)
            parts[t - 1] = part_of[cell]
            share = 0.0
            if redistributing:
                event = _event(events, tables, s, a, k, last)
                if event >= 0:
                    last = event
                    new, cell, count = _moved(
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
            over = ended or t == horizon
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
            if method == _Q:
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
        if method == _TRACE:
            trace_backup(q, rows, actions, gains, parts, n, learning_rate, trace, bootstrap, gamma)
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
                score, cell, count = _moved(row, history, count, last, score, cell, events, scorer)
        for t in range(1, horizon_of(tables) + 1):
            a = act(q, observed[s] + offset_of[cell], epsilon, rng)
            k = draw(tables, s, a, rng)
            event = _event(events, tables, s, a, k, last) if tracking else -1
            total += tables[2][s, a, k] * tables[4][t]
            ended = tables[3][s, a, k]
            s = tables[0][s, a, k]
            if ended:
                break
            if event >= 0:
                last = event
                score, cell, count = _moved(row, history, count, event, score, cell, events, scorer)
    return total / episodes


def learn_q(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.0,
    gamma: float = 1.0,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
    returns: Sequence[float] | None = None,
) -> Result:
    """Learn by behavioural cloning and Q-learning on the environment's own reward.

    Args:
        mdp: The environment.
        demonstrations: For the initial table and the target; observations are states. May be
            empty, if `returns` are given.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ; 0 is one-step Q-learning, above it Q(λ): the control that has the same traces as
            Align-RUDDER but no redistribution.
        gamma: Discount.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.
        returns: The returns that set the target; None for those of the demonstrations.
    """
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
    )
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    method = _TRACE if trace > 0 else _Q
    rule = (method, float(learning_rate), float(trace), 1, float(gamma), True)
    return run_tables(trial, trial.cloned(initial_scale, initial_mean), _NO_PROFILE, 1, rule)


def learn_align_rudder(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.2,
    method: Literal["trace", "kappa", "direct", "q-learning"] = "trace",
    trace: float = 0.8,
    bootstrap: bool = True,
    gamma: float = 0.99,
    window: int = 20,
    settlement: Settlement | str | None = "mean",
    progress: bool = True,
    subtasks: bool = False,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    max_events: int = 15,
    model: AlignRudder | None = None,
    events: np.ndarray | None = None,
    options: Mapping[str, Any] | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn on the environment's reward and its redistribution, settled.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states. May be empty, if `model` is given:
            one of event logs from elsewhere, say.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        method: Q(λ) by eligibility "trace"; without `bootstrap` it is the paper's method A, as
            with the rewards of the next `window` steps ("kappa") or the immediate one alone
            ("direct"); "q-learning" is its method C.
        trace: λ of the trace.
        bootstrap: Whether the trace bootstraps from the values of the states on the way.
        gamma: Discount.
        window: Steps of the κ window.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone, as in the paper's tables: not return-equivalent. "kappa" and
            "direct" look a few steps ahead, which is best with "even" or None.
        progress: Whether the agent knows where on the alignment it stands: a table for each
            position, all of them cloned from the demonstrations.
        subtasks: Whether each sub-task has a Q-table of its own instead; a sub-agent takes over
            where the alignment passes a sub-goal, and earns only what it is paid until the next
            one.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        max_events: Most events, where the model is fitted here.
        model: A model fitted with `StateEvents`, or to sequences of the table's symbols; None to
            fit one to the demonstrations. Where their returns are negative, give one with a
            baseline: `AlignRudder(StateEvents(), baseline=…).fit(demonstrations)`.
        events: The model's event of each outcome of the table (S, A, K), -1 for none, where the
            model sees something else than its states: what is held, say.
        options: Parameters of the model, where it is fitted here.
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
    kind = None if settlement is None else Settlement.of(settlement)
    if kind is not None and kind.spreads and method == "q-learning":
        raise ValueError(
            "q-learning learns at every step, before the rest of the return is known; use "
            'settlement="annealed", or a method that learns from whole episodes'
        )
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        window=(window, Whole(1)),
    )
    if model is None:
        Trial(mdp, demonstrations, protocol, seed)  # says what is wrong with the demonstrations
        parameters = {"strategies": 1, **(options or {})}
        model = AlignRudder(StateEvents(max_events=max_events), **parameters).fit(demonstrations)
    returns = None if demonstrations else getattr(model, "returns_", None)
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    profile, n_tables = _profile_of(model, mdp, events, kind, progress, subtasks)
    seen = 1 if method == "direct" else int(window)
    numbers = (float(learning_rate), float(trace), seen, float(gamma), bool(bootstrap))
    initial = trial.cloned(initial_scale, initial_mean)
    return run_tables(trial, initial, profile, n_tables, (methods[method], *numbers))


def run_tables(
    trial: Trial, initial: np.ndarray, profile: tuple[Any, ...], n_tables: int, rule: Any
) -> Result:
    """Run a trial with a table of values for each position, all of them the same at first.

    Args:
        trial: The trial.
        initial: The first values (O, A).
        profile: What the kernels need of a model.
        n_tables: How many positions there are.
        rule: How values are learned.
    """
    q = np.tile(initial, (n_tables, 1))
    train = partial(_train, q, profile, rule, trial.observed)
    if n_tables == 1:
        return trial.run(q, train)
    judge = partial(_evaluate_places, q, profile, trial.observed)
    return trial.run(q.reshape(n_tables, *initial.shape), train, judge)


def trace_rule(learning_rate: float, trace: float, gamma: float) -> tuple[Any, ...]:
    """Return the rule of Q(λ) by a trace that bootstraps."""
    return _TRACE, float(learning_rate), float(trace), 1, float(gamma), True


def _profile_of(
    model: AlignRudder,
    mdp: TabularMDP,
    outcomes: np.ndarray | None,
    settlement: Settlement | None,
    progress: bool,
    subtasks: bool,
) -> tuple[tuple[Any, ...], int]:
    """Return what the kernels need of a model, and how many tables there are."""
    events = events_of(model, mdp, outcomes)
    n, cells = mdp.n_observations, np.arange(model.scorer_.n_cells)
    offset_of, part_of, n_tables = np.zeros_like(cells), np.zeros_like(cells), 1
    if subtasks:
        counts = [len(strategy.subgoals) + 1 for strategy in model.strategies_]
        widths = np.diff(model.scorer_.bounds)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        part_of = model.subgoal_table() + np.repeat(first, widths)
        offset_of, n_tables = part_of * n, sum(counts)
    elif progress:
        offset_of, n_tables = cells * n, len(cells)
    scorer = (*model.scorer_.tables, model.tables_.places)
    settled = account_of(model, settlement)
    return (events, scorer, offset_of, part_of, float(model.scale_), settled), n_tables


def account_of(model: AlignRudder, settlement: Settlement | None) -> tuple[Any, ...]:
    """Return how the kernels settle: the kind, its numbers, and what was paid back so far."""
    kind = _SETTLED[None if settlement is None else settlement.kind]
    chosen = settlement or Settlement()
    account = (chosen.gamma, chosen.fade, chosen.successes, *model.return_range_)
    return kind, *map(float, account), np.zeros(1)


def events_of(
    model: AlignRudder, mdp: TabularMDP, outcomes: np.ndarray | None = None
) -> tuple[Any, ...]:
    """Return what the kernels need to know of the events of a table.

    Args:
        model: The fitted model.
        mdp: The environment.
        outcomes: The model's event of each outcome of the table; None to take them from its states
            or symbols.
    """
    encoder = getattr(model, "events_", None)
    if encoder is None:
        raise ValueError("a tabular learner needs a fitted model; this one is not fitted")
    base, done, level = encoder.base, -1, np.inf
    if isinstance(encoder, DoneEvents):
        done, level = encoder.done, encoder.level
    labels = np.empty((0, 0, 0), np.int64)
    if outcomes is not None:
        labels = np.asarray(outcomes)
        if labels.shape != mdp.rewards.shape or labels.dtype.kind not in "iu":
            raise ValueError(
                f"events has shape {labels.shape} and type {labels.dtype}; an event id for each "
                f"outcome of the table is needed, {mdp.rewards.shape} of them"
            )
        labels = np.minimum(labels, encoder.n_events).astype(np.int64)
        event_of = np.arange(encoder.n_events + 1)
    elif isinstance(base, SymbolEvents) and mdp.symbols:
        event_of, labels = base.encode_sequence(mdp.symbols), mdp.labels.astype(np.int64)
        event_of = np.where(event_of >= base.n_events, encoder.n_events, event_of)
    else:
        event_of = _events_of_states(base, mdp.n_states)
    undoes = model.tables_.undoes
    undoes = _NO_EVENTS[4] if undoes is None else undoes
    return event_of, labels, level, done, undoes


def _events_of_states(events: EventEncoder, n_states: int) -> np.ndarray:
    """Return the event of each state of a table (S,), -1 for none."""
    if not isinstance(events, StateEvents) or events.states_.shape[1] != 1:
        raise ValueError(
            "a tabular learner needs a model fitted with StateEvents on single whole numbers, or "
            f"to sequences of the symbols the table names; this one has {type(events).__name__}"
        )
    if events.states_.min() < 0 or events.states_.max() >= n_states:
        raise ValueError(
            f"the model knows states up to {events.states_.max()}, this table has {n_states}; it "
            "was fitted to another environment"
        )
    event_of = np.full(n_states, -1, np.int64)
    event_of[events.states_[:, 0]] = events.labels_
    return event_of
