"""How far work has come: bars in a terminal, lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

__all__ = ["bars_or_lines", "tracked"]

T = TypeVar("T")


def bars_or_lines() -> bool:
    """Return whether bars can be shown; where they cannot, have what is logged printed as lines."""
    if sys.stderr.isatty():
        return True
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("align_rudder").setLevel(logging.INFO)
    return False


def tracked(items: Iterable[T], what: str, total: int, bar: bool) -> Iterator[T]:
    """Yield items and show how many of them have come.

    Args:
        items: The items.
        what: What they are called, in the plural.
        total: How many will come.
        bar: Whether to show a bar; if not, about ten lines.
    """
    done = 0
    for done, item in enumerate(tqdm(items, what, total, disable=not bar or not total), 1):
        yield item
        if not bar and done % max(total // 10, 1) == 0:
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)
