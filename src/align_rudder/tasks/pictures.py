"""Pictures of the grid worlds, as arrays of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from align_rudder.tasks.rooms import RoomsMap

__all__ = ["corridor_picture", "grid_picture", "rooms_picture"]

CELL = 24
FLOOR, WALL, GRID = (245, 245, 240), (40, 40, 40), (225, 225, 220)
AGENT, TARGET, PORTAL, ARRIVAL = (213, 94, 0), (0, 158, 115), (240, 228, 66), (86, 180, 233)


def _blank(rows: int, columns: int) -> np.ndarray:
    picture = np.empty((rows * CELL, columns * CELL, 3), np.uint8)
    picture[:] = FLOOR
    picture[::CELL] = picture[:, ::CELL] = GRID
    return picture


def _fill(picture: np.ndarray, cell: tuple[int, int], color: tuple[int, int, int]) -> None:
    r, c = cell[0] * CELL, cell[1] * CELL
    picture[r + 1 : r + CELL, c + 1 : c + CELL] = color


def _disc(picture: np.ndarray, cell: tuple[int, int], color: tuple[int, int, int]) -> None:
    y, x = np.mgrid[:CELL, :CELL] - (CELL - 1) / 2
    r, c = cell[0] * CELL, cell[1] * CELL
    picture[r : r + CELL, c : c + CELL][y**2 + x**2 <= (0.36 * CELL) ** 2] = color


def rooms_picture(world: RoomsMap, state: int) -> np.ndarray:
    """Return the rooms with walls, target (green), open entry (yellow), its exit and the agent."""
    rows, columns = world.shape
    picture = _blank(rows, columns)
    cell, entry = world.cell(state)
    _fill(picture, world.target, TARGET)
    _fill(picture, world.arrival, ARRIVAL)
    if entry is not None:
        _fill(picture, world.entries[entry], PORTAL)
    for (r, c), (r2, c2) in world.walls():
        if r2 > r:
            picture[r2 * CELL - 1 : r2 * CELL + 2, c * CELL : (c + 1) * CELL] = WALL
        else:
            picture[r * CELL : (r + 1) * CELL, c2 * CELL - 1 : c2 * CELL + 2] = WALL
    picture[:2], picture[-2:], picture[:, :2], picture[:, -2:] = WALL, WALL, WALL, WALL
    _disc(picture, cell, AGENT)
    return picture


def grid_picture(
    size: int,
    agent: tuple[int, int],
    items: Sequence[tuple[int, int]],
    others: Sequence[tuple[int, int]],
    following: tuple[int, int],
) -> np.ndarray:
    """Return a grid with items (blue), the one that comes next (green), other stations (grey)."""
    picture = _blank(size, size)
    for cell in others:
        _fill(picture, cell, GRID)
    for cell in items:
        _fill(picture, cell, ARRIVAL)
    _fill(picture, following, TARGET)
    _disc(picture, agent, AGENT)
    return picture


def corridor_picture(length: int, position: int, key: bool, opened: bool) -> np.ndarray:
    """Return the corridor: the key (yellow) until it is taken, the chest, green once open."""
    picture = _blank(1, length)
    if not key:
        _fill(picture, (0, 0), PORTAL)
    _fill(picture, (0, length - 1), TARGET if opened else ARRIVAL)
    _disc(picture, (0, position), AGENT)
    return picture
