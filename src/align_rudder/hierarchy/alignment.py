"""Redistribution inside JAX: events, prefix alignment and sub-task of a running episode.

The same numbers as `align_rudder.redistribution`, as pure functions of one episode. The profile's
scores are rounded to a binary grid (`GRID`), so that sums are exact in single precision and both
give the same cells and sub-tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.events import DeltaEvents
from align_rudder.model import AlignRudder

__all__ = [
    "AlignmentTables",
    "Position",
    "advance",
    "delta_event",
    "goal_rewards",
    "next_subtask",
    "reached_goals",
    "start_position",
    "tables_of",
]

GRID = 2.0**-10
_NEVER = -1e6


class AlignmentTables(NamedTuple):
    """What is needed of a fitted model.

    Attributes:
        projection: From changes of the features to the space in which they are clustered (F, D).
        exemplars: Centres of the groups of changes (G, D).
        labels: Event of each group, -1 for none (G,).
        pssm: Score of each event in each cell (n + 1, C); the last row is the unknown event.
        first: Whether a cell is the first of its strategy (C,).
        scale: C, which scales scores to returns.
        goal_event: Event of each sub-goal (K,).
        goal_count: How often it must have happened for that sub-goal to be reached (K,): the
            third sub-goal "wood" is reached with the third wood.
    """

    projection: jax.Array
    exemplars: jax.Array
    labels: jax.Array
    pssm: jax.Array
    first: jax.Array
    scale: jax.Array
    goal_event: jax.Array
    goal_count: jax.Array

    @property
    def n_subtasks(self) -> int:
        """Number of sub-goals K."""
        return self.goal_event.shape[0]

    @property
    def n_events(self) -> int:
        """Number of known events."""
        return self.pssm.shape[0] - 1


class Position(NamedTuple):
    """Where an episode stands on the profiles.

    Attributes:
        row: Best scores by cell (C,).
        score: S(τ_t).
        cell: The first cell that has it.
    """

    row: jax.Array
    score: jax.Array
    cell: jax.Array


def tables_of(model: AlignRudder) -> AlignmentTables:
    """Return the tables of a model fitted with `DeltaEvents` at zero gap cost and one strategy."""
    events = model.events_
    if not isinstance(events, DeltaEvents):
        raise ValueError(f"sub-agents need a model with DeltaEvents, not {type(events).__name__}")
    if model.gap != 0:
        raise ValueError(f"sub-agents need a model without gap cost, this one has gap={model.gap}")
    if len(model.strategies_) != 1:
        raise ValueError(
            f"the demonstrations follow {len(model.strategies_)} strategies; sub-tasks are those "
            "of one: fit with strategies=1, or to the demonstrations of one strategy"
        )
    arrays = events.state()[1]
    wide, bounds, _ = model.scorer_.tables
    rounded = np.where(np.isfinite(wide), np.round(wide / GRID) * GRID, _NEVER)
    first = np.zeros(wide.shape[1], bool)
    first[bounds[:-1]] = True
    goals = np.array([goal.event for goal in model.subgoals_])
    if not len(goals):
        raise ValueError("the model has no sub-goals; lower its subgoal_threshold")
    counts = [int((goals[: k + 1] == event).sum()) for k, event in enumerate(goals)]
    return AlignmentTables(
        jnp.asarray(arrays["projection"], jnp.float32),
        jnp.asarray(arrays["exemplars"], jnp.float32),
        jnp.asarray(arrays["labels"], jnp.int32),
        jnp.asarray(rounded, jnp.float32),
        jnp.asarray(first),
        jnp.float32(model.scale_),
        jnp.asarray(goals, jnp.int32),
        jnp.asarray(counts, jnp.int32),
    )


def delta_event(tables: AlignmentTables, before: jax.Array, after: jax.Array) -> jax.Array:
    """Return the event of a step, -1 for none."""
    delta = (after - before).astype(jnp.float32)
    z = jnp.sum(delta[:, None] * tables.projection, axis=0)
    distance = jnp.sum((z - tables.exemplars) ** 2, axis=1)
    return jnp.where((delta != 0).any(), tables.labels[distance.argmin()], -1)


def reached_goals(tables: AlignmentTables, counts: jax.Array) -> jax.Array:
    """Return which sub-goals are reached (…, K), given how often events happened (…, n)."""
    return counts[..., tables.goal_event] >= tables.goal_count


def next_subtask(tables: AlignmentTables, counts: jax.Array) -> jax.Array:
    """Return the first sub-goal not yet reached, K if all are, given how often events happened.

    A sub-goal that was reached before its turn is passed over: the strategy goes on from there.
    """
    missing = ~reached_goals(tables, counts)
    return jnp.where(missing.any(), missing.argmax(), tables.n_subtasks).astype(jnp.int32)


def start_position(tables: AlignmentTables) -> Position:
    """Return the position of an episode in which nothing has happened."""
    return Position(jnp.zeros(tables.pssm.shape[1]), jnp.float32(0), jnp.int32(0))


def advance(
    tables: AlignmentTables, position: Position, event: jax.Array
) -> tuple[Position, jax.Array]:
    """Return the position after an event (-1 for none), and the redistributed reward R_{t+1}."""
    shifted = jnp.roll(position.row, 1) + tables.pssm[event]
    row = jnp.maximum(position.row, jnp.where(tables.first, _NEVER, shifted))
    row = jax.lax.cummax(row)
    score = row.max()
    new = Position(row, score, row.argmax().astype(jnp.int32))
    kept = jax.tree.map(lambda a, b: jnp.where(event >= 0, a, b), new, position)
    return kept, (kept.score - position.score) * tables.scale


def goal_rewards(tables: AlignmentTables) -> jax.Array:
    """Return the redistributed reward (K,) of each sub-goal, reached one after the other."""
    start = start_position(tables)
    return jax.lax.scan(lambda at, event: advance(tables, at, event), start, tables.goal_event)[1]
