"""A task with the alignment inside: redistributed reward and sub-task come out of every step."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy.alignment import (
    AlignmentTables,
    Position,
    advance,
    delta_event,
    next_subtask,
    start_position,
)
from align_rudder.hierarchy.task import Task

__all__ = ["AlignedState", "AlignedTask", "Outcome", "PlainTask"]

PAYS = ("subgoal", "step", "goals", "task", "dense")


class AlignedState(NamedTuple):
    """An episode of the task and where it stands on the profile.

    Attributes:
        state: The task's state.
        position: Row, score and cell of the prefix alignment.
        counts: How often each event has happened (n,).
        subtask: The first sub-goal not yet reached.
        pending: Redistributed reward since the last sub-goal, paid at the next.
        given: Redistributed reward so far.
        idle: Steps since the last sub-goal.
        begun: The sub-task at which the episode was begun; 0 for a new world.
    """

    state: Any
    position: Position
    counts: jax.Array
    subtask: jax.Array
    pending: jax.Array
    given: jax.Array
    idle: jax.Array
    begun: jax.Array


class Outcome(NamedTuple):
    """What a step gave.

    Attributes:
        reward: Reward of the learner.
        event: Event of the step, -1 for none.
        gain: Redistributed reward R_{t+1} of the step.
        reached: Whether a sub-goal was reached.
        over: Whether the episode ended for good.
        solved: Whether the step solved the task.
        cut: Whether the episode is cut off for having got nowhere.
    """

    reward: jax.Array
    event: jax.Array
    gain: jax.Array
    reached: jax.Array
    over: jax.Array
    solved: jax.Array
    cut: jax.Array


class AlignedTask(eqx.Module):
    """A task and the tables of a model.

    Attributes:
        task: The task.
        tables: The tables.
        pay: What learners are paid: "subgoal", the redistributed reward at the end of each
            sub-task; "step", at each step; "goals", the same for every sub-goal; "task", only the
            1 for solving the task; "dense", the task's hand-made reward.
        patience: Steps without reaching a sub-goal after which training cuts an episode off.
    """

    task: Task = eqx.field(static=True)
    tables: AlignmentTables
    pay: str = eqx.field(static=True, default="subgoal")
    patience: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        if self.pay not in PAYS:
            raise ValueError(f"pay={self.pay!r} is not one of {', '.join(PAYS)}")

    @property
    def n_subtasks(self) -> int:
        """Number of sub-tasks; one more index stands for "all sub-goals reached"."""
        return self.tables.n_subtasks

    @property
    def n_choices(self) -> int:
        """Number of choices of who acts, the primitive actions."""
        return self.task.n_actions

    def begin(self, key: jax.Array) -> AlignedState:
        """Return the start of a new world."""
        zero, none = jnp.float32(0), jnp.int32(0)
        start = start_position(self.tables)
        counts = jnp.zeros(self.tables.n_events, jnp.int32)
        return AlignedState(self.task.new_world(key), start, counts, none, zero, zero, none, none)

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, jax.Array, jax.Array, jax.Array]:
        """Return where an episode stands after its features changed; event, gain, paid so far."""
        event = delta_event(self.tables, before, after)
        position, gain = advance(self.tables, s.position, event)
        counts = s.counts + (jnp.arange(self.tables.n_events) == event)
        subtask = next_subtask(self.tables, counts)
        reached = subtask > s.subtask
        pending = s.pending + gain
        new = s._replace(
            position=position,
            counts=counts,
            subtask=subtask,
            pending=jnp.where(reached, 0.0, pending),
            given=s.given + gain,
            idle=jnp.where(reached, 0, s.idle + 1),
        )
        return new, event, gain, jnp.where(reached, pending, 0.0)

    def step(
        self, key: jax.Array, s: AlignedState, action: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return the next state and what the step gave."""
        task = self.task
        state = task.step(key, s.state, action)
        new, event, gain, paid = self.follow(s, task.features(s.state), task.features(state))
        reached = new.subtask > s.subtask
        solved, over = task.solved(state), task.over(state)
        if self.pay == "task":
            reward = solved.astype(jnp.float32)
        elif self.pay == "step":
            reward = gain
        elif self.pay == "goals":
            reward = (new.subtask - s.subtask) / self.n_subtasks
        elif self.pay == "dense":
            reward = task.dense_reward(s.state, state)
        else:
            reward = paid
        cut = ~over & (new.idle >= self.patience)
        return new._replace(state=state), Outcome(reward, event, gain, reached, over, solved, cut)


class PlainTask(AlignedTask):
    """The task without alignment, for learners that know nothing of it; pays "task" or "dense"."""

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, jax.Array, jax.Array, jax.Array]:
        """Return the episode where it stood: nothing is followed."""
        return s, jnp.int32(-1), jnp.float32(0), jnp.float32(0)
