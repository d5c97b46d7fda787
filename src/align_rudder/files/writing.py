"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from align_rudder.files.kinds import shown

__all__ = [
    "check_outputs",
    "check_writable",
    "write_figure",
    "write_json",
    "write_text",
    "write_whole",
]


_LEFT_OVER = 3600.0  # seconds after which a temporary file is nobody's any more


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Write a file through a temporary neighbour, so that `path` is never half a file.

    Neighbours of the same file that a killed process left more than an hour ago are removed.

    Args:
        path: The file to write; its folder must exist.
        write: Called with the open binary file.
    """
    path = check_writable(path)
    try:
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
        )
    except OSError as error:
        raise ValueError(f"cannot write into the folder {path.parent}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _remove_left_over(path)


def _remove_left_over(path: Path) -> None:
    """Remove temporary files of `path` that nobody has written to for an hour."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(path.parent) as found:
        for entry in found:
            if ours.fullmatch(entry.name) is None:
                continue
            with contextlib.suppress(OSError):  # another process may have been faster
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_OVER:
                    os.unlink(entry.path)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path leads to; `ValueError` if none can be written there."""
    try:
        path = Path(path).resolve()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, in circles, no name at all
        raise ValueError(f"cannot write {shown(os.fspath(path))}: {error}") from error
    if path.parent.exists() and not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: {path.parent} is a file, not a folder")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist; create it")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"cannot write {path}: it is a device or pipe; give the name of a file")
    return path


def check_outputs(*paths: str | None, inputs: Sequence[str | None] = ()) -> None:
    """Refuse outputs that cannot be written, before the work is done.

    Args:
        paths: Files that will be written.
        inputs: Files that are read, which must not be overwritten.
    """
    read = {os.path.realpath(path) for path in inputs if path and "\0" not in path}
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        file = check_writable(path)
        if str(file) in read:
            raise ValueError(f"{path} is read, and would be overwritten; give another output")
        if file in seen:
            raise ValueError(f"{path} is given for two outputs; give each a file of its own")
        seen.add(file)


def write_json(path: str | os.PathLike[str] | None, value: Any) -> None:
    """Write a value as JSON, if a path is given."""
    if path is not None:
        write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, in UTF-8; what UTF-8 does not know (half a surrogate pair) becomes "?"."""
    write_whole(path, lambda file: file.write(text.encode(errors="replace")))


def write_figure(path: str | os.PathLike[str], figure: Any, dpi: int = 150) -> None:
    """Write a figure of Matplotlib in the form that the file's ending says, PNG without one."""
    form = Path(path).suffix.removeprefix(".") or "png"
    write_whole(path, lambda file: figure.savefig(file, format=form, dpi=dpi))
