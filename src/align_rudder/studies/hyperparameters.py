"""Files of hyper-parameters: what `align-rudder tune` chose for each method."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from align_rudder.files import Choice, Table, Text, kind_like, read_json, write_json

__all__ = ["add_parameters", "kinds_of", "parameters_in"]

Parameters = dict[str, dict[str, Any]]


def kinds_of(grid: Mapping[str, Sequence[Any]]) -> Table:
    """Return what the hyper-parameters of a grid may be: one of its names, or a number."""
    return Table(
        {
            name: Choice(tuple(values)) if isinstance(values[0], str) else kind_like(values[0])
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
    others = read(path) if path.exists() else {}
    write_json(path, {"how": how, "parameters": {**others, **chosen}})
