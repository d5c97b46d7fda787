"""What sub-agents learned: how far whole episodes come, and how each of them got there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.text import short_number

__all__ = ["STAGES", "Reached", "SubAgent", "frequencies", "learning", "step_axis", "tidy"]

STAGES = {
    name: OKABE_ITO[color]
    for name, color in {
        "demonstrations": "blue",
        "random": "gray",
        "cloned": "green",
        "fine-tuned": "orange",
        "manager": "purple",
    }.items()
}
"""The colour of each stage of a training, in all figures."""


class Reached(NamedTuple):
    """How many episodes reached each sub-goal.

    Attributes:
        label: Who played.
        stage: A name in `STAGES`.
        counts: Episodes that reached each sub-goal.
        episodes: Episodes.
        unit: What they are called, in the plural.
    """

    label: str
    stage: str
    counts: Sequence[int]
    episodes: int
    unit: str = "worlds"


class SubAgent(NamedTuple):
    """How a sub-agent learned; a curve that there is not is empty.

    Attributes:
        name: Its sub-goal.
        cloning: Curve while it was cloned, x and share.
        tuning: Curve while it was fine-tuned, x and share.
    """

    name: str
    cloning: Sequence[tuple[float, float]]
    tuning: Sequence[tuple[float, float]]


def tidy(ax: Axes) -> None:
    """Leave out the lines above and to the right, and draw faint lines to read heights from."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", lw=0.4, color="#dddddd")
    ax.set_axisbelow(True)


def step_axis(ax: Axes, low: float, high: float, ticks: int = 6) -> None:
    """Make x a logarithmic axis of steps, with ticks at 1, 2, 5, 10 …, as many as fit."""
    ax.set_xscale("log")
    ax.set_xlim(low, max(high, low * 1.01))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        places = [d * 10.0**e for e in range(13) for d in digits]
        inside = [p for p in places if low <= p <= high]
        if len(inside) <= ticks:
            break
    ax.xaxis.set_major_locator(FixedLocator(inside))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def frequencies(names: Sequence[str], series: Sequence[Reached]) -> Figure:
    """Return how often each sub-goal along the consensus is reached, as bars side by side.

    The axis is linear up to one episode of all those played and logarithmic beyond, so that rare
    successes can be seen.

    Args:
        names: What the sub-goals are called.
        series: Who reached them how often: demonstrations, clones, fine-tuned agents, …
    """
    at, width = np.arange(len(names)), 0.84 / len(series)
    figure = Figure(figsize=(max(6.0, 0.48 * len(names) + 1.2), 4.2), layout="constrained")
    ax = figure.subplots()
    least = 100 / max(one.episodes for one in series)
    ax.set_yscale("symlog", linthresh=least, linscale=0.6)
    for i, one in enumerate(series):
        rates, color = 100 * np.array(one.counts) / one.episodes, STAGES[one.stage]
        x = at + (i - (len(series) - 1) / 2) * width
        label = f"{one.label} ({one.episodes:,} {one.unit})"
        ax.bar(x, rates, width * 0.94, color=color, label=label)
        for place in x[rates == 0]:
            bold = {"fontsize": 7, "fontweight": "bold", "color": color, "ha": "center"}
            ax.annotate("0", (place, 0), xytext=(0, 1), textcoords="offset points", **bold)
    first = int(np.ceil(np.log10(least) - 1e-9))
    ax.set_yticks([0.0, *(10.0**e for e in range(first, 3))])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:g} %")
    ax.set_ylim(0, 130)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xticks(at, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    ax.tick_params(axis="x", length=0)
    tidy(ax)
    ax.set_ylabel("sub-goal reached")
    columns = 3 if figure.get_figwidth() > 8 or len(series) < 3 else 2
    legend_outside(figure, ax, columns, "upper center", fontsize=9)
    return figure


def learning(agents: Sequence[SubAgent], cloning: str, tuning: str) -> Figure:
    """Return a panel for each sub-agent: how well it did while cloned, then in PPO.

    Args:
        agents: The sub-agents.
        cloning: What the left curves are, for the legend.
        tuning: What the right curves are.
    """
    columns = min(5, len(agents))
    rows = -(-len(agents) // columns)
    width, height = max(2.3 * columns + 0.6, 7.0), 1.65 * rows + 0.75
    figure = Figure(figsize=(width, height))
    outer = figure.add_gridspec(
        rows,
        columns,
        left=0.65 / width,
        right=1 - 0.15 / width,
        bottom=0.6 / height,
        top=1 - 0.3 / height,
        wspace=0.16,
        hspace=0.42,
    )
    for k, agent in enumerate(agents):
        inner = outer[divmod(k, columns)].subgridspec(1, 2, width_ratios=(1, 2.2), wspace=0.06)
        left, right = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
        left.set_title(agent.name, fontsize=9.5, loc="left", pad=3)
        left.set_xticks([])
        _draw(left, agent.cloning, STAGES["cloned"])
        if agent.cloning:
            last = agent.cloning[-1][0]
            left.set_xlim(0, last)
            left.set_xticks([last], [short_number(last)], ha="right")
        _draw(right, agent.tuning, STAGES["fine-tuned"])
        steps = [x for x, _ in agent.tuning]
        if not steps or steps[-1] == 0:
            right.set_xticks([])
        elif steps[0] > 0:
            step_axis(right, steps[0], steps[-1], ticks=3)
        else:  # a logarithmic axis has no place for the beginning
            right.set_xlim(0, steps[-1])
            right.set_xticks([steps[-1]], [short_number(steps[-1])], ha="right")
        for ax in (left, right):
            ax.set_ylim(-3, 104)
            ax.set_yticks([0, 50, 100])
            tidy(ax)
            ax.tick_params(labelsize=7.5, length=2, pad=2)
        left.set_facecolor("#f4f4f4")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.spines["left"].set_visible(False)
        left.set_yticklabels(["0", "50", "100 %"] if k % columns == 0 else [])
    figure.legend(
        [Line2D([], [], color=STAGES["cloned"]), Line2D([], [], color=STAGES["fine-tuned"])],
        [cloning, tuning],
        loc="lower center",
        ncols=2,
        frameon=False,
        fontsize=8.5,
    )
    return figure


def _draw(ax: Axes, curve: Sequence[tuple[float, float]], color: str) -> None:
    """Draw a curve of shares; one point alone is a dot."""
    if curve:
        x, y = np.array(curve).T
        ax.plot(x, 100 * y, color=color, lw=1.4, marker="o" if len(curve) == 1 else None, ms=3)
