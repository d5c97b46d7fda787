"""Text and JSON, read with limits: size, depth, encoding, constants that JSON does not know."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from align_rudder.files.kinds import Anything, Kind, shown

__all__ = [
    "check_depth",
    "check_file",
    "mended",
    "parse_json",
    "read_json",
    "read_text",
    "said_of",
]

_MAX_TEXT, _MAX_JSON = 2**31, 2**28
_MAX_DEPTH = 200
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def check_file(path: str | os.PathLike[str], most: int | None = None) -> Path:
    """Return the path of a file; an error if there is none, or if it is larger than `most`."""
    path = Path(path)
    try:
        there, folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise ValueError(f"cannot read {shown(str(path))}: {error.strerror}") from error
    if folder:
        raise FileNotFoundError(f"{path} is a folder; a file is needed")
    if not there:
        raise FileNotFoundError(f"there is no file {path}")
    if most is not None and (size := path.stat().st_size) > most:
        raise ValueError(f"{path} has {size:,} bytes; at most {most:,} are read: make it smaller")
    return path


@contextmanager
def said_of(path: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Add the name of the file and what to do to errors about its content.

    Args:
        path: The file.
        remedy: What to do about it, in words.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} is damaged or of another kind: {error}; {remedy}") from error


def read_text(
    path: str | os.PathLike[str], most: int = _MAX_TEXT, *, whole_lines: bool = False
) -> str:
    """Return the text of a file in UTF-8, with or without a byte-order mark.

    Args:
        path: The file.
        most: The largest file that is read, in bytes.
        whole_lines: Whether a last line that was not written to its end is left out.
    """
    data = check_file(path, most).read_bytes()
    try:
        return data[: data.rfind(b"\n") + 1 if whole_lines else None].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start}; give "
            "another file, or store it in UTF-8"
        ) from error


def parse_json(
    text: str, *, constants: bool = False, halves: bool = False, depth: int = _MAX_DEPTH
) -> Any:
    """Return the value of a JSON text, or raise a `ValueError`.

    Args:
        text: The text.
        constants: Whether NaN and Infinity, which Python writes but JSON does not know, are taken.
        halves: Whether half a surrogate pair, such as a cut emoji leaves, is taken as U+FFFD.
        depth: How deep its lists and objects may be nested.
    """
    check_depth(text, depth)

    def constant(name: str) -> float:
        if not constants:
            raise ValueError(f"it holds {name}, which JSON does not know")
        return float(name)

    try:
        value = json.loads(text, parse_constant=constant, object_pairs_hook=_object)
        if r"\ud" in text.lower():  # half a surrogate pair is no text
            value = _whole(value, halves)
    except (UnicodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON text: {error}") from error
    except ValueError as error:
        if "int_max_str_digits" not in str(error):
            raise
        most = sys.get_int_max_str_digits()
        raise ValueError(f"it holds a whole number of more than {most:,} digits") from None
    return value


def _whole(value: Any, halves: bool) -> Any:
    """Return a value whose texts can be written; halves of surrogate pairs are mended if asked."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        if not halves:
            raise
        return mended(value)
    return value


def mended(value: Any) -> Any:
    r"""Return a value of JSON with U+FFFD in place of each half of a surrogate pair.

    Example:
        >>> mended({"a": ["cut \ud83d", 1]}) == {"a": ["cut \ufffd", 1]}
        True
    """
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [mended(one) for one in value]
    if isinstance(value, dict):
        return _object([(mended(name), mended(one)) for name, one in value.items()])
    return value


def check_depth(text: str, most: int = _MAX_DEPTH) -> None:
    """Refuse JSON that is nested too deeply, without parsing it."""
    bare = _STRING.sub(b"", text.encode(errors="surrogatepass"))
    steps = np.zeros(256, np.int8)
    steps[list(b"[{")], steps[list(b"]}")] = 1, -1
    depth = int(np.cumsum(steps[np.frombuffer(bare, np.uint8)], dtype=np.int32).max(initial=0))
    if depth > most:
        raise ValueError(f"its JSON is nested {depth} levels deep; at most {most} are read")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object of its JSON has the entry {shown(twice)} twice")
    return found


def read_json(
    path: str | os.PathLike[str],
    kind: Kind | None = None,
    *,
    remedy: str = "put back a copy",
    constants: bool = False,
) -> Any:
    """Return what a JSON file holds, or raise a `ValueError` that names it.

    Args:
        path: The file.
        kind: What it must hold; anything if None.
        remedy: What to do if it does not, in words.
        constants: Whether NaN and Infinity are taken; see `parse_json`.
    """
    try:
        text = read_text(path, _MAX_JSON)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; {remedy}") from None
    with said_of(path, remedy):
        return (kind or Anything()).check(parse_json(text, constants=constants), "its content")
