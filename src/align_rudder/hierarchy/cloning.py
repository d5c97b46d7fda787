"""Behavioural cloning of the demonstrations, as a start for the sub-agents."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask
from align_rudder.hierarchy.demonstrations import Examples

__all__ = ["clone_agent"]


def clone_agent(
    task: AlignedTask,
    agent: Policy,
    examples: Examples,
    key: jax.Array,
    updates: int = 1000,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-2,
    points: int = 20,
) -> tuple[Policy, jax.Array]:
    """Return the agent with its policy fitted to the examples, and its learning curve.

    Args:
        task: The task.
        agent: The agent.
        examples: Steps of demonstrations.
        key: Random key.
        updates: Updates.
        batch_size: Examples of an update.
        learning_rate: Learning rate of AdamW.
        weight_decay: Its weight decay.
        points: Points of the curve (points, 1 + 2 K), at most: number of updates, then the mean
            loss and accuracy on the examples of each sub-task.
    """
    optimizer = optax.adamw(learning_rate, weight_decay=weight_decay)
    params, static = eqx.partition(agent, eqx.is_inexact_array)
    n = examples.action.shape[0]
    own = jax.nn.one_hot(examples.subtask, task.n_subtasks, axis=0)
    share = own / jnp.maximum(own.sum(axis=1, keepdims=True), 1)

    def logits_of(params: Any, part: Examples) -> jax.Array:
        apply = jax.vmap(eqx.combine(params, static), (None, 0, 0, 0))
        return apply(task, part.observation, part.subtask, part.cell)[0]

    def loss(params: Any, part: Examples) -> jax.Array:
        return actions.cross_entropy(logits_of(params, part), part.action).mean()

    def update(carry: Any, key: jax.Array) -> Any:
        params, opt_state = carry
        rows = jax.random.randint(key, (batch_size,), 0, n)
        grads = jax.grad(loss)(params, jax.tree.map(lambda x: x[rows], examples))
        change, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, change), opt_state), None

    def updates_to_point(carry: Any, keys: jax.Array) -> Any:
        carry, _ = jax.lax.scan(update, carry, keys)
        logits = logits_of(carry[0], examples)
        losses = actions.cross_entropy(logits, examples.action)
        right = logits.argmax(axis=1) == examples.action
        return carry, jnp.concatenate([share @ losses, share @ right])

    points = max(p for p in range(1, points + 1) if updates % p == 0)
    keys = jax.random.split(key, updates).reshape(points, -1)
    (params, _), curve = jax.lax.scan(updates_to_point, (params, optimizer.init(params)), keys)
    at = (jnp.arange(points) + 1.0) * (updates // points)
    return eqx.combine(params, static), jnp.concatenate([at[:, None], curve], axis=1)
