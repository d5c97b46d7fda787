"""One observation as a row of numbers, fast: wrappers look at one at each step.

What `flat` and `numbers` do for a batch, without the detours that a single one does not need; what
is not plain (nested, of other sizes, no numbers) is left to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder._compile import njit
from align_rudder.files import LARGEST

__all__ = ["SingleRows"]

_NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_WHOLE = 2**63


@njit(cache=True)
def _usable(row, most):
    usable = True
    for x in row:
        usable &= abs(x) <= most
    return usable


class SingleRows:
    """Reads observations of one structure, one at a time.

    Args:
        shapes: The shape of each part of an observation.
        keys: For dict observations, the entries used; None for all.

    Example:
        >>> rows = SingleRows({"a": [], "b": [2]}, None)
        >>> rows.read({"b": np.array([1, 2]), "a": 7})
        array([7., 1., 2.])
        >>> rows.read({"b": np.array([1, 2])}) is None
        True
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]], keys: Sequence[str] | None) -> None:
        self._plain = list(shapes) == [""] and keys is None
        self._all = keys is None
        self._flat = list(keys or ()) == list(shapes)  # no entry is a dict or named twice
        ends = np.cumsum([0, *(math.prod(shape) for shape in shapes.values())]).tolist()
        self._width = ends[-1]
        self._parts = list(zip(shapes, ends[:-1], ends[1:], strict=True))

    def read(self, obs: Any) -> np.ndarray | None:
        """Return the numbers of an observation (d,); None if it is not plain or not usable."""
        if self._plain:
            if not isinstance(obs, np.ndarray) or obs.dtype.kind not in "biuf":
                return None
            row = obs.astype(np.float64).reshape(-1)
            if len(row) != self._width:
                return None
        elif type(obs) is dict and (len(obs) == len(self._parts) if self._all else self._flat):
            row = np.empty(self._width)
            for name, start, stop in self._parts:
                part = obs.get(name)
                if isinstance(part, np.ndarray):
                    if part.dtype.kind not in "biuf" or part.size != stop - start:
                        return None
                    row[start:stop] = part if part.ndim == 1 else part.reshape(-1)
                elif isinstance(part, _NUMBERS) and stop - start == 1:
                    if type(part) is int and not -_WHOLE <= part < _WHOLE:
                        return None
                    row[start] = part
                else:
                    return None
        else:
            return None
        return row if _usable(row, LARGEST) else None
