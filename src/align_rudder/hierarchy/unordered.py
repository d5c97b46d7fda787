"""Events without aligning: the control that pays each kind of event once, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.events import DeltaEvents
from align_rudder.events.encoders_jax import Deltas
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask, AlignmentTables, Outcome
from align_rudder.hierarchy.task import Task
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import digest

__all__ = ["Kinds", "KindsSeen", "UnorderedTask", "kinds_of", "tracked_task"]


class Kinds(eqx.Module):
    """The kinds of event that are paid; each is a sub-goal, and how many there were the position.

    Attributes:
        events: The events.
        kinds: Ids of those that are paid (K,).
        worth: What each is worth (K,).
        digest: A short name.
    """

    events: Deltas
    kinds: jax.Array
    worth: jax.Array
    digest: str = eqx.field(static=True)

    @property
    def n_subtasks(self) -> int:
        """Number of kinds K."""
        return self.kinds.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of positions, from no kind seen to all."""
        return self.n_subtasks + 1


def kinds_of(model: AlignRudder, share: float = 0.8) -> tuple[Kinds, list[str]]:
    """Return the kinds of event that a share of the demonstrations hold, and their symbols.

    Args:
        model: A model with `DeltaEvents`; of what it has learned, only its events are used.
        share: Share of the demonstrations.
    """
    encoder = model.events_
    if not isinstance(encoder, DeltaEvents):
        kind = type(encoder).__name__
        raise ValueError(f"sub-agents need a model with DeltaEvents, not {kind}; fit it with these")
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
    return Kinds(events, ids, worth, digest((events, ids))), [str(symbols[e]) for e in kinds]


class KindsSeen(NamedTuple):
    """Where an episode stands: what `AlignedState` asks of a position.

    Attributes:
        seen: Which kinds there were (K,).
        cell: How many.
        subgoal: The same: the next sub-goal is any that is left.
    """

    seen: jax.Array
    cell: jax.Array
    subgoal: jax.Array


class UnorderedTask(AlignedTask):
    """A task in which each kind of event is paid once, whenever it happens."""

    tables: Kinds  # pyright: ignore[reportIncompatibleVariableOverride]

    def start(self, state: Any) -> AlignedState:
        """Return the start of an episode in that state."""
        zero, none = jnp.float32(0), jnp.int32(0)
        seen = jnp.zeros(self.n_subtasks, bool)
        position: Any = KindsSeen(seen, none, none)
        return AlignedState(state, position, seen, zero, zero, none, none)

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return where an episode stands after its features changed, and what it was paid."""
        event = self.tables.events.change_event(before, after)
        new = (self.tables.kinds == event) & ~s.reached
        found = new.any()
        reached = s.reached | new
        count = reached.sum().astype(jnp.int32)
        position: Any = KindsSeen(reached, count, count)
        paid = jnp.where(found, self.tables.worth @ new, 0.0)
        goal = jnp.where(found, new.argmax(), -1)
        s = s._replace(
            position=position,
            reached=reached,
            given=s.given + paid,
            idle=jnp.where(found, 0, s.idle + 1),
        )
        no = jnp.array(False)
        return s, Outcome(paid, event, goal, paid, found, no, no, no)


def tracked_task(task: Task, tables: AlignmentTables | Kinds, *options: Any) -> AlignedTask:
    """Return a task whose episodes are tracked: along an alignment, or by the kinds of event seen.

    Args:
        task: The task.
        tables: Tables of the alignment, or kinds of event.
        options: Further arguments of `AlignedTask`.
    """
    kind: Any = UnorderedTask if isinstance(tables, Kinds) else AlignedTask
    return kind(task, tables, *options)
