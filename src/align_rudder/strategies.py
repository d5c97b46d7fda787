"""(III) Strategies: which demonstrations follow the same one, read off the guide tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from align_rudder.agreement import agreement
from align_rudder.alignment import (
    Alignment,
    align_ids,
    check_options,
    guide_tree,
    pairwise_scores,
    progressive,
)
from align_rudder.evidence import Kept, directed_evidence, kept_columns
from align_rudder.groups import LEAST, Group, Part, evident_groups, members_below, picking_cost
from align_rudder.null import Null, directedness
from align_rudder.orders import sides_of
from align_rudder.sampling import attach, attach_to_tree, sample_of
from align_rudder.scoring import background, log_frequency, on_grid, quantise

__all__ = ["Part", "agreement", "align_strategies", "find_strategies"]

_MIN_AGREEMENT = 0.1
_LARGE_AGREEMENT = 0.5
_MIN_RATIO = 0.5
_DIRECTED = 0.8
_CLEAR = 3.0  # standard deviations beyond chance
_ROUNDS = 5  # of refinement of the alignment with −ln p
_NEAR = -10.0  # nats of evidence below which an alignment is not refined further: noise has less
_FEWEST, _ALIKE = 3, 1.5  # sequences, and standard deviations beyond what the null's chain makes
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
    if n_strategies is not None:
        return [group.members for group in _cut(tree, n_strategies)]
    if null is None:
        null = Null.of(sequences, background(sequences, len(scores)))
    guide = _Guide(scores, pair_scores, tree, progressive(sequences, tree, scores, gap))
    groups = _groups(sequences, guide, gap, null, lambda: _are_directed(sequences, null))
    return [group.members for group in groups]


def _cut(tree: np.ndarray, n_strategies: int) -> list[Group]:
    """Return so many groups of demonstrations, the largest first: all merges but the last ones."""
    n, below = len(tree) + 1, members_below(tree)
    if not 1 <= n_strategies <= n:
        raise ValueError(f"{n_strategies} strategies asked for {n} demonstrations; use 1 to {n}")
    whole = set(range(n, 2 * n - n_strategies))
    inside = {int(child) for node in whole for child in tree[node - n, :2]}
    top = (whole | set(range(n))) - inside
    return _sorted([Group(below[node], None) for node in top])


@dataclass(frozen=True, eq=False)
class _Guide:
    """Demonstrations aligned along their tree: scores, pairs, tree, a matrix for each node."""

    scores: np.ndarray
    pairs: np.ndarray
    tree: np.ndarray
    matrices: Sequence[np.ndarray]

    @classmethod
    def of(
        cls, sequences: Sequence[np.ndarray], scores: np.ndarray, gap: float, progress: bool
    ) -> _Guide:
        pairs = pairwise_scores(sequences, scores, gap, progress=progress)
        tree = guide_tree(pairs)
        return cls(scores, pairs, tree, progressive(sequences, tree, scores, gap, progress))


def _groups(
    sequences: Sequence[np.ndarray],
    guide: _Guide,
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


def _are_directed(sequences: Sequence[np.ndarray], null: Null) -> bool:
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
    scores, step = quantise(scores, _terms(sequences))
    gap = on_grid(gap, step)
    if null is None:
        null = Null.of(some, background(some, len(scores)))
    guide, whole = _Guide.of(some, scores, gap, progress), None
    directed = cache(lambda: _are_directed(some, null))
    if n_strategies is None:
        groups = _groups(some, guide, gap, null, directed)
    else:
        groups = _cut(guide.tree, n_strategies)
    if not groups and by_evidence:
        whole, groups, guide = _with_log_scores(
            some, symbols, guide, gap, null, engine, refine, directed, progress
        )

    def aligned(group: Group) -> Part:
        members, pairs = group.members, guide.pairs
        tree = guide.tree if len(members) == len(some) else None
        if 1 < len(members) < len(some):
            tree = guide_tree(pairs[np.ix_(members, members)])
        alignment = align_ids(
            [some[i] for i in members],
            symbols,
            scores,
            gap=gap,
            engine=engine,
            refine=refine,
            tree=tree,
            matrix=group.matrix,
            progress=progress,
        )
        part = Part(members, alignment)
        if by_evidence:
            part = _pruned(part, null, engine, refine, evident=n_strategies is None)
        return part

    parts = [*map(aligned, groups)] if whole is None else [whole]
    if by_evidence and n_strategies is None:
        parts = [side for part in parts for side in _by_order(part, aligned, null, len(some))]
        parts.sort(key=lambda part: (-len(part.members), part.members[0]))
    tree = guide.tree
    if len(some) < len(sequences):
        parts = attach(parts, chosen, sequences)
        tree = attach_to_tree(tree, chosen, sequences)
    return parts, tree


def _by_order(part: Part, aligned: Callable[[Group], Part], null: Null, n: int) -> list[Part]:
    """Return a strategy, or the two that it is where something may come earlier or later.

    Both must be evident by themselves, and have a column for what had none.
    """
    found = sides_of(part)
    if found is None:
        return [part]
    kind, before = found
    sides = [aligned(Group(part.members[which], None)) for which in (before, ~before)]
    for side in sides:
        kept = kept_columns(side.alignment.matrix, null)
        held = (side.alignment.matrix[:, kept.columns] == kind).any(axis=1)
        if kept.evidence - picking_cost(n, len(side.members)) < LEAST or held.mean() < 0.8:
            return [part]
    return [small for side in sides for small in _by_order(side, aligned, null, n)]


def _terms(sequences: Sequence[np.ndarray]) -> int:
    """Return how many scores a sum over an alignment has at most (`quantise`)."""
    return len(sequences) * max(sum(len(s) for s in sequences), 1)


def _plain(sequences: Sequence[np.ndarray], null: Null) -> np.ndarray:
    """Return the scores −ln p of events."""
    return quantise(log_frequency(null.p), _terms(sequences))[0]


def _with_log_scores(
    sequences: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    guide: _Guide,
    gap: float,
    null: Null,
    engine: str,
    refine: int,
    directed: Callable[[], bool],
    progress: bool,
) -> tuple[Part | None, list[Group], _Guide]:
    """Look again, with scores −ln p, where the model's scores show no strategy.

    They get a tree of their own. If that shows nothing either, but is near to it, they are
    aligned along the tree of the model's scores.

    Returns:
        All demonstrations as one strategy, or several groups of them, or neither; and what they
        were found along.
    """

    def refined(guide: _Guide, first: int, then: int) -> tuple[Alignment, Kept]:
        """Align for some rounds, and for some more if that comes near to a strategy."""
        new, matrix = None, guide.matrices[-1]
        for rounds in (first, then):
            options = {"gap": gap, "engine": engine, "tree": guide.tree, "matrix": matrix}
            new = align_ids(sequences, symbols, guide.scores, refine=rounds, **options)
            matrix, kept = new.matrix, kept_columns(new.matrix, null)
            if not len(kept.columns) and kept.nearest < _NEAR:
                break
        return replace(new, scores=scores), kept

    scores = quantise(guide.scores, _terms(sequences))[0]
    other = _Guide.of(sequences, _plain(sequences, null), gap, progress)
    found = [refined(guide, 0, refine), refined(other, 1, _ROUNDS - 1)]
    whole = _whole(found, null, engine, refine)
    if whole is not None:
        return whole, [], other
    groups = _groups(sequences, other, gap, null, directed)
    if groups or found[1][1].nearest < _NEAR:
        return None, groups, other if groups else guide
    matrices = progressive(sequences, guide.tree, other.scores, gap, progress)
    last = _Guide(other.scores, other.pairs, guide.tree, matrices)
    whole = _whole([refined(last, _ROUNDS, 0)], null, engine, refine)
    if whole is None and _alike(sequences, other, gap, null):
        return Part(np.arange(len(sequences)), found[1][0]), [], other
    return whole, [], guide


def _alike(sequences: Sequence[np.ndarray], guide: _Guide, gap: float, null: Null) -> bool:
    """Return whether sequences agree more than what the null's chain makes.

    For few of them, of which no chain of columns is evident by itself.
    """
    n = len(sequences)
    if n < _FEWEST:
        return False
    pairs = np.column_stack(np.triu_indices(n, 1))
    value, z = agreement(sequences, pairs, guide.pairs, guide.scores, gap, null, samples=64)
    return value > 0 and z >= _ALIKE


def _whole(
    found: Sequence[tuple[Alignment, Kept]], null: Null, engine: str, refine: int
) -> Part | None:
    """Return all demonstrations as one strategy if one of their alignments shows it."""
    for alignment, kept in sorted(found, key=lambda one: -one[1].evidence):
        if not len(kept.columns):
            continue
        alignment, kept = _for_kept(alignment, kept, null, engine, refine)
        directed = directed_evidence(alignment.matrix, kept, null, enough=0.0)
        if kept.evidence >= LEAST and directed > 0:
            return Part(np.arange(len(alignment)), alignment, kept.columns)
    return None


def _pruned(part: Part, null: Null, engine: str, refine: int, evident: bool) -> Part:
    """Return a strategy with the columns that are more than chance, aligned again for them.

    An alignment with scores −ln p, to which rare events matter less, takes its place where there
    is more evidence for it. That begins with the present one if the strategy is `evident` from
    it. If no column is more than chance, `columns` stays None, and a share decides.
    """
    alignment = part.alignment
    kept = kept_columns(alignment.matrix, null)
    if len(alignment) > 1:
        plain = _plain(alignment.sequences, null)
        matrix, rounds = (alignment.matrix, 1) if evident else (None, _ROUNDS)
        alignment, kept = _again(alignment, kept, null, engine, plain, rounds, matrix)
    if not len(kept.columns):
        return part
    alignment, kept = _for_kept(alignment, kept, null, engine, refine)
    return Part(part.members, alignment, kept.columns)


def _for_kept(
    alignment: Alignment, kept: Kept, null: Null, engine: str, refine: int
) -> tuple[Alignment, Kept]:
    """Line up the events of kept columns once more; others hardly count for that."""
    for _ in range(2 if len(alignment) > 1 else 0):
        before, strong = kept, np.zeros(len(alignment.scores) + 1, bool)
        strong[alignment.matrix[:, kept.columns]] = True  # a gap is the last
        faint = np.flatnonzero(~strong[:-1])
        if len(faint):
            scores = alignment.scores.copy()
            scores[faint, faint] *= _FAINT
            alignment, kept = _again(alignment, kept, null, engine, scores, refine)
        if kept is before:
            break
    return alignment, kept


def _again(
    alignment: Alignment,
    kept: Kept,
    null: Null,
    engine: str,
    scores: np.ndarray,
    refine: int,
    matrix: np.ndarray | None = None,
) -> tuple[Alignment, Kept]:
    """Align with other scores, from a matrix or along the tree; return what has more evidence."""
    new = align_ids(
        alignment.sequences,
        alignment.symbols,
        scores,
        gap=alignment.gap,
        engine=engine,
        refine=refine,
        tree=alignment.tree,
        matrix=matrix,
    )
    found = kept_columns(new.matrix, null)
    if found.evidence <= kept.evidence:
        return alignment, kept
    return replace(new, scores=alignment.scores, gap=alignment.gap), found
