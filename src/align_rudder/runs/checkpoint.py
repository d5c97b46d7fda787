"""Checkpoints: any tree of arrays as one npz file, for one configuration only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.files import load_npz, save_npz

__all__ = ["OtherConfigurationError", "digest", "load_tree", "save_tree"]

_FORMAT, _VERSION = "align-rudder-checkpoint", 1


class OtherConfigurationError(ValueError):
    """A file that is whole, but belongs to another configuration."""


def _named(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(at), x) for at, x in jax.tree_util.tree_leaves_with_path(tree)]


def _narrow(array: np.ndarray) -> np.ndarray:
    """Return integers in the smallest type that holds them: maps of blocks are bytes."""
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    smallest = np.promote_types(
        np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max()))
    )
    return array.astype(smallest) if smallest.itemsize < array.dtype.itemsize else array


def digest(tree: Any) -> str:
    """Return a short name of the contents of a tree of arrays."""
    out = hashlib.sha256()
    for name, leaf in _named(tree):
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
    arrays = {}
    for name, leaf in _named(tree):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = np.asarray(leaf)
        # NumPy's files know no bfloat16; as floats its numbers are the same.
        arrays[name] = array.astype(np.float32) if leaf.dtype == jnp.bfloat16 else _narrow(array)
    header = {"configuration": dict(configuration), "notes": dict(notes or {})}
    save_npz(path, _FORMAT, _VERSION, header, arrays, level=1)


def load_tree(
    path: str | os.PathLike[str], like: Any, configuration: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Load a tree and its notes.

    Args:
        path: The file.
        like: A tree of the same structure; its leaves need only shape and dtype.
        configuration: What it must belong to.
    """
    header, arrays = load_npz(path, _FORMAT, _VERSION)
    other = differences(header["configuration"], configuration)
    if any(line.startswith("alignment is") for line in other):
        raise OtherConfigurationError(
            f"{path} belongs to other demonstrations or another alignment of them; give those it "
            "was trained with (--demos), or another folder"
        )
    if other:
        raise OtherConfigurationError(
            f"{path} belongs to another configuration: {'; '.join(other)}; use that one again, or "
            "another folder"
        )
    leaves = []
    for name, leaf in _named(like):
        if name not in arrays:
            raise ValueError(f"{path} has no {name}: it was written by another version")
        array = arrays[name]
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        expected = leaf.shape if not is_key else jax.eval_shape(jax.random.key_data, leaf).shape
        if array.shape != expected:
            raise ValueError(f"{path}: {name} has shape {array.shape}; {expected} is needed")
        if not is_key and not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
            raise ValueError(f"{path}: {name} has type {array.dtype}; {leaf.dtype} is needed")
        if is_key:
            leaves.append(jax.random.wrap_key_data(jnp.asarray(array, jnp.uint32)))
        else:
            leaves.append(jnp.asarray(array.astype(leaf.dtype)))
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header["notes"]


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return in words where two configurations differ."""
    out = []
    for name in sorted({*found, *wanted}):
        a, b = found.get(name), wanted.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += [f"{name}.{line}" for line in differences(a, b)]
        elif a != b:
            out.append(f"{name} is {a!r} there and {b!r} here")
    return out
