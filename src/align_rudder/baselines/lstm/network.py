"""The LSTM and its loss in JAX, for training; the equations are in `weights`."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from align_rudder.baselines.lstm.weights import Weights

__all__ = ["Batch", "loss", "predictions"]


class Batch(NamedTuple):
    """Padded episodes.

    Attributes:
        tokens: Embedding rows (B, T, tokens).
        numbers: Numbers (B, T, numbers).
        returns: Standardised returns (B,).
        lengths: Steps (B,).
    """

    tokens: jax.Array
    numbers: jax.Array
    returns: jax.Array
    lengths: jax.Array


def predictions(weights: Weights, tokens: jax.Array, numbers: jax.Array) -> jax.Array:
    """Return the predictions g before the first step and after each (T + 1, B).

    Args:
        weights: The weights, as JAX arrays.
        tokens: Embedding rows (T, B, tokens).
        numbers: Numbers (T, B, numbers).
    """
    hidden = weights.hidden
    x = weights.embedding[tokens].sum(axis=2) + numbers @ weights.numeric + weights.bias
    z, gate = jnp.tanh(x[..., :hidden]), x[..., hidden:]

    def step(
        state: tuple[jax.Array, jax.Array], step_input: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        c, h = state
        z_t, gate_t = step_input
        c = c + jax.nn.sigmoid(gate_t + h @ weights.recurrent) * z_t
        h = jnp.tanh(c)
        return (c, h), h

    zero = jnp.zeros(z.shape[1:], z.dtype)
    _, h = jax.lax.scan(step, (zero, zero), (z, gate))
    return jnp.concatenate([zero[None], h]) @ weights.head[:-1] + weights.head[-1]


def loss(weights: Weights, batch: Batch, auxiliary: jax.Array) -> jax.Array:
    """Return the mean squared error of the last prediction and, weighted, of all.

    Args:
        weights: The weights.
        batch: Episodes.
        auxiliary: Weight of the mean error over all steps, RUDDER's continuous prediction.
    """
    g = predictions(weights, batch.tokens.swapaxes(0, 1), batch.numbers.swapaxes(0, 1))
    t = jnp.arange(g.shape[0])[:, None]
    error = (g - batch.returns) ** 2
    last = (error * (t == batch.lengths)).sum(axis=0)
    every = (error * (t <= batch.lengths)).sum(axis=0) / (batch.lengths + 1)
    return (last + auxiliary * every).mean()
