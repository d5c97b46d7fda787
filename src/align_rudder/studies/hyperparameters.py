"""Files of hyper-parameters: what `align-rudder tune` chose for each method."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from align_rudder.files import (
    Choice,
    Kind,
    Number,
    Table,
    Text,
    kind_like,
    read_json,
    write_json,
)

__all__ = ["add_parameters", "kind_of", "kinds_of", "parameters_in"]

Parameters = dict[str, dict[str, Any]]


_SHARES = Number(0, 1)
_RANGES: dict[str, Kind] = {
    **dict.fromkeys(("gamma", "learning_rate", "trace"), _SHARES),
    **dict.fromkeys(("reward_rate", "share"), Number(above=0, high=1)),
}


def kind_of(name: str, value: Any) -> Kind:
    """Return what a hyper-parameter may be: in its range if that is known, else like a value.

    Example:
        >>> kind_of("gamma", 0.99).check(7, "gamma")
        Traceback (most recent call last):
        ...
        ValueError: gamma is 7; a number at least 0 and at most 1 is needed
    """
    return _RANGES.get(name) or kind_like(value)


def kinds_of(grid: Mapping[str, Sequence[Any]]) -> Table:
    """Return what the hyper-parameters of a grid may be: one of its names, or a number."""
    return Table(
        {
            name: Choice(tuple(values)) if isinstance(values[0], str) else kind_of(name, values[0])
            for name, values in grid.items()
        }
    )


def parameters_in(
    path: str | os.PathLike[str], kinds: Mapping[str, Table], remedy: str
) -> Parameters:
    """Return the hyper-parameters of the methods that a file holds.

    Args:
        path: The file.
        kinds: What the hyper-parameters of each method may be; a file may hold some of the methods.
        remedy: What to do about a file that cannot be read.
    """
    held = Table(kinds, optional=tuple(kinds))
    kind = Table({"how": Text(), "parameters": held}, optional=("how",))
    return read_json(path, kind, remedy=remedy)["parameters"]


def add_parameters(
    folder: str | os.PathLike[str],
    how: str,
    chosen: Parameters,
    read: Callable[[Path], Parameters],
) -> None:
    """Write what a search chose into its folder; other methods keep what the file has for them.

    Args:
        folder: The folder of the search.
        how: How it was searched, in words.
        chosen: The chosen hyper-parameters of each method.
        read: Reads the file that is there already.
    """
    path = Path(folder) / "hyperparameters.json"
    try:
        others = read(path) if path.exists() else {}
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged, and was left as it is. All trials are kept beside it: delete this "
            "file and give the same command again, which makes it anew without running them (and "
            "again for methods of other calls)"
        ) from error
    write_json(path, {"how": how, "parameters": {**others, **chosen}})
