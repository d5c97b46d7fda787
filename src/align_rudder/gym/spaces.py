"""Observation spaces with the position on the profile appended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

__all__ = ["ProgressSpace"]


class ProgressSpace:
    """Observations with the position on the profiles appended.

    A vector gets a one-hot of the position at its end, a number becomes number × positions +
    position, a dict gets an entry "progress" (one-hot); anything else becomes a dict of
    "observation" and "progress".

    Args:
        space: The observation space.
        n_cells: Number of positions.
    """

    def __init__(self, space: spaces.Space[Any], n_cells: int) -> None:
        self.n_cells = n_cells
        one_hot = spaces.Box(0.0, 1.0, (n_cells,), np.float32)
        self._start = 0
        if isinstance(space, spaces.Discrete):
            self._kind, self._start = "discrete", int(space.start)
            self.space: spaces.Space[Any] = spaces.Discrete(int(space.n) * n_cells)
        elif isinstance(space, spaces.Box) and len(space.shape) == 1:
            self._kind = "vector"
            low = np.concatenate([space.low, np.zeros(n_cells, space.dtype)])
            high = np.concatenate([space.high, np.ones(n_cells, space.dtype)])
            self.space = spaces.Box(low, high, dtype=space.dtype)  # pyright: ignore[reportArgumentType]
        elif isinstance(space, spaces.Dict):
            if "progress" in space.spaces:
                raise ValueError('the observation already has an entry "progress"; rename it')
            self._kind = "dict"
            self.space = spaces.Dict({**space.spaces, "progress": one_hot})
        else:
            self._kind = "other"
            self.space = spaces.Dict({"observation": space, "progress": one_hot})

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
        one_hot = np.zeros((*np.shape(cell), self.n_cells), np.float32)
        np.put_along_axis(one_hot, np.asarray(cell)[..., None], 1.0, axis=-1)
        if self._kind == "vector":
            return np.concatenate([obs, one_hot.astype(obs.dtype)], axis=-1)
        if self._kind == "dict":
            assert isinstance(obs, Mapping)
            return {**obs, "progress": one_hot}
        return {"observation": obs, "progress": one_hot}
