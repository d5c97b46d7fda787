"""What the demonstrations have in common: logo, scores, guide tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from scipy.cluster.hierarchy import dendrogram

from align_rudder.profile import Profile
from align_rudder.show.figures.colors import (
    OKABE_ITO,
    STRATEGY_COLORS,
    Color,
    event_color,
    ink_on,
    mark_subgoals,
    new_axes,
)
from align_rudder.subtasks import SubGoal
from align_rudder.text import letters_for, short

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["guide_tree", "logo", "logo_heights", "pssm"]


def logo_heights(profile: Profile) -> np.ndarray:
    """Return the height of each event in each column of the logo (n, L), in bits.

    Notes:
        A column is as high as it tells it apart from chance, max(0, Σ_i q_i log2(q_i / p_i)), and
        its events share the height as they share its frequencies. Gaps count against a column.
    """
    q, p = profile.frequencies, profile.background
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.where(q > 0, q * np.log2(q / p[:, None]), 0.0).sum(axis=0)
        if (p == 1.0).any():
            bits = q.sum(axis=0)  # with one event only nothing is told apart; show the shares
        return np.nan_to_num(q / q.sum(axis=0) * np.maximum(bits, 0.0))


def logo(
    profile: Profile,
    *,
    subgoals: Sequence[SubGoal] = (),
    max_columns: int = 80,
    ax: Axes | None = None,
) -> Axes:
    """Draw the consensus as a sequence logo: the higher a letter, the surer the event.

    Args:
        profile: The profile.
        subgoals: Sub-goals to mark under their columns.
        max_columns: Draw no more than the first columns; the title then says so.
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    length = min(len(profile), max_columns)
    ax = new_axes(ax, (max(3.3, 0.16 * length + 0.6), 1.6))
    heights, letters = logo_heights(profile), letters_for(profile.symbols)
    for t in range(length):
        base = 0.0
        for event in np.argsort(heights[:, t], kind="stable"):
            height = float(heights[event, t])
            if height > 0:
                _letter(ax, letters[event], t, base, height, event_color(int(event)))
                base += height
    top = float(heights[:, :length].sum(axis=0).max(initial=0.0)) or 1.0
    goals = [goal.column for goal in subgoals]
    mark_subgoals(ax, [c for c in goals if c < length], -0.07 * top, "profile column")
    ax.set(xlim=(-0.6, max(length, 1) - 0.4), ylim=(0, 1.02 * top), ylabel="bits")
    ax.tick_params(axis="x", length=0, pad=10 if goals else 3)
    if length < len(profile):
        ax.set_title(f"first {length} of {len(profile)} columns", fontsize=8, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _letter(ax: Axes, letter: str, column: int, base: float, height: float, color: Color) -> None:
    """Draw a letter on its colour, as wide as a column and as high as given."""
    ax.add_patch(Rectangle((column - 0.46, base), 0.92, height, facecolor=color, lw=0))
    path = TextPath((0, 0), letter, size=1)
    box = path.get_extents()
    if box.width <= 0 or box.height <= 0:
        return
    fit = Affine2D().translate(-box.x0, -box.y0).scale(0.6 / box.width, 0.8 * height / box.height)
    fit = fit.translate(column - 0.3, base + 0.1 * height)
    ax.add_patch(PathPatch(fit.transform_path(path), facecolor=ink_on(color), lw=0))


def pssm(profile: Profile, *, subgoals: Sequence[SubGoal] = (), ax: Axes | None = None) -> Axes:
    """Draw the position-specific scores as a heat map; white where an event never occurred.

    Args:
        profile: The profile.
        subgoals: Sub-goals to mark under their columns.
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    n, length = profile.pssm.shape
    ax = new_axes(ax, (min(max(3.3, 0.13 * length + 2.2), 12.0), min(0.17 * n + 0.9, 8.0)))
    shown = np.where(np.isfinite(profile.pssm), profile.pssm, np.nan)
    bound = float(np.nanmax(np.abs(shown), initial=0.0)) if np.isfinite(shown).any() else 1.0
    image = ax.imshow(
        shown, aspect="auto", interpolation="nearest", cmap="PuOr_r", vmin=-bound, vmax=bound
    )
    mark_subgoals(ax, [goal.column for goal in subgoals], n - 0.2, "profile column")
    ax.set_yticks(range(n), [short(s, 20).replace("$", r"\$") for s in profile.symbols], fontsize=7)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.01)
    bar.set_label("score", fontsize=8)
    return ax


def guide_tree(model: AlignRudder, *, ax: Axes | None = None) -> Axes:
    """Draw the guide tree over all demonstrations, a colour for each strategy found.

    Args:
        model: A fitted model.
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    used = model.used_.tolist()
    n, place = len(used), {i: leaf for leaf, i in enumerate(used)}
    ax = new_axes(ax, (3.3, min(max(1.2, 0.15 * n + 0.7), 12.0)))
    strategy_of = np.full(2 * n - 1, -1)
    for k, strategy in enumerate(model.strategies_):
        strategy_of[[place[i] for i in strategy.members]] = k
    for i, (left, right) in enumerate(model.tree_[:, :2].astype(int)):
        if strategy_of[left] == strategy_of[right]:
            strategy_of[n + i] = strategy_of[left]

    def color(node: int) -> str:
        k = strategy_of[node]
        return OKABE_ITO["gray"] if k < 0 else STRATEGY_COLORS[k % len(STRATEGY_COLORS)]

    dendrogram(
        model.tree_,
        orientation="left",
        link_color_func=color,
        ax=ax,
        leaf_font_size=6 if n > 30 else 7,
        leaf_label_func=lambda leaf: str(used[leaf]),
    )
    for label in ax.get_yticklabels():
        label.set_color(to_rgb(color(place[int(label.get_text())])))
    for k, strategy in enumerate(model.strategies_):
        size = len(strategy.members)
        ax.plot([], [], color=color(place[strategy.members[0]]), label=f"strategy {k + 1} ({size})")
    if len(model.outliers_):
        ax.plot([], [], color=OKABE_ITO["gray"], label=f"in none ({len(model.outliers_)})")
    ax.set(xlabel="distance", ylabel="demonstration")
    ax.legend(frameon=False, fontsize=7, loc="upper left")
    ax.spines[["top", "left"]].set_visible(False)
    return ax
