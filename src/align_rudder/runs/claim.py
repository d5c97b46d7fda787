"""A folder belongs to one configuration: another one is refused, with what differs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from align_rudder.files import Anything, Each, read_json, shown, write_json

__all__ = ["OtherConfigurationError", "claim", "differences"]

_SHOWN = 5
_DIGEST = re.compile("[0-9a-f]{16,}")  # tells contents apart, but nobody can read it


class OtherConfigurationError(ValueError):
    """A file or folder that is whole, but belongs to another configuration.

    Args:
        where: What belongs to it.
        differences: Where the two configurations differ, in words.
    """

    def __init__(self, where: str | os.PathLike[str], differences: list[str]) -> None:
        self.differences = differences
        shown, more = differences[:_SHOWN], len(differences) - _SHOWN
        listed = "; ".join([*shown, f"and {more} more"] if more > 0 else shown)
        super().__init__(
            f"{os.fspath(where)} belongs to another configuration: {listed}; use that one again, "
            "or give another folder (--out)"
        )


def claim(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    *,
    file: str = "config.json",
    empty: bool,
) -> None:
    """Write down what the contents of a folder depend on, or refuse a folder of something else.

    Args:
        folder: The folder, held with `only_here`.
        config: The configuration; anything that JSON can hold.
        file: The file in the folder that holds it.
        empty: Whether nothing is finished in the folder yet; then any configuration may take it.

    Raises:
        OtherConfigurationError: If the folder belongs to another configuration.
        ValueError: If it is not known what it belongs to.
    """
    path, wanted = Path(folder) / file, json.loads(json.dumps(config))
    if not path.exists() and not empty:
        raise ValueError(
            f"{folder} has results but no {file}, so it is not known how they were made; put it "
            "back, or give another folder (--out)"
        )
    if path.exists():
        remedy = "put it back, or give another folder (--out)"
        found = read_json(path, Each(Anything()), remedy=remedy)
        if found == wanted:
            return
        if not empty:
            raise OtherConfigurationError(folder, differences(found, wanted))
    write_json(path, wanted)


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return in words where two configurations differ.

    Example:
        >>> differences({"seed": 0, "ppo": {"gamma": 0.9}}, {"seed": 0, "ppo": {"gamma": 0.99}})
        ['ppo.gamma is 0.9 there and 0.99 here']
    """
    out = []
    for name in sorted({*found, *wanted}):
        a, b = found.get(name), wanted.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += [f"{name}.{line}" for line in differences(a, b)]
        elif name not in found:
            out.append(f"{name} is not known there and {shown(b)} here")
        elif name not in wanted:
            out.append(f"{name} is {shown(a)} there and not known here")
        elif a != b and all(isinstance(x, str) and _DIGEST.fullmatch(x) for x in (a, b)):
            out.append(f"{name} is another one there")
        elif a != b:
            out.append(f"{name} is {shown(a)} there and {shown(b)} here")
    return out
