"""Grid environments: where the clusters lie that became events, and where the reward goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from align_rudder.episodes import Episode
from align_rudder.events import EventEncoder, StateEvents
from align_rudder.sequences import NO_EVENT
from align_rudder.show.figures.colors import event_image, new_axes

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = [
    "Grid",
    "cell_events",
    "cell_rewards",
    "clusters",
    "draw_clusters",
    "draw_walls",
    "grid_of",
]

Cell = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """A map of states.

    Attributes:
        shape: Rows and columns.
        cell: The row and column of an observation.
        walls: Pairs of neighbouring cells with a wall between them.
        marks: Places with a name, such as the target.
    """

    shape: Cell
    cell: Callable[[Any], Cell]
    walls: Sequence[tuple[Cell, Cell]] = ()
    marks: Sequence[tuple[str, Cell]] = ()


def grid_of(env: gym.Env[Any, Any]) -> Grid:
    """Return the map of a grid environment: rooms, key-chest, or toy-text with a `desc`.

    In key-chest there are three rows, one above the other: without key, with it, chest open.
    """
    from align_rudder.tasks import KeyChestEnv, RoomsEnv

    base = env.unwrapped
    if isinstance(base, RoomsEnv):
        world = base.map
        marks = [("start", world.start), ("exit", world.arrival), ("target", world.target)]
        return Grid(world.shape, lambda s: world.cell(int(s))[0], world.walls(), marks)
    if isinstance(base, KeyChestEnv):
        length = base.length
        return Grid(
            (3, length),
            lambda o: (int(o[1]) + int(o[2]), int(o[0])),
            [((r, c), (r + 1, c)) for r in range(2) for c in range(length)],
            [("key", (0, 0)), ("chest", (1, length - 1)), ("start", (0, length // 2))],
        )
    table = getattr(base, "desc", None)
    if isinstance(table, np.ndarray) and table.ndim == 2:
        rows, columns = table.shape
        names = {b"S": "start", b"G": "target", b"H": "hole"}
        marks = [(names[x], (r, c)) for (r, c), x in np.ndenumerate(table) if x in names]
        return Grid((rows, columns), lambda s: divmod(int(s), columns), (), marks)
    raise ValueError(
        f"there is no map of {type(base).__name__}; give a rooms, key-chest or FrozenLake "
        "environment, or a Grid of your own"
    )


def _cell(grid: Grid, state: Any) -> Cell:
    """Return the cell of a state, which must be on the map."""
    try:
        row, column = grid.cell(state)
    except (TypeError, IndexError, ValueError) as error:
        raise ValueError(
            f"the observation {state} is no state of the map; are model and episodes of the same "
            "environment?"
        ) from error
    if not (0 <= row < grid.shape[0] and 0 <= column < grid.shape[1]):
        raise ValueError(
            f"state {state} is not on the map of {grid.shape[0]}×{grid.shape[1]} cells; is the "
            "model of the same environment?"
        )
    return row, column


def cell_events(encoder: EventEncoder, grid: Grid) -> np.ndarray:
    """Return the event of each cell, -1 for none; where states differ, that of most of them."""
    encoder = encoder.base
    if not isinstance(encoder, StateEvents):
        raise ValueError(
            f"the model's events are {type(encoder).__name__}; only clusters of states "
            "(StateEvents) lie on a map"
        )
    votes = np.zeros((*grid.shape, encoder.n_events), int)
    for state, label in zip(encoder.states_.tolist(), encoder.labels_.tolist(), strict=True):
        votes[*_cell(grid, state[0] if len(state) == 1 else state), label] += 1
    return np.where(votes.any(axis=2), votes.argmax(axis=2), NO_EVENT)


def cell_rewards(model: AlignRudder, grid: Grid, episodes: Sequence[Episode]) -> np.ndarray:
    """Return the redistributed reward for entering each cell, the mean sum over episodes."""
    total = np.zeros(grid.shape)
    for episode in episodes:
        rewards = model.redistribute(episode).rewards
        observations = np.asarray(episode.observations)
        for t in np.flatnonzero(rewards):
            total[_cell(grid, observations[t + 1])] += rewards[t]
    return total / max(len(episodes), 1)


def clusters(
    model: AlignRudder,
    env: gym.Env[Any, Any] | Grid,
    episodes: Sequence[Episode] = (),
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the clusters of states on the map, and the redistributed reward as discs.

    Args:
        model: A model with `StateEvents`.
        env: The environment, or its `Grid`.
        episodes: Episodes whose mean redistributed reward is shown: a disc of that area in each
            cell whose entering is paid.
        ax: Where to draw; None for a new figure (`ax.figure`).
    """
    grid = env if isinstance(env, Grid) else grid_of(env)
    rows, columns = grid.shape
    width = 3.3 if columns <= 14 else min(0.24 * columns, 7.0)
    ax = new_axes(ax, (width, max(width * rows / columns, 0.8) + 0.3))
    draw_clusters(ax, model.events_, grid)
    for name, (r, c) in grid.marks:
        ax.text(c, r, name[0].upper(), ha="center", va="center", fontsize=7, weight="bold")
    if len(episodes):
        rewards = cell_rewards(model, grid, episodes)
        top = float(np.abs(rewards).max(initial=0.0)) or 1.0
        for r, c in np.argwhere(rewards != 0):
            radius = 0.45 * float(np.sqrt(abs(rewards[r, c]) / top))
            fill = "black" if rewards[r, c] > 0 else "white"
            ax.add_patch(Circle((c, r), radius, facecolor=fill, edgecolor="black", lw=0.8))
    n = model.events_.n_events
    given = ", discs: mean reward" if len(episodes) else ""
    ax.set_title(f"{n} cluster{'s' * (n != 1)}{given}", fontsize=8, loc="left")
    return ax


def draw_clusters(ax: Axes, encoder: EventEncoder, grid: Grid) -> None:
    """Draw the map with its walls, each cell in the colour of its event."""
    ax.imshow(event_image(cell_events(encoder, grid)), interpolation="nearest")
    draw_walls(ax, grid)


def draw_walls(ax: Axes, grid: Grid) -> None:
    """Draw the walls of a map, with cells as unit squares, and set the limits to it."""
    rows, columns = grid.shape
    for (r, c), (r2, _) in grid.walls:
        if r2 > r:
            ax.plot([c - 0.5, c + 0.5], [r + 0.5, r + 0.5], color="black", lw=1.5)
        else:
            ax.plot([c + 0.5, c + 0.5], [r - 0.5, r + 0.5], color="black", lw=1.5)
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for side in ax.spines.values():
        side.set_linewidth(1.5)
