"""Sequences of symbols as sequences of ids, and the two ids that stand for nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

__all__ = ["GAP", "NO_EVENT", "Lost", "index_symbols"]

GAP = -1
NO_EVENT = -1


class Lost(str):
    """The name of a loss: an event that no alignment holds, as it only takes back others."""

    __slots__ = ()

    def __new__(cls, change: str) -> Lost:
        """Return the name of the loss that is this change."""
        return super().__new__(cls, change if change.endswith(" (lost)") else f"{change} (lost)")


def index_symbols(
    sequences: Sequence[Iterable[Hashable]], symbols: Sequence[Hashable] | None = None
) -> tuple[list[np.ndarray], list[Hashable]]:
    """Give each symbol an id; return the sequences as ids and the symbols in order of id.

    Without `symbols`, ids follow the sorted order where symbols can be compared, and the order
    of first occurrence otherwise.
    """
    if isinstance(sequences, (str, bytes)):
        raise ValueError(
            f"got one sequence ({sequences!r}); a list of sequences is needed, [[…], […]]"
        )
    listed: list[list[Hashable]] = []
    for i, sequence in enumerate(sequences):
        try:
            items = [x.item() if isinstance(x, np.generic) else x for x in sequence]
        except TypeError as error:
            raise ValueError(
                f"sequence {i} is {sequence!r}; a sequence of hashable symbols is needed"
            ) from error
        for symbol in items:
            if isinstance(symbol, float) and symbol != symbol:
                raise ValueError(f"sequence {i} holds NaN, which equals nothing")
            try:
                hash(symbol)
            except TypeError as error:
                raise ValueError(
                    f"sequence {i} holds {symbol!r} of type {type(symbol).__name__}, which is not "
                    "hashable; use strings, numbers or tuples"
                ) from error
        listed.append(items)
    if symbols is None:
        found = list(dict.fromkeys(symbol for items in listed for symbol in items))
        with contextlib.suppress(TypeError):
            found.sort()  # pyright: ignore[reportCallIssue]
    else:
        found = list(symbols)
    ids = {symbol: i for i, symbol in enumerate(found)}
    return [np.array([ids[s] for s in items], dtype=np.int32) for items in listed], found
