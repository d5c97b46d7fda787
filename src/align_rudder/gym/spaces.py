"""Observation spaces with something more in them: the position on the profile, the time left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

__all__ = ["ProgressSpace", "TimeSpace"]


class ProgressSpace:
    """Observations with the position on the profiles appended.

    A vector gets a one-hot of the position at its end, a number becomes number × positions +
    position, a dict gets an entry "progress" (one-hot); anything else becomes a dict of
    "observation" and "progress".

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
        elif isinstance(space, spaces.Box) and len(space.shape) == 1:
            self._kind = "vector"
            low = np.concatenate([space.low, np.zeros(n_cells, space.dtype)])
            high = np.concatenate([space.high, np.ones(n_cells, space.dtype)])
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
        one_hot = np.zeros((*np.shape(cell), self.n_cells), np.float32)
        np.put_along_axis(one_hot, np.asarray(cell)[..., None], 1.0, axis=-1)
        if self._kind == "vector":
            return np.concatenate([obs, one_hot.astype(obs.dtype)], axis=-1)
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
