"""Where episodes begin: in new worlds, and at stored states that have just reached a sub-goal."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy.aligned import AlignedState
from align_rudder.hierarchy.cloning import Demonstrations

__all__ = ["Starts", "begin_again", "new_starts", "remember", "update_failure_rates"]

_STEP_SIZE = 0.1  # weight of the last rollout in the failure rates
_LEAST = 0.05  # a sub-task that never fails is begun as if it failed this often
_MASTERED = 0.5  # where fewer of the tries fail, backplay goes on to the sub-task before


class Starts(NamedTuple):
    """States to begin episodes at.

    Attributes:
        pool: New worlds (P, …).
        states: For each sub-task a buffer of states at which it began (K, B, …).
        filled: How many states each buffer holds (K,).
        failure: Running share of the tries at each sub-task that failed (K,).
    """

    pool: AlignedState
    states: AlignedState
    filled: jax.Array
    failure: jax.Array


def new_starts(
    pool: AlignedState, n_subtasks: int, size: int, demonstrations: Demonstrations | None = None
) -> Starts:
    """Return starts with a buffer for each sub-task.

    Args:
        pool: New worlds (P, …).
        n_subtasks: Number of sub-tasks K.
        size: States that a buffer can hold.
        demonstrations: They fill the buffers with the states that have just reached a sub-goal.
    """
    filled, k, slot, rows = np.zeros(n_subtasks, np.int32), [], [], []
    states = pool if demonstrations is None else _as_start(demonstrations.states)
    if demonstrations is not None:
        subtask, reached = np.asarray(states.subtask), np.asarray(demonstrations.reached)
        some = [np.flatnonzero(reached & (subtask == k))[:size] for k in range(n_subtasks)]
        filled = np.array([len(at) for at in some], np.int32)
        k, rows = np.repeat(np.arange(n_subtasks), filled), np.concatenate(some)
        slot = np.concatenate([np.arange(n) for n in filled])

    @jax.jit  # one program, not one for each array
    def fill(pool: AlignedState, states: AlignedState) -> AlignedState:
        def one(x: jax.Array, values: jax.Array) -> jax.Array:
            buffer = jnp.broadcast_to(x[:1][None], (n_subtasks, size, *x.shape[1:]))
            return buffer.at[k, slot].set(values[rows]) if filled.any() else buffer

        return jax.tree.map(one, pool, states)

    return Starts(pool, fill(pool, states), jnp.asarray(filled), jnp.ones(n_subtasks))


def _as_start(s: AlignedState) -> AlignedState:
    """Return states as the begin of an episode."""
    return s._replace(begun=s.subtask, idle=jnp.zeros_like(s.idle))


def remember(starts: Starts, key: jax.Array, s: AlignedState, reached: jax.Array) -> Starts:
    """Store, for each sub-task, one of the states (N, …) that have just reached it.

    A full buffer loses a random state.
    """
    k = starts.filled.shape[0]
    size = starts.states.subtask.shape[1]
    here = reached[None, :] & (s.subtask[None, :] == jnp.arange(k)[:, None])
    some = here.any(axis=1)
    u = jax.random.uniform(key, (k, here.shape[1] + 1))  # all at once: quicker to compile
    which = jnp.where(here, u[:, 1:], -1.0).argmax(axis=1)
    slot = jnp.where(starts.filled < size, starts.filled, (u[:, 0] * size).astype(jnp.int32))
    # A slot beyond the buffer is dropped: nothing is written where nobody reached the sub-task.
    slot = jnp.where(some, slot, size)

    def write(buffer: jax.Array, values: jax.Array) -> jax.Array:
        return buffer.at[jnp.arange(k), slot].set(values[which], mode="drop")

    return starts._replace(
        states=jax.tree.map(write, starts.states, _as_start(s)),
        filled=jnp.minimum(starts.filled + some, size),
    )


def update_failure_rates(starts: Starts, reached: jax.Array, failed: jax.Array) -> Starts:
    """Return starts that know how often sub-goals were reached and missed in the last rollout."""
    tries = reached + failed
    change = _STEP_SIZE * (failed / jnp.maximum(tries, 1) - starts.failure)
    return starts._replace(failure=starts.failure + jnp.where(tries > 0, change, 0.0))


def _weights(starts: Starts, backplay: bool) -> jax.Array:
    """Return how often episodes begin at each sub-task, not yet brought to the sum 1 (K,)."""
    there = starts.filled > 0
    if backplay:
        # From the end backwards: a sub-task is begun once all behind it are mastered.
        hard = there & (starts.failure >= _MASTERED)
        there &= jnp.cumsum(hard[::-1])[::-1] - hard == 0
    return jnp.where(there, starts.failure + _LEAST, 0.0)


def begin_again(
    starts: Starts,
    key: jax.Array,
    s: AlignedState,
    ended: jax.Array,
    fresh: float,
    backplay: bool = False,
) -> AlignedState:
    """Return the states (N, …), those that ended replaced by new beginnings.

    Args:
        starts: States to begin at.
        key: Random key.
        s: States.
        ended: Which of them ended (N,).
        fresh: Share of new worlds; the others begin at a sub-task whose buffer is not empty, the
            more often the more often it fails.
        backplay: Whether a sub-task is begun only once, of each one behind it, more than half of
            the tries succeed.
    """
    n = ended.shape[0]
    u = jax.random.uniform(key, (4, n))  # all at once: quicker to compile
    world = (u[0] * starts.pool.subtask.shape[0]).astype(jnp.int32)
    weights = jnp.cumsum(_weights(starts, backplay))
    k = (weights > u[1, :, None] * weights[-1]).argmax(axis=1)
    slot = (u[2] * starts.filled[k]).astype(jnp.int32)
    new_world = (u[3] < fresh) | (starts.filled[k] == 0)

    def choose(current: jax.Array, pool: jax.Array, states: jax.Array) -> jax.Array:
        shape = (n, *(1,) * (current.ndim - 1))
        begun = jnp.where(new_world.reshape(shape), pool[world], states[k, slot])
        return jnp.where(ended.reshape(shape), begun, current)

    return jax.tree.map(choose, s, starts.pool, starts.states)
