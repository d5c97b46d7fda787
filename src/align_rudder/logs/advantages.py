"""Advantages of turns, from a group of rollouts of one task, as a GRPO-style trainer takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder.files import Number
from align_rudder.text import short

__all__ = ["turn_advantages"]


def turn_advantages(
    rewards: Sequence[Sequence[float | None]], beta: float = 1.0, normalise: bool = True
) -> list[list[float | None]]:
    """Return the advantage of every turn of a group of rollouts of one task.

    Args:
        rewards: The turn rewards of each rollout (`LogModel.turn_rewards`), None for no turn.
        beta: How much turns of a rollout differ from each other; 0 gives every turn the advantage
            that GRPO gives the rollout.
        normalise: Whether to divide by the standard deviation of the returns, as GRPO does, where
            they are not all the same.

    Returns:
        A list like the one given, with advantages in place of rewards.

    Notes:
        With turn rewards r_{i,k} of K_i turns, returns G_i = Σ_k r_{i,k}, their mean Ḡ and standard
        deviation σ over the group,

            A_{i,k} = (G_i − Ḡ + β (r_{i,k} − G_i / K_i)) / σ.

        The mean over the turns of a rollout is GRPO's advantage (G_i − Ḡ) / σ, whatever the model
        says and however many turns there are, so that no rollout gains by being longer; the second
        term only moves credit between the turns of one rollout. There is no reward to go and no
        mean over turns with the same index: where the model's chance of success does not change,
        all turns have the same advantage, the first as the last.

    Example:
        >>> turn_advantages([[None, 1.0, 0.0], [None, -0.5, 0.5]], normalise=False)
        [[None, 1.0, 0.0], [None, -1.0, 0.0]]
        >>> turn_advantages([[1.0, 0.0], [-0.5, 0.5]], beta=0.0)
        [[1.0, 1.0], [-1.0, -1.0]]
    """
    if not rewards:
        return []
    beta = float(Number().check(beta, "beta"))
    rows = [np.array(_numbers(row, f"rollout {i}"), float) for i, row in enumerate(rewards)]
    if empty := [i for i, row in enumerate(rows) if not len(row)]:
        raise ValueError(f"rollouts {empty} have no turn; leave them out")
    returns = np.array([row.sum() for row in rows])
    spread = float(returns.std())
    scale = spread if normalise and spread > 1e-12 else 1.0
    out: list[list[float | None]] = []
    for given, row, ret in zip(rewards, rows, returns, strict=True):
        found = iter(((ret - returns.mean() + beta * (row - ret / len(row))) / scale).tolist())
        out.append([None if r is None else next(found) for r in given])
    return out


def _numbers(row: Any, name: str) -> list[float]:
    """Return the rewards of the turns of a rollout, without None."""
    if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
        raise ValueError(
            f"{name} is {short(repr(row), 40)}; a list of numbers is needed for each rollout, with "
            "None for messages that are no turn"
        )
    check = Number().check
    return [
        float(check(reward, f"reward {k} of {name}"))
        for k, reward in enumerate(row)
        if reward is not None
    ]
