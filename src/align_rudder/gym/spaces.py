"""Observation spaces with something more in them: the position on the profile, the time left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

__all__ = ["ProgressSpace", "TimeSpace"]


MAX_BLOCKS = 4096
"""Entries of a vector with its blocks; longer ones would fill the memory of replay buffers."""


def fits_in_blocks(shape: tuple[int, ...], n_cells: int) -> bool:
    """Return whether observations of that shape get a block for each position."""
    return len(shape) == 1 and shape[0] * (1 + n_cells) <= MAX_BLOCKS


def in_blocks(obs: np.ndarray, cell: Any, n_cells: int) -> np.ndarray:
    """Return a vector followed by a block for each position; its own holds the vector again.

    Args:
        obs: A vector (d,), or a batch (n, d).
        cell: Its position, or those of the batch (n,).
        n_cells: Number of positions.
    """
    blocks = np.zeros((*obs.shape[:-1], 1 + n_cells, obs.shape[-1]), obs.dtype)
    blocks[..., 0, :] = obs
    at = np.asarray(cell)[..., None, None] + 1
    np.put_along_axis(blocks, at, obs[..., None, :], axis=-2)
    return blocks.reshape(*obs.shape[:-1], -1)


class ProgressSpace:
    """Observations with the position on the profiles appended.

    A vector x becomes (x, 0, …, x, …, 0): a block for each position follows it, and that of the
    position where the episode stands holds x again. A number becomes number × positions + position.
    So every position has inputs of its own, and less of what a network learns at one leaks into the
    next. A dict gets an entry "progress" (one-hot); anything else, and a vector that would have
    more than 4096 entries with its blocks, becomes a dict of "observation" and "progress".

    Args:
        space: The observation space.
        n_cells: Number of positions.
        key: What the entry of a dict is called.
    """

    def __init__(self, space: spaces.Space[Any], n_cells: int, key: str = "progress") -> None:
        self.n_cells, self._key = n_cells, key
        one_hot = spaces.Box(0.0, 1.0, (n_cells,), np.float32)
        self._start = 0
        if isinstance(space, spaces.Discrete):
            self._kind, self._start = "discrete", int(space.start)
            self.space: spaces.Space[Any] = spaces.Discrete(int(space.n) * n_cells)
        elif isinstance(space, spaces.Box) and fits_in_blocks(space.shape, n_cells):
            self._kind = "vector"
            low, high = np.minimum(space.low, 0), np.maximum(space.high, 0)
            low, high = (
                np.append(x, np.tile(y, n_cells)) for x, y in ((space.low, low), (space.high, high))
            )
            self.space = spaces.Box(low, high, dtype=space.dtype)  # pyright: ignore[reportArgumentType]
        elif isinstance(space, spaces.Dict):
            self._kind = "dict"
            self.space = _with_entry(space, key, one_hot)
        else:
            self._kind = "other"
            self.space = spaces.Dict({"observation": space, key: one_hot})

    def check(self, n_cells: int) -> None:
        """Raise an error if a model that was aligned again has another number of positions."""
        if n_cells != self.n_cells:
            raise ValueError(
                f"the model was aligned again and has {n_cells} positions now, the observation "
                f"space of this wrapper {self.n_cells}; make a new wrapper"
            )

    def append(self, obs: Any, cell: Any) -> Any:
        """Return the observation with the position; with arrays of cells, of a batch."""
        if self._kind == "discrete":
            appended = (obs - self._start) * self.n_cells + cell
            return appended if isinstance(cell, np.ndarray) else np.int64(appended)
        if self._kind == "vector":
            return in_blocks(obs, cell, self.n_cells)
        one_hot = np.zeros((*np.shape(cell), self.n_cells), np.float32)
        np.put_along_axis(one_hot, np.asarray(cell)[..., None], 1.0, axis=-1)
        if self._kind == "dict":
            assert isinstance(obs, Mapping)
            return {**obs, self._key: one_hot}
        return {"observation": obs, self._key: one_hot}


class TimeSpace:
    """Observations with the time that is left appended, 1 at the beginning and 0 at the end.

    A vector of floats gets it at its end; a number becomes number × (steps + 1) + steps left; a
    dict gets an entry "time"; anything else becomes a dict of "observation" and "time".

    Args:
        space: The observation space.
        steps: Steps of a whole episode.
    """

    def __init__(self, space: spaces.Space[Any], steps: int) -> None:
        self.steps = steps
        left = spaces.Box(0.0, 1.0, (1,), np.float32)
        self._start = 0
        if isinstance(space, spaces.Discrete):
            self._kind, self._start = "discrete", int(space.start)
            self.space: spaces.Space[Any] = spaces.Discrete(int(space.n) * (steps + 1))
        elif isinstance(space, spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f":  # pyright: ignore[reportOptionalMemberAccess]
            self._kind = "vector"
            low, high = np.append(space.low, 0.0), np.append(space.high, 1.0)
            self.space = spaces.Box(
                low.astype(space.dtype),
                high.astype(space.dtype),
                dtype=space.dtype,  # pyright: ignore[reportArgumentType]
            )
        elif isinstance(space, spaces.Dict):
            self._kind = "dict"
            self.space = _with_entry(space, "time", left)
        else:
            self._kind = "other"
            self.space = spaces.Dict({"observation": space, "time": left})

    def append(self, obs: Any, left: int) -> Any:
        """Return the observation with the steps that are left."""
        if self._kind == "discrete":
            return np.int64((obs - self._start) * (self.steps + 1) + left)
        share = np.array([left / self.steps], np.float32)
        if self._kind == "vector":
            return np.append(obs, share.astype(obs.dtype))
        if self._kind == "dict":
            return {**obs, "time": share}
        return {"observation": obs, "time": share}


def _with_entry(space: spaces.Dict, key: str, part: spaces.Space[Any]) -> spaces.Dict:
    if key in space.spaces:
        raise ValueError(f'the observation already has an entry "{key}"; rename it')
    return spaces.Dict({**space.spaces, key: part})
