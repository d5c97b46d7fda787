"""KeyChest: a corridor with a key at one end and a chest at the other; 32 fixed steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder.tasks.environment import TabularEnv
from align_rudder.tasks.mdp import TabularMDP, slippery

__all__ = ["KeyChestEnv"]


class KeyChestEnv(TabularEnv):
    """Fetch the key, then open the chest; the reward comes at the last of 32 steps.

    The agent starts in the middle of a corridor and moves left or right. The key lies at the left
    end and is taken on arrival; the chest stands at the right end and opens on arrival with the
    key. The episode always lasts 32 steps and pays 1 on the last one if the chest is open. The
    observation is (position, has key, chest open).

    Args:
        length: Cells of the corridor.
        slip: Probability that a random move is made instead of the chosen one.
        render_mode: "rgb_array", "human" or None.
    """

    horizon = 32

    def __init__(self, length: int = 9, slip: float = 0.0, render_mode: str | None = None) -> None:
        if not 3 <= length <= 16:
            raise ValueError(
                f"length={length}; 3 to 16 cells can be walked in {self.horizon} steps"
            )
        self.length, self.slip = length, slip
        super().__init__(render_mode)

    def index(self, position: int, key: bool, opened: bool) -> int:
        """Return the state of position, key and chest."""
        return (2 if opened else int(key)) * self.length + position

    def _tables(self) -> TabularMDP:
        """Return the tables; that only the last step pays is in `time_factor`."""
        outcomes = []
        for state in range(3 * self.length):
            stage, position = divmod(state, self.length)
            reached = []
            for move in (-1, 1):
                place = min(max(position + move, 0), self.length - 1)
                key = stage >= 1 or place == 0
                opened = stage == 2 or (stage == 1 and place == self.length - 1)
                reached.append((self.index(place, key, opened), float(opened), False))
            outcomes.append(slippery(reached, self.slip))
        starts = np.zeros(3 * self.length)
        starts[self.length // 2] = 1.0
        factor = np.zeros(self.horizon + 1)
        factor[-1] = 1.0
        return TabularMDP.from_outcomes(outcomes, starts, self.horizon, factor)

    def _space(self) -> spaces.Space[Any]:
        return spaces.MultiDiscrete([self.length, 2, 2])

    def _observe(self, state: int) -> np.ndarray:
        stage, position = divmod(int(state), self.length)
        return np.array([position, stage >= 1, stage == 2], dtype=np.int64)

    def _picture(self, state: int) -> np.ndarray:
        from align_rudder.tasks.pictures import corridor_picture

        position, key, opened = self._observe(state)
        return corridor_picture(self.length, int(position), bool(key), bool(opened))
