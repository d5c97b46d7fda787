"""Observation spaces with something more in them: the position on the profile, the time left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder.files import shown

__all__ = ["ProgressSpace", "TimeSpace", "batch_tree", "check_observation"]


MAX_BLOCKS = 4096
"""Entries of a vector with its blocks; longer ones would fill the memory of replay buffers."""


def batch_tree(space: spaces.Space[Any], obs: Any) -> Any:
    """Return a batch of observations as arrays with an entry for each environment.

    Gymnasium batches what is no array (texts, sequences, graphs) as tuples, which cannot be told
    from a `Tuple` space; here they are arrays of objects.

    Args:
        space: The space of one environment.
        obs: Observations of several, as a vector environment returns them.
    """
    if isinstance(space, spaces.Dict):
        return {key: batch_tree(part, obs[key]) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(batch_tree(part, seen) for part, seen in zip(space, obs, strict=True))
    if isinstance(obs, tuple):
        out = np.empty(len(obs), object)
        out[:] = obs
        return out
    return obs


def check_observation(
    space: spaces.Space[Any], obs: Any, batch: tuple[int, ...] = (), name: str = "the observation"
) -> None:
    """Raise a `ValueError` for an observation of another shape than its space, or another state.

    Args:
        space: The space of one environment.
        obs: An observation, or a batch of them.
        batch: The shape of the batch.
        name: What the observation is called.
    """
    if isinstance(space, spaces.Box):  # each step of an environment comes here
        if isinstance(obs, np.ndarray) and obs.shape == (*batch, *space.shape):
            return
    elif isinstance(space, spaces.Discrete):
        if isinstance(obs, int | np.integer) and space.start <= obs < space.start + space.n:
            return  # and here
        states = np.asarray(obs)
        if states.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} is {shown(obs)}, but the observation space says {space}; let the "
                "environment return what its space declares"
            )
        at, n = states - int(space.start), int(space.n)
        if ((at < 0) | (at >= n)).any():
            _refuse(name, at, int(space.start), n)
        return
    if isinstance(space, spaces.Dict):
        named = isinstance(obs, dict) or isinstance(obs, Mapping)  # noqa: SIM101  the first is fast
        for key, part in space.spaces.items():
            if not named or key not in obs:
                found = f"entries {list(obs)}" if isinstance(obs, Mapping) else type(obs).__name__
                raise ValueError(
                    f"{name} has no entry {key!r} ({found}), but the observation space says so; "
                    "let the environment return what its space declares"
                )
            seen = obs[key]
            if not isinstance(part, spaces.Box) or np.shape(seen) != (*batch, *part.shape):
                check_observation(part, seen, batch, f"{name}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if not isinstance(obs, tuple | list) or len(obs) != len(space):
            raise ValueError(
                f"{name} is {shown(obs)}, but the observation space says a tuple of {len(space)}; "
                "let the environment return what its space declares"
            )
        for i, (part, seen) in enumerate(zip(space, obs, strict=True)):
            check_observation(part, seen, batch, f"{name}[{i}]")
    elif space.shape is not None and np.shape(obs) != (*batch, *space.shape):
        raise ValueError(
            f"{name} has shape {np.shape(obs)}, but the observation space says "
            f"{(*batch, *space.shape)}; let the environment return what its space declares, or "
            "declare the space of what it returns"
        )


MAX_LEVELS = 32
"""Values of a component of whole numbers that is taken as a one-hot, as a coordinate of a grid."""


def block_entries(width: int, n_cells: int) -> int:
    """Return how many entries a vector has with a block for each position."""
    return width + n_cells * (width + 1)


def fits_in_blocks(shape: tuple[int, ...], n_cells: int) -> bool:
    """Return whether observations of that shape get a block for each position."""
    return len(shape) == 1 and block_entries(shape[0], n_cells) <= MAX_BLOCKS


def in_blocks(obs: Any, cell: Any, n_cells: int) -> np.ndarray:
    """Return a vector followed by a block for each position; its own holds the vector and a 1.

    Args:
        obs: A vector (d,), or a batch (n, d).
        cell: Its position, or those of the batch (n,).
        n_cells: Number of positions.

    Example:
        >>> in_blocks(np.array([5, 7]), 1, 3)
        array([5, 7, 0, 0, 0, 5, 7, 1, 0, 0, 0])
    """
    obs = np.asarray(obs)
    if not n_cells:
        return obs
    *batch, width = obs.shape
    if not batch:  # each step of an environment comes here
        out = np.zeros(block_entries(width, n_cells), obs.dtype)
        first = width + int(cell) * (width + 1)
        out[:width] = out[first : first + width] = obs
        out[first + width] = 1
        return out
    blocks = np.zeros((*batch, n_cells, width + 1), obs.dtype)
    own = np.concatenate([obs, np.ones((*batch, 1), obs.dtype)], axis=-1)
    np.put_along_axis(blocks, np.asarray(cell)[..., None, None], own[..., None, :], axis=-2)
    return np.concatenate([obs, blocks.reshape(*batch, -1)], axis=-1)


class ProgressSpace:
    """Observations with the position on the profiles appended.

    A vector x becomes (x, 0, …, x, 1, …, 0): a block for each position follows it, and that of the
    position where the episode stands holds x again, and a 1. A number becomes number × positions +
    position. So every position has inputs and a bias of its own, and less of what a network learns
    at one leaks into the next, while what holds everywhere is learned once. Several numbers
    (MultiDiscrete) are taken as a vector of one-hots, and so is a Box of whole numbers with at most
    32 values each: from the coordinates of a grid a small network hardly learns to stop at a cell,
    from one-hots it does. A dict gets an entry "progress": the blocks
    of all its vectors and numbers, one after the other. Where it holds something else, a picture or
    a text, or where there would be more than 4096 entries, "progress" is the position alone,
    one-hot. Anything else becomes a dict of "observation" and "progress".

    Args:
        space: The observation space.
        n_cells: Number of positions.
        key: What the entry of a dict is called.
    """

    def __init__(self, space: spaces.Space[Any], n_cells: int, key: str = "progress") -> None:
        self.n_cells, self._key = n_cells, key
        one_hot = spaces.Box(0.0, 1.0, (n_cells,), np.float32)
        self._start = 0
        self._choices: spaces.MultiDiscrete | None = None
        vector = space
        if (choices := _choices(space)) is not None and len(choices.shape) == 1:
            self._choices = choices
            vector = spaces.Box(0, 1, (int(choices.nvec.sum()),), np.uint8)
        elif isinstance(space, spaces.MultiBinary):
            vector = spaces.Box(0, 1, space.shape, np.int8)
        if isinstance(space, spaces.Discrete):
            self._kind, self._start = "discrete", int(space.start)
            self.space: spaces.Space[Any] = spaces.Discrete(int(space.n) * n_cells)
        elif isinstance(vector, spaces.Box) and fits_in_blocks(vector.shape, n_cells):
            self._kind = "vector"
            low, high = np.minimum(vector.low, 0), np.maximum(vector.high, 0)
            low = np.append(vector.low, np.tile(np.append(low, 0), n_cells))
            high = np.append(vector.high, np.tile(np.append(high, 1), n_cells))
            dtype: Any = vector.dtype
            self.space = spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
        elif isinstance(space, spaces.Dict):
            self._kind, self._parts = "dict", space
            low, high = _bounds(space) or (np.empty(0), np.empty(0))
            if not fits_in_blocks((len(low),), n_cells):
                low = high = np.empty(0)
            self._width = len(low)
            low, high = (
                np.tile(np.append(ends, last), n_cells).astype(np.float32)
                for ends, last in ((np.minimum(low, 0), 0), (np.maximum(high, 0), 1))
            )
            self.space = _with_entry(space, key, spaces.Box(low, high, dtype=np.float32))
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
            return in_blocks(self._vector(obs), cell, self.n_cells)
        if self._kind == "dict":
            assert isinstance(obs, Mapping)
            batch = np.shape(cell)
            seen = np.zeros((*batch, 0), np.float32)
            if self._width:
                seen = _flat(self._parts, obs, batch)
            return {**obs, self._key: in_blocks(seen, cell, self.n_cells)[..., self._width :]}
        one_hot = np.zeros((*np.shape(cell), self.n_cells), np.float32)
        np.put_along_axis(one_hot, np.asarray(cell)[..., None], 1.0, axis=-1)
        return {"observation": obs, self._key: one_hot}

    def _vector(self, obs: Any) -> np.ndarray:
        """Return an observation as the vector that blocks are made of."""
        if self._choices is None:
            return np.asarray(obs, self.space.dtype)
        return _one_hots(self._choices, obs, np.shape(obs)[:-1]).astype(np.uint8)


def _choices(space: spaces.Space[Any]) -> spaces.MultiDiscrete | None:
    """Return a space of a few numbers, each of a few values, as one of choices; else None."""
    if isinstance(space, spaces.MultiDiscrete):
        return space
    if not isinstance(space, spaces.Box) or np.dtype(space.dtype).kind not in "iu":
        return None
    low, high = space.low.astype(float), space.high.astype(float)
    if len(space.shape) > 1 or not 1 < np.max(high - low, initial=0) < MAX_LEVELS:
        return None
    return spaces.MultiDiscrete((high - low + 1).astype(np.int64), start=low.astype(np.int64))


def _one_hots(
    space: spaces.MultiDiscrete, obs: Any, batch: tuple[int, ...], name: str = "the observation"
) -> np.ndarray:
    """Return the one-hots of choices, one after the other.

    Args:
        space: The choices.
        obs: What was chosen, or a batch of that.
        batch: The shape of the batch.
        name: What the observation is called if it is out of bounds.
    """
    start, count = space.start.ravel(), space.nvec.ravel()
    at = np.asarray(obs).astype(np.int64).reshape(*batch, -1) - start
    if ((at < 0) | (at >= count)).any():
        *_, i = np.argwhere((at < 0) | (at >= count))[0]
        where = name if space.shape == () else f"{name}[{i}]"
        _refuse(where, at[..., i], int(start[i]), int(count[i]))
    ones = [np.eye(int(n), dtype=np.float32)[at[..., i]] for i, n in enumerate(count)]
    return np.concatenate(ones, axis=-1)


def _refuse(name: str, at: np.ndarray, start: int, count: int) -> None:
    """Raise a `ValueError` for a number of which one or more lie outside of the space."""
    bad = at[(at < 0) | (at >= count)].flat[0] + start
    raise ValueError(
        f"{name} is {bad}, but the observation space says {start} to {start + count - 1}; let the "
        "environment return what its space declares, or declare a larger one"
    )


def _bounds(space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the least and largest values of a space as one vector; None if it is none."""
    if (choices := _choices(space)) is not None:
        space = choices
    if isinstance(space, spaces.Box) and len(space.shape) < 2:
        return np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
    if isinstance(space, spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete):
        width = spaces.flatdim(space)
        return np.zeros(width), np.ones(width)
    if isinstance(space, spaces.Dict | spaces.Tuple):
        found = [_bounds(part) for part in _parts(space)]
        known = [ends for ends in found if ends is not None]
        if len(known) < len(found) or not known:
            return None
        low, high = (np.concatenate(ends) for ends in zip(*known, strict=True))
        return low, high
    return None


def _parts(space: spaces.Dict | spaces.Tuple) -> list[spaces.Space[Any]]:
    return [*space.values()] if isinstance(space, spaces.Dict) else [*space]


def _flat(
    space: spaces.Space[Any], obs: Any, batch: tuple[int, ...], name: str = "the observation"
) -> np.ndarray:
    """Return an observation, or a batch of them, as one vector (…, d); numbers are one-hot."""
    if isinstance(space, spaces.Dict):
        parts = [
            np.asarray(obs[key], np.float32).reshape(*batch, -1)
            if isinstance(part, spaces.Box) and np.dtype(part.dtype).kind == "f"
            else _flat(part, obs[key], batch, f"{name}[{key!r}]")
            for key, part in space.spaces.items()
        ]
        return np.concatenate(parts, axis=-1)
    if isinstance(space, spaces.Tuple):
        parts = [
            _flat(part, seen, batch, f"{name}[{i}]")
            for i, (part, seen) in enumerate(zip(space, obs, strict=True))
        ]
        return np.concatenate(parts, axis=-1)
    if isinstance(space, spaces.Discrete):
        at, n = np.asarray(obs) - int(space.start), int(space.n)
        if ((at < 0) | (at >= n)).any():
            _refuse(name, at, int(space.start), n)
        return np.eye(n, dtype=np.float32)[at]
    if (choices := _choices(space)) is not None:
        return _one_hots(choices, obs, batch, name)
    return np.asarray(obs, np.float32).reshape(*batch, -1)


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
