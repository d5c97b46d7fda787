"""Observations of any structure as arrays: their parts, names, shapes, and rows of a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.episodes import Episode, Tree
from align_rudder.files import LARGEST

__all__ = [
    "NoNumberError",
    "check_keys",
    "check_width",
    "common_shapes",
    "component_names",
    "flat",
    "leaf_names",
    "leaves",
    "numbers",
    "parts",
    "said_shapes",
    "shapes_of",
]


class NoNumberError(ValueError):
    """An observation holds NaN, something infinite or beyond what is taken.

    Attributes:
        row: Which one of those given.
    """

    def __init__(self, row: int, where: str) -> None:
        super().__init__(
            f"{where} holds NaN or infinite values, or some beyond {LARGEST:g}; clean it first"
        )
        self.row = row

    @classmethod
    def at(cls, row: int, name: str) -> NoNumberError:
        """Return the error of an observation of the episode of that name."""
        step = f"after step {row - 1}" if row else "the first one"
        return cls(row, f"observation {row} of {name} ({step})")


def parts(tree: Any, keys: Sequence[str] | None = None) -> list[Any]:
    """Return the parts of a tree in a fixed order; of a dict, those of `keys` where given."""
    if isinstance(tree, Mapping):
        if keys is not None and (missing := [k for k in keys if k not in tree]):
            raise ValueError(f"the observation has no {missing}; it has {sorted(tree)}")
        return [
            part for k in (keys if keys is not None else sorted(tree)) for part in parts(tree[k])
        ]
    if keys is not None:
        raise ValueError(
            f"keys={list(keys)} name entries of a dict, but the observation is no dict"
        )
    if isinstance(tree, tuple):
        return [part for one in tree for part in parts(one)]
    return [tree]


def leaves(tree: Tree, keys: Sequence[str] | None = None) -> list[np.ndarray]:
    """Return the arrays of a tree in a fixed order; of a dict, those of `keys` where given."""
    return [np.asarray(part) for part in parts(tree, keys)]


def shapes_of(episode: Episode, keys: Sequence[str] | None = None) -> dict[str, list[int]]:
    """Return the shape of each part of an observation of an episode."""
    parts = leaves(episode.observations, keys)
    names = leaf_names(episode.observations, keys)
    return {name: list(part.shape[1:]) for name, part in zip(names, parts, strict=True)}


def said_shapes(shapes: Mapping[str, Sequence[int]]) -> str:
    """Return shapes as a message says them.

    Example:
        >>> said_shapes({"": [3]}), said_shapes({"key": [], "eye": [9, 9]})
        ('shape (3,)', 'shapes key: (), eye: (9, 9)')
    """
    if list(shapes) == [""]:
        return f"shape {tuple(shapes[''])}"
    return "shapes " + ", ".join(f"{name}: {tuple(shape)}" for name, shape in shapes.items())


def leaf_names(tree: Tree, keys: Sequence[str] | None = None, prefix: str = "") -> list[str]:
    """Return the name of each array that `leaves` returns."""
    if isinstance(tree, Mapping):
        chosen = keys if keys is not None else sorted(tree)
        return [n for k in chosen for n in leaf_names(tree[k], None, f"{prefix}{k}.")]
    if isinstance(tree, tuple):
        return [n for i, part in enumerate(tree) for n in leaf_names(part, None, f"{prefix}{i}.")]
    return [prefix[:-1]]


def component_names(tree: Tree, keys: Sequence[str] | None = None) -> list[str]:
    """Return a name for each number of a row that `flat` makes: "x[0]", or of a dict "speed"."""
    found: list[str] = []
    for name, leaf in zip(leaf_names(tree, keys), leaves(tree, keys), strict=True):
        name, size = name or "x", math.prod(leaf.shape[1:])
        found += [name] if leaf.ndim == 1 else [f"{name}[{i}]" for i in range(size)]
    return found


def common_shapes(
    episodes: Sequence[Episode],
    keys: Sequence[str] | None,
    random_episodes: Sequence[Episode] = (),
) -> dict[str, list[int]]:
    """Return the shape of each part of an observation, the same in all episodes."""
    if not episodes:
        raise ValueError("there are no episodes to find events in; give demonstrations")
    found = shapes_of(episodes[0], keys)
    for what, some in (("episode", episodes), ("random episode", random_episodes)):
        for i, episode in enumerate(some):
            if (shapes := shapes_of(episode, keys)) != found:
                raise ValueError(
                    f"{what} {i} has observations of {said_shapes(shapes)}, episode 0 of "
                    f"{said_shapes(found)}; give episodes of one environment, or of dict "
                    "observations name the entries that all have with keys=…"
                )
    return found


def numbers(rows: np.ndarray, encoder: str) -> np.ndarray:
    """Return finite numbers as float64, or say what else was given."""
    if rows.dtype.kind not in "biuf":
        raise ValueError(
            f"{encoder} needs numbers, the observations are of type {rows.dtype}; name the numeric "
            "entries with keys=…"
        )
    rows = rows.astype(np.float64)
    usable = np.abs(rows) <= LARGEST
    if not usable.all():
        bad = int(np.flatnonzero(~usable.reshape(len(rows), -1).all(axis=1))[0])
        where = "the observation" if len(rows) == 1 else f"observation {bad} of {len(rows)}"
        raise NoNumberError(bad, where)
    return rows


def flat(tree: Tree, keys: Sequence[str] | None, n: int) -> np.ndarray:
    """Return a batch of n observations as rows of a matrix."""
    return np.hstack([leaf.reshape(n, -1) for leaf in leaves(tree, keys)])


def check_keys(keys: Sequence[str] | None) -> list[str] | None:
    """Return the names of entries as a list; a `ValueError` for a single text, or for no name."""
    if keys is None:
        return None
    if isinstance(keys, str):
        raise ValueError(f"keys is {keys!r}; give a list of names: keys=[{keys!r}]")
    if not len(keys):
        raise ValueError("keys is empty; name the entries of the observation, or leave it out")
    return list(keys)


def check_width(shapes: Mapping[str, Sequence[int]], width: int) -> None:
    """Raise a `ValueError` unless observations of these shapes make rows of that width."""
    needed = sum(math.prod(shape) for shape in shapes.values())
    if needed != width:
        raise ValueError(f"observations of {dict(shapes)} have {needed} numbers, not {width}")
