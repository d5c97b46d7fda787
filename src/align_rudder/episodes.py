"""Episode: the one type for trajectories, and its npz file.

A file of episodes is flat: the steps of all episodes one after the other, and `lengths`. So
`np.savez(path, observations=…, actions=…, rewards=…, lengths=…)` with plain arrays is enough to
bring one's own data; entries of a dict observation are called `observations/NAME`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from align_rudder.files import (
    LARGEST,
    Anything,
    Bytes,
    Each,
    Flags,
    Format,
    Ints,
    Many,
    Maybe,
    check_arrays,
    check_depth,
    parse_json,
)

__all__ = [
    "Episode",
    "Tree",
    "check_storable",
    "load_episodes",
    "save_episodes",
    "select_top",
    "tree_index",
]

Tree = Any
"""An array, or a dict or tuple of trees: what a Gymnasium space of any kind stacks to."""

_EPISODES = Format(
    "align-rudder-episodes",
    1,
    groups=("",),  # whoever brings their own arrays may have others beside them
    header_needed=False,
    remedy="save the episodes again",
)
_INFOS = Many(Maybe(Many(Each(Anything()))))


def _holds_arrays(values: Any) -> bool:
    """Return whether this is a tuple of arrays (a Tuple space), not of numbers (a state)."""
    return isinstance(values, tuple) and any(
        isinstance(v, (np.ndarray, Mapping)) or _holds_arrays(v) for v in values
    )


def _stack(values: Any, name: str) -> Tree:
    """Turn arrays, or a list of observations (dicts and tuples included), into a tree of arrays."""
    if isinstance(values, Mapping):
        if not values or len({str(key) for key in values}) < len(values):
            raise ValueError(f"{name} is a dict of {list(values)}; names are needed, all different")
        return {str(key): _stack(value, f"{name}[{key!r}]") for key, value in values.items()}
    if isinstance(values, tuple) and _holds_arrays(values):
        return tuple(_stack(value, f"{name}[{i}]") for i, value in enumerate(values))
    if isinstance(values, Sequence) and values and isinstance(values[0], Mapping):
        keys = set(values[0])
        if any(not isinstance(v, Mapping) or set(v) != keys for v in values):
            raise ValueError(f"{name} has steps with different keys; every step needs {keys}")
        return {str(k): _stack([v[k] for v in values], f"{name}[{k!r}]") for k in values[0]}
    if isinstance(values, list) and values and _holds_arrays(values[0]):
        if any(not isinstance(v, tuple) or len(v) != len(values[0]) for v in values):
            raise ValueError(f"{name} has steps that are tuples of different lengths")
        return tuple(_stack([v[i] for v in values], f"{name}[{i}]") for i in range(len(values[0])))
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} is ragged: its steps have different shapes; every step needs the same"
        ) from error
    if array.dtype.hasobject:
        raise ValueError(
            f"{name} has elements of type {type(next(array.flat, None)).__name__}; "
            "numbers or strings are needed (for sequences of arbitrary symbols use fit_events)"
        )
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        kinds = {type(x).__name__ for x in np.asarray(values, dtype=object).ravel()}
        if kinds - {"str", "str_", "bytes", "bytes_"}:
            raise ValueError(f"{name} mixes {sorted(kinds)}; use numbers or strings, not both")
    if array.ndim == 0:
        raise ValueError(f"{name} is a single value ({array}); a sequence over time is needed")
    return array


def _first_length(tree: Any) -> int:
    """Return the length of the first array of a tree, -1 if there is none."""
    while isinstance(tree, dict | tuple) and tree:
        tree = next(iter(tree.values() if isinstance(tree, dict) else tree))
    return len(tree) if isinstance(tree, np.ndarray) and tree.ndim else -1


def _check_length(tree: Tree, length: int, name: str, hint: str) -> None:
    if isinstance(tree, (dict, tuple)):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            _check_length(part, length, f"{name}[{key!r}]", hint)
    elif np.shape(tree)[:1] != (length,):
        found = f"length {len(tree)}" if np.ndim(tree) else "a single value"
        raise ValueError(f"{name} has {found}, needed are {length}: {hint}")


def tree_index(tree: Tree, index: Any) -> Tree:
    """Return the same tree with every array indexed along time."""
    if isinstance(tree, dict):
        return {key: tree_index(part, index) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(tree_index(part, index) for part in tree)
    return tree[index]


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """One trajectory of T steps, checked when it is made.

    Args:
        observations: T+1 observations, the last one after the last action: an array, a dict or
            tuple of arrays, or a list of observations.
        actions: T actions, in any of the same forms.
        rewards: T finite rewards.
        terminated: Whether the environment ended the episode.
        truncated: Whether it was cut off, for example by a time limit.
        infos: None, or T dicts: the `info` of each step.

    Example:
        >>> episode = Episode([0, 1, 2], actions=[1, 1], rewards=[0.0, 1.0])
        >>> len(episode), episode.ret
        (2, 1.0)
        >>> Episode([0, 1], actions=[1, 1], rewards=[0.0, 1.0])
        Traceback (most recent call last):
        ...
        ValueError: observations has length 2, needed are 3: for 2 rewards an episode has 3
        observations, the last one seen after the last action
    """

    observations: Tree
    actions: Tree
    rewards: np.ndarray
    terminated: bool = True
    truncated: bool = False
    infos: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        try:
            kind = np.asarray(self.rewards).dtype.kind
            if kind in "cSU":
                raise ValueError("these are " + ("complex" if kind == "c" else "text"))
            rewards = np.array(self.rewards, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"rewards must be numbers, one for each step: {error}") from error
        if rewards.ndim != 1:
            raise ValueError(f"rewards has shape {rewards.shape}; one number for each step needed")
        steps = len(rewards)
        if steps == 0:
            raise ValueError("the episode has no steps; at least one is needed")
        usable = np.abs(rewards) <= LARGEST
        if not usable.all():
            bad = int(np.flatnonzero(~usable)[0])
            raise ValueError(
                f"rewards[{bad}] is {rewards[bad]}; every reward must be finite, below {LARGEST:g}"
            )
        observations, actions = (
            _stack(self.observations, "observations"),
            _stack(self.actions, "actions"),
        )
        acted = _first_length(actions)
        if acted not in (steps, -1) and _first_length(observations) == acted + 1:
            raise ValueError(f"rewards has length {steps}, needed are {acted}: one for each action")
        _check_length(
            observations,
            steps + 1,
            "observations",
            f"for {steps} rewards an episode has {steps + 1} observations, the last one seen after "
            "the last action",
        )
        _check_length(actions, steps, "actions", f"one action for each of the {steps} rewards")
        infos = self.infos
        if infos is not None:
            infos = list(infos)
            if any(not isinstance(info, Mapping) for info in infos):
                raise ValueError("infos must be dicts, one for each step")
            infos = [dict(info) for info in infos]
            if len(infos) != steps:
                raise ValueError(f"infos has length {len(infos)}, needed are {steps}: one a step")
        rewards.setflags(write=False)
        for field, value in [
            ("observations", observations),
            ("actions", actions),
            ("rewards", rewards),
            ("infos", infos),
            ("terminated", bool(self.terminated)),
            ("truncated", bool(self.truncated)),
        ]:
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def ret(self) -> float:
        """The undiscounted return, the sum of the rewards."""
        return float(self.rewards.sum())

    def __repr__(self) -> str:
        end = "terminated" if self.terminated else "truncated" if self.truncated else "unfinished"
        return f"Episode({len(self)} steps, return {self.ret:g}, {end})"

    def slice(self, start: int, stop: int) -> Episode:
        """Return steps `start` to `stop` (exclusive) as an episode; it ends as the whole does
        only if it holds the last step.
        """  # noqa: D205
        if not 0 <= start < stop <= len(self):
            raise ValueError(
                f"steps {start}:{stop} are not a part of an episode of {len(self)} steps"
            )
        last = stop == len(self)
        return Episode(
            tree_index(self.observations, np.s_[start : stop + 1]),
            tree_index(self.actions, np.s_[start:stop]),
            self.rewards[start:stop],
            terminated=self.terminated and last,
            truncated=self.truncated and last,
            infos=None if self.infos is None else self.infos[start:stop],
        )


def select_top(returns: Sequence[float], lengths: Sequence[int], top_n: int | None) -> np.ndarray:
    """Return the indices of the `top_n` episodes, by return and by shortness among equals.

    The order of the input is kept among what is chosen.
    """
    n = len(returns)
    if top_n is None or top_n >= n:
        return np.arange(n)
    order = np.lexsort((np.asarray(lengths), -np.asarray(returns, dtype=float)))
    return np.sort(order[:top_n])


def _flatten(tree: Tree, name: str) -> dict[str, np.ndarray]:
    if isinstance(tree, dict):
        for key in tree:
            if "/" in key or key.startswith("(") or not key:
                raise ValueError(
                    f"the key {key!r} of {name} cannot be stored: a key must not be empty, hold a "
                    "slash or begin with a bracket; rename it"
                )
        items = tree.items()
    elif isinstance(tree, tuple):
        items = ((f"({i})", part) for i, part in enumerate(tree))
    else:
        return {name: tree}
    return {k: v for key, part in items for k, v in _flatten(part, f"{name}/{key}").items()}


def _unflatten(arrays: Mapping[str, np.ndarray], name: str) -> Tree:
    if name.count("/") > 32:
        raise ValueError(f"{name.split('/')[0]} are nested more than 32 levels deep")
    prefix = f"{name}/"
    keys = list(
        dict.fromkeys(k[len(prefix) :].split("/")[0] for k in arrays if k.startswith(prefix))
    )
    if name in arrays:
        if keys:
            raise ValueError(f"{name} is there, and {name}/{keys[0]} too; keep one of the two")
        return arrays[name]
    if not keys:
        raise ValueError(f"the file has no {name!r}; it has {sorted(arrays)}")
    parts = {key: _unflatten(arrays, prefix + key) for key in keys}
    if all(key.startswith("(") for key in keys):
        if set(keys) != {f"({i})" for i in range(len(keys))}:
            raise ValueError(f"the parts of {name} are {sorted(keys)}; (0), (1), … are needed")
        return tuple(parts[f"({i})"] for i in range(len(keys)))
    return parts


def save_episodes(path: str | os.PathLike[str], episodes: Sequence[Episode]) -> None:
    """Save episodes of one environment as an npz file (see the module's notes)."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"path is a {type(path).__name__}; the file comes first: save_episodes(path, episodes)"
        )
    if isinstance(episodes, Episode) or not isinstance(episodes, Iterable):
        raise ValueError(f"episodes is {episodes!r}; a list of them is needed")
    episodes = list(episodes)
    for i, episode in enumerate(episodes):
        if not isinstance(episode, Episode):
            raise ValueError(f"episodes[{i}] is a {type(episode).__name__}; an Episode is needed")
    if not episodes:
        raise ValueError("there are no episodes to save")
    flat = [_parts(episode) for episode in episodes]
    for i, parts in enumerate(flat):
        _check_alike(parts, flat[0], f"episode {i}", "episode 0")
    arrays = {key: np.concatenate([parts[key] for parts in flat]) for key in flat[0]}
    arrays["rewards"] = np.concatenate([e.rewards for e in episodes])
    arrays["lengths"] = np.array([len(e) for e in episodes])
    arrays["terminated"] = np.array([e.terminated for e in episodes])
    arrays["truncated"] = np.array([e.truncated for e in episodes])
    if any(e.infos is not None for e in episodes):
        text = _infos_as_text([e.infos for e in episodes])
        arrays["infos"] = np.frombuffer(text.encode(), dtype=np.uint8)
    _EPISODES.save(path, {}, arrays)


def check_storable(episode: Episode, first: Episode, name: str) -> None:
    """Raise a `ValueError` unless a file can hold an episode, beside the first one of that file.

    Args:
        episode: The episode.
        first: The first one, which may be the same.
        name: What the episode is called.
    """
    _check_alike(_parts(episode), _parts(first), name, "the first one of its file")
    if episode.infos is not None:
        try:
            _infos_as_text([episode.infos])
        except ValueError as error:
            raise ValueError(f"{name} cannot be written: {error}") from None


def _parts(episode: Episode) -> dict[str, np.ndarray]:
    """Return the arrays of an episode, as its file names them."""
    return {
        **_flatten(episode.observations, "observations"),
        **_flatten(episode.actions, "actions"),
    }


def _check_alike(
    parts: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray], name: str, named: str
) -> None:
    """Raise a `ValueError` unless the arrays of two episodes fit together in one file."""
    if parts.keys() != first.keys() or any(
        parts[k].shape[1:] != first[k].shape[1:] or parts[k].dtype.kind != first[k].dtype.kind
        for k in parts
    ):
        raise ValueError(
            f"{name} has other observations or actions than {named}; one file holds episodes of "
            "one environment"
        )


def _infos_as_text(infos: Sequence[Sequence[Mapping[str, Any]] | None]) -> str:
    """Return the infos of episodes as a file has them, or say what it cannot store."""
    try:
        text = json.dumps(infos, default=_jsonable)
    except TypeError as error:
        raise ValueError(f"infos cannot be stored as JSON: {error}") from error
    check_depth(text)
    return text


def _jsonable(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise ValueError(
        f"infos hold a {type(value).__name__}, which JSON cannot store; keep numbers, strings, "
        "lists and dicts, or drop infos"
    )


def load_episodes(path: str | os.PathLike[str]) -> list[Episode]:
    """Load the episodes of an npz file, one written by `save_episodes` or by `np.savez`."""
    with _EPISODES.open(path) as contents:
        arrays = contents.others
        for name in ("rewards", "lengths"):
            if name not in arrays:
                raise ValueError(
                    f"there is no {name!r}; a file of episodes holds observations, actions, "
                    f"rewards and lengths (steps of each episode), this one {sorted(arrays)}"
                )
        lengths = _lengths(np.atleast_1d(arrays["lengths"]))
        n, steps = len(lengths), sum(lengths.tolist())
        hint = f"lengths add up to {steps} steps in {n} episodes (each with one more observation)"
        parts = {
            "rewards": arrays["rewards"],
            "actions": _unflatten(arrays, "actions"),
            "observations": _unflatten(arrays, "observations"),
        }
        for name, tree in parts.items():
            _check_length(tree, steps + n * (name == "observations"), name, hint)
        ends = {
            name: np.broadcast_to(_flags(arrays.get(name, np.array(default)), name, n), n)
            for name, default in (("terminated", True), ("truncated", False))
        }
        infos = [None] * n if "infos" not in arrays else _infos(arrays["infos"], n)
        episodes = []
        for i, (length, end) in enumerate(zip(lengths, np.cumsum(lengths), strict=True)):
            try:
                episode = Episode(
                    tree_index(parts["observations"], np.s_[end - length + i : end + i + 1]),
                    tree_index(parts["actions"], np.s_[end - length : end]),
                    parts["rewards"][end - length : end],
                    terminated=bool(ends["terminated"][i]),
                    truncated=bool(ends["truncated"][i]),
                    infos=infos[i],
                )
            except ValueError as error:
                raise ValueError(f"{path}, episode {i}: {error}") from error
            episodes.append(episode)
    return episodes


def _lengths(lengths: np.ndarray) -> np.ndarray:
    if not lengths.size:
        raise ValueError("lengths is empty, so it holds no episodes; one or more are needed")
    found = check_arrays({"lengths": lengths}, {"lengths": Ints("episodes", low=-(2**62))})
    if (lengths <= 0).any():
        raise ValueError(f"every entry of lengths must be positive, got {lengths.min()}")
    return found["lengths"]


def _flags(flags: np.ndarray, name: str, n: int) -> np.ndarray:
    return Flags(*(["episodes"] if flags.ndim else [])).check(flags, name, {"episodes": n})


def _infos(data: np.ndarray, n: int) -> list[Any]:
    text = Bytes().check(data, "infos", {}).tobytes().decode()
    infos = _INFOS.check(parse_json(text, constants=True), "infos")
    if len(infos) != n:
        raise ValueError(f"infos are of {len(infos)} episodes; there are {n}")
    return infos
