"""One process at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["only_here"]


@contextmanager
def only_here(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a folder, made if it is not there, for this process alone.

    The lock dies with the process, however that ends; the empty file `.lock` stays.

    Raises:
        ValueError: If another process holds it, or it cannot be written to.
    """
    folder = Path(folder)
    lock = FileLock(folder / ".lock", thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(
            f"another run is writing to {folder}; wait for it, or give another folder (--out)"
        ) from None
    except OSError as error:
        raise ValueError(
            f"cannot write into {folder}: {error.strerror}; give another folder (--out)"
        ) from error
    try:
        yield
    finally:
        lock.release()
