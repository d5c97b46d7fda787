"""Formats: what a kind of npz file holds, declared once and checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from align_rudder.files.arrays import Array, check_arrays
from align_rudder.files.kinds import Kind, Table
from align_rudder.files.npz import load_npz, save_npz
from align_rudder.files.reading import said_of

__all__ = ["Contents", "Format"]


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes:
        header: Its header, checked.
        arrays: The arrays that the format declares, checked and in their types.
        others: The arrays of its groups, as they were stored.
    """

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    others: dict[str, np.ndarray]

    def group(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays of a group by their names without the prefix."""
        return {k.removeprefix(prefix): v for k, v in self.others.items() if k.startswith(prefix)}

    def checked(
        self, prefix: str, needed: Mapping[str, Array], sizes: Mapping[str, int] | None = None
    ) -> dict[str, np.ndarray]:
        """Return the arrays of a group, checked; see `check_arrays`."""
        return check_arrays(self.group(prefix), needed, sizes, prefix)


@dataclass(frozen=True)
class Format:
    """What a kind of npz file holds.

    Args:
        kind: Name of the format, in the header of each file.
        version: The version that is written and read.
        header: The other entries of the header.
        arrays: The arrays.
        groups: Beginnings of the names of further arrays, which whoever reads the file checks.
        header_needed: Whether a file without a header will do, as `np.savez` writes it.
        remedy: What to do about a damaged file, in words.
        older: What makes the header of an older file one of today, from an earlier release.
    """

    kind: str
    version: int
    header: Mapping[str, Kind] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    header_needed: bool = True
    remedy: str = "put back a copy, or write it again"
    older: Callable[[dict[str, Any]], dict[str, Any]] = dict

    def save(
        self,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        level: int = 6,
    ) -> None:
        """Save a file; see `save_npz`."""
        save_npz(path, self.kind, self.version, header, arrays, level)

    @contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[Contents]:
        """Read a file and check it; errors raised within name the file and what to do."""
        header, arrays = load_npz(path, self.kind, self.version, header_needed=self.header_needed)
        with said_of(path, self.remedy):
            said = {k: v for k, v in header.items() if k not in ("format", "version")}
            said = self.older(said)
            if header:
                Table(self.header).check(said, "its header")
            others = {k: v for k, v in arrays.items() if k.startswith(self.groups)}
            known = {k: v for k, v in arrays.items() if k not in others}
            yield Contents(said, check_arrays(known, self.arrays), others)
