"""(III) Orders: what most demonstrations do, but not all of them at the same place.

Where ore and coal may be taken in either order, an alignment has a column for one of them only.
Those who take the coal first and those who take it later are then two strategies.
"""

from __future__ import annotations

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.groups import Part
from align_rudder.sequences import GAP

__all__ = ["missing_kinds", "sides_of"]

_MOST = 0.8  # of the demonstrations hold the kind
_OFTEN = 1.5  # times in each of them on average: noise comes more often
_BOTH = 0.2  # of them at least have it on each side


def missing_kinds(alignment: Alignment, columns: np.ndarray, every: bool = False) -> np.ndarray:
    """Return the kinds of event that most demonstrations hold about once, but not in a kept column.

    Args:
        alignment: The demonstrations of a strategy, aligned.
        columns: The columns that are kept.
        every: Only those that every demonstration holds just once, which is hardly noise.
    """
    sequences, kept = alignment.sequences, alignment.matrix[:, columns]
    n = int(max((s.max(initial=-1) for s in sequences), default=-1)) + 1
    counts = np.array([np.bincount(s, minlength=n) for s in sequences])
    common = ((counts > 0).mean(axis=0) >= _MOST) & (counts.mean(axis=0) <= _OFTEN)
    if every:
        common = (counts == 1).all(axis=0)
    found = [k for k in np.flatnonzero(common) if (kept == k).any(axis=1).mean() < _MOST]
    return np.array(found, np.int64)


def sides_of(part: Part) -> tuple[int, np.ndarray] | None:
    """Return a missing kind, and which members (n,) have it before a column that others have first.

    It is the kind and the column of which the two sides are most equal; None if there is none that
    a fifth of the members have on each side.
    """
    if part.columns is None:
        return None
    matrix, sequences = part.alignment.matrix, part.alignment.sequences
    best, found = _BOTH, None
    for kind in missing_kinds(part.alignment, part.columns).tolist():
        first = [np.flatnonzero(s == kind)[0] if (s == kind).any() else len(s) for s in sequences]
        for column in part.columns:
            at = (matrix[:, :column] != GAP).sum(axis=1)
            before = np.array(first) < at
            few, sizes = min(before.mean(), 1 - before.mean()), (before.sum(), (~before).sum())
            if min(sizes) > 1 and (few > best or (found is None and few == best)):
                best, found = few, (kind, before)
    return found
