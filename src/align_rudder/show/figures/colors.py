"""Colours that everyone can tell apart, and axes to draw into."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

__all__ = [
    "OKABE_ITO",
    "PALETTE",
    "STRATEGY_COLORS",
    "event_color",
    "event_hex",
    "is_dark",
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


def event_color(event: int) -> tuple[float, float, float]:
    """Return the colour of an event: eight hues, then the same ones lighter, darker and so on."""
    turn, hue = divmod(event, len(PALETTE))
    base = np.array(to_rgb(PALETTE[hue]))
    towards = turn % 2  # white, or black
    share = 0.0 if turn == 0 else 0.8 - 0.6 ** ((turn + 1) // 2) / 2
    red, green, blue = base + (towards - base) * share
    return float(red), float(green), float(blue)


def event_hex(event: int) -> str:
    """Return the colour of an event as "#rrggbb"."""
    return to_hex(event_color(event))


def is_dark(color: tuple[float, float, float]) -> bool:
    """Return whether white letters are easier to read on a colour than black ones."""
    return bool(np.dot(color, (0.299, 0.587, 0.114)) < 0.45)


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of that size in inches."""
    return ax if ax is not None else Figure(figsize=size, layout="constrained").add_subplot()
