"""Demonstrations, what they share, and the sub-goals in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from align_rudder.alignment import Alignment
from align_rudder.events.names import event_names, goal_names
from align_rudder.sequences import GAP
from align_rudder.show.figures.colors import event_color, legend_outside
from align_rudder.show.figures.sequences import alignment as draw_alignment
from align_rudder.text import letters_for

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["consensus"]


Namer = Callable[[Sequence[Hashable]], Sequence[str]]


def consensus(
    model: AlignRudder,
    threshold: float = 0.8,
    *,
    name_goals: Namer = goal_names,
    name_events: Namer = event_names,
) -> Figure:
    """Return the demonstrations aligned, their consensus, and the sub-goals by name.

    Args:
        model: A fitted model with at least one strategy.
        threshold: Share of the demonstrations that an event of the consensus must reach.
        name_goals: Gives the sub-goals their names; a task may have better ones than "wood 2".
        name_events: Gives the events theirs.
    """
    if not model.strategies_:
        raise ValueError("the model has no strategy: its demonstrations have nothing in common")
    strategy = model.strategies_[0]
    aligned, profile = strategy.alignment, strategy.profile
    n, length = aligned.matrix.shape
    kept = profile.conservation >= threshold - 1e-12
    shared = np.full((1, length), GAP)
    shared[0, profile.columns[kept]] = profile.top_events[kept]
    heights = [0.24 * n, 0.30]
    size = (max(7.0, 0.22 * length + 1.6), sum(heights) + 2.3)
    figure = Figure(figsize=size, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=heights, sharex=True)
    draw_alignment(aligned, ax=above)
    above.set(xlabel="", title="")
    above.set_yticks(range(n), [str(i + 1) for i in range(n)], fontsize=8)
    above.tick_params(axis="both", length=0, labelbottom=False)
    own = Alignment(shared, aligned.symbols, aligned.scores, aligned.gap)
    draw_alignment(own, columns=profile.columns, subgoals=strategy.subgoals, ax=below)
    below.set(xlabel="", ylabel="")
    below.set_yticks([0], ["consensus"], fontsize=9, fontweight="bold")
    below.tick_params(axis="both", length=0)
    names = name_goals([goal.symbol for goal in strategy.subgoals])
    places = [int(profile.columns[goal.column]) for goal in strategy.subgoals]
    below.set_xticks(places, names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    below.tick_params(axis="x", pad=7)
    letters = letters_for(aligned.symbols)
    named = zip(letters, name_events(aligned.symbols), strict=True)
    entries = {f"{a}  {b}": Patch(color=event_color(e)) for e, (a, b) in enumerate(named)}
    columns = max(2, int(figure.get_figwidth() / 1.55))
    narrow = {"handlelength": 1.0, "columnspacing": 1.4}
    legend_outside(figure, entries, columns, "upper center", **narrow)
    return figure
