"""Actions of one or several heads, each categorical: a tree of logits and a tree of integers.

A single array is one head. Heads are independent, so log-probabilities and entropies add up. An
action of -1 is not known (a demonstration without that head) and counts for nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["cross_entropy", "entropy", "log_prob", "sample"]


def sample(key: jax.Array, logits: Any) -> Any:
    """Return an action drawn from logits (…, n) of each head."""
    leaves, tree = jax.tree.flatten(logits)
    if len(leaves) == 1:
        return jax.tree.unflatten(tree, [jax.random.categorical(key, leaves[0])])
    # The noise of all heads at once: fifteen generators take fifteen times as long to compile.
    ends = np.cumsum([x.shape[-1] for x in leaves])
    noise = jax.random.gumbel(key, (*leaves[0].shape[:-1], int(ends[-1])))
    parts = jnp.split(noise, ends[:-1], axis=-1)
    drawn = [(x + g).argmax(axis=-1) for x, g in zip(leaves, parts, strict=True)]
    return jax.tree.unflatten(tree, drawn)


def log_prob(logits: Any, action: Any) -> jax.Array:
    """Return the log-probability of an action (…)."""
    return jax.tree.reduce(jnp.add, jax.tree.map(_log_prob, logits, action))


def entropy(logits: Any) -> jax.Array:
    """Return the entropy of the action (…)."""

    def of(x: jax.Array) -> jax.Array:
        log_p = jax.nn.log_softmax(x)
        return -(jnp.exp(log_p) * log_p).sum(axis=-1)

    return jax.tree.reduce(jnp.add, jax.tree.map(of, logits))


def cross_entropy(logits: Any, target: Any) -> jax.Array:
    """Return the loss of logits (…, n) for targets: actions (…), or probabilities (…, n)."""

    def of(x: jax.Array, wanted: jax.Array) -> jax.Array:
        if wanted.ndim < x.ndim:
            return -_log_prob(x, wanted)
        return -(wanted * jax.nn.log_softmax(x)).sum(axis=-1)

    return jax.tree.reduce(jnp.add, jax.tree.map(of, logits, target))


def _log_prob(logits: jax.Array, action: jax.Array) -> jax.Array:
    known = action >= 0
    at = jnp.where(known, action, 0)[..., None]
    found = jnp.take_along_axis(jax.nn.log_softmax(logits), at, axis=-1)[..., 0]
    return jnp.where(known, found, 0.0)
