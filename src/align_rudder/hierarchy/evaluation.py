"""End to end from new worlds: how far episodes come along the consensus."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = [
    "Evaluation",
    "Play",
    "evaluate",
    "new_worlds",
    "play_on",
    "result_of",
    "start_play",
]

_CHUNK = 64  # worlds generated at once
_NO_LIMIT = 2**31 - 1


def new_worlds(task: AlignedTask, key: jax.Array, n: int) -> AlignedState:
    """Return the starts of n new worlds (n, …)."""
    return _make_worlds(task, jax.random.split(key, n))


@eqx.filter_jit
def _make_worlds(task: AlignedTask, keys: jax.Array) -> AlignedState:
    return jax.lax.map(task.begin, keys, batch_size=min(_CHUNK, keys.shape[0]))


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


class Play(NamedTuple):
    """Episodes on their way: states, which are over, steps, which are solved, time, key."""

    states: AlignedState
    over: jax.Array
    steps: jax.Array
    solved: jax.Array
    time: jax.Array
    key: jax.Array


def start_play(worlds: AlignedState, key: jax.Array) -> Play:
    """Return episodes that begin in worlds (N, …)."""
    none = jnp.zeros(worlds.subtask.shape[0], bool)
    return Play(worlds, none, none.astype(jnp.int32), none, jnp.int32(0), key)


def play_on(
    task: AlignedTask,
    agent: Policy,
    play: Play,
    until: int | jax.Array,
    temperature: float = 1.0,
    most: int | jax.Array = _NO_LIMIT,
) -> Play:
    """Return the episodes at time `until`, when all are over, or before `most` steps in all."""
    n = play.over.shape[0]

    def go_on(play: Play) -> jax.Array:
        following = play.steps.sum() + (~play.over).sum()
        return (play.time < until) & ~play.over.all() & (following <= most)

    def step(play: Play) -> Play:
        key, k_act, k_step = jax.random.split(play.key, 3)
        s, over = play.states, play.over
        seen = jax.vmap(task.task.observe)(s.state)
        logits, _ = jax.vmap(agent, (None, 0, 0, 0))(task, seen, s.subtask, s.position.cell)
        action = actions.sample(k_act, logits, temperature)
        new, out = jax.vmap(task.step)(jax.random.split(k_step, n), s, action)

        def keep(a: jax.Array, b: jax.Array) -> jax.Array:
            return jnp.where(over.reshape(n, *(1,) * (a.ndim - 1)), a, b)

        return Play(
            jax.tree.map(keep, s, new),
            over | out.over,
            play.steps + ~over,
            play.solved | (out.solved & ~over),
            play.time + 1,
            key,
        )

    return jax.lax.while_loop(go_on, step, play)


def evaluate(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int | jax.Array,
    temperature: float = 1.0,
    most: int | jax.Array = _NO_LIMIT,
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
        most: Steps of all episodes together, after which all that still run are given up.
    """
    play = play_on(task, agent, start_play(worlds, key), max_steps, temperature, most)
    return result_of(task, play)


def result_of(task: AlignedTask, play: Play) -> Evaluation:
    """Return what episodes came to."""
    s = play.states
    features = jax.vmap(task.task.features)(s.state)
    return Evaluation(s.subtask, s.counts, play.solved, play.steps, features)
