"""What the wrappers need to know of Gymnasium spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder.events import EventEncoder, StateEvents

__all__ = ["ProgressSpace", "check_space"]


def _shapes(space: spaces.Space[Any], prefix: str = "") -> dict[str, list[int]]:
    """Return the shape of each part of an observation, named as the encoders name them."""
    if isinstance(space, spaces.Dict):
        return {n: s for k in sorted(space) for n, s in _shapes(space[k], f"{prefix}{k}.").items()}
    if isinstance(space, spaces.Tuple):
        parts = (_shapes(s, f"{prefix}{i}.") for i, s in enumerate(space.spaces))
        return {n: s for part in parts for n, s in part.items()}
    return {prefix[:-1]: list(space.shape or ())}


def _unlike(needed: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return how the entries a model was fitted on differ from those of an environment."""
    said = {
        "without": sorted(found.keys() - needed.keys()),
        "with": sorted(needed.keys() - found.keys()),
        "of other shapes in": sorted(n for n in found if needed.get(n, found[n]) != found[n]),
    }
    return ", ".join(f"{what} {names}" for what, names in said.items() if names)


def check_space(encoder: EventEncoder, space: spaces.Space[Any]) -> None:
    """Raise an error if an encoder was fitted on other observations than the space has."""
    needed = encoder.observation_shapes()
    if needed is None:
        return
    found = whole = _shapes(space)
    keys = getattr(encoder, "keys", None)
    if keys is not None:
        found = {n: s for n, s in found.items() if n.split(".")[0] in keys}
    scalars = isinstance(space, spaces.Tuple) and all(shape == [] for shape in found.values())
    if scalars and needed == {"": [len(found)]}:
        return  # a tuple of numbers, which an Episode holds as one vector
    if found != needed:
        advice = "wrap the environment the model was fitted for"
        if "" in needed or "" in whole:
            raise ValueError(
                f"the model was fitted on observations of shapes {needed}, the environment has "
                f"{whole} ({space}); {advice}"
            )
        raise ValueError(
            f"the model was fitted on observations {_unlike(needed, found)}, unlike the "
            f"environment's; {advice}, or fit events on entries that both have (keys=…)"
        )
    if isinstance(encoder, StateEvents) and isinstance(space, spaces.Discrete):
        low, high = int(encoder.states_.min()), int(encoder.states_.max())
        if low < space.start or high >= space.start + space.n:
            raise ValueError(
                f"the model was fitted on states {low} to {high}, the environment has {space}; "
                "wrap the environment the model was fitted for"
            )


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
