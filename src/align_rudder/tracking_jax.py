"""The tracker in JAX: what `tracking` says of a running episode, inside a jitted step.

Pure functions of one episode, to be vmapped and scanned: `track` for whole episodes, `start` and
`advance` for events one by one, `Stream` for transitions. Scores are rounded to a binary grid that
is as fine as sums in single precision stay exact, so that cells, matched columns and next sub-goals
are those of NumPy, but for differences of scores below that grid.

Where events undo others, the state holds the events so far that may matter, in an array of fixed
size. An episode with more of them than fit stays where it is from there on, and says so: `full`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from align_rudder import tracking
from align_rudder.events.encoders_jax import EventFunction, in_jax
from align_rudder.files import Whole
from align_rudder.redistribution import Scorer, Step
from align_rudder.sequences import NO_EVENT
from align_rudder.tracking import TrackedModel

try:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError('this needs JAX; in a clone: pip install ".[jax]"') from error

__all__ = [
    "HISTORY",
    "Step",
    "Stream",
    "StreamState",
    "TrackerState",
    "TrackerTables",
    "advance",
    "on_grid",
    "start",
    "track",
]

_MANTISSA = 24  # bits of a number in single precision
HISTORY = 1000  # events that an episode remembers, where some undo others
_LEAST = 2.0**-90  # scores below are nothing, and would be so in single precision


def on_grid(tables: tracking.TrackerTables) -> tracking.TrackerTables:
    """Return the tables with scores and costs on the grid that JAX computes on."""
    scorer = tables.scorer
    wide, bounds, gap, _ = scorer.tables
    finite = np.where(np.isfinite(wide), wide, 0.0)
    # All that a row may hold lies below this: `wide` has one gap already, and `advance` adds one.
    best = np.maximum(finite.max(axis=0), 0.0) + 2 * gap
    bound = max(float(np.add.reduceat(best, bounds[:-1]).max()), float(np.abs(finite).max()))
    exponent = np.ceil(np.log2(max(bound, _LEAST))) + 1 - _MANTISSA
    grid = 2.0**exponent
    pssms = [np.round(pssm / grid) * grid for pssm in scorer.pssms]
    skips = [np.round(costs / grid) * grid for costs in scorer.skips]
    return replace(tables, scorer=Scorer(pssms, round(gap / grid) * grid, skips))


class TrackerTables(eqx.Module):
    """What tracking needs of a fitted model.

    Attributes:
        pssm: Scores of each event (n + 1, K, W) in the cells of each strategy, with the cost of
            skipping the column added; filled up to the widest with −∞. The last row is the
            unknown event.
        bounds: First cell of each strategy (K,).
        gap: Gap cost.
        skipped: What it costs to skip all columns up to each cell (K, W).
        scale: C, which scales scores to returns.
        places: As in NumPy: strategy, column, whether it is a sub-goal's, first sub-goal behind.
        undoes: As in NumPy: the events that each takes back; None if none does.
        kept: Events that must be remembered (n + 1,): they may score, or be taken back.
        history: How many events an episode remembers.
    """

    pssm: jax.Array
    bounds: jax.Array
    gap: jax.Array
    skipped: jax.Array
    scale: jax.Array
    places: jax.Array
    undoes: jax.Array | None = None
    kept: jax.Array | None = None
    history: int = eqx.field(static=True, default=0)

    @classmethod
    def of(cls, tables: tracking.TrackerTables, history: int = HISTORY) -> TrackerTables:
        """Return the tables of a model (`model.tables_`) in JAX.

        Args:
            tables: The tables in NumPy.
            history: How many events an episode remembers, where some undo others.
        """
        Whole(1, 2**20).check(history, "history")
        wide, bounds, gap, lost = on_grid(tables).scorer.tables
        widths = np.diff(bounds)
        pssm = np.full((len(wide), len(widths), widths.max()), -np.inf)
        skipped = np.full((len(widths), widths.max()), np.inf)  # no episode stands beyond the last
        for k, width in enumerate(widths):
            pssm[:, k, :width] = wide[:, bounds[k] : bounds[k + 1]]
            skipped[k, :width] = lost[bounds[k] : bounds[k + 1]]
        undoes = kept = None
        if tables.undoes is not None:
            undoes = jnp.asarray(tables.undoes, jnp.int32)
            scoring = (pssm + gap > 0).any(axis=(1, 2))  # others leave every row as it is
            kept = jnp.asarray(scoring | np.isin(np.arange(len(pssm)), tables.undoes))
        return cls(
            jnp.asarray(pssm, jnp.float32),
            jnp.asarray(bounds[:-1], jnp.int32),
            jnp.float32(gap),
            jnp.asarray(skipped, jnp.float32),
            jnp.float32(tables.scale),
            jnp.asarray(tables.places, jnp.int32),
            undoes,
            kept,
            0 if undoes is None else int(history),
        )

    @property
    def n_events(self) -> int:
        """Number of known events."""
        return self.pssm.shape[0] - 1

    @property
    def n_cells(self) -> int:
        """Number of positions on the profiles."""
        return self.places.shape[0]

    @property
    def strategy_of(self) -> jax.Array:
        """For each cell, the strategy to which it belongs."""
        return self.places[:, 0]

    @property
    def column_of(self) -> jax.Array:
        """For each cell its profile column, -1 for "nothing matched yet"."""
        return self.places[:, 1]

    @property
    def subgoal_of(self) -> jax.Array:
        """For each cell, the index of the first sub-goal behind it."""
        return self.places[:, 3]


class TrackerState(NamedTuple):
    """Where an episode stands.

    Attributes:
        row: Best scores (K, W) of the events so far with the columns up to each cell, the cost
            of all events and of columns skipped left out: it never falls.
        best: The best of them less the cost of columns skipped.
        events: Number of events so far.
        zero: S after the start state.
        cell: Where on the profiles the best alignment ends.
        subgoal: Index of the next sub-goal.
        history: Events so far that may matter (H,), where some undo others; else None, as are:
        remembered: How many these are.
        full: Whether there were more than fit. Then the episode stays where it was: what it does
            from there on neither earns nor costs.
    """

    row: jax.Array
    best: jax.Array
    events: jax.Array
    zero: jax.Array
    cell: jax.Array
    subgoal: jax.Array
    history: jax.Array | None = None
    remembered: jax.Array | None = None
    full: jax.Array | None = None


def _fresh(tables: TrackerTables) -> TrackerState:
    """Return where an episode stands before anything happened."""
    zero, none = jnp.float32(0), jnp.int32(0)
    row = jnp.zeros(tables.pssm.shape[1:], jnp.float32)
    state = TrackerState(row, zero, none, zero, none, none)
    if tables.undoes is None:
        return state
    history = jnp.full(tables.history, NO_EVENT - 1, jnp.int32)
    return state._replace(history=history, remembered=none, full=jnp.bool_(False))


def start(tables: TrackerTables, event: jax.Array | int = NO_EVENT) -> TrackerState:
    """Return where an episode stands after its start state, which is that event (-1 for none)."""
    state, step = advance(tables, _fresh(tables), event)
    return state._replace(zero=step.score)


def advance(
    tables: TrackerTables, state: TrackerState, event: jax.Array | int
) -> tuple[TrackerState, Step]:
    """Return where an episode stands after an event (-1 for none), and what the step was.

    Notes:
        With v_j = row_j, g the gap cost, D_j the cost of skipping the columns up to j and t the
        number of events, an event e gives v ← cummax(max(v, shift(v) + pssm[e] + g)) and
        S = max_j (v_j − D_j) − g·t: the recursion of `align_rudder.redistribution` with the cost
        of events taken out, so that rows stay small.
    """
    event = jnp.clip(event, NO_EVENT, tables.n_events).astype(jnp.int32)
    if tables.undoes is None or tables.kept is None:
        return _follow(tables, state, event)
    past, count, full = state.history, state.remembered, state.full
    assert past is not None
    assert count is not None
    assert full is not None
    happened = event >= 0
    lost = happened & (tables.undoes[event, 0] >= 0)
    kept = happened & ~lost & tables.kept[event]
    full |= kept & (count >= tables.history)
    state = state._replace(full=full)
    followed, step = _follow(tables, state, jnp.where(lost | full, NO_EVENT, event))
    added = (jnp.arange(tables.history) == count) & kept & ~full
    followed = followed._replace(
        history=jnp.where(added, event, past),
        remembered=count + (kept & ~full).astype(jnp.int32),
    )
    left = _take_back(tables, state, jnp.where(lost & ~full, event, NO_EVENT))
    new = jax.tree.map(lambda a, b: jnp.where(lost, a, b), left, followed)
    gain = (left.best - state.best - tables.gap * (left.events - state.events)) * tables.scale
    score = new.best - tables.gap * new.events - new.zero
    return new, Step(
        event, score, new.cell, step.column, new.subgoal, jnp.where(lost, gain, step.reward)
    )


def _take_back(tables: TrackerTables, state: TrackerState, event: jax.Array) -> TrackerState:
    """Return where an episode stands after an event that undoes (-1 for none).

    The last event that it takes back is struck, and the rest is scored anew, as
    `align_rudder.tracking.take_back` does it. Only then does the loop turn at all.
    """
    assert tables.undoes is not None
    assert state.history is not None
    assert state.remembered is not None
    places = jnp.arange(tables.history)
    taken = (state.history[:, None] == tables.undoes[event]).any(axis=1)
    taken &= (places < state.remembered) & (event >= 0)
    found = taken.any()
    at = tables.history - 1 - taken[::-1].argmax()
    history = jnp.where(places >= at, jnp.roll(state.history, -1), state.history)
    count = jnp.where(found, state.remembered - 1, 0)

    def add(carry: tuple[jax.Array, TrackerState]) -> tuple[jax.Array, TrackerState]:
        i, before = carry
        return i + 1, _follow(tables, before, history[i])[0]

    _, rest = jax.lax.while_loop(lambda c: c[0] < count, add, (jnp.int32(0), _fresh(tables)))
    rest = rest._replace(
        events=state.events - 1, zero=state.zero, history=history, remembered=count, full=state.full
    )
    return jax.tree.map(lambda a, b: jnp.where(found, a, b), rest, state)


def _follow(
    tables: TrackerTables, state: TrackerState, event: jax.Array
) -> tuple[TrackerState, Step]:
    """Return where an episode stands after an event that is added to the others (-1 for none)."""
    shifted = jnp.roll(state.row, 1, axis=1) + (tables.pssm[event] + tables.gap)
    row = jax.lax.cummax(jnp.maximum(state.row, shifted), axis=1)
    width = row.shape[1]
    level = (row - tables.skipped).ravel()
    at = level.argmax()
    cell = (tables.bounds[at // width] + at % width).astype(jnp.int32)
    strategy, column, is_goal, behind = tables.places[cell]
    gain = level[at] - state.best - tables.gap
    matched = (gain > 0) | (cell != state.cell)
    elsewhere = strategy != tables.strategy_of[state.cell]
    moves = matched & ((is_goal > 0) | (behind < state.subgoal) | elsewhere)
    new = state._replace(
        row=row,
        best=level[at],
        events=state.events + 1,
        cell=cell,
        subgoal=jnp.where(moves, behind, state.subgoal),
    )
    happened = event >= 0
    new = jax.tree.map(lambda a, b: jnp.where(happened, a, b), new, state)
    return new, Step(
        event,
        new.best - tables.gap * new.events - new.zero,
        new.cell,
        jnp.where(happened & matched, column, -1),
        new.subgoal,
        jnp.where(happened, gain * tables.scale, 0.0),
    )


def track(tables: TrackerTables, events: Any, start_event: jax.Array | int = NO_EVENT) -> Step:
    """Return what the tracker says of each step of a whole episode (T,), given its events."""
    first = start(tables, start_event)
    return jax.lax.scan(lambda s, e: advance(tables, s, e), first, jnp.asarray(events))[1]


class StreamState(NamedTuple):
    """A running episode.

    Attributes:
        tracker: Where it stands.
        last: The last event that was entered, for events that are regions.
        ret: The environment's return so far.
        given: The redistributed reward so far.
    """

    tracker: TrackerState
    last: jax.Array
    ret: jax.Array
    given: jax.Array

    @property
    def correction(self) -> jax.Array:
        """What of the return was not given yet, R_{T+2} if the episode ended now."""
        return self.ret - self.given


class Stream:
    """Redistributes the reward of episodes under way, whose state the caller holds.

    Args:
        model: A fitted `AlignRudder`. One that is aligned again needs a new stream.
        function: The event function in JAX, `(obs, action, reward, next_obs, info) -> event id`;
            needed where the model's events come from a function, or are symbols that are no
            numbers. Ids are indices of `model.events_.symbols_`, -1 is no event.
        history: How many events an episode remembers, where some undo others; in one that has
            more of them (those that may score or be undone), the state says `tracker.full`, and
            nothing is earned or lost from there on.

    Example:
        >>> from align_rudder import AlignRudder
        >>> model = AlignRudder().fit_events([["key", "door"], ["key", "cat", "door"]])
        >>> stream = Stream(model, lambda obs, action, reward, next_obs, info: next_obs)
        >>> state = stream.reset(-1)
        >>> state, step = jax.jit(stream.step)(state, -1, 0, 0.0, 2, {})
        >>> model.events_.symbols_[int(step.event)], int(step.subgoal), round(float(step.reward), 2)
        ('key', 1, 0.5)
    """

    def __init__(
        self, model: TrackedModel, function: EventFunction | None = None, history: int = HISTORY
    ) -> None:
        self.tables = TrackerTables.of(model.tables_, history)
        self.events = in_jax(model.tables_.encoder, function)

    def reset(self, obs: Any) -> StreamState:
        """Return the state of an episode that begins with this observation."""
        event = jnp.asarray(self.events.start_event(obs), jnp.int32)
        zero = jnp.float32(0)
        return StreamState(start(self.tables, event), event, zero, zero)

    def step(
        self, state: StreamState, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> tuple[StreamState, Step]:
        """Return the state after a transition, and what the step was (without the correction)."""
        found = self.events.transition_event(obs, action, reward, next_obs, info)
        event = jnp.asarray(found, jnp.int32)
        last = jnp.where(event == NO_EVENT, state.last, event)
        if self.events.collapse_runs:
            event = jnp.where(event == state.last, NO_EVENT, event)
        tracker, step = advance(self.tables, state.tracker, event)
        ret = state.ret + jnp.asarray(reward, jnp.float32)
        return StreamState(tracker, last, ret, state.given + step.reward), step
