"""The LSTM and its loss in JAX, for training; the equations are in `weights`."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

__all__ = ["Batch", "Network", "loss"]


class Network(eqx.Module):
    """The weights as JAX arrays, with the fields of `Weights`."""

    embedding: jax.Array
    numeric: jax.Array
    bias: jax.Array
    recurrent: jax.Array
    head: jax.Array

    def __call__(self, tokens: jax.Array, numbers: jax.Array) -> jax.Array:
        """Return the predictions g before the first step and after each (T + 1, B).

        Args:
            tokens: Embedding rows (T, B, tokens).
            numbers: Numbers (T, B, numbers).
        """
        hidden = self.recurrent.shape[0]
        x = self.embedding[tokens].sum(axis=2) + numbers @ self.numeric + self.bias
        z, gate = jnp.tanh(x[..., :hidden]), x[..., hidden:]

        def step(
            state: tuple[jax.Array, jax.Array], step_input: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            c, h = state
            z_t, gate_t = step_input
            c = c + jax.nn.sigmoid(gate_t + h @ self.recurrent) * z_t
            h = jnp.tanh(c)
            return (c, h), h

        zero = jnp.zeros(z.shape[1:], z.dtype)
        _, h = jax.lax.scan(step, (zero, zero), (z, gate))
        return jnp.concatenate([zero[None], h]) @ self.head[:-1] + self.head[-1]


class Batch(eqx.Module):
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

    def __getitem__(self, index: jax.Array) -> Batch:
        return jax.tree.map(lambda leaf: leaf[index], self)


def loss(network: Network, batch: Batch, auxiliary: jax.Array) -> jax.Array:
    """Return the mean squared error of the last prediction and, weighted, of all.

    Args:
        network: The network.
        batch: Episodes.
        auxiliary: Weight of the mean error over all steps, RUDDER's continuous prediction.
    """
    g = network(batch.tokens.swapaxes(0, 1), batch.numbers.swapaxes(0, 1))
    t = jnp.arange(g.shape[0])[:, None]
    error = (g - batch.returns) ** 2
    last = (error * (t == batch.lengths)).sum(axis=0)
    every = (error * (t <= batch.lengths)).sum(axis=0) / (batch.lengths + 1)
    return (last + auxiliary * every).mean()
