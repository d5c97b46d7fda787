"""The chance of success after each event of a run, from what it has shown so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from align_rudder.logs.contrast import ANYWHERE, Contrast, marks_of
from align_rudder.logs.roads import Path, Road

__all__ = ["Chance", "fit_chance", "weights"]


@dataclass(frozen=True)
class Chance:
    """A logistic function of the sum of weights.

    Attributes:
        offset: The logarithm of the odds of success where nothing is known yet.
        slope: How far the sum is believed, 0 to 1.

    Notes:
        V_t = 1 / (1 + exp(−(offset + slope Σ_{i ≤ t} w_i))). Weights are added up as if marks were
        independent, which they are not; a slope below 1 takes back what is counted twice.
    """

    offset: float
    slope: float

    def values(self, weights: np.ndarray) -> np.ndarray:
        """Return the chance before the first event, after each, and when the run has ended (T + 2).

        Args:
            weights: What is known before, with each event, and at the end (T + 2).

        Example:
            >>> Chance(0.0, 1.0).values(np.array([0.0, 1.0, 0.0, -2.0])).round(2).tolist()
            [0.5, 0.73, 0.73, 0.27]
        """
        return expit(self.offset + self.slope * np.cumsum(weights))


def weights(path: Path, events: np.ndarray, roads: Sequence[Road], found: Contrast) -> np.ndarray:
    """Return what is known before a run, with each of its events, and at its end (T + 2).

    That an event never happens beside the road is taken for granted until it does, so that no turn
    has the merit that nothing more could happen after it.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        found: What tells.
    """
    out = np.zeros(len(events) + 2)
    for seen in marks_of(path, events, roads, found.beside):
        out[seen.at + 1] += found.weight(seen)
        if seen.shown and seen.mark.column == ANYWHERE:
            usual = found.weight(seen._replace(shown=False))
            out[0] += usual
            out[seen.at + 1] -= usual
    return out


def fit_chance(sums: np.ndarray, successes: np.ndarray, failures: np.ndarray) -> Chance:
    """Return the logistic function that makes outcomes most likely.

    Args:
        sums: The sum of weights of each kind of run (N,).
        successes: How many successes are of each kind.
        failures: How many failures are.
    """
    prior = float(np.log((successes.sum() + 1) / (failures.sum() + 1)))

    def loss(x: np.ndarray) -> float:
        z = x[0] + x[1] * sums
        fit = successes @ np.logaddexp(0, -z) + failures @ np.logaddexp(0, z)
        return float(fit + 0.5 * (x[0] - prior) ** 2)

    offset, slope = minimize(loss, [prior, 0.5], bounds=[(-20, 20), (0, 1)]).x
    return Chance(float(offset), float(slope))
