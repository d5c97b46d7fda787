"""Demonstrations, aligned, and behavioural cloning of them as a start for the sub-agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = ["Demonstrations", "Examples", "aligned_demonstrations", "clone_agent"]


class Examples(NamedTuple):
    """Steps of demonstrations to clone: observation, sub-task, cell and action (n, …)."""

    observation: Any
    subtask: jax.Array
    cell: jax.Array
    action: jax.Array


class Demonstrations(NamedTuple):
    """All demonstrations, one after the other.

    Attributes:
        states: Their states, aligned (N, …).
        reached: Which of these have just reached a sub-goal (N,).
        examples: Their steps.
    """

    states: AlignedState
    reached: jax.Array
    examples: Examples


def aligned_demonstrations(
    task: AlignedTask, runs: Sequence[tuple[Any, np.ndarray]]
) -> Demonstrations:
    """Return demonstrations, given as states (T + 1, …) and actions (T,) of each, aligned."""
    lengths = [len(actions) for _, actions in runs]
    longest = max(lengths)
    padded = [_padded(states, longest - n) for (states, _), n in zip(runs, lengths, strict=True)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *padded)
    # Where the states, and those in which something was done, lie among the padded ones.
    begin = np.arange(len(runs)) * (longest + 1)
    every = np.concatenate([at + np.arange(n + 1) for at, n in zip(begin, lengths)])
    acting = np.concatenate([at + np.arange(n) for at, n in zip(begin, lengths)])

    @jax.jit
    def align(states: Any, action: jax.Array) -> Demonstrations:
        aligned = jax.vmap(lambda run: _aligned_run(task, run))(states)
        reached = jnp.diff(aligned.subtask, axis=1, prepend=0) > 0
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (aligned, reached))
        s, reached = jax.tree.map(lambda x: x[every], flat)
        before = jax.tree.map(lambda x: x[acting], flat[0])
        return Demonstrations(s, reached, Examples(*jax.vmap(task.see)(before), action))

    return align(stacked, np.concatenate([actions for _, actions in runs]))


def _aligned_run(task: AlignedTask, states: Any) -> AlignedState:
    """Return the states of one demonstration (T + 1, …), aligned."""
    features = jax.vmap(task.task.features)(states)
    first = task.start(None)

    def follow(s: AlignedState, pair: tuple[jax.Array, jax.Array]) -> Any:
        new = task.follow(s, *pair)[0]
        return new, new

    _, rest = jax.lax.scan(follow, first, (features[:-1], features[1:]))
    whole = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    return whole._replace(state=states, begun=whole.subtask)


def _padded(states: Any, n: int) -> Any:
    """Return states with the last one n times more."""
    return jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], n, axis=0)]), states)


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
