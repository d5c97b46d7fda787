"""Files written whole or not at all, and read without pickle."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = [
    "check_outputs",
    "check_writable",
    "decode_symbol",
    "encode_symbol",
    "load_npz",
    "npz_trouble",
    "save_npz",
    "write_json",
    "write_whole",
]


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Write a file through a temporary neighbour, so that `path` is never half a file.

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


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path leads to, or say why none can be written there."""
    path = Path(path).resolve()
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
    """Say what cannot be written before the work is done, not after it.

    Args:
        paths: Files that will be written.
        inputs: Files that are read, which must not be overwritten.
    """
    read = {Path(path).resolve() for path in inputs if path}
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        file = check_writable(path)
        if file in read:
            raise ValueError(f"{path} is read, and would be overwritten; give another output")
        if file in seen:
            raise ValueError(f"{path} is given for two outputs; give each a file of its own")
        seen.add(file)


def write_json(path: str | os.PathLike[str] | None, value: Any) -> None:
    """Write a value as JSON, if a path is given."""
    if path is not None:
        write_whole(path, lambda file: file.write((json.dumps(value, indent=1) + "\n").encode()))


def save_npz(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    level: int = 6,
) -> None:
    """Save arrays and a JSON header (stored as the member `header`) as one npz file.

    Args:
        path: The file.
        kind: Name of the format.
        version: Version of the format.
        header: What else should be stored, as JSON.
        arrays: The arrays.
        level: How hard to compress, from 1 (fast) to 9 (small).
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(
                f"cannot save {name}: its elements are Python objects, which only pickle could "
                "store; convert it to a numeric or string array"
            )
    text = json.dumps({"format": kind, "version": version, **header})
    members = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

    write_whole(path, write)


def npz_trouble(error: Exception) -> str:
    """Return why an npz file cannot be read, without NumPy's advice to load it as a pickle."""
    if "Object arrays" in str(error):
        return "one of its arrays holds Python objects, which are not loaded; save numbers or text"
    return "not an archive of arrays" if "pickle" in str(error) else str(error)


def load_npz(
    path: str | os.PathLike[str], kind: str, version: int, *, header_needed: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `save_npz` wrote; a damaged file or another format is a `ValueError`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}" + ": it is a folder" * path.is_dir())
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array, not an npz archive")
        with file:
            arrays = {name: file[name] for name in file.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise ValueError(f"its member {name} is not an array")
    except Exception as error:  # a damaged archive can fail in any of many ways
        raise ValueError(
            f"{path} cannot be read as an npz file: it is truncated, damaged or another kind of "
            f"file ({npz_trouble(error)})"
        ) from error
    if "header" not in arrays:
        if header_needed:
            raise ValueError(f"{path} is an npz file but not one of format {kind!r}: no header")
        return {}, arrays
    try:
        header = json.loads(arrays.pop("header").tobytes().decode())
        found_kind, found_version = header["format"], header["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} has a header that is not ours: {error}") from error
    if found_kind != kind:
        raise ValueError(f"{path} holds {found_kind!r}; {kind!r} is needed here")
    if found_version != version:
        raise ValueError(
            f"{path} has version {found_version} of format {kind!r}, this package reads version "
            f"{version}; install the package version that wrote it, or write the file again"
        )
    return header, arrays


def encode_symbol(symbol: Hashable) -> Any:
    """Return the JSON form of a symbol: str, int, float, bool, None, bytes or a tuple of these."""
    if isinstance(symbol, np.generic):
        symbol = symbol.item()
    if symbol is None or isinstance(symbol, (str, int, float, bool)):
        return symbol
    if isinstance(symbol, tuple):
        return {"tuple": [encode_symbol(part) for part in symbol]}
    if isinstance(symbol, frozenset):
        return {"frozenset": [encode_symbol(part) for part in sorted(symbol, key=repr)]}
    if isinstance(symbol, bytes):
        return {"bytes": symbol.hex()}
    raise ValueError(
        f"the symbol {symbol!r} of type {type(symbol).__name__} cannot be stored in a file; use "
        "strings, numbers, booleans, None, bytes, or tuples and frozensets of these"
    )


def decode_symbol(code: Any) -> Hashable:
    """Return the symbol that `encode_symbol` encoded."""
    if isinstance(code, dict):
        ((kind, value),) = code.items()
        if kind == "bytes":
            return bytes.fromhex(value)
        parts = [decode_symbol(part) for part in value]
        return frozenset(parts) if kind == "frozenset" else tuple(parts)
    return code
