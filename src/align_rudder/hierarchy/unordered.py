"""Sub-goals in any order: those of an alignment, or, as a control, each kind of event once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.events import DeltaEvents
from align_rudder.events.encoders_jax import Deltas
from align_rudder.hierarchy.aligned import (
    AlignedState,
    AlignedTask,
    AlignmentTables,
    Outcome,
    subgoals_to_learn,
)
from align_rudder.hierarchy.task import Task
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import digest

__all__ = ["Checklist", "Ticked", "UnorderedTask", "checklist_of", "kinds_of", "tracked_task"]


class Checklist(eqx.Module):
    """Sub-goals that are ticked off, whenever their event happens; how many are is the position.

    An event that is listed several times ticks off one of them each time.

    Attributes:
        events: The events.
        wanted: The event of each sub-goal (K,).
        worth: What each is worth (K,).
        digest: A short name.
        ordered: Whether the first that is open is the next sub-goal; otherwise any is.
    """

    events: Deltas
    wanted: jax.Array
    worth: jax.Array
    digest: str = eqx.field(static=True)
    ordered: bool = eqx.field(static=True)

    @property
    def n_subtasks(self) -> int:
        """Number of sub-goals K."""
        return self.wanted.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of positions, from nothing ticked off to all."""
        return self.n_subtasks + 1


def _delta_events(model: AlignRudder) -> DeltaEvents:
    encoder = model.events_
    if not isinstance(encoder, DeltaEvents):
        kind = type(encoder).__name__
        raise ValueError(f"sub-agents need a model with DeltaEvents, not {kind}; fit it with these")
    return encoder


def checklist_of(model: AlignRudder) -> Checklist:
    """Return the sub-goals of a model, to be ticked off in any order.

    Args:
        model: A model with `DeltaEvents` and one strategy.
    """
    goals, events = subgoals_to_learn(model), Deltas.of(_delta_events(model))
    wanted = jnp.array([goal.event for goal in goals], jnp.int32)
    worth = jnp.array([goal.reward for goal in goals], jnp.float32)
    return Checklist(events, wanted, worth, digest((events, wanted, worth)), ordered=True)


def kinds_of(model: AlignRudder, share: float = 0.8) -> tuple[Checklist, list[str]]:
    """Return the kinds of event that a share of the demonstrations hold, and their symbols.

    Args:
        model: A model with `DeltaEvents`; of what it has learned, only its events are used.
        share: Share of the demonstrations.
    """
    encoder = _delta_events(model)
    held = [set(model.encoded_[i].events.tolist()) for i in model.used_]
    known = range(encoder.n_events)
    kinds = [e for e in known if np.mean([e in events for events in held]) >= share]
    if not kinds:
        raise ValueError(
            f"no kind of event is in {share:.0%} of the demonstrations; give a smaller share, or "
            "demonstrations with more in common"
        )
    events, ids = Deltas.of(encoder), jnp.array(kinds, jnp.int32)
    worth = jnp.full(len(kinds), 1 / len(kinds), jnp.float32)
    symbols: Sequence[Any] = encoder.symbols_
    found = Checklist(events, ids, worth, digest((events, ids)), ordered=False)
    return found, [str(symbols[e]) for e in kinds]


class Ticked(NamedTuple):
    """Where an episode stands: what `AlignedState` asks of a position.

    Attributes:
        cell: How many sub-goals are ticked off.
        subgoal: The first that is open; without an order, again how many are ticked off.
    """

    cell: jax.Array
    subgoal: jax.Array


class UnorderedTask(AlignedTask):
    """A task whose sub-goals are paid once each, whenever their event happens."""

    tables: Checklist  # pyright: ignore[reportIncompatibleVariableOverride]

    def start(self, state: Any) -> AlignedState:
        """Return the start of an episode in that state."""
        zero, none = jnp.float32(0), jnp.int32(0)
        position: Any = Ticked(none, none)
        reached = jnp.zeros(self.n_subtasks, bool)
        return AlignedState(state, position, reached, zero, zero, none, none)

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return where an episode stands after its features changed, and what it was paid."""
        tables = self.tables
        event = tables.events.change_event(before, after)
        open_ = (tables.wanted == event) & ~s.reached
        found = open_.any()
        goal = jnp.where(found, open_.argmax(), -1)
        reached = s.reached | (jnp.arange(self.n_subtasks) == goal)
        count = reached.sum().astype(jnp.int32)
        first = jnp.where(reached.all(), self.n_subtasks, reached.argmin()).astype(jnp.int32)
        position: Any = Ticked(count, first if tables.ordered else count)
        paid = jnp.where(found, tables.worth[goal], 0.0)
        passed = position.subgoal > s.subtask
        s = s._replace(
            position=position,
            reached=reached,
            given=s.given + paid,
            idle=jnp.where(found, 0, s.idle + 1),
        )
        no = jnp.array(False)
        return s, Outcome(paid, event, goal, paid, passed, no, no, no)


def tracked_task(task: Task, tables: AlignmentTables | Checklist, *options: Any) -> AlignedTask:
    """Return a task whose episodes are tracked: along an alignment, or by what is ticked off.

    Args:
        task: The task.
        tables: Tables of the alignment, or a checklist.
        options: Further arguments of `AlignedTask`.
    """
    kind: Any = UnorderedTask if isinstance(tables, Checklist) else AlignedTask
    return kind(task, tables, *options)
