"""Figures of the rooms: clusters on the grid, trajectories, and where their reward goes."""

from __future__ import annotations

from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.model import AlignRudder
from align_rudder.presets import PAPER
from align_rudder.show.figures import event_color, grid_of
from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.show.figures.maps import draw_clusters, draw_walls
from align_rudder.studies.rooms.settings import environment
from align_rudder.tasks import RoomsEnv

__all__ = ["cluster_figure", "trajectory_figure"]

_SEED = 0  # of the demonstrations
_START, _TARGET, _ENTRY, _ARRIVAL = (
    OKABE_ITO[name] for name in ("vermillion", "green", "yellow", "sky")
)


def _square(ax: Axes, cell: tuple[int, int], color: str) -> None:
    ax.add_patch(Rectangle((cell[1] - 0.5, cell[0] - 0.5), 1, 1, color=color, lw=0))


def cluster_figure() -> Figure:
    """Return the clusters that become events, on the grid.

    In room 1 a cell has one state for each portal entry: it takes the color of the cluster that
    most of its visited states belong to.
    """
    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    panels = product((4, 8), ((25, 0.01), (10, 0.01), (25, 0.05)))
    for ax, (rooms, (n, slip)) in zip(figure.subplots(2, 3).flat, panels, strict=True):
        env = environment(rooms, slip)
        events = StateEvents(max_events=15).fit(env.demonstrations(n, _SEED))
        draw_clusters(ax, events, grid_of(env))
        title = f"{n} demonstrations, slip {100 * slip:.0f} %: {events.n_events} clusters"
        ax.set_title(title, fontsize=9, loc="left")
    return figure


def trajectory_figure() -> Figure:
    """Return a demonstration in each environment, and below it its redistributed reward."""
    envs = {"FourRooms": environment(4, 0.01), "EightRooms": environment(8, 0.01)}
    widths = [env.map.shape[1] for env in envs.values()]
    figure = Figure(figsize=(0.26 * sum(widths) + 0.6, 6.2), layout="constrained")
    axes = figure.subplots(2, len(envs), squeeze=False, width_ratios=widths, height_ratios=[3, 2])
    for (above, below), (title, env) in zip(axes.T, envs.items(), strict=True):
        demos = env.demonstrations(10, _SEED)
        model = AlignRudder(StateEvents(max_events=15), strategies=1, **PAPER).fit(demos)
        episode = env.demonstrations(1, _SEED + 1)[0]
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
    patches = {name: Patch(color=color) for name, color in names.items()}
    legend_outside(figure, patches, 4, "upper right")
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
