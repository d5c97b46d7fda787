"""Behavioural cloning of the demonstrations, as a start for the sub-agents."""

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
from align_rudder.hierarchy.ppo import Examples

__all__ = ["Shown", "aligned_states", "clone_agent", "follow_demonstrations"]


def aligned_states(task: AlignedTask, states: Any) -> AlignedState:
    """Return every state of a demonstration (T + 1, …) with where it stands."""
    features = jax.vmap(task.task.features)(states)
    first = task.start(None)

    def follow(s: AlignedState, pair: tuple[jax.Array, jax.Array]) -> Any:
        new = task.follow(s, *pair)[0]
        return new, new

    _, rest = jax.lax.scan(follow, first, (features[:-1], features[1:]))
    whole = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    return whole._replace(state=states, begun=whole.subtask)


class Shown(NamedTuple):
    """Demonstrations, all states one after the other.

    Attributes:
        states: Their states with positions (N, …).
        reached: Which of them have just reached a sub-goal (N,).
        examples: Their steps, for cloning.
    """

    states: AlignedState
    reached: jax.Array
    examples: Examples


def follow_demonstrations(task: AlignedTask, runs: Sequence[tuple[Any, np.ndarray]]) -> Shown:
    """Return demonstrations, (states, actions) each, as states to begin at and examples."""
    longest = max(len(actions) for _, actions in runs)
    padded = [_padded(states, longest - len(actions)) for states, actions in runs]
    stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *padded)

    @jax.jit
    def follow(states: Any) -> tuple[AlignedState, Any]:
        s = jax.vmap(lambda one: aligned_states(task, one))(states)
        return s, jax.vmap(jax.vmap(task.task.observe))(states)

    s, seen = follow(stacked)
    # What is padding is left out.
    within = np.concatenate(
        [i * (longest + 1) + np.arange(len(actions) + 1) for i, (_, actions) in enumerate(runs)]
    )
    before = np.concatenate(
        [i * (longest + 1) + np.arange(len(actions)) for i, (_, actions) in enumerate(runs)]
    )
    flat_states, flat_seen = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (s, seen))
    subtask = np.asarray(s.subtask)
    newly = np.zeros(subtask.shape, bool)
    newly[:, 1:] = subtask[:, 1:] > subtask[:, :-1]
    actions = jnp.asarray(np.concatenate([actions for _, actions in runs]))
    return Shown(
        jax.tree.map(lambda x: x[within], flat_states),
        jnp.asarray(newly.reshape(-1)[within]),
        Examples(
            jax.tree.map(lambda x: x[before], flat_seen),
            flat_states.subtask[before],
            flat_states.position.cell[before],
            actions,
        ),
    )


def _padded(states: Any, n: int) -> Any:
    """Return states with the last one n times more."""
    return jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], n, axis=0)]), states)


def clone_agent(
    task: AlignedTask,
    agent: Policy,
    examples: Examples,
    key: jax.Array,
    updates: int = 1000,
    batch: int = 256,
    learning_rate: float = 1e-3,
    decay: float = 1e-2,
    points: int = 20,
) -> tuple[Policy, jax.Array]:
    """Return the agent with its policy fitted to the examples, and how it got there.

    Args:
        task: The task.
        agent: The agent.
        examples: Steps of demonstrations.
        key: Random key.
        updates: Updates.
        batch: Examples of an update.
        learning_rate: Learning rate.
        decay: Decay of weights.
        points: Points of the curve (points, 1 + 2 K), at most: number of updates, then the mean
            loss and accuracy on the examples of each sub-task.
    """
    change = optax.adamw(learning_rate, weight_decay=decay)
    arrays, static = eqx.partition(agent, eqx.is_inexact_array)
    n = examples.action.shape[0]
    own = jax.nn.one_hot(examples.subtask, task.n_subtasks, axis=0)
    share = own / jnp.maximum(own.sum(axis=1, keepdims=True), 1)

    def logits_of(arrays: Any, some: Examples) -> jax.Array:
        model = jax.vmap(eqx.combine(arrays, static), (None, 0, 0, 0))
        return model(task, some.observation, some.subtask, some.cell)[0]

    def loss(arrays: Any, some: Examples) -> jax.Array:
        logits = logits_of(arrays, some)
        return actions.cross_entropy(logits, some.action).mean()

    def step(carry: Any, key: jax.Array) -> Any:
        arrays, memory = carry
        at = jax.random.randint(key, (batch,), 0, n)
        gradient = jax.grad(loss)(arrays, jax.tree.map(lambda x: x[at], examples))
        moved, memory = change.update(gradient, memory, arrays)
        return (optax.apply_updates(arrays, moved), memory), None

    def part(carry: Any, keys: jax.Array) -> Any:
        carry, _ = jax.lax.scan(step, carry, keys)
        logits = logits_of(carry[0], examples)
        losses = actions.cross_entropy(logits, examples.action)
        right = logits.argmax(axis=1) == examples.action
        return carry, jnp.concatenate([share @ losses, share @ right])

    points = max(p for p in range(1, points + 1) if updates % p == 0)
    keys = jax.random.split(key, updates).reshape(points, -1)
    (arrays, _), curve = jax.lax.scan(part, (arrays, change.init(arrays)), keys)
    at = (jnp.arange(points) + 1.0) * (updates // points)
    return eqx.combine(arrays, static), jnp.concatenate([at[:, None], curve], axis=1)
