"""Arrays computed from trajectories (small pictures, features), kept as memory maps on disk.

An array is one npy file, written whole or not at all. Its name holds a fingerprint of the files it
was computed from (sizes and times of change), so a changed source is computed again. Reading maps
the file: only the rows that are touched come into memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import numpy as np
from filelock import FileLock

from align_rudder.files import map_npy, write_whole
from align_rudder.minerl.trajectory import Trajectory

__all__ = ["ArrayCache"]


class ArrayCache:
    """Arrays of T+1 rows for trajectories, computed once.

    Args:
        folder: Where they are kept; made if it is not there. Delete it at any time.

    Example:
        ::

            cache = ArrayCache("cache/minerl")
            codes = cache.array(trajectory, "codes-1", encode, (32,), np.float32)    # (T+1, 32)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{folder} is a file; the cache needs a folder of its own")

    def array(
        self,
        trajectory: Trajectory,
        name: str,
        make: Callable[[Trajectory], Iterable[np.ndarray]],
        shape: tuple[int, ...],
        dtype: np.typing.DTypeLike,
    ) -> np.ndarray:
        """Return an array (T+1, *shape), computed with `make` if it is not there.

        Args:
            trajectory: What it belongs to.
            name: What it is; a new name for anything computed in another way.
            make: Gives its T+1 rows in blocks (n, *shape), one after the other.
            shape: Shape of a row.
            dtype: Type of the numbers.

        Returns:
            A read-only memory map.
        """
        if not re.fullmatch(r"[\w.+-]+", name):
            raise ValueError(
                f"name={name!r} cannot be in the name of a file; use letters, digits, ., +, - and _"
            )
        folder = self.folder / trajectory.task / trajectory.name
        path = folder / f"{name}@{_fingerprint(trajectory)}.npy"
        kind, wanted = np.dtype(dtype), (len(trajectory) + 1, *shape)
        if not path.exists():
            try:
                _make(path, name, lambda file: _write(file, make(trajectory), name, kind, wanted))
            except OSError as error:
                size = math.prod(wanted) * kind.itemsize / 1e6
                raise ValueError(
                    f"cannot keep {name} of {trajectory.name} ({size:.0f} MB) in the cache "
                    f"{self.folder}: {error.strerror or error}; give a folder that can be written "
                    "to and has room"
                ) from error
        try:
            array = map_npy(path)
        except ValueError as error:
            raise ValueError(
                f"{path} is damaged ({error}); delete it, and it is computed again"
            ) from error
        if array.shape != wanted or array.dtype != kind:
            raise ValueError(
                f"{path} holds {array.dtype} {array.shape}, asked for is {kind} {wanted}; use "
                "another name for another array, or delete the file"
            )
        return array


def _make(path: Path, name: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write an array, once even if several processes ask for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The lock dies with its process, so whatever lies here unfinished is nobody's.
    with FileLock(path.parent / f".{name}.lock"):
        if not path.exists():
            for old in (*path.parent.glob(f"{name}@*.npy"), *path.parent.glob(f".{name}@*.tmp")):
                old.unlink()
            write_whole(path, write)


def _fingerprint(trajectory: Trajectory) -> str:
    """Return 16 digits that change when a file of the trajectory does."""
    states = []
    for name in ("metadata.json", "rendered.npz", "recording.mp4"):
        try:
            status = os.stat(trajectory.path / name)
        except FileNotFoundError:
            raise trajectory.damaged(f"it has no {name}") from None
        states.append((name, status.st_size, status.st_mtime_ns))
    about = json.dumps([str(trajectory.path.resolve()), states])
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _write(
    file: IO[bytes],
    blocks: Iterable[np.ndarray],
    name: str,
    dtype: np.dtype,
    shape: tuple[int, ...],
) -> None:
    """Write an array of this type and shape as an npy file, block by block."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    n = 0
    for block in blocks:
        if np.shape(block)[1:] != shape[1:]:
            raise ValueError(
                f"a row of {name} has shape {np.shape(block)[1:]}; {shape[1:]} is needed"
            )
        file.write(np.ascontiguousarray(block, dtype).tobytes())
        n += len(block)
    if n != shape[0]:
        raise ValueError(f"{name} has {n} rows; {shape[0]} are needed, one an observation")
