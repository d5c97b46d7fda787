"""Checkpoints: any tree of arrays as one npz file, for one configuration only."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.files import Anything, Each, Format, array_like
from align_rudder.runs.claim import OtherConfigurationError, differences
from align_rudder.runs.interrupt import Stop

__all__ = [
    "Checkpoint",
    "advised",
    "arrays_of",
    "digest",
    "load_tree",
    "named_leaves",
    "notes_of",
    "save_tree",
    "tree_of",
]

_TREE = Format(
    "align-rudder-checkpoint",
    1,
    header={"configuration": Each(Anything()), "notes": Each(Anything())},
    groups=("",),
    remedy="put back a copy",
)


def named_leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a tree by their place in it, such as ".world.map"."""
    return {jax.tree_util.keystr(at): x for at, x in jax.tree_util.tree_leaves_with_path(tree)}


def _narrow(array: np.ndarray) -> np.ndarray:
    """Return integers in the smallest type that holds them: maps of blocks are bytes."""
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    smallest = np.promote_types(
        np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max()))
    )
    return array.astype(smallest) if smallest.itemsize < array.dtype.itemsize else array


def digest(tree: Any) -> str:
    """Return a digest of a tree of arrays."""
    out = hashlib.sha256()
    for name, leaf in named_leaves(tree).items():
        array = np.asarray(leaf)
        out.update(f"{name}{array.shape}{array.dtype}".encode())
        out.update(array.tobytes())
    return out.hexdigest()[:16]


def save_tree(
    path: str | os.PathLike[str],
    tree: Any,
    configuration: Mapping[str, Any],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Save a tree of arrays.

    Args:
        path: The file.
        tree: The tree; keys of random numbers are saved as their data.
        configuration: What it belongs to; it is loaded only for the same one.
        notes: What else should be known, as JSON.
    """
    header = {"configuration": dict(configuration), "notes": dict(notes or {})}
    _TREE.save(path, header, arrays_of(tree), level=1)


def arrays_of(tree: Any) -> dict[str, np.ndarray]:
    """Return the leaves of a tree by their place in it, as files can hold them."""
    arrays = {}
    for name, leaf in named_leaves(tree).items():
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = np.asarray(leaf)
        # NumPy's files know no bfloat16; as floats its numbers are the same.
        arrays[name] = array.astype(np.float32) if leaf.dtype == jnp.bfloat16 else _narrow(array)
    return arrays


def load_tree(
    path: str | os.PathLike[str],
    like: Any,
    configuration: Mapping[str, Any],
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> tuple[Any, dict[str, Any]]:
    """Load a tree and its notes.

    Args:
        path: The file.
        like: A tree of the same structure; its leaves need only shape and dtype.
        configuration: What it must belong to.
        upgrade: Returns the configuration of an older file as it is written today.
    """
    with _TREE.open(path) as contents:
        if other := differences(upgrade(contents.header["configuration"]), configuration):
            raise OtherConfigurationError(path, other)
        return tree_of(contents.others, like), contents.header["notes"]


def notes_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes in a file that `save_tree` wrote."""
    with advised(), _TREE.open(path) as contents:
        return contents.header["notes"]


def tree_of(arrays: Mapping[str, np.ndarray], like: Any, largest: float = np.inf) -> Any:
    """Return the tree whose leaves `arrays_of` gave; `ValueError` where something does not fit.

    Args:
        arrays: The arrays.
        like: A tree of the same structure; its leaves need only shape and dtype.
        largest: How large numbers with a fraction may be; infinite ones are numbers too.
    """
    leaves = []
    for name, leaf in named_leaves(like).items():
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}: it was written by another version")
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if is_key:
            leaf = jax.eval_shape(jax.random.key_data, leaf)
        kind = array_like(leaf, largest=largest)
        array = jnp.asarray(kind.check(arrays[name], f"the array {name!r}", {}))
        leaves.append(jax.random.wrap_key_data(array) if is_key else array)
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


_MADE_AGAIN = "Delete that file: the same command makes it again and keeps all others"


@contextmanager
def advised(advice: str = _MADE_AGAIN) -> Iterator[None]:
    """Add to errors about a damaged file how to go on."""
    try:
        yield
    except OtherConfigurationError:
        raise
    except ValueError as error:
        raise ValueError(f"{error}. {advice}") from error


class Checkpoint:
    """The checkpoint of a training, from which it resumes after a stop.

    Args:
        path: The file.
        configuration: What it belongs to; another one is refused.
        stop: Whether the training was asked to stop; then it is saved, and ends.
        every: Seconds after which it is saved in any case.
        beside: Called with each saving, to save what else is needed.
    """

    def __init__(
        self,
        path: Path,
        configuration: Mapping[str, Any],
        stop: Stop,
        every: float = 300.0,
        beside: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.configuration, self.stop = path, configuration, stop
        self.every, self.beside = every, beside
        self._saved = time.monotonic()

    def load(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the tree and notes that were saved last, or None."""
        if not self.path.is_file():
            return None
        with advised():
            return load_tree(self.path, like, self.configuration)

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return self.stop.asked or time.monotonic() - self._saved >= self.every

    def save(self, tree: Any, notes: Mapping[str, Any]) -> None:
        """Save now."""
        save_tree(self.path, tree, self.configuration, notes)
        if self.beside is not None:
            self.beside()
        self._saved = time.monotonic()

    def offer(self, tree: Any, notes: Mapping[str, Any]) -> None:
        """Save if it is due; raise `KeyboardInterrupt` if the training was asked to stop."""
        if self.due:
            self.save(tree, notes)
        if self.stop.asked:
            raise self.stop.interruption()

    def remove(self) -> None:
        """Delete the file: what it led to is saved."""
        self.path.unlink(missing_ok=True)
