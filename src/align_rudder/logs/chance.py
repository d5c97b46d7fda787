"""The chance of success after each event of a run, from what it has shown so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from align_rudder.logs.contrast import Contrast
from align_rudder.logs.divergence import Divergence
from align_rudder.logs.marks import ANYWHERE, Seen, marks_of
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


def weights(
    path: Path,
    events: np.ndarray,
    roads: Sequence[Road],
    found: Contrast,
    left: Divergence | None,
    rest: bool = True,
) -> np.ndarray:
    """Return what is known before a run, with each of its events, and at its end (T + 2).

    A run that shows a cause has the weight of it where it left its road, and of the causes before
    it that it does not show them; what else it does is not held against it. That an event never
    happens beside the road is taken for granted until it does, so that no turn has the merit that
    nothing more could happen after it.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        found: What tells.
        left: Where it left the road; None if it did not.
        rest: Whether what is no cause counts for runs without one.
    """
    out = np.zeros(len(events) + 2)
    cause = -1 if left is None else left.cause
    order = {one.mark: i for i, one in enumerate(found.causes)}
    for seen in marks_of(path, events, roads, found.others):
        i = order.get(seen.mark)
        if i is None:
            if rest and cause < 0:
                _add(out, seen, found, seen.mark.column == ANYWHERE)
        elif i == cause and left is not None:
            # What a run does not do until it does it is taken for granted; what it should, not.
            _add(out, seen._replace(at=left.at), found, seen.shown)
        elif cause < 0 or i < cause:
            granted = found.causes[i].shown and seen.mark.kind != "holds"
            _add(out, seen._replace(at=-1) if granted else seen, found, False)
    return out


def _add(out: np.ndarray, seen: Seen, found: Contrast, granted: bool) -> None:
    """Add what a mark weighs where it is known; if granted, less what was so until then."""
    out[seen.at + 1] += found.rest(seen)
    if seen.shown and granted:
        usual = found.rest(seen._replace(shown=False))
        out[0] += usual
        out[seen.at + 1] -= usual


def fit_chance(
    sums: np.ndarray,
    successes: np.ndarray,
    failures: np.ndarray,
    tasks: np.ndarray | None = None,
) -> Chance:
    """Return the logistic function that makes outcomes most likely.

    Args:
        sums: The sum of weights of each kind of run (N,).
        successes: How many successes are of each kind.
        failures: How many failures are.
        tasks: The task of each kind (N,), to believe the sum as far as it tells runs of the same
            task apart; None to compare all.
    """
    tasks = np.zeros(len(sums), int) if tasks is None else tasks
    slope = _fitted(sums, successes, failures, tasks)[-1]
    offset = _fitted(sums, successes, failures, np.zeros(len(sums), int), slope)[0]
    return Chance(float(offset), float(slope))


def _fitted(
    sums: np.ndarray,
    successes: np.ndarray,
    failures: np.ndarray,
    tasks: np.ndarray,
    slope: float | None = None,
) -> np.ndarray:
    """Return the offset of each task, and the slope, which may be given."""
    prior = float(np.log((successes.sum() + 1) / (failures.sum() + 1)))
    n = int(tasks.max(initial=0)) + 1

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = x[tasks] + x[-1] * sums
        fit = successes @ np.logaddexp(0, -z) + failures @ np.logaddexp(0, z)
        slopes = failures * expit(z) - successes * expit(-z)
        gradient = np.append(np.bincount(tasks, slopes, n) + x[:-1] - prior, slopes @ sums)
        return float(fit + 0.5 * ((x[:-1] - prior) ** 2).sum()), gradient

    bounds = [(-20.0, 20.0)] * n + [(0.0, 1.0) if slope is None else (slope, slope)]
    start = np.append(np.full(n, prior), 0.5 if slope is None else slope)
    return minimize(loss, start, jac=True, bounds=bounds).x
