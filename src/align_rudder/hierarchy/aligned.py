"""A task with the tracker inside: redistributed reward and sub-task come out of every step."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.events import DeltaEvents, DoneEvents
from align_rudder.events.encoders_jax import Deltas
from align_rudder.files import Choice
from align_rudder.hierarchy.task import Task
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import digest
from align_rudder.subtasks import SubGoal
from align_rudder.tracking_jax import TrackerState, TrackerTables, advance, start

__all__ = [
    "PAYS",
    "AlignedState",
    "AlignedTask",
    "AlignmentTables",
    "Outcome",
    "PlainTask",
    "subgoals_to_learn",
    "tables_of",
]

PAYS = ("subgoal", "step", "goals", "task", "dense")


class AlignmentTables(eqx.Module):
    """What is needed of a fitted model.

    Attributes:
        events: Its events.
        tracker: The tables of its tracker.
        worth: Mean redistributed reward of each sub-goal over the demonstrations (K,).
        digest: A short name of the alignment, the same as in version 0.1.
    """

    events: Deltas
    tracker: TrackerTables
    worth: jax.Array
    digest: str = eqx.field(static=True)

    @property
    def n_subtasks(self) -> int:
        """Number of sub-goals K."""
        return self.worth.shape[0]

    @property
    def n_cells(self) -> int:
        """Number of positions on the profile."""
        return self.tracker.n_cells


def subgoals_to_learn(model: AlignRudder) -> list[SubGoal]:
    """Return the sub-goals of a model; `ValueError` unless they are those of one strategy."""
    if len(model.strategies_) != 1:
        raise ValueError(
            f"the demonstrations follow {len(model.strategies_)} strategies; sub-tasks are those "
            "of one: fit with strategies=1, or to the demonstrations of one strategy"
        )
    if not model.subgoals_:
        raise ValueError(
            "the model has no sub-goals; lower its subgoal_threshold or subgoal_conservation"
        )
    return model.subgoals_


def tables_of(model: AlignRudder) -> AlignmentTables:
    """Return the tables of a model fitted with `DeltaEvents` and one strategy."""
    encoder = model.events_
    if isinstance(encoder, DoneEvents):
        raise ValueError(
            'the model has the event "done", which is known by the reward; sub-agents are paid for '
            "their sub-goals and need none: fit it with done=False"
        )
    if not isinstance(encoder, DeltaEvents):
        raise ValueError(f"sub-agents need a model with DeltaEvents, not {type(encoder).__name__}")
    goals, events = subgoals_to_learn(model), Deltas.of(encoder)
    worth = jnp.array([goal.reward for goal in goals], jnp.float32)
    return AlignmentTables(events, TrackerTables.of(model.tables_), worth, _digest(model, events))


def _digest(model: AlignRudder, events: Deltas) -> str:
    """Return the name of an alignment, made as version 0.1 did, whose agents are still loaded."""
    wide, bounds, *_ = model.scorer_.tables
    goals = [goal.event for goal in model.subgoals_]
    kind = namedtuple("kind", "projection exemplars labels pssm first scale goal_event goal_count")
    return digest(
        kind(
            events.projection,
            events.exemplars,
            events.labels,
            np.where(np.isfinite(wide), np.round(wide * 2**10) / 2**10, -1e6).astype(np.float32),
            np.isin(np.arange(len(wide[0])), bounds[:-1]),
            np.float32(model.scale_),
            np.array(goals, np.int32),
            np.array([goals[: k + 1].count(goal) for k, goal in enumerate(goals)], np.int32),
        )
    )


class AlignedState(NamedTuple):
    """An episode of the task and where it stands on the profile.

    Attributes:
        state: The task's state.
        position: Where the tracker sees the episode.
        reached: Which sub-goals were reached (K,).
        pending: Redistributed reward since the last sub-goal, paid at the next.
        given: Redistributed reward so far.
        idle: Steps since the last sub-goal.
        begun: The sub-task at which the episode was begun; 0 for a new world.
    """

    state: Any
    position: TrackerState
    reached: jax.Array
    pending: jax.Array
    given: jax.Array
    idle: jax.Array
    begun: jax.Array

    @property
    def subtask(self) -> jax.Array:
        """The next sub-goal, K if none is left."""
        return self.position.subgoal


class Outcome(NamedTuple):
    """What a step gave.

    Attributes:
        reward: Reward of the learner.
        event: Event of the step, -1 for none.
        goal: The sub-goal that the step reached, -1 for none.
        gain: Redistributed reward R_{t+1} of the step.
        reached: Whether it brought the episode past its sub-goal, by reaching it or a later one.
        over: Whether the episode ended for good.
        solved: Whether the step solved the task.
        cut: Whether the episode is cut off for having got nowhere.
    """

    reward: jax.Array
    event: jax.Array
    goal: jax.Array
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
        beside: What is paid for solving the task beside it.
    """

    task: Task = eqx.field(static=True)
    tables: AlignmentTables
    pay: str = eqx.field(static=True, default="subgoal")
    patience: int = eqx.field(static=True, default=500)
    beside: float = eqx.field(static=True, default=0.0)

    def __check_init__(self) -> None:
        Choice(PAYS).check(self.pay, "pay")

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
        return self.start(self.task.new_world(key))

    def start(self, state: Any) -> AlignedState:
        """Return the start of an episode in that state."""
        zero, none = jnp.float32(0), jnp.int32(0)
        reached = jnp.zeros(self.n_subtasks, bool)
        return AlignedState(state, start(self.tables.tracker), reached, zero, zero, none, none)

    def see(self, s: AlignedState) -> tuple[Any, jax.Array, jax.Array]:
        """Return what an agent is called with: observation, sub-task and cell."""
        return self.task.observe(s.state), s.subtask, s.position.cell

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return where an episode stands after its features changed, and what the tracker says."""
        tables = self.tables.tracker
        event = self.tables.events.change_event(before, after)
        position, step = advance(tables, s.position, event)
        is_goal = (step.column >= 0) & (tables.places[step.cell, 2] > 0)
        goal = jnp.where(is_goal, tables.subgoal_of[step.cell] - 1, -1)
        new = s._replace(position=position, given=s.given + step.reward)
        passed, pending = new.subtask > s.subtask, s.pending + step.reward
        new = new._replace(
            reached=s.reached | (jnp.arange(self.n_subtasks) == goal),
            pending=jnp.where(passed, 0.0, pending),
            idle=jnp.where(passed, 0, s.idle + 1),
        )
        no = jnp.array(False)
        paid = jnp.where(passed, pending, 0.0)
        return new, Outcome(paid, event, goal, step.reward, passed, no, no, no)

    def step(
        self, key: jax.Array, s: AlignedState, action: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return the next state and what the step gave."""
        task = self.task
        state = task.step(key, s.state, action)
        new, out = self.follow(s, task.features(s.state), task.features(state))
        solved, over = task.solved(state), task.over(state)
        reward = out.reward
        if self.pay == "task":
            reward = solved.astype(jnp.float32)
        elif self.pay == "step":
            reward = out.gain
        elif self.pay == "goals":
            reward = (new.reached & ~s.reached).sum() / self.n_subtasks
        elif self.pay == "dense":
            reward = task.dense_reward(s.state, state)
        if self.beside:
            reward = reward + self.beside * solved
        cut = ~over & (new.idle >= self.patience)
        new = new._replace(state=state)
        return new, out._replace(reward=reward, over=over, solved=solved, cut=cut)


class PlainTask(AlignedTask):
    """The task without alignment, for learners that know nothing of it; pays "task" or "dense"."""

    def follow(
        self, s: AlignedState, before: jax.Array, after: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return the episode where it stood: nothing is followed."""
        zero, none, no = jnp.float32(0), jnp.int32(-1), jnp.array(False)
        return s, Outcome(zero, none, none, zero, no, no, no, no)
