"""The aligned demonstrations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from align_rudder.alignment import Alignment
from align_rudder.sequences import GAP
from align_rudder.show.figures.colors import (
    event_color,
    event_image,
    ink_on,
    mark_subgoals,
    new_axes,
)
from align_rudder.subtasks import SubGoal
from align_rudder.text import letters_for

__all__ = ["alignment"]


def alignment(
    aligned: Alignment,
    *,
    columns: np.ndarray | None = None,
    subgoals: Sequence[SubGoal] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw an alignment, a row for each sequence, a colour and letter for each event.

    Args:
        aligned: The alignment.
        columns: Alignment columns that the profile keeps, to place the sub-goals.
        subgoals: Sub-goals to mark under their columns.
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    matrix = aligned.matrix
    n, length = matrix.shape
    ax = new_axes(ax, (max(4.0, 0.2 * length + 1), 0.24 * n + 1))
    ax.imshow(event_image(matrix), aspect="auto", interpolation="nearest")
    letters = letters_for(aligned.symbols)
    if length <= 120:
        middle = {"ha": "center", "va": "center", "fontsize": 7}
        for i, j in zip(*np.nonzero(matrix != GAP), strict=True):
            event = int(matrix[i, j])
            ax.text(j, i, letters[event], color=ink_on(event_color(event)), **middle)
    goals = [goal.column for goal in subgoals]
    places = goals if columns is None else [int(columns[column]) for column in goals]
    mark_subgoals(ax, places, n - 0.15, "column", size=5)
    ax.set_ylabel("demonstration")
    ax.set_yticks(range(n) if n <= 20 else range(0, n, max(n // 10, 1)))
    for side in ax.spines.values():
        side.set_visible(False)
    return ax
