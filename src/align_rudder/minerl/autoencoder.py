"""Features of pictures: a convolutional auto-encoder, trained on the frames of trajectories.

Two convolutions of the encoder shrink the picture to an eighth of its side, a linear layer maps
what is left to the features; the decoder goes the same way back. The error is the mean squared
difference of pixels in [0, 1]. Frames are decoded while it trains and pass through a buffer that
shuffles them, so that memory does not grow with the dataset.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from tqdm import tqdm

from align_rudder._warnings import warn
from align_rudder.files import Anything, Each, Format, Whole, check_values
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.pictures import check_frames
from align_rudder.minerl.spaces import FRAME_SIZE
from align_rudder.minerl.trajectory import DamagedTrajectoryError, Trajectory

try:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    raise ImportError(
        "the auto-encoder needs JAX, Equinox and Optax; in a clone: pip install '.[jax]'"
    ) from error

from align_rudder.minerl.networks import new_network
from align_rudder.runs.checkpoint import arrays_of, digest, tree_of

__all__ = ["AutoEncoder", "train_autoencoder"]

_LARGEST = 1e6  # of a weight: what comes out of the network stays finite
_ENCODER = Format(
    "align-rudder-autoencoder",
    1,
    header={"size": Whole(1, FRAME_SIZE), "latent": Whole(1, 2**16), "notes": Each(Anything())},
    groups=("",),
    remedy="put back a copy, or train it again (align-rudder minerl events --train-autoencoder)",
)
_WIDTH = 16
_SHRUNK = 8
_BATCH = 256


class Network(eqx.Module):
    """Encoder and decoder of pictures (3, size, size) with values in [0, 1].

    Most is computed on an eighth of the side: the first convolution takes patches of 4×4 pixels,
    and the decoder's convolutions give several pixels each ("sub-pixel" convolutions).
    """

    patches: eqx.nn.Conv2d
    halve: eqx.nn.Conv2d
    features: eqx.nn.Linear
    spread: eqx.nn.Linear
    double: eqx.nn.Conv2d
    pixels: eqx.nn.Conv2d

    def __init__(self, size: int, latent: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 6)
        width = 2 * _WIDTH * (size // _SHRUNK) ** 2
        self.patches = eqx.nn.Conv2d(3, _WIDTH, 4, stride=4, key=keys[0])
        self.halve = eqx.nn.Conv2d(_WIDTH, 2 * _WIDTH, 4, stride=2, padding=1, key=keys[1])
        self.features = eqx.nn.Linear(width, latent, key=keys[2])
        self.spread = eqx.nn.Linear(latent, width, key=keys[3])
        self.double = eqx.nn.Conv2d(2 * _WIDTH, 4 * _WIDTH, 3, padding=1, key=keys[4])
        self.pixels = eqx.nn.Conv2d(_WIDTH, 3 * 16, 3, padding=1, key=keys[5])

    def encode(self, picture: jax.Array) -> jax.Array:
        """Return the features (latent,) of a picture."""
        x = jax.nn.silu(self.patches(2 * picture - 1))
        return self.features(jax.nn.silu(self.halve(x)).ravel())

    def decode(self, features: jax.Array) -> jax.Array:
        """Return the picture that features stand for."""
        x = jax.nn.silu(self.spread(features))
        side = math.isqrt(len(x) // (2 * _WIDTH))
        x = _larger(self.double(x.reshape(-1, side, side)), 2)
        return (_larger(self.pixels(jax.nn.silu(x)), 4) + 1) / 2


def _larger(x: jax.Array, times: int) -> jax.Array:
    """Return an image (c·times², h, w) as (c, h·times, w·times)."""
    h, w = x.shape[1:]
    x = x.reshape(-1, times, times, h, w)
    return x.transpose(0, 3, 1, 4, 2).reshape(-1, h * times, w * times)


def _as_input(frames: jax.Array) -> jax.Array:
    return frames.astype(jnp.float32).transpose(0, 3, 1, 2) / 255


@eqx.filter_jit
def _encode(network: Network, frames: jax.Array) -> jax.Array:
    return jax.vmap(network.encode)(_as_input(frames))


_ADAM = optax.scale_by_adam()


@eqx.filter_jit
def _update(
    network: Network, opt_state: Any, frames: jax.Array, rate: jax.Array
) -> tuple[Network, Any, jax.Array]:
    """Return the network after a step of Adam, the state of Adam, and the error before."""
    pictures = _as_input(frames)

    def loss(network: Network) -> jax.Array:
        shown = jax.vmap(lambda picture: network.decode(network.encode(picture)))(pictures)
        return ((shown - pictures) ** 2).mean()

    error, gradient = eqx.filter_value_and_grad(loss)(network)
    updates, opt_state = _ADAM.update(gradient, opt_state)
    updates = jax.tree.map(lambda x: -rate * x, updates)
    return eqx.apply_updates(network, updates), opt_state, error


class AutoEncoder:
    """A trained auto-encoder.

    Args:
        network: The network.
        size: Side of its pictures.
        notes: What is known of its training, as JSON.

    Example:
        ::

            encoder = train_autoencoder(pool, size=32)
            encoder.save("autoencoder.npz")
            encoder = AutoEncoder.load("autoencoder.npz")
            features = encoder.encode(frames)               # (n, 32) for (n, 32, 32, 3) bytes
    """

    def __init__(self, network: Network, size: int, notes: dict[str, Any] | None = None) -> None:
        self.network, self.size, self.notes = network, size, dict(notes or {})
        self.digest = digest(eqx.filter(network, eqx.is_array))

    @property
    def latent(self) -> int:
        """Number of features."""
        return int(self.network.features.out_features)  # pyright: ignore[reportArgumentType]

    def __repr__(self) -> str:
        return f"AutoEncoder(size={self.size}, latent={self.latent}, {self.notes})"

    def encode(self, frames: np.ndarray) -> np.ndarray:
        """Return the features (n, latent) of pictures (n, size, size, 3), uint8."""
        frames = check_frames(frames, self.size)
        out = np.empty((len(frames), self.latent), np.float32)
        for start in range(0, len(frames), _BATCH):
            part = frames[start : start + _BATCH]
            padded = np.zeros((_BATCH, *part.shape[1:]), np.uint8)  # one shape, compiled once
            padded[: len(part)] = part
            out[start : start + len(part)] = _encode(self.network, jnp.asarray(padded))[: len(part)]
        return out

    def features(self, trajectory: Trajectory, cache: ArrayCache | None = None) -> np.ndarray:
        """Return the features (T+1, latent) of a trajectory's pictures, kept in the cache if given.

        Frames are decoded as they are encoded; only the features are held.
        """
        if cache is None:
            return np.concatenate(list(self._blocks(trajectory)))
        name = f"features-{self.digest}"
        return cache.array(trajectory, name, self._blocks, (self.latent,), np.float32)

    def _blocks(self, trajectory: Trajectory) -> Iterator[np.ndarray]:
        return map(self.encode, trajectory.frame_batches(_BATCH, size=self.size))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one npz file (arrays and JSON; no pickle)."""
        header = {"size": self.size, "latent": self.latent, "notes": self.notes}
        _ENCODER.save(path, header, arrays_of(eqx.filter(self.network, eqx.is_array)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AutoEncoder:
        """Load what `save` wrote."""
        with _ENCODER.open(path) as contents:
            size, latent = contents.header["size"], contents.header["latent"]
            _check_size(size, latent)
            shapes = eqx.filter_eval_shape(Network, size, latent, jax.random.key(0))
            like, rest = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
            network = eqx.combine(tree_of(contents.others, like, _LARGEST), rest)
        return cls(network, size, contents.header["notes"])


def _check_size(size: int, latent: int) -> None:
    if size < _SHRUNK or size > FRAME_SIZE or size % _SHRUNK:
        raise ValueError(
            f"size={size}; a multiple of {_SHRUNK} up to {FRAME_SIZE} is needed, as the encoder "
            f"shrinks pictures to 1/{_SHRUNK} of their side"
        )
    Whole(1).check(latent, "latent")


def train_autoencoder(
    source: Iterable[Trajectory] | Iterable[np.ndarray],
    *,
    size: int = FRAME_SIZE,
    latent: int = 32,
    steps: int = 4000,
    batch: int = 128,
    learning_rate: float = 1e-3,
    every: int = 4,
    buffer: int = 4096,
    seed: int = 0,
    progress: bool = False,
) -> AutoEncoder:
    """Train an auto-encoder on the frames of trajectories.

    Args:
        source: A pool or list of trajectories, or frames (size, size, 3), uint8. They are gone
            through again and again, in random order.
        size: Side of the pictures, a multiple of 8 up to 64.
        latent: Number of features.
        steps: Updates.
        batch: Frames of an update.
        learning_rate: Learning rate of Adam, which falls to zero along a cosine.
        every: Of trajectories, take one frame in so many: neighbours look nearly the same.
        buffer: Frames held in memory to shuffle them (12 kB each at 64).
        seed: Seed of weights and order; the same seed gives the same result.
        progress: Whether to show a progress bar.

    Returns:
        The auto-encoder; its `notes` have the mean error of the last tenth of the updates and that
        of the mean picture of the same frames.
    """
    check_values(steps=(steps, Whole(1)), batch=(batch, Whole(1)), every=(every, Whole(1)))
    if buffer < batch:
        raise ValueError(f"buffer={buffer} is smaller than a batch of {batch}; make it larger")
    _check_size(size, latent)
    network = new_network(lambda key: Network(size, latent, key), np.random.default_rng(seed))
    opt_state = _ADAM.init(eqx.filter(network, eqx.is_array))
    rng = np.random.default_rng(seed)
    frames = _passes(source, size, every, rng)
    errors, means = [], []
    bar = tqdm(_batches(frames, batch, buffer, steps, rng), "frames", steps, disable=not progress)
    for pictures in bar:
        rate = learning_rate * (1 + math.cos(math.pi * len(errors) / steps)) / 2
        network, opt_state, error = _update(
            network, opt_state, jnp.asarray(pictures), jnp.float32(rate)
        )
        errors.append(error)
        means.append(float((pictures / 255.0).var(axis=0).mean()))
        if progress and len(errors) % 50 == 0:
            bar.set_postfix(error=f"{float(error):.5f}")
    if not errors:
        raise ValueError("there are no frames to learn from; give trajectories that are whole")
    last = max(len(errors) // 10, 1)
    notes = {
        "steps": len(errors),
        "seed": seed,
        "error": float(np.mean([float(e) for e in errors[-last:]])),
        "error_of_mean_picture": float(np.mean(means[-last:])),
    }
    return AutoEncoder(network, size, notes)


def _passes(
    source: Iterable[Trajectory] | Iterable[np.ndarray],
    size: int,
    every: int,
    rng: np.random.Generator,
) -> Iterator[np.ndarray]:
    """Yield frames, pass after pass, until a pass gives none."""
    listed, damaged, found = list(source), set(), True
    while found:
        found = False
        for i in rng.permutation(len(listed)):
            item = listed[i]
            if not isinstance(item, Trajectory):
                found = True
                yield check_frames(np.asarray(item)[None], size)[0]
            elif item.name not in damaged:
                try:
                    for frame in islice(item.frames(size=size), 0, None, every):
                        found = True
                        yield frame
                except DamagedTrajectoryError as error:
                    damaged.add(item.name)
                    warn(f"the auto-encoder does without a damaged trajectory: {error}")


def _batches(
    frames: Iterator[np.ndarray], batch: int, buffer: int, steps: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield batches drawn from a buffer that new frames flow through; none without frames."""
    held: list[np.ndarray] = []
    for _ in range(steps):
        held += islice(frames, buffer - len(held))
        if len(held) < batch:
            return
        out = []
        for _ in range(batch):
            i = int(rng.integers(len(held)))
            held[i], held[-1] = held[-1], held[i]
            out.append(held.pop())
        yield np.stack(out)
