"""What an array may be: type, shape with sizes that agree between arrays, range of its values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from align_rudder.files.kinds import LARGEST, shown

__all__ = ["Array", "Bytes", "Flags", "Floats", "Ints", "array_like", "check_arrays"]

_SIZE = re.compile(r"(?:(\d+)\*)?([A-Za-z][\w/]*)([+-]\d+)?")
_KINDS = {
    "b": "truth values",
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "numbers",
    "c": "complex numbers",
    "U": "text",
    "S": "bytes",
}


class Array:
    """An array of some types and a shape.

    Args:
        shape: The size of each axis: a number, None for any, or a name, perhaps with a factor and
            an addend ("2*hidden", "n-1"). A name is the same size wherever it occurs.
        kinds: Letters of the types of NumPy that it may have.
        dtype: The type that it is given; None to leave it.
        low: The least value; with a bound, of infinity even, no value may be NaN.
        high: The largest value, or the name of a size that all values are below (for indices).
        optional: Whether it may be missing.
    """

    def __init__(
        self,
        *shape: int | str | None,
        kinds: str = "biufUS",
        dtype: Any = None,
        low: float | None = None,
        high: float | str | None = None,
        optional: bool = False,
    ) -> None:
        self.shape, self.kinds, self.dtype = shape, kinds, dtype
        self.low, self.high, self.optional = low, high, optional

    def check(self, array: np.ndarray, name: str, sizes: dict[str, int]) -> np.ndarray:
        """Return the array in its type, or raise a `ValueError`; new names of sizes are noted."""
        if array.dtype.kind not in self.kinds:
            found = _KINDS.get(array.dtype.kind, str(array.dtype))
            needed = dict.fromkeys(_KINDS[kind] for kind in self.kinds)
            raise ValueError(f"{name} holds {found}; {' or '.join(needed)} are needed")
        self._check_shape(array, name, sizes)
        self._check_range(array, name, sizes)
        return array if self.dtype is None else array.astype(self.dtype, copy=False)

    def _check_shape(self, array: np.ndarray, name: str, sizes: dict[str, int]) -> None:
        known = dict(sizes)
        fits = array.ndim == len(self.shape)
        for size, found in zip(self.shape, array.shape) if fits else ():
            if isinstance(size, str):
                factor, word, addend = _parts(size)
                value, rest = divmod(found - addend, factor)
                fits &= rest == 0 and value >= 0 and known.setdefault(word, value) == value
            elif size is not None:
                fits &= found == size
        if not fits:
            needed = ", ".join(_said(size, sizes) for size in self.shape)
            needed += "," if len(self.shape) == 1 else ""
            raise ValueError(f"{name} has shape {array.shape}; ({needed}) is needed")
        sizes.update(known)

    def _check_range(self, array: np.ndarray, name: str, sizes: dict[str, int]) -> None:
        if array.size == 0 or array.dtype.kind not in "iuf":
            return
        high = sizes[self.high] - 1 if isinstance(self.high, str) else self.high
        least, largest = array.min().item(), array.max().item()
        if math.isnan(largest) and (self.low, high) != (None, None):
            raise ValueError(f"{name} holds nan; finite numbers are needed")
        if self.low is not None and least < self.low:
            raise ValueError(f"{name} holds {least}; at least {self.low:.9g} is needed")
        if high is not None and largest > high:
            raise ValueError(f"{name} holds {largest}; at most {high:.9g} is allowed")


def _parts(size: str) -> tuple[int, str, int]:
    found = _SIZE.fullmatch(size)
    assert found is not None, size
    return int(found[1] or 1), found[2], int(found[3] or 0)


def _said(size: int | str | None, sizes: Mapping[str, int]) -> str:
    if isinstance(size, str):
        factor, word, addend = _parts(size)
        return str(factor * sizes[word] + addend) if word in sizes else size
    return "any" if size is None else str(size)


Ints = partial(Array, kinds="iu", low=0, high=2**62, dtype=np.int64)
"""Whole numbers, as int64 unless another type is asked for."""

Floats = partial(Array, kinds="iuf", low=-LARGEST, high=LARGEST, dtype=np.float64)
"""Finite numbers, as float64 unless another type is asked for."""

Flags = partial(Array, kinds="biuf", low=0, high=1, dtype=bool)
"""Truth values; numbers 0 and 1 will do."""

Bytes = partial(Array, None, kinds="u", low=0, high=255, dtype=np.uint8)
"""Bytes, such as those of a text."""


def array_like(leaf: Any, *steps: int | str, largest: float = LARGEST) -> Array:
    """Return the kind of the arrays that have the shape and the type of this one.

    Args:
        leaf: The array; it need only have shape and dtype.
        steps: Sizes of axes before its own.
        largest: How large numbers with a fraction may be.
    """
    shape, dtype = (*steps, *leaf.shape), np.dtype(leaf.dtype)
    if dtype.kind == "b":
        return Flags(*shape)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return Ints(*shape, low=int(bounds.min), high=int(bounds.max), dtype=dtype)
    return Floats(*shape, low=-largest, high=largest, dtype=dtype)


def check_arrays(
    arrays: Mapping[str, np.ndarray],
    needed: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    group: str = "",
) -> dict[str, np.ndarray]:
    """Return the arrays in their types, or raise a `ValueError` for what does not fit.

    Args:
        arrays: What there is.
        needed: What each must be; others than these are refused.
        sizes: Sizes that are known already, by name.
        group: What the names begin with in the file, for messages.

    Example:
        >>> tree = {"merges": Ints("n-1", 2), "names": Ints("n")}
        >>> check_arrays({"merges": np.array([[0, 1]]), "names": np.array([3, 4, 5])}, tree)
        Traceback (most recent call last):
        ...
        ValueError: the array 'names' has shape (3,); (2,) is needed
    """
    known, out = dict(sizes or {}), {}
    for name, kind in needed.items():
        if name in arrays:
            out[name] = kind.check(arrays[name], f"the array {group + name!r}", known)
        elif not kind.optional:
            there = shown(sorted(arrays), 200)
            raise ValueError(f"it has no array {group + name!r}; there are {there}")
    if unknown := [name for name in arrays if name not in needed]:
        raise ValueError(f"it has an array {shown(group + unknown[0])}, which is not known there")
    return out
