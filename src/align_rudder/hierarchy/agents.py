"""Networks of the sub-agents: policy and value, separate from each other."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy.aligned import AlignedTask

__all__ = ["Agent", "new_agent"]


class Mlp(eqx.Module):
    """Layers with layer norm and ReLU, and a linear one at the end."""

    layers: list[eqx.nn.Linear]
    norms: list[eqx.nn.LayerNorm]
    out: eqx.nn.Linear

    def __init__(
        self, n_in: int, hidden: tuple[int, ...], n_out: int, scale: float, key: jax.Array
    ):
        keys = jax.random.split(key, len(hidden) + 1)
        sizes = (n_in, *hidden)
        self.layers = [
            _orthogonal(eqx.nn.Linear(a, b, key=k), 2**0.5, k)
            for a, b, k in zip(sizes[:-1], sizes[1:], keys)
        ]
        self.norms = [eqx.nn.LayerNorm(n) for n in hidden]
        self.out = _orthogonal(eqx.nn.Linear(sizes[-1], n_out, key=keys[-1]), scale, keys[-1])

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer, norm in zip(self.layers, self.norms):
            x = jax.nn.relu(norm(layer(x)))
        return self.out(x)


def _orthogonal(layer: eqx.nn.Linear, scale: float, key: jax.Array) -> eqx.nn.Linear:
    weight = jax.nn.initializers.orthogonal(scale)(key, layer.weight.shape)
    assert layer.bias is not None
    return eqx.tree_at(lambda x: (x.weight, x.bias), layer, (weight, jnp.zeros_like(layer.bias)))


class Agent(eqx.Module):
    """Policy and value of what is observed and of the sub-task.

    With `symmetric`, logits and values are means over the symmetries of the task, so that the agent
    does in a mirrored world the mirror of what it does here.
    """

    actor: Mlp
    critic: Mlp
    n_subtasks: int = eqx.field(static=True)
    n_cells: int = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True)

    def __call__(
        self, task: AlignedTask, observation: Any, subtask: jax.Array, cell: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return logits (A,) and value."""
        where = jnp.concatenate(
            [
                jax.nn.one_hot(subtask, self.n_subtasks + 1),
                jax.nn.one_hot(cell, self.n_cells),
            ]
        )

        def one(seen: Any) -> tuple[jax.Array, jax.Array]:
            x = jnp.concatenate([task.task.encode(seen), where])
            return self.actor(x), self.critic(x)[0]

        if not self.symmetric:
            return one(observation)
        actions = task.task.mirrored_actions
        which = jnp.arange(len(actions))
        mirrored = jax.vmap(lambda m: task.task.mirror(observation, m))(which)
        logits, values = jax.vmap(one)(mirrored)
        return jnp.take_along_axis(logits, actions, axis=1).mean(axis=0), values.mean()


def new_agent(
    task: AlignedTask,
    key: jax.Array,
    hidden: tuple[int, ...] = (512, 512),
    symmetric: bool = True,
) -> Agent:
    """Return an untrained agent."""
    observation = jax.eval_shape(lambda k: task.task.observe(task.task.new_world(k)), key)
    width = jax.eval_shape(task.task.encode, observation).shape[0]
    n_cells = task.tables.pssm.shape[1]
    n_in = width + task.n_subtasks + 1 + n_cells
    one, two = jax.random.split(key)
    return Agent(
        Mlp(n_in, hidden, task.task.n_actions, 0.01, one),
        Mlp(n_in, hidden, 1, 1.0, two),
        task.n_subtasks,
        n_cells,
        symmetric,
    )
