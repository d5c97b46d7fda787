"""Which configuration of a method is chosen, and the table that shows why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.studies.tables import Table

__all__ = ["choose"]


def choose(
    label: str,
    title: str,
    configurations: Sequence[Mapping[str, Any]],
    means: Sequence[Sequence[float]],
    places: Sequence[str],
) -> tuple[int, Table]:
    """Return the configuration with the lowest geometric mean, the first among equals.

    Args:
        label: How tables name the method.
        title: Title of the table.
        configurations: What was tried.
        means: Mean episodes of each in each place.
        places: Names of the places.

    Example:
        >>> best, table = choose("Q", "Q", [{"rate": 0.1}, {"rate": 0.2}], [[9, 1], [2, 2]], "ab")
        >>> best, table.rows[1]
        (1, ['* rate=0.2', '2', '2', '2'])
    """
    scores = np.exp(np.log(np.asarray(means, float)).mean(axis=1))
    best = int(np.argmin(scores))
    rows = [
        [
            f"{'*' if v == best else ' '} " + ", ".join(f"{k}={x}" for k, x in c.items()),
            *(f"{mean:,.0f}" for mean in means[v]),
            f"{scores[v]:,.0f}",
        ]
        for v, c in enumerate(configurations)
    ]
    return best, Table(title, [label, *places, "geometric mean"], rows, ("* chosen",))
