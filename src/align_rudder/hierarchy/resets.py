"""Where episodes begin: new worlds, and stored states at which sub-goals were reached."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy.aligned import AlignedState

__all__ = ["Starts", "begin_again", "fill", "new_starts", "remember", "watch"]

_FORGET = 0.1  # weight of the last batch in what is known of failures
_ALWAYS = 0.05  # a sub-task that never fails is begun as if it failed this often


class Starts(NamedTuple):
    """Stored beginnings.

    Attributes:
        pool: New worlds (P, …).
        states: For each sub-task, states at which it began (K, B, …).
        filled: How many of them are filled, for each sub-task (K,).
        failure: Share of the tries at each sub-task that failed lately (K,).
    """

    pool: AlignedState
    states: AlignedState
    filled: jax.Array
    failure: jax.Array


def new_starts(pool: AlignedState, n_subtasks: int, size: int) -> Starts:
    """Return starts with empty buffers of that size for each sub-task."""
    empty = jax.tree.map(
        lambda x: jnp.broadcast_to(x[:1][None], (n_subtasks, size, *x.shape[1:])), pool
    )
    return Starts(pool, empty, jnp.zeros(n_subtasks, jnp.int32), jnp.ones(n_subtasks))


def fill(starts: Starts, s: AlignedState, reached: jax.Array) -> Starts:
    """Store states (N, …) that have just reached a sub-task, such as those of demonstrations."""
    subtask, at = np.asarray(s.subtask), np.asarray(reached)
    size = jax.tree.leaves(starts.states)[0].shape[1]
    stored = s._replace(begun=s.subtask, idle=jnp.zeros_like(s.idle))
    k, slot, chosen = [], [], []
    filled = np.asarray(starts.filled).copy()
    for i in np.flatnonzero(at):
        if subtask[i] < len(filled) and filled[subtask[i]] < size:
            k.append(subtask[i])
            slot.append(filled[subtask[i]])
            chosen.append(i)
            filled[subtask[i]] += 1
    k, slot, chosen = np.array(k, int), np.array(slot, int), np.array(chosen, int)
    states = jax.tree.map(
        lambda buffer, values: buffer.at[k, slot].set(values[chosen]), starts.states, stored
    )
    return starts._replace(states=states, filled=jnp.asarray(filled))


def remember(starts: Starts, key: jax.Array, s: AlignedState, reached: jax.Array) -> Starts:
    """Store, for each sub-task, one of the states (N, …) that have just reached it.

    A full buffer loses a random state.
    """
    k = starts.filled.shape[0]
    size = jax.tree.leaves(starts.states)[0].shape[1]
    here = reached[None, :] & (s.subtask[None, :] == jnp.arange(k)[:, None])
    order = jax.random.uniform(key, here.shape)
    chosen = jnp.where(here, order, -1.0).argmax(axis=1)
    some = here.any(axis=1)
    slot = jnp.where(starts.filled < size, starts.filled, jax.random.randint(key, (k,), 0, size))
    # A slot beyond the buffer is dropped: nothing is written where nobody reached the sub-task.
    slot = jnp.where(some, slot, size)

    def write(buffer: jax.Array, values: jax.Array) -> jax.Array:
        return buffer.at[jnp.arange(k), slot].set(values[chosen], mode="drop")

    stored = s._replace(begun=s.subtask, idle=jnp.zeros_like(s.idle))
    return starts._replace(
        states=jax.tree.map(write, starts.states, stored),
        filled=jnp.minimum(starts.filled + some, size),
    )


def watch(starts: Starts, reached: jax.Array, failed: jax.Array) -> Starts:
    """Return starts that know how often sub-tasks were reached and failed in the last batch."""
    tried = reached + failed
    now = failed / jnp.maximum(tried, 1)
    failure = jnp.where(
        tried > 0, starts.failure + _FORGET * (now - starts.failure), starts.failure
    )
    return starts._replace(failure=failure)


def begin_again(
    starts: Starts, key: jax.Array, s: AlignedState, ended: jax.Array, fresh: jax.Array
) -> AlignedState:
    """Return the states (N, …) with those that ended replaced by new beginnings.

    Args:
        starts: Stored beginnings.
        key: Random key.
        s: States.
        ended: Which of them ended (N,).
        fresh: Share of new worlds; the others begin at a sub-task that has states, the more
            often the more often it fails.
    """
    n = ended.shape[0]
    keys = jax.random.split(key, 4)
    pool_size = jax.tree.leaves(starts.pool)[0].shape[0]
    world = jax.random.randint(keys[0], (n,), 0, pool_size)
    weights = jnp.where(starts.filled > 0, jnp.log(starts.failure + _ALWAYS), -jnp.inf)
    some = (starts.filled > 0).any()
    k = jax.random.categorical(keys[1], jnp.where(some, weights, 0.0), shape=(n,))
    slot = (jax.random.uniform(keys[2], (n,)) * starts.filled[k]).astype(jnp.int32)
    new = (jax.random.uniform(keys[3], (n,)) < fresh) | ~some

    def choose(current: jax.Array, pool: jax.Array, states: jax.Array) -> jax.Array:
        shape = (n, *(1,) * (current.ndim - 1))
        begun = jnp.where(new.reshape(shape), pool[world], states[k, slot])
        return jnp.where(ended.reshape(shape), begun, current)

    return jax.tree.map(choose, s, starts.pool, starts.states)
