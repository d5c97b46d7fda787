"""(III) Strategies: which demonstrations follow the same one, read off the guide tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from align_rudder.agreement import agreement
from align_rudder.alignment import (
    align_ids,
    check_options,
    guide_tree,
    pairwise_scores,
    progressive,
)
from align_rudder.evidence import kept_columns
from align_rudder.groups import LEAST, Group, Part, evident_groups, members_below
from align_rudder.null import Null, directedness
from align_rudder.sampling import attach, attach_to_tree, sample_of
from align_rudder.scoring import background, log_frequency, on_grid, quantise

__all__ = ["Part", "agreement", "align_strategies", "find_strategies"]

_MIN_AGREEMENT = 0.1
_LARGE_AGREEMENT = 0.5
_MIN_RATIO = 0.5
_DIRECTED = 0.8
_CLEAR = 3.0  # standard deviations beyond chance
_ROUNDS = 5  # of refinement of the alignment with −ln p
_FAINT = 1e-3  # what events that are in no kept column score when the others are aligned again


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
    groups = _groups(sequences, pair_scores, tree, scores, gap, n_strategies, null)
    return [group.members for group in groups]


def _groups(
    sequences: Sequence[np.ndarray],
    pair_scores: np.ndarray,
    tree: np.ndarray,
    scores: np.ndarray,
    gap: float,
    n_strategies: int | None,
    null: Null | None,
    progress: bool = False,
) -> list[Group]:
    """Return the groups of demonstrations, the largest first, with their alignments."""
    n, below = len(sequences), members_below(tree)
    if n_strategies is not None:
        if not 1 <= n_strategies <= n:
            raise ValueError(
                f"{n_strategies} strategies asked for {n} demonstrations; use 1 to {n}"
            )
        whole = set(range(n, 2 * n - n_strategies))  # all merges but the last ones
        inside = {int(child) for node in whole for child in tree[node - n, :2]}
        top = (whole | set(range(n))) - inside
        return _sorted([Group(below[node], None) for node in top])
    if null is None:
        null = Null.of(sequences, background(sequences, len(scores)))
    matrices = progressive(sequences, tree, scores, gap, progress)
    evident = evident_groups(tree, matrices, null)
    taken = set(np.concatenate([g.members for g in evident]).tolist()) if evident else set()
    chance = null if null.recorded else None
    groups, stack = list(evident), [len(below) - 1]
    if not null.recorded and directedness(sequences) < _DIRECTED:
        stack = []  # they may be random walks, which agree more than shuffled ones
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


def align_strategies(
    sequences: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    scores: np.ndarray,
    *,
    gap: float,
    n_strategies: int | None,
    engine: str,
    refine: int,
    progress: bool,
    null: Null | None = None,
    by_evidence: bool = False,
) -> tuple[list[Part], np.ndarray]:
    """Find the strategies and align the demonstrations of each; pairs are scored once.

    Beyond a few hundred demonstrations, a sample of them is aligned and the others are added to
    its alignment.

    Returns:
        Members, alignment and, if asked for `by_evidence`, kept columns of each strategy, and
        the guide tree over all demonstrations.
    """
    check_options(engine, gap)
    chosen = sample_of(len(sequences))
    some = [sequences[i] for i in chosen]
    total = sum(len(s) for s in sequences)
    scores, step = quantise(scores, len(sequences) * max(total, 1))
    gap = on_grid(gap, step)
    pairs = pairwise_scores(some, scores, gap, progress=progress)
    tree = guide_tree(pairs)
    if null is None:
        null = Null.of(some, background(some, len(scores)))
    groups = _groups(some, pairs, tree, scores, gap, n_strategies, null, progress)
    if not groups and by_evidence:
        if _are_one(some, symbols, scores, gap, tree, null, engine, refine):
            groups = [Group(np.arange(len(some)), None)]
        else:  # with other scores, to which rare events matter less
            plain = _plain(some, null)
            other = pairwise_scores(some, plain, gap, progress=progress)
            groups = _groups(some, other, guide_tree(other), plain, gap, None, null, progress)
            if groups:
                pairs, tree = other, guide_tree(other)
    parts = []
    for group in groups:
        members = group.members
        subtree = tree if len(members) == len(some) else None
        if 1 < len(members) < len(some):
            subtree = guide_tree(pairs[np.ix_(members, members)])
        alignment = align_ids(
            [some[i] for i in members],
            symbols,
            scores,
            gap=gap,
            engine=engine,
            refine=refine,
            tree=subtree,
            matrix=group.matrix,
            progress=progress,
        )
        part = Part(members, alignment)
        parts.append(_pruned(part, null, engine, refine) if by_evidence else part)
    if len(some) < len(sequences):
        parts = attach(parts, chosen, sequences)
        tree = attach_to_tree(tree, chosen, sequences)
    return parts, tree


def _are_one(
    sequences: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    scores: np.ndarray,
    gap: float,
    tree: np.ndarray,
    null: Null,
    engine: str,
    refine: int,
) -> bool:
    """Return whether all together are a strategy, by their best alignment."""
    options = {"gap": gap, "engine": engine, "refine": refine, "tree": tree}
    whole = align_ids(sequences, symbols, scores, **options)
    part = _pruned(Part(np.arange(len(sequences)), whole), null, engine, refine)
    if part.columns is None:
        return False
    kept = kept_columns(part.alignment.matrix, null, directed=0.0)
    return kept.evidence >= LEAST and kept.directed > 0


def _plain(sequences: Sequence[np.ndarray], null: Null) -> np.ndarray:
    """Return the scores −ln p of events."""
    total = sum(len(s) for s in sequences)
    return quantise(log_frequency(null.p), len(sequences) * max(total, 1))[0]


def _pruned(part: Part, null: Null, engine: str, refine: int) -> Part:
    """Return a strategy with the columns that are more than chance, aligned again for them.

    An alignment with scores −ln p, to which rare events matter less, takes its place where there
    is more evidence for it. Events that are in no kept column hardly count when it is aligned
    once more, so that the others line up. If no column is more than chance, `columns` stays
    None, and a share decides.
    """
    alignment = part.alignment
    kept = kept_columns(alignment.matrix, null)
    sequences, scores = alignment.sequences, alignment.scores
    if len(sequences) > 1:
        plain = _plain(sequences, null)
        new = align_ids(
            sequences,
            alignment.symbols,
            plain,
            gap=alignment.gap,
            engine=engine,
            refine=_ROUNDS,
            tree=alignment.tree,
        )
        found = kept_columns(new.matrix, null)
        if found.evidence > kept.evidence:
            alignment, kept = replace(new, scores=scores, gap=alignment.gap), found
    if not len(kept.columns):
        return part
    for _ in range(2 if len(sequences) > 1 else 0):
        faint = np.setdiff1d(np.arange(len(scores)), alignment.matrix[:, kept.columns])
        if not len(faint):
            break
        again = scores.copy()
        again[faint, faint] *= _FAINT
        new = align_ids(
            sequences,
            alignment.symbols,
            again,
            gap=alignment.gap,
            engine=engine,
            refine=refine,
            tree=alignment.tree,
        )
        found = kept_columns(new.matrix, null)
        if found.evidence <= kept.evidence:
            break
        alignment, kept = replace(new, scores=scores, gap=alignment.gap), found
    return Part(part.members, alignment, kept.columns)
