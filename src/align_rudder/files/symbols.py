"""Symbols of events in JSON: what is hashable there and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from align_rudder.files.kinds import shown

__all__ = ["MAX_NESTED", "decode_symbol", "decode_symbols", "encode_symbol"]

MAX_NESTED = 64
"""How deep tuples and frozensets of a symbol may be nested."""


def encode_symbol(symbol: Hashable, nested: int = 0) -> Any:
    """Return the JSON form of a symbol: str, int, float, bool, None, bytes or a tuple of these."""
    if nested > MAX_NESTED:
        raise ValueError(f"a symbol is nested more than {MAX_NESTED} levels deep; use flat ones")
    if isinstance(symbol, np.generic):
        symbol = symbol.item()
    if symbol is None or isinstance(symbol, (str, int, float, bool)):
        return symbol
    if isinstance(symbol, tuple):
        return {"tuple": [encode_symbol(part, nested + 1) for part in symbol]}
    if isinstance(symbol, frozenset):
        parts = sorted(symbol, key=repr)
        return {"frozenset": [encode_symbol(part, nested + 1) for part in parts]}
    if isinstance(symbol, bytes):
        return {"bytes": symbol.hex()}
    raise ValueError(
        f"the symbol {symbol!r} of type {type(symbol).__name__} cannot be stored in a file; use "
        "strings, numbers, booleans, None, bytes, or tuples and frozensets of these"
    )


def decode_symbol(code: Any) -> Hashable:
    """Return the symbol that `encode_symbol` encoded."""
    if code is None or isinstance(code, (str, int, float)):
        return code
    kind, value = next(iter(code.items())) if isinstance(code, dict) and len(code) == 1 else ("", 0)
    if kind == "bytes" and isinstance(value, str):
        return bytes.fromhex(value)
    if kind in ("tuple", "frozenset") and isinstance(value, list):
        parts = [decode_symbol(part) for part in value]
        return frozenset(parts) if kind == "frozenset" else tuple(parts)
    raise ValueError(
        f"{shown(code)} stands for no symbol; text, a number, or an object with the one entry "
        "'bytes', 'tuple' or 'frozenset' is needed"
    )


def decode_symbols(codes: Sequence[Any]) -> list[Hashable]:
    """Return the symbols of events: all different, and none of them None or NaN."""
    symbols = [decode_symbol(code) for code in codes]
    known: dict[Hashable, int] = {}
    for i, symbol in enumerate(symbols):
        if symbol is None or symbol != symbol:
            raise ValueError(f"the symbol of event {i} is {symbol}, which is no symbol")
        if known.setdefault(symbol, i) != i:
            raise ValueError(
                f"events {known[symbol]} and {i} have the same symbol, {shown(symbol)}"
            )
    return symbols
