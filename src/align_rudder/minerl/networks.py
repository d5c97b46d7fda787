"""Policy and value networks of the paper's appendix: convolutions, LSTM, one head per action.

The layers as printed give 128 features for a 48×48 picture; with zero padding 1 also on the third
and fourth layer they give the paper's 288, so that is what is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.minerl.camera import BINS
from align_rudder.minerl.spaces import BUTTONS, ENUMS

__all__ = [
    "FRAMES",
    "HEAD_SIZES",
    "UNITS",
    "Manager",
    "SubAgent",
    "new_manager",
    "new_network",
    "new_sub_agent",
]

FRAMES = 32
"""Number of most recent frames that the networks see."""
HEAD_SIZES = {
    **dict.fromkeys(BUTTONS, 2),
    "pitch": len(BINS),
    "yaw": len(BINS),
    **{head: len(values) for head, values in ENUMS.items()},
}
"""Choices of each part of an action."""
_WIDTHS = [1 if size == 2 else size for size in HEAD_SIZES.values()]
UNITS = sum(_WIDTHS)
"""Units of the last layer: one for each choice, but for a button, which is one Bernoulli unit."""

_CHANNELS = (3, 16, 32, 64, 32)
_KERNELS = (4, 4, 3, 3)
_FEATURES = 288
_HIDDEN = 256
_MOMENTUM = 0.1
_Network = TypeVar("_Network")


def new_network(make: Callable[[jax.Array], _Network], rng: np.random.Generator) -> _Network:
    """Return a network with the initial weights that Equinox would draw, uniform around zero.

    They are drawn by NumPy, as compiling JAX's generators takes ten seconds.

    Args:
        make: Makes the network, of convolutions, linear layers, LSTMs and `Norm`s, from a key.
        rng: Source of the weights.
    """
    layers = (eqx.nn.Conv2d, eqx.nn.Linear, eqx.nn.LSTMCell, Norm)

    def draw(part: Any) -> Any:
        if isinstance(part, Norm):
            return Norm(part.scale.size)
        if isinstance(part, eqx.nn.LSTMCell):
            bound = 1 / math.sqrt(part.hidden_size)
        else:
            bound = 1 / math.sqrt(math.prod(part.weight.shape[1:]))
        return jax.tree.map(
            lambda x: jnp.asarray(rng.uniform(-bound, bound, x.shape), jnp.float32), part
        )

    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    return jax.tree.map(draw, shapes, is_leaf=lambda part: isinstance(part, layers))


class Norm(eqx.Module):
    """Batch normalisation over all pictures and places of a batch."""

    scale: jax.Array
    offset: jax.Array
    mean: jax.Array
    variance: jax.Array

    def __init__(self, n: int) -> None:
        self.scale, self.offset = jnp.ones(n), jnp.zeros(n)
        self.mean, self.variance = jnp.zeros(n), jnp.ones(n)

    def __call__(self, x: jax.Array, learning: bool) -> tuple[jax.Array, Norm]:
        """Return x (N, C, H, W) normalised, and the layer with new running means."""
        if learning:
            mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
            count = x.size // x.shape[1]
            unbiased = variance * count / max(count - 1, 1)
            kept = [
                jax.lax.stop_gradient((1 - _MOMENTUM) * old + _MOMENTUM * new)
                for old, new in ((self.mean, mean), (self.variance, unbiased))
            ]
            layer = eqx.tree_at(lambda n: (n.mean, n.variance), self, tuple(kept))
        else:
            mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
            layer = self
        shaped = [v[None, :, None, None] for v in (mean, variance, self.scale, self.offset)]
        out = (x - shaped[0]) * jax.lax.rsqrt(shaped[1] + 1e-5) * shaped[2] + shaped[3]
        return out, layer


class Encoder(eqx.Module):
    """Four convolutions with batch normalisation, and an LSTM over the frames."""

    convolutions: list[eqx.nn.Conv2d]
    norms: list[Norm]
    lstm: eqx.nn.LSTMCell

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 5)
        self.convolutions = [
            eqx.nn.Conv2d(a, b, kernel, stride=2, padding=1, key=k)
            for a, b, kernel, k in zip(_CHANNELS, _CHANNELS[1:], _KERNELS, keys)
        ]
        self.norms = [Norm(n) for n in _CHANNELS[1:]]
        self.lstm = eqx.nn.LSTMCell(_FEATURES, _HIDDEN, key=keys[4])

    def __call__(self, pictures: jax.Array, learning: bool = False) -> tuple[jax.Array, Encoder]:
        """Return what the last of the frames (B, 32, 48, 48, 3) means (B, 256), and the encoder."""
        n, t = pictures.shape[:2]
        x = pictures.reshape(n * t, *pictures.shape[2:]).astype(jnp.float32) / 255
        x = x.transpose(0, 3, 1, 2)
        norms = []
        for convolution, norm in zip(self.convolutions, self.norms):
            x, kept = norm(jax.vmap(convolution)(x), learning)
            norms.append(kept)
            x = jax.nn.relu(x)
        features = x.reshape(n, t, -1)

        def step(carry: tuple[jax.Array, jax.Array], seen: jax.Array) -> Any:
            return jax.vmap(self.lstm)(seen, carry), None

        zero = jnp.zeros((n, _HIDDEN))
        (hidden, _), _ = jax.lax.scan(step, (zero, zero), features.swapaxes(0, 1))
        return hidden, eqx.tree_at(lambda e: e.norms, self, norms)


class SubAgent(eqx.Module):
    """Policy and value, two networks that share nothing.

    Called like every agent of `hierarchy`, with one observation: the 32 most recent pictures.
    """

    actor: Encoder
    heads: eqx.nn.Linear
    critic: Encoder
    value: eqx.nn.Linear

    def __call__(
        self, task: Any, observation: jax.Array, subtask: jax.Array, cell: jax.Array
    ) -> tuple[dict[str, jax.Array], jax.Array]:
        """Return the logits of each head, and the value."""
        hidden, value = self.judge(observation)
        return split_heads(self.heads(hidden)), value

    def judge(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return what the policy makes of an observation (256,), and the value."""
        hidden, _ = self.actor(observation[None])
        seen, _ = self.critic(observation[None])
        return hidden[0], self.value(seen[0])[0]

    def clone(
        self, observations: jax.Array, learning: bool = True
    ) -> tuple[dict[str, jax.Array], SubAgent]:
        """Return logits for a batch of observations, and the agent with new running means."""
        hidden, actor = self.actor(observations, learning)
        return split_heads(jax.vmap(self.heads)(hidden)), eqx.tree_at(
            lambda a: a.actor, self, actor
        )


class Manager(eqx.Module):
    """Networks like a sub-agent's, and a head that chooses who acts.

    Attributes:
        own: Its own networks.
        who: Logits of the K sub-agents and, last, of acting itself.
        prior: What is added to the logit of the sub-agent whose turn it is.
    """

    own: SubAgent
    who: eqx.nn.Linear
    prior: float = eqx.field(static=True)

    def __call__(
        self, task: Any, observation: jax.Array, subtask: jax.Array, cell: jax.Array
    ) -> tuple[dict[str, jax.Array], jax.Array]:
        """Return the logits of each head, "who" among them, and the value."""
        hidden, value = self.own.judge(observation)
        n = self.who.out_features
        assert isinstance(n, int)
        turn = jax.nn.one_hot(jnp.minimum(subtask, n - 2), n)
        who = self.who(hidden) + self.prior * turn
        return {**split_heads(self.own.heads(hidden)), "who": who}, value


def new_manager(key: jax.Array, n_subtasks: int, prior: float = 8.0) -> Manager:
    """Return a manager that runs the sub-agents in the order of the alignment."""
    own = new_sub_agent(key)
    who = new_network(lambda key: eqx.nn.Linear(_HIDDEN, n_subtasks + 1, key=key), _rng(key))
    who = eqx.tree_at(lambda w: (w.weight, w.bias), who, replace_fn=jnp.zeros_like)
    return Manager(own, who, prior)


def split_heads(out: jax.Array) -> dict[str, jax.Array]:
    """Return the logits of each head from the units of the last layer (…, 61)."""
    ends = np.cumsum(_WIDTHS)
    parts = [out[..., end - width : end] for width, end in zip(_WIDTHS, ends, strict=True)]
    # A button is pressed with probability σ(unit): the same as logits (0, unit).
    return {
        head: jnp.concatenate([jnp.zeros_like(x), x], axis=-1) if x.shape[-1] == 1 else x
        for head, x in zip(HEAD_SIZES, parts, strict=True)
    }


def new_sub_agent(key: jax.Array) -> SubAgent:
    """Return an untrained sub-agent."""

    def make(key: jax.Array) -> SubAgent:
        keys = jax.random.split(key, 4)
        return SubAgent(
            Encoder(keys[0]),
            eqx.nn.Linear(_HIDDEN, UNITS, key=keys[1]),
            Encoder(keys[2]),
            eqx.nn.Linear(_HIDDEN, 1, key=keys[3]),
        )

    return new_network(make, _rng(key))


def _rng(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
