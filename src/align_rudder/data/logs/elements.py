"""The runs of a JSON list one by one, where the list as a whole is refused for one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

__all__ = ["LISTS", "elements"]

LISTS = ("results", "runs")
"""Entries of an object that may hold the list of runs."""

_SPACE = re.compile(r"[ \t\n\r]*")


def elements(text: str) -> list[str] | None:
    """Return the texts of the elements of a JSON list, or of an object's list of `LISTS`.

    Args:
        text: The JSON.

    Returns:
        The texts; None if there is no such list, or if its brackets and commas are not in order.

    Example:
        >>> elements('{"n": 1, "results": [{"a": 1}, [2, 3]]}')
        ['{"a": 1}', '[2, 3]']
        >>> print(elements('[1, 2'))
        None
    """
    decoder = json.JSONDecoder(parse_int=len)  # numbers do not matter here, however long they are
    try:
        start = _after_space(text, 0)
        if text[start] == "{":
            inside = {name: at for name, at, _ in _inside(text, start, decoder)}
            start = next(at for at in map(inside.get, LISTS) if at is not None)
        if text[start] == "[":
            return [text[at:end] for _, at, end in _inside(text, start, decoder)]
    except (ValueError, IndexError, RecursionError, StopIteration):
        pass
    return None


def _inside(text: str, at: int, decoder: json.JSONDecoder) -> Iterator[tuple[str | None, int, int]]:
    """Yield name, start and end of each value in the list or object that starts somewhere."""
    named, close = text[at] == "{", "}" if text[at] == "{" else "]"
    at = _after_space(text, at + 1)
    while text[at] != close:
        name = None
        if named:
            name, at = decoder.raw_decode(text, at)
            at = _after_space(text, _after(text, _after_space(text, at), ":"))
        start = at
        _, at = decoder.raw_decode(text, at)
        yield name, start, at
        at = _after_space(text, at)
        if text[at] != close:
            at = _after_space(text, _after(text, at, ","))


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise ValueError(f"{sign!r} is needed at {at}")
    return at + 1
