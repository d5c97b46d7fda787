"""Rooms: a chain of rooms, the first left only through a portal (FourRooms, EightRooms)."""

from __future__ import annotations

import numpy as np

from align_rudder.tasks.environment import TabularEnv
from align_rudder.tasks.mdp import TabularMDP, slippery

__all__ = ["RoomsEnv", "RoomsMap"]

SIDE = 6
START, ARRIVAL, TARGET = (2, 2), (2, 3), (5, 0)
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right


class RoomsMap:
    """Where rooms, doors, portal entries and target are.

    Rooms of 6×6 cells lie in two rows and are visited as a snake: the upper row from left to
    right, the lower one back. Walls stand between cells. Rooms k and k+1 (k ≥ 2) share a door of
    one cell; room 1 has none. Its 20 border cells are the portal entries, one of which is open in
    each episode and leads to a fixed cell of room 2. The target is a corner of the last room.

    In room 1 the state is cell and open entry, elsewhere the cell: 36·20 + 36·(rooms − 1) states.

    Args:
        rooms: Number of rooms, even and at least 2.
    """

    def __init__(self, rooms: int = 4) -> None:
        if rooms < 2 or rooms % 2:
            raise ValueError(f"rooms={rooms}; an even number of at least 2 is needed (two rows)")
        self.rooms = rooms
        self.shape = (2 * SIDE, rooms // 2 * SIDE)
        border = [(r, c) for r in range(SIDE) for c in range(SIDE)]
        self.entries = [(r, c) for r, c in border if r in (0, SIDE - 1) or c in (0, SIDE - 1)]
        self.n_states = SIDE * SIDE * (len(self.entries) + rooms - 1)
        self.start, self.target = START, self._cell(rooms - 1, TARGET)
        self.arrival = self._cell(1, ARRIVAL)
        self.doors = [self._door(k) for k in range(1, rooms - 1)]

    def corner(self, room: int) -> tuple[int, int]:
        """Return the upper left cell of a room (from 0)."""
        columns = self.rooms // 2
        if room < columns:
            return 0, room * SIDE
        return SIDE, (2 * columns - 1 - room) * SIDE

    def _cell(self, room: int, offset: tuple[int, int]) -> tuple[int, int]:
        row, column = self.corner(room)
        return row + offset[0], column + offset[1]

    def _door(self, room: int) -> frozenset[tuple[int, int]]:
        """Return the two cells that the door between a room and the next one joins."""
        (r1, c1), (r2, c2) = self.corner(room), self.corner(room + 1)
        if r1 == r2:
            row, column = r1 + 2, max(c1, c2)
            return frozenset({(row, column - 1), (row, column)})
        row, column = max(r1, r2), c1 + 3
        return frozenset({(row - 1, column), (row, column)})

    def room_of(self, cell: tuple[int, int]) -> int:
        """Return the room of a cell."""
        columns = self.rooms // 2
        column = cell[1] // SIDE
        return column if cell[0] < SIDE else 2 * columns - 1 - column

    def walls(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Return the pairs of neighbouring cells between which a wall stands."""
        return [
            (cell, other)
            for cell in np.ndindex(self.shape)
            for other in ((cell[0] + 1, cell[1]), (cell[0], cell[1] + 1))
            if self._is_inside(other) and self._is_wall(cell, other)
        ]

    def _is_inside(self, cell: tuple[int, int]) -> bool:
        return 0 <= cell[0] < self.shape[0] and 0 <= cell[1] < self.shape[1]

    def _is_wall(self, cell: tuple[int, int], other: tuple[int, int]) -> bool:
        apart = self.room_of(cell) != self.room_of(other)
        return apart and frozenset({cell, other}) not in self.doors

    def state(self, cell: tuple[int, int], entry: int) -> int:
        """Return the state of a cell, in room 1 while that entry is open."""
        room = self.room_of(cell)
        row, column = self.corner(room)
        inside = (cell[0] - row) * SIDE + cell[1] - column
        block = entry if room == 0 else len(self.entries) + room - 1
        return block * SIDE * SIDE + inside

    def cell(self, state: int) -> tuple[tuple[int, int], int | None]:
        """Return the cell of a state, and the open entry if it is in room 1."""
        block, inside = divmod(int(state), SIDE * SIDE)
        room = max(block - len(self.entries) + 1, 0)
        row, column = self.corner(room)
        place = row + inside // SIDE, column + inside % SIDE
        return place, block if room == 0 else None

    def move(self, cell: tuple[int, int], action: int) -> tuple[int, int]:
        """Return the cell reached by a move; walls and the border hold."""
        other = cell[0] + _MOVES[action][0], cell[1] + _MOVES[action][1]
        return other if self._is_inside(other) and not self._is_wall(cell, other) else cell


class RoomsEnv(TabularEnv):
    """Reach the target in the last room with the fewest steps; paid at the end only.

    Reaching the target at step t of T pays (T − t + 1)/T and ends the episode: the paper's
    absorbing state has no choices left. Otherwise the episode is cut off after T steps and pays
    nothing.

    Args:
        rooms: Number of rooms.
        slip: Probability that a random move is made instead of the chosen one.
        horizon: T; None for 200 up to 8 rooms and 25 for each room beyond.
        render_mode: "rgb_array", "human" or None.
    """

    def __init__(
        self,
        rooms: int = 4,
        slip: float = 0.01,
        horizon: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.map = RoomsMap(rooms)
        self.rooms, self.slip = rooms, slip
        self.horizon = (200 if rooms <= 8 else 25 * rooms) if horizon is None else horizon
        super().__init__(render_mode)

    def _tables(self) -> TabularMDP:
        """Return the tables."""
        world = self.map
        goal = world.state(world.target, 0)
        outcomes = []
        for state in range(world.n_states):
            cell, entry = world.cell(state)
            reached = []
            for action in range(4):
                place = world.move(cell, action)
                if entry is not None and place == world.entries[entry] and place != cell:
                    place = world.arrival
                there = world.state(place, entry or 0)
                reached.append((there, float(there == goal), there == goal))
            outcomes.append(slippery(reached, self.slip))
        starts = np.zeros(world.n_states)
        for entry in range(len(world.entries)):
            starts[world.state(world.start, entry)] = 1 / len(world.entries)
        steps = np.arange(self.horizon + 1)
        factor = np.minimum((self.horizon - steps + 1) / self.horizon, 1.0)
        return TabularMDP.from_outcomes(outcomes, starts, self.horizon, factor)

    def _picture(self, state: int) -> np.ndarray:
        from align_rudder.tasks.pictures import rooms_picture

        return rooms_picture(self.map, state)
