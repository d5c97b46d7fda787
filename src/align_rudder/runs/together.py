"""Several things at the same time in one process, where each of them mostly waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["together"]

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Return what calls return, made at the same time, each in a thread of its own.

    All have ended when it returns or raises; of several errors the first call's is raised.

    Args:
        calls: The calls.

    Example:
        >>> together([lambda: "a", lambda: "b"])
        ['a', 'b']
    """
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(max(len(calls), 1)) as threads:
        begun = [threads.submit(call) for call in calls]
    return [one.result() for one in begun]
