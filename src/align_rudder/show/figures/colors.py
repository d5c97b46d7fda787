"""Colours that everyone can tell apart, and axes to draw into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

__all__ = [
    "LINE_STYLES",
    "OKABE_ITO",
    "PALETTE",
    "STRATEGY_COLORS",
    "event_color",
    "event_hex",
    "event_image",
    "ink_on",
    "legend_outside",
    "mark_subgoals",
    "new_axes",
]

OKABE_ITO = {
    "black": "#000000",
    "blue": "#0072B2",
    "gray": "#999999",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "vermillion": "#D55E00",
    "yellow": "#F0E442",
}
"""Okabe and Ito's colours by name, told apart with any kind of colour vision."""


def _colors(*names: str) -> tuple[str, ...]:
    return tuple(OKABE_ITO[name] for name in names)


PALETTE = _colors("sky", "orange", "green", "yellow", "vermillion", "purple", "blue", "gray")
STRATEGY_COLORS = _colors("blue", "vermillion", "green", "purple", "orange", "sky")
LINE_STYLES = tuple(
    zip(
        _colors("vermillion", "blue", "green", "orange", "purple", "sky", "gray"),
        ("o", "s", "D", "^", "v", "P", "X"),
        ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1))),
        strict=True,
    )
)
"""Colour, marker and dashes of the first line, the second and so on; all of them differ, for print
without colour."""

Color = tuple[float, float, float]


def event_color(event: int) -> Color:
    """Return the colour of an event, light grey for none (-1).

    There are eight hues, then the same ones lighter, darker and so on.
    """
    if event < 0:
        return to_rgb("#bbbbbb")
    turn, hue = divmod(event, len(PALETTE))
    base = np.array(to_rgb(PALETTE[hue]))
    towards = turn % 2  # white, or black
    share = 0.0 if turn == 0 else 0.8 - 0.6 ** ((turn + 1) // 2) / 2
    red, green, blue = base + (towards - base) * share
    return float(red), float(green), float(blue)


def event_image(events: np.ndarray) -> np.ndarray:
    """Return the colours of a map of events (rows, columns, 3), white where there is none (-1)."""
    image = np.ones((*events.shape, 3))
    for event in np.unique(events[events >= 0]).tolist():
        image[events == event] = event_color(event)
    return image


def event_hex(event: int) -> str:
    """Return the colour of an event as "#rrggbb"."""
    return to_hex(event_color(event))


def ink_on(color: Color) -> str:
    """Return whether "white" or "black" letters are easier to read on a colour."""
    return "white" if np.dot(color, (0.299, 0.587, 0.114)) < 0.45 else "black"


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of that size in inches."""
    return ax if ax is not None else Figure(figsize=size, layout="constrained").add_subplot()


def legend_outside(
    figure: Figure,
    entries: Axes | Mapping[str, Any],
    ncols: int,
    where: str = "lower center",
    **look: Any,
) -> None:
    """Put a legend below the axes of a figure, or above them.

    Args:
        figure: The figure, of constrained layout.
        entries: Axes whose lines and bars have labels, or a handle for each label.
        ncols: Entries side by side.
        where: Where it stands.
        look: Further options of Matplotlib's legend.
    """
    if isinstance(entries, Axes):
        handles, labels = entries.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True))
    look = {"loc": f"outside {where}", "frameon": False, "fontsize": 8, **look}
    figure.legend(list(entries.values()), list(entries), ncols=ncols, **look)


def mark_subgoals(ax: Axes, columns: Sequence[int], y: float, label: str, size: float = 4) -> None:
    """Mark the columns of sub-goals by triangles at height y, and label the axis of columns."""
    for column in columns:
        ax.plot(column, y, marker="^", color="black", ms=size, clip_on=False)
    ax.set_xlabel(f"{label} (▲ sub-goal)" if len(columns) else label)
