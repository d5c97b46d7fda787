"""(III) Branches of the guide tree that are strategies: by evidence, or else by agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from align_rudder.agreement import agreement
from align_rudder.alignment import guide_tree, pairwise_scores, progressive
from align_rudder.groups import Group, evident_groups, members_below
from align_rudder.null import Null, directedness
from align_rudder.scoring import background

__all__ = ["Guide", "are_directed", "cut_tree", "find_strategies", "groups_along"]

_MIN_AGREEMENT = 0.1
_LARGE_AGREEMENT = 0.5
_MIN_RATIO = 0.5
_DIRECTED = 0.8
_CLEAR = 3.0  # standard deviations beyond chance


def find_strategies(
    sequences: Sequence[np.ndarray],
    pair_scores: np.ndarray,
    tree: np.ndarray,
    scores: np.ndarray,
    gap: float = 0.0,
    n_strategies: int | None = None,
    null: Null | None = None,
) -> list[np.ndarray]:
    """Return the demonstrations of each strategy, the largest first.

    Args:
        sequences: Event ids of each demonstration.
        pair_scores: Alignment scores (N, N).
        tree: The guide tree.
        scores: The scoring matrix.
        gap: The gap cost.
        n_strategies: The number of strategies; None to find it.
        null: What sequences look like by chance; None to make it of the demonstrations.

    Returns:
        Indices of the members of each strategy. If the number is to be found, demonstrations that
        agree with no other are in none, and the list may be empty: nothing is shared.

    Notes:
        Branches of the guide tree are strategies by their joint evidence (`evident_groups`).
        Where that says nothing, as there are few and short demonstrations, and they hardly ever go
        back (`directedness`), as random walks do, their agreement beyond chance decides, from the
        top down: two sides that agree less than 0.1, or less than half as much as each within
        itself, are two strategies. Below the root, groups were picked for being alike, so their
        agreement must also be significant (z above 1 + √(2 ln(number of pairs)), what the best of
        as many random pairs reaches) or large (at least 0.5). Who is in no group then joins the
        one with which it agrees.
    """
    if n_strategies is not None:
        return [group.members for group in cut_tree(tree, n_strategies)]
    if null is None:
        null = Null.of(sequences, background(sequences, len(scores)))
    guide = Guide(scores, pair_scores, tree, progressive(sequences, tree, scores, gap))
    groups = groups_along(sequences, guide, gap, null, lambda: are_directed(sequences, null))
    return [group.members for group in groups]


def cut_tree(tree: np.ndarray, n_strategies: int) -> list[Group]:
    """Return so many groups of demonstrations, the largest first: all merges but the last ones."""
    n, below = len(tree) + 1, members_below(tree)
    if not 1 <= n_strategies <= n:
        raise ValueError(f"{n_strategies} strategies asked for {n} demonstrations; use 1 to {n}")
    whole = set(range(n, 2 * n - n_strategies))
    inside = {int(child) for node in whole for child in tree[node - n, :2]}
    top = (whole | set(range(n))) - inside
    return _sorted([Group(below[node], None) for node in top])


@dataclass(frozen=True, eq=False)
class Guide:
    """Demonstrations aligned along their tree.

    Attributes:
        scores: The scoring matrix.
        pairs: Alignment scores of all pairs (N, N).
        tree: The guide tree.
        matrices: The alignment below each branching of the tree.
    """

    scores: np.ndarray
    pairs: np.ndarray
    tree: np.ndarray
    matrices: Sequence[np.ndarray]

    @classmethod
    def of(
        cls, sequences: Sequence[np.ndarray], scores: np.ndarray, gap: float, progress: bool
    ) -> Guide:
        """Score all pairs of sequences, make their tree, and align them along it."""
        pairs = pairwise_scores(sequences, scores, gap, progress=progress)
        tree = guide_tree(pairs)
        return cls(scores, pairs, tree, progressive(sequences, tree, scores, gap, progress))


def groups_along(
    sequences: Sequence[np.ndarray],
    guide: Guide,
    gap: float,
    null: Null,
    directed: Callable[[], bool],
) -> list[Group]:
    """Return the groups of demonstrations, the largest first, with their alignments."""
    pair_scores, tree, scores = guide.pairs, guide.tree, guide.scores
    matrices = guide.matrices
    n, below = len(sequences), members_below(tree)
    evident = evident_groups(tree, below, matrices, null)
    taken = set(np.concatenate([g.members for g in evident]).tolist()) if evident else set()
    chance = null if null.recorded else None
    if len(taken) == n:
        return _sorted(evident)
    groups, stack = list(evident), [len(below) - 1]
    if not directed():
        stack = []
    while stack:
        node = stack.pop()
        members = below[node]
        if len(members) < 2 or taken.issuperset(members.tolist()):
            continue
        sides = [int(child) for child in tree[node - n, :2]]
        free = taken.isdisjoint(members.tolist())
        if free and _agree(sequences, pair_scores, scores, gap, chance, *(below[s] for s in sides)):
            groups.append(Group(members, matrices[node - n]))
        else:
            stack += sides
    alone = np.setdiff1d(np.arange(n), np.concatenate([below[0][:0], *(g.members for g in groups)]))
    if len(alone) and groups:
        groups = _joined(groups, alone, sequences, pair_scores, scores, gap, null)
    return _sorted(groups)


def are_directed(sequences: Sequence[np.ndarray], null: Null) -> bool:
    """Return whether agreement may decide: random walks agree more than shuffled ones, too."""
    return bool(null.recorded) or directedness(sequences) >= _DIRECTED


def _joined(
    groups: list[Group],
    alone: np.ndarray,
    sequences: Sequence[np.ndarray],
    pair_scores: np.ndarray,
    scores: np.ndarray,
    gap: float,
    null: Null,
) -> list[Group]:
    """Let each demonstration that is in no group join the one it agrees with, if there is one.

    It must agree beyond chance with the group's members, half as much as they do with each other.
    """
    joined: list[list[int]] = [[] for _ in groups]
    inside = [
        agreement(sequences, _pairs_in(g.members), pair_scores, scores, gap, null, samples=4)[0]
        for g in groups
    ]
    for i in alone.tolist():
        found = []
        for group in groups:
            cross = np.column_stack([np.full(len(group.members), i), group.members])
            found.append(agreement(sequences, cross, pair_scores, scores, gap, null, samples=4))
        k = int(np.argmax([value for value, _ in found]))
        if found[k][1] >= _CLEAR and found[k][0] >= max(_MIN_AGREEMENT, _MIN_RATIO * inside[k]):
            joined[k].append(i)
    return [
        Group(np.sort(np.concatenate([group.members, more])), None) if more else group
        for group, more in zip(groups, joined, strict=True)
    ]


def _pairs_in(members: np.ndarray) -> np.ndarray:
    return np.column_stack([members[i] for i in np.triu_indices(len(members), 1)])


def _sorted(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (-len(group.members), group.members[0]))


def _agree(
    sequences: Sequence[np.ndarray],
    pair_scores: np.ndarray,
    scores: np.ndarray,
    gap: float,
    null: Null | None,
    a: np.ndarray,
    b: np.ndarray,
) -> bool:
    """Return whether two sides of a branching are one strategy, by their agreement."""
    n, all_of_them = len(sequences), len(a) + len(b) == len(sequences)
    own, cross = np.diag(pair_scores), np.array([[i, j] for i in a for j in b])
    best = np.minimum(own[cross[:, 0]], own[cross[:, 1]]).sum()
    if pair_scores[cross[:, 0], cross[:, 1]].sum() < _MIN_AGREEMENT * best or best <= 0:
        return False  # agreement beyond chance is at most that

    def beyond(pairs: np.ndarray) -> tuple[float, float]:
        return agreement(sequences, pairs, pair_scores, scores, gap, null)

    between, z = beyond(cross)
    significant = z >= 1.0 + np.sqrt(2.0 * np.log(max(n * (n - 1) / 2, 1.0)))
    if between < _MIN_AGREEMENT or not (all_of_them or significant or between >= _LARGE_AGREEMENT):
        return False
    if between >= 1 or min(len(a), len(b)) < 2:
        return True
    return between >= _MIN_RATIO * min(beyond(_pairs_in(side))[0] for side in (a, b))
