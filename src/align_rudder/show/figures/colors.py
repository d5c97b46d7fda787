"""Colours that everyone can tell apart, and axes to draw into."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

__all__ = [
    "LINE_STYLES",
    "PALETTE",
    "STRATEGY_COLORS",
    "event_color",
    "event_hex",
    "ink_on",
    "mark_subgoals",
    "new_axes",
]

# Okabe and Ito's palette, told apart with any kind of colour vision.
SKY_BLUE, ORANGE, GREEN, YELLOW = "#56B4E9", "#E69F00", "#009E73", "#F0E442"
VERMILLION, PURPLE, BLUE, GREY = "#D55E00", "#CC79A7", "#0072B2", "#999999"
NO_EVENT_COLOR = "#bbbbbb"

PALETTE = (SKY_BLUE, ORANGE, GREEN, YELLOW, VERMILLION, PURPLE, BLUE, GREY)
STRATEGY_COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY_BLUE)
# Colours, markers and dashes all differ, for print without colour.
LINE_STYLES = (
    (VERMILLION, "o", "-"),
    (BLUE, "s", "--"),
    (GREEN, "D", "-."),
    (ORANGE, "^", ":"),
    (PURPLE, "v", (0, (5, 1, 1, 1, 1, 1))),
    (SKY_BLUE, "P", (0, (3, 1))),
    (GREY, "X", (0, (1, 1))),
)

Color = tuple[float, float, float]


def event_color(event: int) -> Color:
    """Return the colour of an event, light grey for none (-1).

    There are eight hues, then the same ones lighter, darker and so on.
    """
    if event < 0:
        return to_rgb(NO_EVENT_COLOR)
    turn, hue = divmod(event, len(PALETTE))
    base = np.array(to_rgb(PALETTE[hue]))
    towards = turn % 2  # white, or black
    share = 0.0 if turn == 0 else 0.8 - 0.6 ** ((turn + 1) // 2) / 2
    red, green, blue = base + (towards - base) * share
    return float(red), float(green), float(blue)


def event_hex(event: int) -> str:
    """Return the colour of an event as "#rrggbb"."""
    return to_hex(event_color(event))


def ink_on(color: Color) -> str:
    """Return whether "white" or "black" letters are easier to read on a colour."""
    return "white" if np.dot(color, (0.299, 0.587, 0.114)) < 0.45 else "black"


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of that size in inches."""
    return ax if ax is not None else Figure(figsize=size, layout="constrained").add_subplot()


def mark_subgoals(ax: Axes, columns: Sequence[int], y: float, label: str, size: float = 4) -> None:
    """Mark the columns of sub-goals by triangles at height y, and label the axis of columns."""
    for column in columns:
        ax.plot(column, y, marker="^", color="black", ms=size, clip_on=False)
    ax.set_xlabel(f"{label} (▲ sub-goal)" if len(columns) else label)
