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

from align_rudder.files import write_whole
from align_rudder.minerl.spaces import FRAME_SIZE
from align_rudder.minerl.trajectory import Trajectory

__all__ = ["ArrayCache"]


class ArrayCache:
    """Arrays of T+1 rows for trajectories, computed once.

    Args:
        folder: Where they are kept; made if it is not there. Delete it at any time.

    Example:
        ::

            cache = ArrayCache("cache/minerl")
            small = cache.frames(trajectory, 16)            # (T+1, 16, 16, 3), a memory map
            codes = cache.array(trajectory, "codes-1", encode, (32,), np.float32)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{folder} is a file; the cache needs a folder of its own")

    def frames(self, trajectory: Trajectory, size: int = FRAME_SIZE) -> np.ndarray:
        """Return the pictures (T+1, size, size, 3) of a trajectory, uint8."""
        return self.array(
            trajectory,
            f"frames-{size}",
            lambda t: t.frames(size=size),
            (size, size, 3),
            np.uint8,
        )

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
            make: Gives its T+1 rows, one after the other.
            shape: Shape of a row.
            dtype: Type of the numbers.

        Returns:
            A read-only memory map.
        """
        if not re.fullmatch(r"[\w.+-]+", name):
            raise ValueError(
                f"name={name!r} cannot be in the name of a file; use letters, digits, ., +, - and _"
            )
        path = (
            self.folder
            / trajectory.task
            / trajectory.name
            / f"{name}@{_fingerprint(trajectory)}.npy"
        )
        wanted = (len(trajectory) + 1, *shape)
        if not path.exists():
            try:
                _make(path, name, _writer(make, trajectory, wanted, np.dtype(dtype), name))
            except OSError as error:
                size = math.prod(wanted) * np.dtype(dtype).itemsize / 1e6
                raise ValueError(
                    f"cannot keep {name} of {trajectory.name} ({size:.0f} MB) in the cache "
                    f"{self.folder}: {error.strerror or error}; give a folder that can be written "
                    "to and has room"
                ) from error
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise ValueError(
                f"{path} is damaged ({error}); delete it, and it is computed again"
            ) from error
        if array.shape != wanted or array.dtype != np.dtype(dtype):
            raise ValueError(
                f"{path} holds {array.dtype} {array.shape}, asked for is {np.dtype(dtype)} "
                f"{wanted}; use another name for another array, or delete the file"
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


def _writer(
    make: Callable[[Trajectory], Iterable[np.ndarray]],
    trajectory: Trajectory,
    shape: tuple[int, ...],
    dtype: np.dtype,
    name: str,
) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(file, header)
        n = 0
        for row in make(trajectory):
            if np.shape(row) != shape[1:]:
                raise ValueError(
                    f"row {n} of {name} has shape {np.shape(row)}; {shape[1:]} is needed"
                )
            file.write(np.ascontiguousarray(row, dtype).tobytes())
            n += 1
        if n != shape[0]:
            raise ValueError(f"{name} has {n} rows for {trajectory.name}; {shape[0]} are needed")

    return write
