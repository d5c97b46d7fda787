"""(III) Groups: which branches of the guide tree are strategies, by their joint evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.evidence import directed_evidence, kept_columns
from align_rudder.null import Null

__all__ = ["LEAST", "Group", "Part", "evident_groups", "members_below", "picking_cost"]

LEAST = log(100)  # a group without a strategy reaches this once in a hundred times

_ALONE = 2.0  # what it costs that a demonstration is in no group


@dataclass(frozen=True, eq=False)
class Group:
    """Demonstrations that belong together: their indices, their alignment if there is one yet."""

    members: np.ndarray
    matrix: np.ndarray | None
    evidence: float = 0.0


class Part(NamedTuple):
    """One strategy: its demonstrations, their alignment, and the columns that are kept.

    `columns` is None where a share of the demonstrations decides (`min_conservation`).
    """

    members: np.ndarray
    alignment: Alignment
    columns: np.ndarray | None = None


def members_below(tree: np.ndarray) -> list[np.ndarray]:
    """Return the demonstrations below each node of a guide tree, the leaves first."""
    below = [[i] for i in range(len(tree) + 1)]
    for left, right in tree[:, :2].astype(int).tolist():
        below.append(sorted(below[left] + below[right]))
    return [np.array(members) for members in below]


def evident_groups(
    tree: np.ndarray, below: Sequence[np.ndarray], matrices: Sequence[np.ndarray], null: Null
) -> list[Group]:
    """Return the branches of the tree that are strategies, so that their evidence is largest.

    Args:
        tree: The guide tree over n demonstrations.
        below: The demonstrations below each node (`members_below`).
        matrices: The alignment of the demonstrations below each inner node, members in order.
        null: What sequences look like by chance.

    Notes:
        A branch of g demonstrations was picked from n, which costs ln C(n, g) + ln n. What is left
        of its evidence must be at least ln 100, and is compared with the sum of what its two
        sides have, less 2 for each demonstration that is then in no group. A random walk must not
        explain it better: the evidence against the null's chain must be positive too.
    """
    n = len(tree) + 1
    found = [kept_columns(matrix, null, quick=True) for matrix in matrices]
    best: list[list[Group]] = [[] for _ in range(n)]
    apart, nodes = list(best), {}
    for k, (left, right) in enumerate(tree[:, :2].astype(int).tolist()):
        members, sides = below[n + k], best[left] + best[right]
        evidence = found[k].evidence - picking_cost(n, len(members))
        lost = len(members) - sum(len(group.members) for group in sides)
        joined = evidence >= max(LEAST, sum(group.evidence for group in sides) - lost * _ALONE)
        group = Group(members, matrices[k], evidence)
        nodes[group] = k
        best.append([group] if joined else sides)
        apart.append(sides)
    out, queue = [], list(best[-1])
    while queue:  # what a random walk explains falls apart
        group = queue.pop()
        k, picked = nodes[group], picking_cost(n, len(group.members))
        if directed_evidence(matrices[k], found[k], null, enough=picked) > picked:
            out.append(group)
        else:
            queue += apart[n + k]
    return out


def picking_cost(n: int, size: int) -> float:
    """Return what it costs, in nats, to say which demonstrations are in a group."""
    if size == n:
        return 0.0
    return lgamma(n + 1) - lgamma(size + 1) - lgamma(n - size + 1) + log(n)
