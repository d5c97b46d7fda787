"""Learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from align_rudder.show.figures.colors import LINE_STYLES, new_axes

__all__ = ["curves"]


def curves(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    band: Literal["error", "deviation", "range"] = "error",
    ax: Axes | None = None,
) -> Axes:
    """Draw learning curves: the mean over seeds and a band around it.

    Args:
        lines: For each label x (points,) and y (seeds, points), or y (points,) of one seed.
        band: What the band shows: standard error, standard deviation, or lowest to highest.
        ax: Where to draw; None for a new figure (`ax.figure`).

    Example:
        >>> ax = curves({"ours": ([0, 10, 20], [[0.0, 0.5, 1.0], [0.0, 0.7, 0.8]])})
        >>> ax.lines[0].get_ydata().tolist()
        [0.0, 0.6, 0.9]
    """
    if band not in ("error", "deviation", "range"):
        raise ValueError(f'band={band!r} is not known; use "error", "deviation" or "range"')
    ax = new_axes(ax, (3.3, 2.4))
    for i, (label, (at, values)) in enumerate(lines.items()):
        x, y = np.asarray(at, float), np.atleast_2d(np.asarray(values, float))
        if y.ndim != 2 or x.shape != (y.shape[1],):
            raise ValueError(
                f"{label!r} has x of shape {x.shape} and y of shape {y.shape}; x (points,) and "
                "y (seeds, points) are needed"
            )
        color, marker, dashes = LINE_STYLES[i % len(LINE_STYLES)]
        mean = y.mean(axis=0)
        ax.plot(
            x,
            mean,
            color=color,
            ls=dashes,
            marker=marker,
            ms=3.5,
            markevery=max(len(x) // 8, 1),
            lw=1.4,
            label=label,
        )
        if len(y) > 1:
            spread = y.std(axis=0, ddof=1) / (np.sqrt(len(y)) if band == "error" else 1.0)
            low, high = mean - spread, mean + spread
            if band == "range":
                low, high = y.min(axis=0), y.max(axis=0)
            ax.fill_between(x, low, high, color=color, alpha=0.2, lw=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if lines:
        ax.legend(frameon=False, fontsize=8)
    return ax
