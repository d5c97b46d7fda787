"""Colours that everyone can tell apart, and axes to draw into."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

__all__ = ["PALETTE", "STRATEGY_COLORS", "event_color", "event_hex", "is_dark", "new_axes"]

# Okabe and Ito's palette, told apart with any kind of colour vision.
PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#D55E00", "#CC79A7", "#0072B2", "#999999")
STRATEGY_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


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
