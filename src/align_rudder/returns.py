"""Returns: which demonstrations failed, how much each counts, and C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder.events import Encoded
from align_rudder.redistribution import Scorer

__all__ = ["baseline_of", "failed", "final_scores", "scales", "weights_of"]

_LEAST_SHARE = 0.05
_MOST_PAID = 4.0  # times the mean return: more than that a perfect episode is never paid


def baseline_of(baseline: float | None, random_returns: Sequence[float]) -> float:
    """Return the return of an episode worth nothing: as given, or the mean of random episodes."""
    if baseline is not None:
        return float(baseline)
    return float(np.mean(random_returns)) if len(random_returns) else 0.0


def failed(returns: Sequence[float], baseline: float) -> np.ndarray:
    """Return which demonstrations failed (N,).

    Those are the ones that were paid nothing (a return not above the baseline), or less than a
    twentieth of what those that were paid have in the middle, unless that leaves fewer than two:
    of a good and a poor one, neither is the rule.
    """
    gain = np.asarray(returns, float) - baseline
    paid = gain > 0
    if paid.any():
        well = paid & (gain >= _LEAST_SHARE * np.median(gain[paid]))
        paid = well if well.sum() > 1 else paid
    return ~paid


def weights_of(returns: np.ndarray, baseline: float) -> np.ndarray | None:
    """Return how much each demonstration counts: its return above the baseline, 1 on average.

    None if they are all the same.
    """
    gain = np.maximum(np.asarray(returns, float) - baseline, 0.0)
    if not gain.sum() > 0 or np.ptp(gain) <= 1e-12 * gain.max():
        return None
    return gain / gain.mean()


def final_scores(scorer: Scorer, encoded: Sequence[Encoded]) -> np.ndarray:
    """Return S(τ) of whole episodes."""
    ends = [scorer.prefix_scores(one.events, one.start)[0] for one in encoded]
    return np.array([scores[-1] if len(scores) else 0.0 for scores in ends])


def scales(
    pssms: Sequence[np.ndarray],
    members: Sequence[np.ndarray],
    encoded: Sequence[Encoded],
    returns: Sequence[float],
    baseline: float,
    gap: float,
    skips: Sequence[np.ndarray],
) -> tuple[float, list[float]]:
    """Return C, and for each strategy the factor by which its own one is larger.

    Args:
        pssms: The scores of each strategy's profile.
        members: Indices of its demonstrations.
        encoded: All demonstrations.
        returns: Their returns.
        baseline: Return of an episode worth nothing.
        gap: Gap cost.
        skips: What it costs to skip each column of each strategy.

    Notes:
        C = (E[G] − baseline) / E[S(τ)] over all members, S the best of the strategies' scores.
        Where the mean returns of strategies differ, each has a C of its own, so that the worse
        one is not paid like the better one; with a gap cost, which all share, there is one C.
        Where demonstrations score little against their own profile, C stays bounded: an episode
        that does all of it is paid at most four times the mean return.
    """
    gains = np.asarray(returns, float) - baseline
    same = [1.0] * len(pssms)
    if not len(pssms):
        return 0.0, same
    means = [float(gains[m].mean()) for m in members]
    if gap == 0.0 and len(pssms) > 1 and not np.allclose(means, means[0], rtol=1e-9, atol=0.0):
        own = []
        for pssm, costs, chosen, mean in zip(pssms, skips, members, means, strict=True):
            scorer = Scorer([pssm], gap, [costs])
            score = float(final_scores(scorer, [encoded[i] for i in chosen]).mean())
            own.append(mean / max(score, _least([pssm])) if score > 0 else 0.0)
        if min(own) > 0:
            return own[0], [c / own[0] for c in own]
    used = np.sort(np.concatenate(members))
    scorer = Scorer(pssms, gap, skips)
    score = float(final_scores(scorer, [encoded[i] for i in used]).mean())
    mean = float(np.mean([returns[i] for i in used]))
    if score <= 0:
        return 0.0, same
    return max((mean - baseline) / max(score, _least(pssms)), 0.0), same


def _least(pssms: Sequence[np.ndarray]) -> float:
    """Return the least score that C is made of, a share of the best that there is."""
    worth = [float(p.max(axis=0, initial=0.0).sum()) if p.size else 0.0 for p in pssms]
    return max(worth) / _MOST_PAID
