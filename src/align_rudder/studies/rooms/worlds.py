"""Figures of the rooms: clusters on the grid, trajectories, and where their reward goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.model import AlignRudder
from align_rudder.show.figures import event_color, grid_of
from align_rudder.show.figures.colors import OKABE_ITO
from align_rudder.show.figures.maps import draw_clusters, draw_walls
from align_rudder.tasks import RoomsEnv

__all__ = ["cluster_figure", "trajectory_figure"]

_START, _TARGET, _ENTRY, _ARRIVAL = (
    OKABE_ITO[name] for name in ("vermillion", "green", "yellow", "sky")
)


def _square(ax: Axes, cell: tuple[int, int], color: str) -> None:
    ax.add_patch(Rectangle((cell[1] - 0.5, cell[0] - 0.5), 1, 1, color=color, lw=0))


def cluster_figure(panels: Sequence[tuple[str, RoomsEnv, int]], seed: int = 0) -> Figure:
    """Return the clusters that become events, on the grid.

    In room 1 a cell has one state for each portal entry: it takes the colour of the cluster that
    most of its visited states belong to.

    Args:
        panels: Title, environment and number of demonstrations of each panel.
        seed: Seed of the demonstrations.
    """
    columns = 3
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(11.0, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, env, n) in zip(axes, panels):
        events = StateEvents(max_events=15).fit(env.demonstrations(n, seed))
        draw_clusters(ax, events, grid_of(env))
        ax.set_title(f"{title}: {events.n_events} clusters", fontsize=9, loc="left")
    return figure


def trajectory_figure(envs: Sequence[tuple[str, RoomsEnv]], n: int = 10, seed: int = 0) -> Figure:
    """Return a demonstration in each environment, and below it its redistributed reward.

    Args:
        envs: Title and environment.
        n: Demonstrations that are aligned.
        seed: Seed of the demonstrations.
    """
    widths = [env.map.shape[1] for _, env in envs]
    figure = Figure(figsize=(0.26 * sum(widths) + 0.6, 6.2), layout="constrained")
    axes = figure.subplots(2, len(envs), squeeze=False, width_ratios=widths, height_ratios=[3, 2])
    for (above, below), (title, env) in zip(axes.T, envs, strict=True):
        demos = env.demonstrations(n, seed)
        model = AlignRudder(StateEvents(max_events=15), strategies=1).fit(demos)
        episode = env.demonstrations(1, seed + 1)[0]
        _path(above, env, episode)
        above.set_title(title, fontsize=10, loc="left")
        rr = model.redistribute(episode)
        steps = np.arange(1, len(rr.rewards) + 1)
        below.bar(steps, rr.rewards, color=[*map(event_color, rr.events.tolist())], width=1.0)
        below.axhline(0.0, color="black", lw=0.6)
        below.set(xlabel="step", xlim=(0, len(steps) + 1))
        below.set_title(
            f"return {rr.ret:.2f} at the last step; {rr.rewards.sum():.2f} redistributed",
            fontsize=8,
            loc="left",
        )
        below.spines[["top", "right"]].set_visible(False)
    axes[1, 0].set_ylabel("redistributed reward")
    names = {"start": _START, "open portal": _ENTRY, "portal's exit": _ARRIVAL, "target": _TARGET}
    handles = [Patch(color=color, label=name) for name, color in names.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=4, frameon=False, fontsize=8)
    return figure


def _path(ax: Axes, env: RoomsEnv, episode: Episode) -> None:
    world = env.map
    cells, entries = (
        list(part) for part in zip(*(world.cell(int(s)) for s in np.asarray(episode.observations)))
    )
    _square(ax, world.start, _START)
    _square(ax, world.target, _TARGET)
    _square(ax, world.arrival, _ARRIVAL)
    if entries[0] is not None:
        _square(ax, world.entries[entries[0]], _ENTRY)
    draw_walls(ax, grid_of(env))
    jump = next((i for i, e in enumerate(entries) if e is None), len(cells))
    if entries[0] is not None and jump < len(cells):
        cells.insert(jump, world.entries[entries[0]])  # stepped on, and gone at once
        jump += 1
    y, x = np.array(cells, float).T
    rng = np.random.default_rng(0)
    x, y = x + rng.uniform(-0.18, 0.18, len(x)), y + rng.uniform(-0.18, 0.18, len(y))
    ax.plot(x[:jump], y[:jump], color="black", lw=1.0)
    ax.plot(x[jump:], y[jump:], color="black", lw=1.0)
    if 0 < jump < len(cells):
        ax.plot(x[jump - 1 : jump + 1], y[jump - 1 : jump + 1], color="black", lw=0.8, ls=":")
