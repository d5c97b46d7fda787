"""Initial weights of networks, drawn by NumPy: compiling JAX's generators takes ten seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["new_network"]

_Network = TypeVar("_Network")


def new_network(make: Callable[[jax.Array], _Network], rng: np.random.Generator) -> _Network:
    """Return a network with the initial weights that Equinox would draw, uniform around zero.

    Args:
        make: Makes the network from a key. What is neither a convolution, a linear layer nor an
            LSTM in it is taken as it is made, and must not be random.
        rng: Source of the weights.
    """
    shapes = eqx.filter_eval_shape(make, jax.random.key(0))

    def draw(part: Any) -> Any:
        if isinstance(part, eqx.nn.LSTMCell):
            bound = 1 / math.sqrt(part.hidden_size)
        else:
            bound = 1 / math.sqrt(math.prod(part.weight.shape[1:]))
        return jax.tree.map(
            lambda x: jnp.asarray(rng.uniform(-bound, bound, x.shape), jnp.float32), part
        )

    def is_layer(part: Any) -> bool:
        return isinstance(part, (eqx.nn.Conv2d, eqx.nn.Linear, eqx.nn.LSTMCell))

    def fill(part: Any) -> Any:
        return draw(part) if is_layer(part) else part.new()

    return jax.tree.map(fill, shapes, is_leaf=lambda x: is_layer(x) or hasattr(x, "new"))
