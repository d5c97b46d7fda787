"""Numbers made short for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["differences", "rounded"]


def rounded(value: Any, digits: int = 6) -> Any:
    """Return a number, or a list of them, with so many significant digits; infinite is None.

    Example:
        >>> rounded([0.12345678, 2.0, -np.inf], 3)
        [0.123, 2, None]
    """
    if isinstance(value, (np.ndarray, list, tuple)):
        return [rounded(v, digits) for v in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    short = float(f"{number:.{digits}g}")
    return int(short) if short == int(short) and abs(short) < 2**53 else short


def differences(values: Iterable[int]) -> list[int]:
    """Return growing integers as the first and the differences, which have fewer digits.

    Example:
        >>> differences([3, 4, 9])
        [3, 1, 5]
    """
    return np.diff(np.asarray(list(values), np.int64), prepend=0).tolist()
