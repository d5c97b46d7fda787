"""The figure of the recipes: episodes over the length of the recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.studies.recipes.methods import METHODS, OURS
from align_rudder.studies.recipes.settings import AXES, Axis, Setting
from align_rudder.studies.recipes.trials import RecipeTrial
from align_rudder.studies.statistics import Summary

__all__ = ["length_figure", "solved_figure"]

_AS_ANOTHER = (
    "consensus-alone",
    "common-subsequence",
    "median-in-turn",
)  # lie on the median string's line where logs are clean
_REPLAYED = ("replayed", "median-replayed")  # another learner: in the tables alone


def length_figure(found: Sequence[Summary[Setting]], cap: int) -> Figure:
    """Return mean episodes over the items of the recipe, with 95 % confidence bands.

    On the left time is long, on the right it is short. Of methods that do the same on clean logs,
    one is shown.
    """
    axes = [axis for axis in AXES if axis.name == "length" and axis.tasks[0].wrong == "nothing"]
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    panels = figure.subplots(1, len(axes), sharey=True)
    for ax, axis in zip(panels, axes, strict=True):
        _means(ax, axis, found)
        pace = axis.tasks[0].pace
        ax.set_title(f"{pace} steps for each item", fontsize=10, loc="left")
        lengths = [task.length for task in axis.tasks]
        ax.set_xscale("log")
        ax.set_xticks(lengths, [str(n) for n in lengths])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("items of the recipe")
        ax.spines[["top", "right"]].set_visible(False)
        ax.axhline(cap, color="black", lw=0.7, ls=":")
        above = {"xytext": (0, 2), "textcoords": "offset points", "fontsize": 7}
        ax.annotate("cap", (lengths[0], cap), ha="left", **above)
    panels[0].set(yscale="log")
    panels[0].yaxis.set_major_formatter("{x:,.0f}")
    panels[0].set_ylabel("episodes to a greedy success, mean")
    legend_outside(figure, panels[0], 3)
    return figure


def _means(ax: Axes, axis: Axis, found: Sequence[Summary[Setting]]) -> None:
    """Draw a line for each method."""
    for name, method in METHODS.items():
        cells = sorted(
            (s for s in found if replace(s.setting, method="", variant=-1) in axis.tasks
             and s.setting.method == name),
            key=lambda s: s.setting.length,
        )  # fmt: skip
        if not cells or name in (*_AS_ANOTHER, *_REPLAYED):
            continue
        ours, x = name == OURS, [s.setting.length for s in cells]
        color = OKABE_ITO.get(method.color, method.color)
        look = {"color": color, "marker": method.marker, "markersize": 5, "label": method.label}
        look |= {"lw": 2.2 if ours else 1.3, "zorder": 3 if ours else 2}
        look |= {"ls": "--"} if name == "gail-inventory" else {}
        ax.plot(x, [s.mean for s in cells], **look)
        ax.fill_between(x, [s.low for s in cells], [s.high for s in cells], color=color, alpha=0.15)


def solved_figure(trials: Sequence[RecipeTrial], cap: int) -> Figure:
    """Return the share of tasks that each method has learned after so many episodes."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    for name, method in METHODS.items():
        mine = [trial for trial in trials if trial.setting.method == name]
        if not mine:
            continue
        ends = sorted(trial.episodes for trial in mine if trial.solved)
        shares = [100 * k / len(mine) for k in range(len(ends) + 1)]
        ax.step(
            [1, *ends, cap],
            [*shares, shares[-1]],
            where="post",
            color=OKABE_ITO.get(method.color, method.color),
            lw=2.2 if name == OURS else 1.3,
            label=method.label,
        )
    ax.set(xscale="log", xlim=(8, cap), ylim=(-3, 103), xlabel="episodes")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_title("recipes that a greedy agent has learned, %", fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    legend_outside(figure, ax, 2)
    return figure
