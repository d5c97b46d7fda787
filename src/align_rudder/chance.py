"""What chance reaches is paid less: columns are weighed by how rarely chance comes there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder.events import Encoded
from align_rudder.redistribution import Scorer
from align_rudder.returns import final_scores

__all__ = ["beyond_chance"]

_BY_CHANCE, _MOST_POWER = 0.07, 3


def beyond_chance(
    pssms: Sequence[np.ndarray],
    skips: Sequence[np.ndarray],
    gap: float,
    demos: Sequence[Encoded],
    random: Sequence[Encoded],
) -> tuple[list[np.ndarray], list[np.ndarray], float]:
    """Return scores and costs of each strategy's columns, less where random episodes come as well.

    Args:
        pssms: The scores (n, L) of each strategy.
        skips: What it costs to skip each column (L,) of each strategy.
        gap: Gap cost.
        demos: Demonstrations.
        random: Random episodes; if there are none, scores and costs stay.

    Returns:
        Scores, costs, and what share of the demonstrations' score random episodes get.

    Notes:
        Column j is weighed by (1 − k_j / (N + 1))^a, where k_j of N random episodes come as far as
        that, with the smallest a = 0, 1, 2, 3 with which random episodes get at most 7 % of
        what demonstrations do, or else the best. What they get is measured on one half of them with
        the weights of the other. What chance reaches anyway needs little reward, but some of it
        shows where the way begins: left out, nothing would be paid before the first thing
        that chance never does.
    """
    columns = list(pssms), list(skips)
    if not random or not columns[0]:
        return *columns, 0.0
    found: list[float] = []
    for power in range(_MOST_POWER + 1 if len(random) > 1 else 1):
        halves = [(random[::2], random[1::2]), (random[1::2], random[::2])]
        tried = [(_weighed(*columns, gap, a, power), b) for a, b in halves if power]
        tried = tried or [(columns, random)]
        found.append(float(np.mean([_share(*few, gap, demos, some) for few, some in tried])))
        if found[-1] <= _BY_CHANCE:
            break
    best = int(np.argmin(found))
    weighed = _weighed(*columns, gap, random, best) if best else columns
    return *weighed, found[best]


def _weighed(
    pssms: list[np.ndarray],
    skips: list[np.ndarray],
    gap: float,
    random: Sequence[Encoded],
    power: int,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return scores and costs, each column times how rarely it is reached to this power."""
    alone = [Scorer([pssm], gap, [cost]) for pssm, cost in zip(pssms, skips, strict=True)]
    rare = [(1.0 - _reached(one, random) / (len(random) + 1)) ** power for one in alone]
    return (
        [pssm * r for pssm, r in zip(pssms, rare, strict=True)],
        [cost * r for cost, r in zip(skips, rare, strict=True)],
    )


def _share(
    pssms: list[np.ndarray],
    skips: list[np.ndarray],
    gap: float,
    demos: Sequence[Encoded],
    random: Sequence[Encoded],
) -> float:
    """Return what share of the demonstrations' mean score random episodes get."""
    scorer = Scorer(pssms, gap, skips)
    most = max(float(final_scores(scorer, demos).mean()), 1e-300)
    return float(final_scores(scorer, random).mean()) / most


def _reached(scorer: Scorer, random: Sequence[Encoded]) -> np.ndarray:
    """Return how many of the episodes come as far as each column (L,), or farther."""
    cells = [scorer.prefix_scores(one.events, one.start)[1] for one in random]
    ends = np.array([cell[-1] if len(cell) else 0 for cell in cells])
    return (ends[:, None] > np.arange(scorer.n_cells - 1)).sum(axis=0)
