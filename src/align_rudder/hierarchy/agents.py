"""Networks of the sub-agents: policy and value, separate from each other."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy.aligned import AlignedTask

__all__ = ["Agent", "Policy", "SeparateAgents", "new_agent", "new_separate_agents"]


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
    """Policy and value of what is observed and of the sub-task: one network for all sub-agents.

    Attributes:
        actor: Policy.
        critic: Value.
        n_subtasks: Number of sub-tasks K.
        n_cells: Number of cells of the profile.
        symmetric: Whether logits and values are means over the symmetries of the task, so that
            the agent does in a mirrored world the mirror of what it does here.
        conditioned: Whether it is told its sub-task and the cell of the profile.
        prior: For a manager, whose first K choices are sub-agents: what is added to the logit of
            the sub-agent whose turn it is; None for a sub-agent.
    """

    actor: Mlp
    critic: Mlp
    n_subtasks: int = eqx.field(static=True)
    n_cells: int = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True)
    conditioned: bool = eqx.field(static=True)
    prior: float | None = eqx.field(static=True, default=None)

    def __call__(
        self, task: AlignedTask, observation: Any, subtask: jax.Array, cell: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the logits of all choices, and the value."""
        where = jnp.concatenate(
            [
                jax.nn.one_hot(subtask, self.n_subtasks + 1),
                jax.nn.one_hot(cell, self.n_cells),
            ]
        )
        where = where if self.conditioned else jnp.zeros_like(where)

        def one(seen: Any) -> tuple[jax.Array, jax.Array]:
            x = jnp.concatenate([task.task.encode(seen), where])
            return self.actor(x), self.critic(x)[0]

        if not self.symmetric:
            logits, value = one(observation)
        else:
            choices = task.task.mirrored_actions
            if self.prior is not None:
                same = jnp.tile(jnp.arange(self.n_subtasks), (len(choices), 1))
                choices = jnp.concatenate([same, self.n_subtasks + choices], axis=1)
            which = jnp.arange(len(choices))
            mirrored = jax.vmap(lambda m: task.task.mirror(observation, m))(which)
            logits, values = jax.vmap(one)(mirrored)
            logits = jnp.take_along_axis(logits, choices, axis=1).mean(axis=0)
            value = values.mean()
        if self.prior is not None:
            turn = jnp.minimum(subtask, self.n_subtasks - 1)
            logits = logits + self.prior * jax.nn.one_hot(turn, logits.shape[0])
        return logits, value


class SeparateAgents(eqx.Module):
    """A network of its own for each sub-task, as in the paper: agents stacked along axis 0.

    All are computed and the one whose turn it is is taken, so that each learns from the steps of
    its own sub-task only.
    """

    agents: Agent

    @property
    def n_subtasks(self) -> int:
        """Number of sub-tasks K."""
        return self.agents.n_subtasks

    def __call__(
        self, task: AlignedTask, observation: Any, subtask: jax.Array, cell: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the logits of all choices, and the value."""
        logits, values = eqx.filter_vmap(lambda a: a(task, observation, subtask, cell))(self.agents)
        turn = jnp.minimum(subtask, self.n_subtasks - 1)
        return logits[turn], values[turn]


Policy = Agent | SeparateAgents


def new_agent(
    task: AlignedTask,
    key: jax.Array,
    hidden: tuple[int, ...] = (512, 512),
    symmetric: bool = True,
    conditioned: bool = True,
    prior: float | None = None,
) -> Agent:
    """Return an untrained agent; see `Agent` for the arguments."""
    observation = jax.eval_shape(lambda k: task.task.observe(task.task.new_world(k)), key)
    width = jax.eval_shape(task.task.encode, observation).shape[0]
    n_cells = task.tables.n_cells
    n_in = width + task.n_subtasks + 1 + n_cells

    @eqx.filter_jit  # one program, not one for each layer
    def networks(key: jax.Array) -> tuple[Mlp, Mlp]:
        k_actor, k_critic = jax.random.split(key)
        actor = Mlp(n_in, hidden, task.n_choices, 0.01, k_actor)
        return actor, Mlp(n_in, hidden, 1, 1.0, k_critic)

    return Agent(*networks(key), task.n_subtasks, n_cells, symmetric, conditioned, prior)


def new_separate_agents(
    task: AlignedTask, key: jax.Array, hidden: tuple[int, ...] = (128, 128), symmetric: bool = True
) -> SeparateAgents:
    """Return untrained agents, one for each sub-task."""
    keys = jax.random.split(key, task.n_subtasks)
    return SeparateAgents(eqx.filter_vmap(lambda k: new_agent(task, k, hidden, symmetric))(keys))
