"""(III) Strategies: the demonstrations of each, aligned, with the columns that are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache

import numpy as np

from align_rudder.agreement import agreement
from align_rudder.alignment import align_ids, check_options, guide_tree
from align_rudder.branches import Guide, are_directed, cut_tree, find_strategies, groups_along
from align_rudder.evidence import kept_columns
from align_rudder.groups import LEAST, Group, Part, picking_cost
from align_rudder.null import Null
from align_rudder.orders import sides_of
from align_rudder.realignment import n_terms, pruned, with_log_scores
from align_rudder.sampling import attach, attach_to_tree, sample_of
from align_rudder.scoring import background, on_grid, quantise

__all__ = ["Part", "agreement", "align_strategies", "find_strategies"]


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
    scores, step = quantise(scores, n_terms(sequences))
    gap = on_grid(gap, step)
    if null is None:
        null = Null.of(some, background(some, len(scores)))
    guide, whole = Guide.of(some, scores, gap, progress), None
    directed = cache(lambda: are_directed(some, null))
    if n_strategies is None:
        groups = groups_along(some, guide, gap, null, directed)
    else:
        groups = cut_tree(guide.tree, n_strategies)
    if by_evidence and n_strategies is None and 2 * sum(len(g.members) for g in groups) < len(some):
        whole, others, other = with_log_scores(
            some, symbols, guide, gap, null, engine, refine, directed, progress
        )
        if whole is not None or not groups:  # a few that are alike are less than all of them
            groups, guide = others, other

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
            part = pruned(part, null, engine, refine, evident=n_strategies is None)
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
