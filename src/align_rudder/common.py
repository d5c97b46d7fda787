"""The longest sequence that all of several sequences hold in the same order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from align_rudder.files import Whole, check_values

__all__ = ["common_subsequence"]

S = TypeVar("S", bound=Hashable)


def common_subsequence(sequences: Sequence[Sequence[S]], beam: int = 200) -> tuple[S, ...]:
    """Return a long sequence whose symbols all sequences hold in this order.

    Args:
        sequences: The sequences, of hashable symbols.
        beam: How many common subsequences of a length are continued. With more than there are it is
            the longest one; with fewer it may be shorter.

    Notes:
        A beam search over lengths ℓ = 1, 2, …. A state is how much of each of the N sequences is
        used up, p ∈ ℕᴺ; a symbol x leads to the first places after p where x is,
        p'ₙ = min {t ≥ pₙ : sₙ[t] = x} + 1, if each sequence has one. Of the states of a length
        those are kept that use up least, measured by Σₙ pₙ / |sₙ|, and one for each p. To find the
        longest one of any number of sequences is NP-hard.

    Example:
        >>> "".join(common_subsequence(["xAByC", "AxBxC", "ByAxBC"]))
        'ABC'
        >>> common_subsequence(["AB", "CD"])
        ()
    """
    check_values(beam=(beam, Whole(1)))
    if not sequences:
        raise ValueError("no sequences were given; give one or more")
    shared = set(sequences[0]).intersection(*sequences[1:])
    symbols = [s for s in dict.fromkeys(sequences[0]) if s in shared]
    if not symbols:
        return ()
    after = [_places_after(sequence, symbols) for sequence in sequences]
    lengths = np.array([len(sequence) for sequence in sequences])
    used = np.zeros((1, len(sequences)), np.int64)
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    while True:
        reached = np.stack([table[used[:, n]] for n, table in enumerate(after)], axis=2)
        parents, taken = np.nonzero((reached > 0).all(axis=2))
        if not len(parents):
            return _traced(layers, symbols)
        used, first = np.unique(reached[parents, taken], axis=0, return_index=True)
        best = np.argsort((used / lengths).sum(axis=1), kind="stable")[:beam]
        used, kept = used[best], first[best]
        layers.append((parents[kept], taken[kept]))


def _places_after(sequence: Sequence[S], symbols: Sequence[S]) -> np.ndarray:
    """Return what is used up after the next of each symbol, from each place on (T+1, S); 0: none.

    Row t is for a sequence of which the first t symbols are used up.
    """
    number = {symbol: i for i, symbol in enumerate(symbols)}
    table = np.zeros((len(sequence) + 1, len(symbols)), np.int64)
    for t in range(len(sequence) - 1, -1, -1):
        table[t] = table[t + 1]
        if sequence[t] in number:
            table[t, number[sequence[t]]] = t + 1
    return table


def _traced(layers: Sequence[tuple[np.ndarray, np.ndarray]], symbols: Sequence[S]) -> tuple[S, ...]:
    """Return the symbols on the way to the first state of the last layer."""
    at, found = 0, []
    for parents, taken in reversed(layers):
        found.append(symbols[taken[at]])
        at = parents[at]
    return tuple(reversed(found))
