"""Demonstrations with where each of their states stands on the alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = ["Demonstrations", "Examples", "aligned_demonstrations"]


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
    stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *padded)

    @jax.jit
    def align(states: Any) -> tuple[AlignedState, Any]:
        aligned = jax.vmap(lambda run: _aligned_run(task, run))(states)
        return aligned, jax.vmap(jax.vmap(task.task.observe))(states)

    aligned, observations = align(stacked)
    reached = jnp.diff(aligned.subtask, axis=1, prepend=0) > 0
    flat, reached, observations = jax.tree.map(
        lambda x: x.reshape(-1, *x.shape[2:]), (aligned, reached, observations)
    )
    # Where the states, and those in which something was done, lie among the padded ones.
    begin = np.arange(len(runs)) * (longest + 1)
    every = np.concatenate([at + np.arange(n + 1) for at, n in zip(begin, lengths)])
    acting = np.concatenate([at + np.arange(n) for at, n in zip(begin, lengths)])
    examples = Examples(
        jax.tree.map(lambda x: x[acting], observations),
        flat.subtask[acting],
        flat.position.cell[acting],
        jnp.asarray(np.concatenate([actions for _, actions in runs])),
    )
    return Demonstrations(jax.tree.map(lambda x: x[every], flat), reached[every], examples)


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
