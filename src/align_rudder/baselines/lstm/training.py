"""Training of many LSTMs at once, each on episodes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import optax

from align_rudder.baselines.lstm.network import Batch, loss
from align_rudder.baselines.lstm.weights import Weights

if TYPE_CHECKING:
    from align_rudder.baselines.lstm.model import LstmRudder

__all__ = ["Examples", "train_many"]


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


def _initial(examples: Examples, model: LstmRudder, seed: int) -> Weights:
    """Return first weights; the seed alone decides them, not the shapes they are padded to."""
    rng = np.random.default_rng([seed, 0])
    hidden, n_numbers = model.hidden, examples.numbers[0].shape[1]
    embedding = rng.normal(0.0, 0.1, (examples.n_rows, 2 * hidden))
    embedding[0] = 0.0  # what was never seen says nothing
    bias = np.concatenate([np.zeros(hidden), np.full(hidden, model.gate_bias)])
    parts = (
        embedding,
        rng.normal(0.0, 1.0 / np.sqrt(max(n_numbers, 1)), (n_numbers, 2 * hidden)),
        bias,
        rng.normal(0.0, 0.1, (hidden, hidden)),
        np.append(rng.normal(0.0, 1.0 / np.sqrt(hidden), hidden), 0.0),
    )
    return Weights(*(part.astype(np.float32) for part in parts))


def _order(examples: Examples, model: LstmRudder, seed: int) -> np.ndarray:
    """Return the episodes of each update (updates, B): as many demonstrations as random ones."""
    rng = np.random.default_rng([seed, 1])
    n, demonstrations = len(examples.tokens), examples.n_demonstrations
    drawn = rng.random((model.updates, model.batch_size))
    if demonstrations == n:
        return (drawn * n).astype(np.int32)
    chosen = (drawn * demonstrations).astype(np.int32)
    others = demonstrations + (drawn * (n - demonstrations)).astype(np.int32)
    return np.where(np.arange(model.batch_size) % 2 == 0, chosen, others)


def _padded(examples: Examples, steps: int, n_episodes: int) -> Batch:
    tokens = np.zeros((n_episodes, steps, examples.tokens[0].shape[1]), np.int32)
    numbers = np.zeros((n_episodes, steps, examples.numbers[0].shape[1]), np.float32)
    lengths, returns = np.ones(n_episodes, np.int32), np.zeros(n_episodes, np.float32)
    for i, (rows, values) in enumerate(zip(examples.tokens, examples.numbers, strict=True)):
        tokens[i, : len(rows)], numbers[i, : len(rows)] = rows, values
        lengths[i], returns[i] = len(rows), examples.returns[i]
    return Batch(tokens, numbers, returns, lengths)  # pyright: ignore[reportArgumentType]


def _train(
    weights: Weights, data: Batch, order: jax.Array, learning_rate: jax.Array, auxiliary: jax.Array
) -> tuple[Weights, jax.Array]:
    """Return the trained weights and the loss of each update."""
    schedule = optax.cosine_decay_schedule(1.0, order.shape[0])
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale_by_schedule(schedule)
    )

    def update(
        state: tuple[Weights, optax.OptState], chosen: jax.Array
    ) -> tuple[tuple[Weights, optax.OptState], jax.Array]:
        weights, opt_state = state
        batch = jax.tree.map(lambda leaf: leaf[chosen], data)
        value, gradient = jax.value_and_grad(loss)(weights, batch, auxiliary)
        change, opt_state = optimizer.update(gradient, opt_state)
        weights = jax.tree.map(lambda w, d: w - learning_rate * d, weights, change)
        return (weights, opt_state), value

    (weights, _), losses = jax.lax.scan(update, (weights, optimizer.init(weights)), order)  # pyright: ignore[reportArgumentType]
    return weights, losses


_train_many = jax.jit(jax.vmap(_train, in_axes=(0, 0, 0, None, None)))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def train_many(
    examples: Sequence[Examples], model: LstmRudder, steps: int, seeds: Sequence[int]
) -> list[tuple[Weights, np.ndarray]]:
    """Return the trained weights of each network and the loss of each of its updates.

    Numbers of episodes and of rows are padded to powers of two, so that one compiled program serves
    for all trials of a setting. The padding has no part in any sum: a network is the same, but for
    rounding, whatever others are trained with it.

    Args:
        examples: The training episodes of each network.
        model: The parameters of all of them.
        steps: Steps to which episodes are padded.
        seeds: The seed of each network.
    """
    n_rows = _power_of_two(max(e.n_rows for e in examples))
    n_episodes = _power_of_two(max(len(e.tokens) for e in examples))
    networks, batches, orders = [], [], []
    for one, seed in zip(examples, seeds, strict=True):
        first = _initial(one, model, seed)
        padding = np.zeros((n_rows - one.n_rows, 2 * model.hidden), np.float32)
        networks.append(first._replace(embedding=np.vstack([first.embedding, padding])))
        batches.append(_padded(one, steps, n_episodes))
        orders.append(_order(one, model, seed))
    trained, losses = _train_many(
        jax.tree.map(lambda *leaves: np.stack(leaves), *networks),
        jax.tree.map(lambda *leaves: np.stack(leaves), *batches),
        jnp.asarray(np.stack(orders)),
        jnp.float32(model.learning_rate),
        jnp.float32(model.auxiliary),
    )
    trained = jax.tree.map(np.asarray, trained)
    out = []
    for i, one in enumerate(examples):
        weights = Weights(*(np.array(part[i]) for part in trained))
        weights = weights._replace(embedding=weights.embedding[: one.n_rows].copy())
        out.append((weights, np.asarray(losses)[i]))
    return out
