"""The manager: at every step it lets one of the sub-agents act, or acts itself.

It begins by running the sub-agents in the order of the alignment. What it is paid is the same
redistributed reward, so that it learns to deviate where the world does not follow the consensus:
to run an earlier sub-agent again when what it fetched is spent, to skip ahead, to drink.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy.agents import Agent, Policy, new_agent
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask, Outcome
from align_rudder.hierarchy.unordered import UnorderedTask

__all__ = ["ManagedTask", "ManagedUnorderedTask", "managed", "new_manager"]


class ManagedTask(AlignedTask):
    """An aligned task in which an action chooses who acts.

    Action k < K lets sub-agent k act for this step, action K + a is the primitive action a.

    Attributes:
        agent: The sub-agents.
    """

    agent: Policy | None = None

    @property
    def n_choices(self) -> int:
        """Number of choices, sub-agents before primitive actions."""
        return self.n_subtasks + self.task.n_actions

    def step(
        self, key: jax.Array, s: AlignedState, action: jax.Array
    ) -> tuple[AlignedState, Outcome]:
        """Return the next state and what the step gave."""
        k_act, k_step = jax.random.split(key)
        assert self.agent is not None
        seen, _, cell = self.see(s)
        logits, _ = self.agent(self, seen, jnp.minimum(action, self.n_subtasks - 1), cell)
        chosen = jax.random.categorical(k_act, logits)
        primitive = jnp.where(action < self.n_subtasks, chosen, action - self.n_subtasks)
        return super().step(k_step, s, primitive)


class ManagedUnorderedTask(ManagedTask, UnorderedTask):
    """The same where sub-goals are ticked off: agent k is told that it is the turn of the k-th."""


def managed(task: AlignedTask, agent: Policy) -> ManagedTask:
    """Return the task of a manager with these sub-agents."""
    kind: Any = ManagedUnorderedTask if isinstance(task, UnorderedTask) else ManagedTask
    return kind(task.task, task.tables, task.pay, task.patience, task.beside, agent)


def new_manager(
    task: ManagedTask,
    key: jax.Array,
    hidden: tuple[int, ...] = (512, 512),
    symmetric: bool = True,
    prior: float = 8.0,
) -> Agent:
    """Return an untrained manager, which runs the sub-agents along the alignment.

    Args:
        task: The task with its sub-agents.
        key: Random key.
        hidden: Layers of its networks; the value begins as that of the sub-agents if these are
            one network of the same size.
        symmetric: See `Agent`.
        prior: How sure it is at first of the alignment's order: any other choice has e^-prior
            times the probability.
    """
    manager = new_agent(task, key, hidden, symmetric, prior=prior)
    critic = getattr(task.agent, "critic", None)
    if jax.tree.structure(critic) == jax.tree.structure(manager.critic):
        manager = eqx.tree_at(lambda m: m.critic, manager, jax.tree.map(jnp.copy, critic))
    return manager
