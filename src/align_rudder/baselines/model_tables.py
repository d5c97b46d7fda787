"""What the compiled learners need of a model: its events, its profile, how it is settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder.baselines.q_tables import SETTLED
from align_rudder.events import DoneEvents, EventEncoder, StateEvents, SymbolEvents
from align_rudder.model import AlignRudder
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["NO_PROFILE", "account_of", "automaton_of", "events_of", "profile_of"]

# Of a learner that is paid by the environment: `event_of` is empty.
_NO_EVENTS = (
    np.empty(0, np.int64),
    np.empty((0, 0, 0), np.int64),
    np.inf,
    -1,
    np.empty((0, 1), np.int64),
)
NO_PROFILE = (
    _NO_EVENTS,
    (np.empty((1, 1)), np.array([0, 1]), 0.0, np.zeros(1), np.zeros((1, 4), np.int64)),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
    0.0,
    (SETTLED[None], 1.0, 0.0, 0.0, 0.0, 1.0, np.zeros(1)),
)


def profile_of(
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


def automaton_of(
    mdp: TabularMDP,
    symbols: Sequence[Any],
    following: np.ndarray,
    paid: np.ndarray,
    settlement: Settlement | None,
) -> tuple[Any, ...]:
    """Return what the kernels need of an automaton over some symbols of a table.

    Args:
        mdp: The environment; success returns 1.
        symbols: The symbols (n,); all others change nothing.
        following: Which state follows on each of them (states, n).
        paid: What is paid for it (states, n).
        settlement: How it is settled.
    """
    index = {symbol: i for i, symbol in enumerate(symbols)}
    n, states = len(symbols), np.arange(len(following))
    event_of = np.array([index.get(symbol, n) for symbol in mdp.symbols], np.int64)
    events = (event_of, mdp.labels.astype(np.int64), np.inf, -1, _NO_EVENTS[4])
    places = np.column_stack([following, states]).astype(np.int64)
    wide = np.vstack([paid.T, np.zeros(len(states))])
    if len(states) == 1:  # one place is no automaton to the kernels
        places, wide = np.zeros((2, n + 1), np.int64), np.repeat(wide, 2, axis=1)
    no_order = np.empty(0, np.int64)
    scorer = (np.ascontiguousarray(wide), no_order, 0.0, np.zeros(n + 1), places)
    account = _account(settlement, (0.0, 1.0))
    return events, scorer, states * mdp.n_observations, 0 * states, 1.0, account


def account_of(model: AlignRudder, settlement: Settlement | None) -> tuple[Any, ...]:
    """Return how the kernels settle: the kind, its numbers, and what was paid back so far."""
    return _account(settlement, model.return_range_)


def _account(settlement: Settlement | None, returns: tuple[float, float]) -> tuple[Any, ...]:
    kind = SETTLED[None if settlement is None else settlement.kind]
    chosen = settlement or Settlement()
    account = (chosen.gamma, chosen.fade, chosen.successes, *returns)
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
        if base.n_events and (event_of >= base.n_events).all():
            raise ValueError(
                f"the model knows {_some(base.symbols_)}, and the table names "
                f"{_some(mdp.symbols)}: they share no symbol, so that nothing would be paid; give "
                "a model of logs with the names of this table"
            )
        event_of = np.where(event_of >= base.n_events, encoder.n_events, event_of)
    else:
        event_of = _events_of_states(base, mdp.n_states)
    undoes = model.tables_.undoes
    undoes = _NO_EVENTS[4] if undoes is None else undoes
    return event_of, labels, level, done, undoes


def _some(symbols: Sequence[Any]) -> str:
    return ", ".join([*map(repr, symbols[:5]), *(["…"] if len(symbols) > 5 else [])])


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
