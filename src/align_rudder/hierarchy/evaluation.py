"""End to end from new worlds: how far episodes come along the consensus."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = ["Evaluation", "evaluate", "new_worlds"]

_CHUNK = 64  # worlds generated at once


def new_worlds(task: AlignedTask, key: jax.Array, n: int) -> AlignedState:
    """Return the starts of n new worlds (n, …)."""

    @eqx.filter_jit
    def make(task: AlignedTask, keys: jax.Array) -> AlignedState:
        return jax.lax.map(task.begin, keys, batch_size=min(_CHUNK, n))

    return make(task, jax.random.split(key, n))


class Evaluation(NamedTuple):
    """Episodes from new worlds (N,).

    Attributes:
        subtask: The first sub-goal that was not reached.
        counts: How often each event happened (N, n).
        solved: Whether the task was solved.
        steps: Steps taken.
        features: Features at the end (N, F).
    """

    subtask: jax.Array
    counts: jax.Array
    solved: jax.Array
    steps: jax.Array
    features: jax.Array


def evaluate(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int,
    temperature: float = 1.0,
) -> Evaluation:
    """Play each world (N, …) once, to its end or for that many steps.

    Args:
        task: The task.
        agent: Who plays; its choices are drawn.
        worlds: Starts.
        key: Random key.
        max_steps: Steps after which an episode is given up.
        temperature: What the logits are divided by; below 1 the agent is surer than it has learned
            to be.
    """
    n = worlds.subtask.shape[0]

    def go_on(carry: Any) -> jax.Array:
        _, over, _, t, _, _ = carry
        return (t < max_steps) & ~over.all()

    def step(carry: Any) -> Any:
        s, over, steps, t, solved, key = carry
        key, k_act, k_step = jax.random.split(key, 3)
        seen = jax.vmap(task.task.observe)(s.state)
        logits, _ = jax.vmap(agent, (None, 0, 0, 0))(task, seen, s.subtask, s.position.cell)
        action = jax.random.categorical(k_act, logits / temperature)
        new, out = jax.vmap(task.step)(jax.random.split(k_step, n), s, action)

        def keep(a: jax.Array, b: jax.Array) -> jax.Array:
            return jnp.where(over.reshape(n, *(1,) * (a.ndim - 1)), a, b)

        s = jax.tree.map(keep, s, new)
        solved = solved | (out.solved & ~over)
        steps = steps + ~over
        return s, over | out.over, steps, t + 1, solved, key

    none = jnp.zeros(n, bool)
    start = (worlds, none, jnp.zeros(n, jnp.int32), jnp.int32(0), none, key)
    s, _, steps, _, solved, _ = jax.lax.while_loop(go_on, step, start)
    return Evaluation(s.subtask, s.counts, solved, steps, jax.vmap(task.task.features)(s.state))
