"""Returns: which demonstrations failed, how much each counts, and C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder.events import Encoded
from align_rudder.redistribution import Scorer

__all__ = ["baseline_of", "beyond_chance", "failed", "final_scores", "scales", "weights_of"]

_LEAST_SHARE = 0.05
_BY_CHANCE, _MOST_POWER = 0.07, 3
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
    scores, costs = list(pssms), list(skips)
    if not random or not scores:
        return scores, costs, 0.0

    def weighed(power: int, some: Sequence[Encoded]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        parts = zip(scores, costs, strict=True)
        alone = (Scorer([pssm], gap, [cost]) for pssm, cost in parts)
        rare = [(1.0 - _reached(one, some) / (len(some) + 1)) ** power for one in alone]
        return (
            [pssm * r for pssm, r in zip(scores, rare, strict=True)],
            [cost * r for cost, r in zip(costs, rare, strict=True)],
        )

    halves = [(random[::2], random[1::2]), (random[1::2], random[::2])]
    found: list[float] = []
    for power in range(_MOST_POWER + 1 if len(random) > 1 else 1):
        share = 0.0
        for fitted, tried in halves if power else [(random, random)]:
            known, dear = weighed(power, fitted) if power else (scores, costs)
            scorer = Scorer(known, gap, dear)
            most = max(float(final_scores(scorer, demos).mean()), 1e-300)
            share += float(final_scores(scorer, tried).mean()) / most / (2 if power else 1)
        found.append(share)
        if share <= _BY_CHANCE:
            break
    best = int(np.argmin(found))
    return *(weighed(best, random) if best else (scores, costs)), found[best]


def _reached(scorer: Scorer, random: Sequence[Encoded]) -> np.ndarray:
    """Return how many of the episodes come as far as each column (L,), or farther."""
    cells = [scorer.prefix_scores(one.events, one.start)[1] for one in random]
    ends = np.array([cell[-1] if len(cell) else 0 for cell in cells])
    return (ends[:, None] > np.arange(scorer.n_cells - 1)).sum(axis=0)


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
