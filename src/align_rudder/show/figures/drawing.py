"""What figures of all kinds have in common: plain axes, and files written whole."""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from align_rudder.files import write_whole

__all__ = ["plain_axes", "save_figure"]


def plain_axes(ax: Axes, grid: bool = False) -> None:
    """Leave out the lines above and to the right, and draw faint lines to read heights from."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(axis="y", lw=0.4, color="#dddddd")
        ax.set_axisbelow(True)


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a figure to a file of the kind that its name ends with; .png if it has no ending."""
    kind = Path(path).suffix.removeprefix(".") or "png"
    write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=dpi))
