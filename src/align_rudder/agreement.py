"""(III) Agreement: how far sequences are alike beyond chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder import kernels
from align_rudder.null import Null

__all__ = ["agreement"]


def agreement(
    sequences: Sequence[np.ndarray],
    pairs: np.ndarray,
    pair_scores: np.ndarray,
    scores: np.ndarray,
    gap: float = 0.0,
    null: Null | None = None,
    *,
    max_pairs: int = 32,
    samples: int = 16,
    seed: int = 0,
) -> tuple[float, float]:
    """Return how far pairs of sequences agree beyond chance (1 identical, 0 random), and its z.

    Args:
        sequences: Event ids of each sequence.
        pairs: Pairs of sequences (m, 2).
        pair_scores: Alignment scores (N, N).
        scores: The scoring matrix.
        gap: The gap cost.
        null: Where sequences by chance come from; None to shuffle those that there are.
        max_pairs: The most pairs looked at, spread evenly.
        samples: How many sequences by chance each pair's first one is aligned with.
        seed: Seed of the samples.

    Notes:
        Σ (s_ij − μ_ij) / Σ (min(s_ii, s_jj) − μ_ij) over the pairs, where μ_ij is the mean score
        of i with sequences by chance as long as j. Without gap costs any two sequences over the
        same few events align to some extent; only what order adds to that shows a common strategy.
        z is the numerator over its standard deviation by chance.
    """
    if len(pairs) > max_pairs:
        pairs = pairs[np.linspace(0, len(pairs) - 1, max_pairs).astype(int)]
    rng = np.random.default_rng(seed)
    pool: list[np.ndarray] = []
    for i, j in pairs:
        drawn = (
            [rng.permutation(sequences[j]) for _ in range(samples)]
            if null is None
            else null.sample([len(sequences[j])] * samples, rng)
        )
        pool += [sequences[i], *drawn]
    if not pool:
        return 0.0, 0.0
    step = samples + 1
    first = np.repeat(np.arange(len(pairs)) * step, samples)
    tasks = np.column_stack([first, first + np.tile(np.arange(1, step), len(pairs))])
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in pool])]).astype(np.int64)
    flat = np.concatenate(pool).astype(np.int32)
    by_chance = kernels.pair_scores(flat, offsets, tasks.astype(np.int64), scores, gap)
    by_chance = by_chance.reshape(len(pairs), samples)
    spread = np.sqrt(by_chance.var(axis=1, ddof=1).sum())
    by_chance = by_chance.mean(axis=1)
    own = np.diag(pair_scores)
    found = pair_scores[pairs[:, 0], pairs[:, 1]]
    best = np.minimum(own[pairs[:, 0]], own[pairs[:, 1]])
    room = float((best - by_chance).sum())
    if room <= 1e-9 * max(float(best.sum()), 1.0):
        # Chance gives the same (one kind of event, or none): alike if they score in full.
        alike = best.sum() > 0 and np.allclose(found, best)
        return (1.0, np.inf) if alike else (0.0, 0.0)
    excess = float((found - by_chance).sum())
    return excess / room, excess / spread if spread > 0 else np.inf
