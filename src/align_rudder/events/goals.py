"""Observations with a goal: what was achieved, relative to what is desired."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from align_rudder.episodes import Tree
from align_rudder.files import Choice

__all__ = ["GOALS", "GOAL_KEYS", "goal_names", "goal_numbers", "goal_width", "has_goal"]

GOALS = Choice(("difference", "distance"))
"""What may be made of the achieved and the desired goal."""
GOAL_KEYS = ("achieved_goal", "desired_goal")
"""How gymnasium-robotics names the two entries."""


def has_goal(observations: Tree) -> bool:
    """Return whether observations are dicts with an achieved and a desired goal."""
    if not isinstance(observations, Mapping) or not set(GOAL_KEYS) <= observations.keys():
        return False
    achieved, desired = (np.asarray(observations[key]) for key in GOAL_KEYS)
    return achieved.shape == desired.shape and achieved.dtype.kind in "iuf"


def goal_numbers(rows: np.ndarray, goal: str) -> np.ndarray:
    """Return rows of achieved and desired goals as differences and distance, or distance alone."""
    if rows.shape[1] % 2:
        raise ValueError(
            f"goal={goal!r} needs two entries of the same shape, the achieved and the desired "
            f"goal; those of keys have {rows.shape[1]} numbers together"
        )
    achieved, desired = np.hsplit(rows, 2)
    difference = achieved - desired
    distance = np.sqrt((difference**2).sum(axis=1, keepdims=True))
    return distance if goal == "distance" else np.hstack([difference, distance])


def goal_width(shapes: Mapping[str, Sequence[int]], goal: str | None) -> int:
    """Return how many numbers are made of observations of these shapes."""
    n = sum(math.prod(shape) for shape in shapes.values())
    return {None: n, "difference": n // 2 + 1}.get(goal, 1)


def goal_names(n: int, goal: str) -> list[str]:
    """Return the names of the numbers that `goal_numbers` makes of goals of n numbers."""
    parts = [f"from_goal[{i}]" for i in range(n)] if n > 1 else ["from_goal"]
    return [*(parts if goal == "difference" else []), "distance"]
