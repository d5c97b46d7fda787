"""The figure of the study with networks: success over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.studies.networks.methods import METHODS, OURS
from align_rudder.studies.networks.trials import POINT, TARGET, NetworkTrial

__all__ = ["curves_figure"]


def curves_figure(trials: Sequence[NetworkTrial], cap: int) -> Figure:
    """Return success over environment steps, a panel for each time limit.

    Lines are the mean of the seeds, bands go from lowest to highest. A trial that ended early
    because it was solved goes on with its last value. Methods that are given more than logs are
    dashed.

    Args:
        trials: The trials.
        cap: Most steps of a trial.
    """
    paces = sorted({trial.setting.pace for trial in trials})
    figure = Figure(figsize=(3 + 4.2 * len(paces), 4.2), layout="constrained")
    panels = figure.subplots(1, len(paces), sharey=True, squeeze=False)[0]
    for ax, pace in zip(panels, paces, strict=True):
        _curves(ax, [trial for trial in trials if trial.setting.pace == pace], cap)
        ax.set_title(f"{pace} steps for each item", fontsize=10, loc="left")
    panels[0].set_ylabel("success in new rooms, %; mean and range")
    legend_outside(figure, panels[0], 1, "right center", labelspacing=1.1, fontsize=9)
    return figure


def _curves(ax: Axes, trials: Sequence[NetworkTrial], cap: int) -> None:
    points = max(max(len(trial.curve) for trial in trials), cap // POINT)
    x, every = np.arange(points + 1) * POINT / 1000, max(points // 8, 1)
    for k, (name, method) in enumerate(METHODS.items()):
        curves = [trial.curve for trial in trials if trial.setting.method == name]
        if not curves:
            continue
        y = 100 * np.array([_continued(curve, points) for curve in curves])
        color = OKABE_ITO.get(method.color, method.color)
        ours = name == OURS
        ax.plot(
            x,
            y.mean(axis=0),
            color=color,
            marker=method.marker,
            markevery=(k * every // len(METHODS), every),  # where lines meet, all are seen
            markersize=5,
            ls="--" if method.more else "-",
            lw=2.2 if ours else 1.3,
            zorder=3 if ours else 2,
            label=method.label,
        )
        ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=color, alpha=0.08, lw=0.8)
    ax.axhline(100 * TARGET, color="black", lw=0.7, ls=":")
    ax.set(xlabel="thousand environment steps", ylim=(-2, 102))
    ax.spines[["top", "right"]].set_visible(False)


def _continued(curve: Sequence[float], points: int) -> list[float]:
    """Return a curve from 0 to that many points, continued with its last value."""
    last = curve[-1] if curve else 0.0
    return [0.0, *curve, *[last] * (points - len(curve))]
