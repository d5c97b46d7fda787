"""Figures of the learning experiments."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from scipy.stats import sem

from align_rudder.baselines.protocol import Protocol
from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.trials import TrialRecord, curve_points
from align_rudder.studies.statistics import Summary

__all__ = ["demonstration_figure", "learning_curves", "scaling_figure"]


def _line(
    ax: Axes,
    name: str,
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    band: tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray],
    marked: bool,
) -> None:
    """Draw the line of a method with a band around it; ours is above the others."""
    method, ours = METHODS[name], name in _OURS
    color = OKABE_ITO.get(method.color, method.color)
    ax.plot(
        x,
        y,
        color=color,
        marker=method.marker if marked else None,
        markersize=5,
        lw=2.2 if ours else 1.3,
        label=method.label,
        zorder=3 if ours else 2,
    )
    ax.fill_between(x, *band, color=color, alpha=0.18)


_OURS = ("align-rudder", "default")  # of the paper's protocol, and of the fair one
_THOUSANDS = "{x:,.0f}"  # how axes write numbers


def _lines(ax: Axes, found: Sequence[Summary], over: str, cap: int) -> None:
    place = attrgetter(f"setting.{over}")
    for name in dict.fromkeys(s.setting.method for s in found):
        cells = sorted((s for s in found if s.setting.method == name), key=place)
        band = [s.low for s in cells], [s.high for s in cells]
        _line(ax, name, [place(s) for s in cells], [s.mean for s in cells], band, marked=True)
    ax.set(xscale="log", yscale="log")
    places = sorted({place(s) for s in found})
    ax.set_xticks(places, [str(p) for p in places])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(_THOUSANDS)
    if any(s.capped for s in found):
        ax.axhline(cap, color="black", lw=0.7, ls=":")
        at, points = (places[0], cap), "offset points"
        ax.annotate("cap", at, xytext=(0, 2), textcoords=points, fontsize=7, ha="left")
    ax.spines[["top", "right"]].set_visible(False)


def demonstration_figure(
    panels: Sequence[tuple[str, Sequence[Summary]]], cap: int, goal: str = "80 %"
) -> Figure:
    """Return mean episodes to the target over the demonstrations, with 95 % confidence bands.

    Args:
        panels: Title and summaries of each panel.
        cap: The cap on episodes.
        goal: The target in words.
    """
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.9 * columns + 0.4, 3.3 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for ax, (title, found) in zip(axes.flat, panels):
        _lines(ax, found, "demos", cap)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("demonstrations")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"episodes to {goal}")
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    legend_outside(figure, axes.flat[0], max(2, int(figure.get_figwidth() / 1.8)))
    return figure


def scaling_figure(found: Sequence[Summary], cap: int) -> Figure:
    """Return mean episodes to 80 % over the number of rooms, with a line of linear growth."""
    figure = Figure(figsize=(6.2, 4.8), layout="constrained")
    ax = figure.subplots()
    _lines(ax, found, "rooms", cap)
    means = {s.setting.rooms: s.mean for s in found if s.setting.method in _OURS}
    if means:
        x = np.array(sorted(means), float)
        line = means[min(means)] * x / x[0]
        ax.plot(x, line, color="black", lw=0.8, ls="--", label="linear growth")
    ax.set(xlabel="rooms", ylabel="episodes to 80 %")
    legend_outside(figure, ax, 2)
    return figure


def learning_curves(
    records: Sequence[TrialRecord],
    demos: Sequence[int],
    protocol: Protocol,
) -> Figure:
    """Return mean return while learning, a panel for each number of demonstrations.

    A trial that reached its target keeps its last value; bands are the standard error.
    """
    figure = Figure(figsize=(3.6 * len(demos) + 0.4, 3.6), layout="constrained")
    axes = figure.subplots(1, len(demos), squeeze=False, sharey=True)[0]
    every = protocol.evaluate_every
    grid = np.unique(np.geomspace(1, protocol.max_episodes // every, 120).astype(int)) * every
    for ax, n in zip(axes, demos):
        for name in METHODS:
            curves = [
                _on_grid(r, grid, every)
                for r in records
                if r.setting.demos == n and r.setting.method == name and r.curve
            ]
            if not curves:
                continue
            values = np.array(curves)
            mean = values.mean(axis=0)
            error = sem(values) if len(values) > 1 else 0.0
            _line(ax, name, grid, mean, (mean - error, mean + error), marked=False)
        ax.set_title(f"{n} demonstrations", fontsize=10, loc="left")
        ax.set(xscale="log", xlabel="episodes")
        ax.xaxis.set_major_formatter(_THOUSANDS)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("mean return")
    legend_outside(figure, axes[0], max(2, int(figure.get_figwidth() / 1.8)))
    return figure


def _on_grid(record: TrialRecord, grid: np.ndarray, every: int) -> np.ndarray:
    evaluations = record.episodes // every
    at = (np.array(curve_points(evaluations)) + 1) * every
    return np.interp(grid, at, record.curve)
