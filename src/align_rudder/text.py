"""How alignments look in a terminal."""

from __future__ import annotations

import re
import string
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from align_rudder._moved import attribute_of
from align_rudder.sequences import Lost

__all__ = [
    "LETTERS",
    "check_ids",
    "format_alignment",
    "legend",
    "letters_for",
    "short",
    "short_number",
    "visible",
    "wrap_columns",
]

if not TYPE_CHECKING:
    __getattr__ = attribute_of(__name__)

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits


def letters_for(symbols: Sequence[Hashable]) -> list[str]:
    """Return a short code for each symbol.

    Symbols that are single visible characters stand for themselves; otherwise letters, digits
    and, beyond 62 symbols, numbers of equal width.

    Example:
        >>> letters_for(["+log", "+plank"])
        ['A', 'B']
    """
    if all(
        isinstance(s, str) and len(s) == 1 and s.isprintable() and s not in "-> " for s in symbols
    ):
        return [str(s) for s in symbols]
    if len(symbols) <= len(LETTERS):
        return list(LETTERS[: len(symbols)])
    width = len(str(len(symbols) - 1))
    return [f"{i:0{width}d}" for i in range(len(symbols))]


def wrap_columns(n_columns: int, cell: int, indent: int, width: int) -> Iterator[slice]:
    """Yield slices of columns that fit into lines of `width` characters."""
    step = max((width - indent) // cell, 1)
    for start in range(0, max(n_columns, 1), step):
        yield slice(start, min(start + step, n_columns))


def short(symbol: Hashable, most: int = 80) -> str:
    """Return a symbol as text, cut where it is very long; an empty one in quotes.

    Signs that would steer a terminal are escaped; see `visible`.

    Example:
        >>> short("log"), short(""), short("abcdef", 4)
        ('log', "''", 'abc…')
    """
    text = visible(str(symbol) or repr(symbol))
    return text if len(text) <= most else text[: most - 1] + "…"


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with control characters and marks of writing direction escaped.

    Args:
        text: The text, perhaps from a file of somebody else.
        keep: Control characters that stay.

    Example:
        >>> print(visible("a\x1b[2Jb\nc"))
        a\x1b[2Jb\nc
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def legend(symbols: Sequence[Hashable], letters: Sequence[str], width: int = 100) -> str:
    """Return "A = log, B = plank …", wrapped; empty where the letters are the symbols."""
    if list(symbols) == list(letters):
        return ""
    lines, line = [], ""
    for letter, symbol in zip(letters, symbols, strict=True):
        if isinstance(symbol, Lost):  # no alignment holds it
            continue
        entry = f"{letter} = {short(symbol)}"
        if line and len(line) + len(entry) + 2 > width:
            lines.append(line)
            line = ""
        line += (", " if line else "") + entry
    return "\n".join([*lines, line])


def format_alignment(
    matrix: np.ndarray,
    symbols: Sequence[Hashable],
    *,
    score: float | None = None,
    width: int = 100,
    max_rows: int = 100,
    max_lines: int = 1000,
) -> str:
    """Return an alignment as text: a row for each sequence, stars under conserved columns."""
    letters = letters_for(symbols)
    check_ids([matrix], len(symbols))
    cell = max((len(x) for x in letters), default=1)
    codes = np.array([*letters, "-" * cell])
    pad = cell + 1 if cell > 1 else 1
    n, length = matrix.shape
    kinds = sum(not isinstance(symbol, Lost) for symbol in symbols)
    head = f"{n} sequences, {length} columns, {kinds} symbols"
    if score is not None:
        head += f", sum of pairs {score:.6g}"
    conserved = (matrix == matrix[0]).all(axis=0) & (matrix[0] >= 0) if n else np.empty(0, bool)
    indent = 5
    lines = [head]
    blocks = list(wrap_columns(length, pad, indent, width))
    most = max(max_lines // (min(n, max_rows) + 3), 1)
    left_out = length - blocks[most - 1].stop if len(blocks) > most else 0
    blocks = blocks[:most]
    for k, block in enumerate(blocks):
        if len(blocks) > 1:
            lines.append(("\n" if k else "") + f"columns {block.start} to {block.stop - 1}")
        for i in range(min(n, max_rows)):
            row = "".join(f"{codes[e]:<{pad}}" for e in matrix[i, block])
            lines.append(f"{i:>3}  {row}".rstrip())
        if n > max_rows:
            lines.append(f"     … and {n - max_rows} more sequences")
        if conserved[block].any():
            stars = "".join(f"{'*' if c else ' ':<{pad}}" for c in conserved[block])
            lines.append((" " * indent + stars).rstrip())
    if left_out:
        lines.append(f"\n… and {left_out} more columns; the report shows them all")
    key = legend(symbols, letters, width)
    return "\n".join([*lines, key] if key else lines)


def check_ids(rows: Sequence[np.ndarray], n_symbols: int) -> None:
    """Raise a `ValueError` for an event that has no symbol."""
    for row in rows:
        row = np.asarray(row)
        if row.size and (row.min() < -1 or row.max() >= n_symbols):
            raise ValueError(
                f"there are {n_symbols} symbols, so event ids are 0 to {n_symbols - 1} and -1 for "
                f"a gap; found {row.min()} to {row.max()}"
            )


def short_number(value: float) -> str:
    """Return a number in few characters.

    Example:
        >>> short_number(8_000_000), short_number(1500), short_number(20)
        ('8 M', '1.5 k', '20')
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
