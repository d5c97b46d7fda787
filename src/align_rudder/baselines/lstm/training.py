"""Training of many LSTMs at once, each on episodes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from align_rudder.baselines.lstm.network import Batch, Network, loss
from align_rudder.baselines.lstm.weights import Weights

__all__ = ["Examples", "Settings", "train_many"]


@dataclass(frozen=True, eq=False)
class Examples:
    """The training episodes of one network.

    Attributes:
        tokens: Embedding rows (T, tokens) of each episode.
        numbers: Numbers (T, numbers) of each episode.
        returns: Standardised returns.
        n_demonstrations: How many episodes, from the first on, are demonstrations; the others are
            random.
        n_rows: Rows of the embedding.
    """

    tokens: list[np.ndarray]
    numbers: list[np.ndarray]
    returns: np.ndarray
    n_demonstrations: int
    n_rows: int


@dataclass(frozen=True)
class Settings:
    """How networks are trained; see `LstmRudder`."""

    hidden: int
    updates: int
    batch_size: int
    learning_rate: float
    auxiliary: float
    gate_bias: float
    steps: int


def _initial(examples: Examples, settings: Settings, seed: int) -> Weights:
    """Return first weights; the seed alone decides them, not the shapes they are padded to."""
    rng = np.random.default_rng([seed, 0])
    hidden, n_numbers = settings.hidden, examples.numbers[0].shape[1]
    embedding = rng.normal(0.0, 0.1, (examples.n_rows, 2 * hidden))
    embedding[0] = 0.0  # what was never seen says nothing
    bias = np.concatenate([np.zeros(hidden), np.full(hidden, settings.gate_bias)])
    parts = (
        embedding,
        rng.normal(0.0, 1.0 / np.sqrt(max(n_numbers, 1)), (n_numbers, 2 * hidden)),
        bias,
        rng.normal(0.0, 0.1, (hidden, hidden)),
        np.append(rng.normal(0.0, 1.0 / np.sqrt(hidden), hidden), 0.0),
    )
    return Weights(*(part.astype(np.float32) for part in parts))


def _order(examples: Examples, settings: Settings, seed: int) -> np.ndarray:
    """Return the episodes of each update (updates, B): as many demonstrations as random ones."""
    rng = np.random.default_rng([seed, 1])
    n, demonstrations = len(examples.tokens), examples.n_demonstrations
    shape = (settings.updates, settings.batch_size)
    drawn = rng.random(shape)
    if demonstrations == n:
        return (drawn * n).astype(np.int32)
    chosen = (drawn * demonstrations).astype(np.int32)
    others = demonstrations + (drawn * (n - demonstrations)).astype(np.int32)
    return np.where(np.arange(shape[1]) % 2 == 0, chosen, others)


def _padded(examples: Examples, steps: int, n_episodes: int) -> Batch:
    tokens = np.zeros((n_episodes, steps, examples.tokens[0].shape[1]), np.int32)
    numbers = np.zeros((n_episodes, steps, examples.numbers[0].shape[1]), np.float32)
    lengths, returns = np.ones(n_episodes, np.int32), np.zeros(n_episodes, np.float32)
    for i, (rows, values) in enumerate(zip(examples.tokens, examples.numbers, strict=True)):
        tokens[i, : len(rows)], numbers[i, : len(rows)] = rows, values
        lengths[i], returns[i] = len(rows), examples.returns[i]
    return Batch(tokens, numbers, returns, lengths)  # pyright: ignore[reportArgumentType]


def _train(
    network: Network, data: Batch, order: jax.Array, learning_rate: jax.Array, auxiliary: jax.Array
) -> tuple[Network, jax.Array]:
    """Return the trained network and the loss of each update."""
    schedule = optax.cosine_decay_schedule(1.0, order.shape[0])
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale_by_schedule(schedule)
    )

    def update(
        state: tuple[Network, optax.OptState], chosen: jax.Array
    ) -> tuple[tuple[Network, optax.OptState], jax.Array]:
        network, memory = state
        value, gradient = jax.value_and_grad(loss)(network, data[chosen], auxiliary)
        change, memory = optimizer.update(gradient, memory)
        network = jax.tree.map(lambda w, d: w - learning_rate * d, network, change)
        return (network, memory), value

    (network, _), losses = jax.lax.scan(update, (network, optimizer.init(network)), order)  # pyright: ignore[reportArgumentType]
    return network, losses


_train_many = eqx.filter_jit(jax.vmap(_train, in_axes=(0, 0, 0, None, None)))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def train_many(
    examples: Sequence[Examples], settings: Settings, seeds: Sequence[int]
) -> list[tuple[Weights, np.ndarray]]:
    """Return the trained weights of each network and the loss of each of its updates.

    Numbers of episodes and of rows are padded to powers of two, so that one compiled program serves
    for all trials of a setting. The padding has no part in any sum: a network is the same, but for
    rounding, whatever others are trained with it.
    """
    n_rows = _power_of_two(max(e.n_rows for e in examples))
    n_episodes = _power_of_two(max(len(e.tokens) for e in examples))
    networks, batches, orders = [], [], []
    for one, seed in zip(examples, seeds, strict=True):
        first = _initial(one, settings, seed)
        embedding = np.zeros((n_rows, 2 * settings.hidden), np.float32)
        embedding[: one.n_rows] = first.embedding
        networks.append(
            Network(embedding, first.numeric, first.bias, first.recurrent, first.head)  # pyright: ignore[reportArgumentType]
        )
        batches.append(_padded(one, settings.steps, n_episodes))
        orders.append(_order(one, settings, seed))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *networks)
    data = jax.tree.map(lambda *leaves: np.stack(leaves), *batches)
    trained, losses = _train_many(
        stacked,
        data,
        jnp.asarray(np.stack(orders)),
        jnp.float32(settings.learning_rate),
        jnp.float32(settings.auxiliary),
    )
    arrays = jax.tree.map(np.asarray, trained)
    out = []
    for i, one in enumerate(examples):
        parts = (
            arrays.embedding[i, : one.n_rows],
            arrays.numeric[i],
            arrays.bias[i],
            arrays.recurrent[i],
            arrays.head[i],
        )
        out.append((Weights(*(np.array(p) for p in parts)), np.asarray(losses)[i]))
    return out
