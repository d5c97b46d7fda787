"""(III) Strategies: which demonstrations follow the same one, read off the guide tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from align_rudder import kernels
from align_rudder.alignment import (
    Alignment,
    align_ids,
    check_options,
    guide_tree,
    pairwise_scores,
)
from align_rudder.scoring import on_grid, quantise

__all__ = ["agreement", "align_strategies", "find_strategies"]

_MIN_AGREEMENT = 0.1
_LARGE_AGREEMENT = 0.5
_MIN_RATIO = 0.5


def agreement(
    sequences: Sequence[np.ndarray],
    pairs: np.ndarray,
    pair_scores: np.ndarray,
    scores: np.ndarray,
    gap: float = 0.0,
    *,
    max_pairs: int = 32,
    shuffles: int = 16,
    seed: int = 0,
) -> tuple[float, float]:
    """Return how far pairs of sequences agree beyond chance (1 identical, 0 random), and its z.

    Args:
        sequences: Event ids of each sequence.
        pairs: Pairs of sequences (m, 2).
        pair_scores: Alignment scores (N, N).
        scores: The scoring matrix.
        gap: The gap cost.
        max_pairs: The most pairs looked at, spread evenly.
        shuffles: How often one of each pair is shuffled to see what chance gives.
        seed: Seed of the shuffles.

    Notes:
        Σ (s_ij − μ_ij) / Σ (min(s_ii, s_jj) − μ_ij) over the pairs, where μ_ij is the mean score
        of i with shuffled j. Without gap costs any two sequences over the same few events align
        to some extent; only what order adds to that shows a common strategy. z is the numerator
        over its standard deviation under shuffling.
    """
    if len(pairs) > max_pairs:
        pairs = pairs[np.linspace(0, len(pairs) - 1, max_pairs).astype(int)]
    rng = np.random.default_rng(seed)
    pool: list[np.ndarray] = []
    for i, j in pairs:
        pool += [sequences[i], *(rng.permutation(sequences[j]) for _ in range(shuffles))]
    if not pool:
        return 0.0, 0.0
    step = shuffles + 1
    first = np.repeat(np.arange(len(pairs)) * step, shuffles)
    tasks = np.column_stack([first, first + np.tile(np.arange(1, step), len(pairs))])
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in pool])]).astype(np.int64)
    flat = np.concatenate(pool).astype(np.int32)
    by_chance = kernels.pair_scores(flat, offsets, tasks.astype(np.int64), scores, gap)
    by_chance = by_chance.reshape(len(pairs), shuffles)
    spread = np.sqrt(by_chance.var(axis=1, ddof=1).sum())
    by_chance = by_chance.mean(axis=1)
    own = np.diag(pair_scores)
    found = pair_scores[pairs[:, 0], pairs[:, 1]]
    best = np.minimum(own[pairs[:, 0]], own[pairs[:, 1]])
    room = float((best - by_chance).sum())
    if room <= 1e-9 * max(float(best.sum()), 1.0):
        # Nothing can be shuffled (one kind of event, or none): alike if they score in full.
        alike = best.sum() > 0 and np.allclose(found, best)
        return (1.0, np.inf) if alike else (0.0, 0.0)
    excess = float((found - by_chance).sum())
    return excess / room, excess / spread if spread > 0 else np.inf


def find_strategies(
    sequences: Sequence[np.ndarray],
    pair_scores: np.ndarray,
    tree: np.ndarray,
    scores: np.ndarray,
    gap: float = 0.0,
    n_strategies: int | None = None,
) -> list[np.ndarray]:
    """Return the demonstrations of each strategy, the largest first.

    Args:
        sequences: Event ids of each demonstration.
        pair_scores: Alignment scores (N, N).
        tree: The guide tree.
        scores: The scoring matrix.
        gap: The gap cost.
        n_strategies: The number of strategies; None to find it.

    Returns:
        Indices of the members of each strategy. If the number is to be found, demonstrations that
        agree with no other are in none, and the list may be empty: nothing is shared.

    Notes:
        From the root of the guide tree down, a branching is two strategies if its two sides
        agree, beyond chance, less than 0.1, or less than half as much as each side agrees within
        itself. Below the root, groups were picked for being alike, so their agreement must also
        be significant (z above 1 + √(2 ln(number of pairs)), what the best of as many random
        pairs reaches) or large (at least 0.5).
    """
    n = len(sequences)
    below = [np.array([i]) for i in range(n)]
    for left, right in tree[:, :2].astype(int):
        below.append(np.sort(np.concatenate([below[left], below[right]])))
    if n_strategies is not None:
        if not 1 <= n_strategies <= n:
            raise ValueError(
                f"{n_strategies} strategies asked for {n} demonstrations; use 1 to {n}"
            )
        whole = set(range(n, 2 * n - n_strategies))  # all merges but the last ones
        inside = {int(child) for node in whole for child in tree[node - n, :2]}
        top = (whole | set(range(n))) - inside
        return sorted((below[node] for node in top), key=lambda g: (-len(g), g[0]))

    def within(members: np.ndarray) -> float:
        i, j = np.triu_indices(len(members), 1)
        pairs = np.column_stack([members[i], members[j]])
        return agreement(sequences, pairs, pair_scores, scores, gap)[0]

    min_z = 1.0 + np.sqrt(2.0 * np.log(max(n * (n - 1) / 2, 1.0)))
    groups: list[np.ndarray] = []
    stack = [len(below) - 1]
    while stack:
        node = stack.pop()
        members = below[node]
        if len(members) < 2:
            continue
        left, right = (int(child) for child in tree[node - n, :2])
        a, b = below[left], below[right]
        cross = np.array([[i, j] for i in a for j in b])
        between, z = agreement(sequences, cross, pair_scores, scores, gap)
        inside = [within(side) for side in (a, b) if len(side) > 1] if between < 1 else []
        picked = len(members) < n and z < min_z and between < _LARGE_AGREEMENT
        split = (
            between < _MIN_AGREEMENT
            or picked
            or (len(inside) == 2 and between < _MIN_RATIO * min(inside))
        )
        if split:
            stack += [left, right]
        else:
            groups.append(members)
    return sorted(groups, key=lambda g: (-len(g), g[0]))


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
) -> tuple[list[tuple[np.ndarray, Alignment]], np.ndarray]:
    """Find the strategies and align the demonstrations of each; pairs are scored once.

    Returns:
        Members and alignment of each strategy, and the guide tree over all demonstrations.
    """
    check_options(engine, gap)
    total = sum(len(s) for s in sequences)
    scores, step = quantise(scores, len(sequences) * max(total, 1))
    gap = on_grid(gap, step)
    pairs = pairwise_scores(sequences, scores, gap, progress=progress)
    tree = guide_tree(pairs)
    parts = []
    for members in find_strategies(sequences, pairs, tree, scores, gap, n_strategies):
        subtree = guide_tree(pairs[np.ix_(members, members)]) if len(members) > 1 else None
        alignment = align_ids(
            [sequences[i] for i in members],
            symbols,
            scores,
            gap=gap,
            engine=engine,
            refine=refine,
            tree=subtree,
            progress=progress,
        )
        parts.append((members, alignment))
    return parts, tree
