"""Where the reward of episodes goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from align_rudder.redistribution import Redistribution
from align_rudder.show.figures.colors import OKABE_ITO, event_color, new_axes
from align_rudder.show.figures.sequences import alignment
from align_rudder.text import legend, letters_for

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["overview", "redistribution"]


def redistribution(
    rr: Redistribution,
    symbols: Sequence[object] = (),
    *,
    original: np.ndarray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the redistributed reward of an episode, its sum, and the original one's sum.

    Args:
        rr: The redistribution.
        symbols: The symbol of each event, to label the rewarded steps.
        original: The original rewards (T,).
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    steps = np.arange(1, len(rr.rewards) + 1)
    ax = new_axes(ax, (8.0, 2.6))
    shown = np.append(rr.rewards, rr.correction)
    at = np.append(steps, len(steps) + 1)
    ax.bar(at, shown, color=[*map(event_color, rr.events.tolist()), "black"], width=0.9)
    ax.step(at, np.cumsum(shown), where="post", color="black", lw=1.2, label="sum of redistributed")
    if original is not None:
        sums = np.append(np.cumsum(original), np.sum(original))
        look = {"color": OKABE_ITO["vermillion"], "lw": 1.2, "ls": "--"}
        ax.step(at, sums, where="post", label="sum of original", **look)
    ax.axhline(0.0, color="black", lw=0.6)
    if len(symbols):
        letters = letters_for(list(symbols))  # pyright: ignore[reportArgumentType]
        for t, e in enumerate(rr.events):
            if 0 <= e < len(letters) and rr.rewards[t] != 0:
                ax.annotate(
                    letters[e],
                    (steps[t], rr.rewards[t]),
                    xytext=(0, 1),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                )
    ax.set(xlabel="step (last, black: correction)", ylabel="reward", xlim=(0, len(steps) + 2))
    ax.legend(loc="upper left", frameon=False, fontsize=8)
    return ax


def overview(
    model: AlignRudder, episodes: Sequence[tuple[str, Redistribution, np.ndarray]]
) -> Figure:
    """Return one figure of a model: its largest strategy aligned, and the rewards of episodes.

    Args:
        model: A fitted model with at least one strategy.
        episodes: Title, redistribution and original rewards of each episode to show.
    """
    strategy = model.strategies_[0]
    n, length = strategy.alignment.matrix.shape
    heights = [0.25 * n + 1.1, *([2.0] * len(episodes))]
    figure = Figure(
        figsize=(min(max(8.0, 0.2 * length + 1.5), 14.0), sum(heights) + 0.6), layout="constrained"
    )
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    alignment(
        strategy.alignment, columns=strategy.profile.columns, subgoals=strategy.subgoals, ax=axes[0]
    )
    axes[0].set_title("Demonstrations aligned", loc="left", fontsize=10)
    symbols = list(model.events_.symbols_)
    for ax, (title, rr, original) in zip(axes[1:], episodes, strict=True):
        redistribution(rr, symbols, original=original, ax=ax)
        ax.set_title(title, loc="left", fontsize=10)
    limits = [ax.get_ylim() for ax in axes[1:]]
    for ax in axes[1:]:
        ax.set_ylim(min(low for low, _ in limits), max(top for _, top in limits))
    letters = letters_for(symbols)
    figure.supxlabel(legend(symbols, letters, width=int(figure.get_figwidth() * 15)), fontsize=7.5)
    return figure
