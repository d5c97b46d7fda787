"""(V) Redistribution: the score of every prefix of an episode, and the reward made of it.

The best alignment of a growing sequence with the profile needs one row of numbers. To skip column
j costs c_j, if a later one is matched; to have extra events costs nothing. With D_j the cost of
the first j columns and u_j the best of "score + D" over alignments that end in column j or
before it, an event e gives

    u = cummax(max(u, shift(u) + pssm[e] + c)),    S = max_j (u_j − D_j).

The paper's gap cost g, for each skipped event and column, adds g·j to D_j and takes g from u with
each event. At zero cost u is the row of the best scores themselves, and S its last entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from align_rudder._compile import njit
from align_rudder._display import RichDisplay
from align_rudder.sequences import NO_EVENT
from align_rudder.settlement import Settlement

__all__ = [
    "Redistribution",
    "Scorer",
    "Step",
    "advance",
    "match_columns",
    "prefix_scores_numpy",
    "skip_costs",
]


def skip_costs(conservation: np.ndarray, n: int, weight: float) -> np.ndarray:
    """Return what it costs to skip each column (L,).

    Args:
        conservation: The share q of n demonstrations that hold the column's event (L,).
        n: Number of demonstrations.
        weight: w; 0 for no cost.

    Notes:
        c = w · max(0, ln((n q + 1) / (n (1 − q) + 1))), the log-odds that a demonstration does what
        the column says. What half of them do may be skipped for nothing; what all of many do
        is dear to skip, but never forbidden: an agent in a world that lacks it gets past by
        matching what comes later.

    Example:
        >>> skip_costs(np.array([1.0, 0.8, 0.5]), n=10, weight=3.0).round(2)
        array([7.19, 3.3 , 0.  ])
    """
    q = np.asarray(conservation, float)
    return weight * np.maximum(0.0, np.log((n * q + 1) / (n * (1 - q) + 1)))


def prefix_scores_numpy(
    pssm: np.ndarray, events: np.ndarray, gap: float = 0.0, skips: np.ndarray | None = None
) -> np.ndarray:
    """Return S(τ_t) for every prefix, in plain NumPy: the definition that the kernels follow.

    Args:
        pssm: Scores (n, L).
        events: Event ids (T,); -1 is no event, n or more an event that the profile does not know.
        gap: Gap cost.
        skips: What it costs to skip each column (L,); None for nothing.
    """
    n, length = pssm.shape
    u = np.zeros(length + 1)
    costs = gap + (np.zeros(length) if skips is None else np.asarray(skips, float))
    skipped = np.concatenate([[0.0], np.cumsum(costs)])
    out = np.empty(len(events))
    score = 0.0
    for t, e in enumerate(events):
        if e != NO_EVENT:
            matched = pssm[e] if e < n else np.full(length, -np.inf)
            shifted = np.concatenate([[-np.inf], u[:-1] + matched + costs])
            u = np.maximum.accumulate(np.maximum(u - gap, shifted))
            score = (u - skipped).max()
        out[t] = score
    return out


@njit(cache=True, nogil=True)
def advance(row, e, wide, bounds, gap, skipped, hint):
    """Add event e to a row in place; return the new score S and the first cell that has it.

    `wide` holds scores with the cost of skipping the column added, `skipped` the cost of all
    columns up to each cell. `hint` is the cell before the event, which is often still the first.
    """
    best, cell = -np.inf, 0
    for k in range(len(bounds) - 1):
        # Views that start at zero: their indices need no check for being negative.
        part, gain = row[bounds[k] : bounds[k + 1]], wide[e, bounds[k] : bounds[k + 1]]
        lost = skipped[bounds[k] : bounds[k + 1]]
        before = part[0]
        running = before - gap
        part[0] = running
        if lost[len(part) - 1] == 0.0:
            for j in range(1, len(part)):
                matched = before + gain[j]
                before = part[j]
                running = max(running, max(before, matched))
                part[j] = running
            if running > best:
                best, c = running, hint - bounds[k]
                if 0 <= c < len(part) and part[c] == best and (c == 0 or part[c - 1] < best):
                    cell = hint
                else:
                    cell = bounds[k] + np.searchsorted(part, best)
        else:
            if running > best:
                best, cell = running, bounds[k]
            for j in range(1, len(part)):
                matched = before + gain[j]
                before = part[j]
                running = max(running, max(before - gap, matched))
                part[j] = running
                if running - lost[j] > best:
                    best, cell = running - lost[j], bounds[k] + j
    return best, cell


@njit(cache=True, nogil=True)
def _prefix(row, events, scores, cells, wide, bounds, gap, skipped):
    score, cell = 0.0, 0
    for t in range(len(events)):
        if events[t] >= 0:
            score, cell = advance(row, events[t], wide, bounds, gap, skipped, cell)
        scores[t], cells[t] = score, cell


class Scorer:
    """Scores prefixes against the profiles of one or more strategies; S is the best of them.

    The profiles lie side by side in one row of cells. Strategy k takes len(profile) + 1 cells from
    `bounds[k]` on: the first for "nothing matched yet", then one for each column. A *cell* tells
    where on which profile an episode stands.

    Args:
        pssms: Scores (n, L_k) of each strategy, over the same n events.
        gap: Gap cost.
        skips: What it costs to skip each column (L_k) of each strategy; None for nothing.
    """

    def __init__(
        self,
        pssms: Sequence[np.ndarray],
        gap: float = 0.0,
        skips: Sequence[np.ndarray] | None = None,
    ) -> None:
        self.n_events = pssms[0].shape[0] if pssms else 0
        self.gap = float(gap)
        self.pssms = list(pssms)
        self.skips = [np.zeros(p.shape[1]) for p in pssms] if skips is None else list(skips)
        widths = [pssm.shape[1] + 1 for pssm in pssms] or [1]
        self.bounds = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        # One more row for events that no profile knows: it matches nothing.
        wide = np.full((self.n_events + 1, self.n_cells), -np.inf)
        skipped = np.zeros(self.n_cells)
        for k, pssm in enumerate(pssms):
            columns = slice(self.bounds[k] + 1, self.bounds[k + 1])
            costs = self.gap + self.skips[k]
            paid = pssm + costs
            # What is no better than to skip column and event is never part of a best alignment.
            wide[: self.n_events, columns] = np.where(paid > -self.gap, paid, -np.inf)
            skipped[columns] = np.cumsum(costs)
        self.tables = (wide, self.bounds, self.gap, skipped)

    @property
    def n_cells(self) -> int:
        """Cells of the row: one for each column and one more for each strategy."""
        return int(self.bounds[-1])

    def strategy_of(self, cell: int) -> int:
        """Return the strategy to which a cell belongs."""
        return int(np.searchsorted(self.bounds, cell, side="right")) - 1

    def column_of(self, cell: int) -> int:
        """Return the profile column of a cell, -1 for "nothing matched yet"."""
        return int(cell - self.bounds[self.strategy_of(cell)]) - 1

    def known(self, events: np.ndarray) -> np.ndarray:
        """Return event ids with all beyond the known ones as n, the unknown event, none as -1."""
        return np.clip(np.asarray(events, np.int64), NO_EVENT, self.n_events)

    def prefix_scores(
        self, events: np.ndarray, start: int = NO_EVENT
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S(τ_t) and the cell reached for every prefix of an episode.

        Args:
            events: Event ids (T,), -1 where there is no event.
            start: The event of the start state; its score is the zero point.

        Returns:
            Scores (T,) less the start's, cells (T,).
        """
        row = np.zeros(self.n_cells)
        sequence = self.known(np.concatenate([[start], events]))
        scores, cells = np.empty(len(sequence)), np.empty(len(sequence), np.int64)
        _prefix(row, sequence, scores, cells, *self.tables)
        return scores[1:] - scores[0], cells[1:]

    def match_columns(self, events: np.ndarray, strategy: int = 0) -> np.ndarray:
        """Return the column of a strategy to which each event is aligned with hindsight, or -1."""
        pssm, skips = self.pssms[strategy], self.skips[strategy]
        return match_columns(pssm, self.known(events), self.gap, skips)


def match_columns(
    pssm: np.ndarray, events: np.ndarray, gap: float = 0.0, skips: np.ndarray | None = None
) -> np.ndarray:
    """Return the profile column to which each event is aligned in the best alignment, or -1.

    Among equally good alignments, the one that ends in the earliest column is taken, and in it
    each column is matched by the earliest event.
    """
    costs = gap + (np.zeros(pssm.shape[1]) if skips is None else np.asarray(skips, float))
    skipped = np.concatenate([[0.0], np.cumsum(costs)])
    happened = np.flatnonzero(np.asarray(events) != NO_EVENT)
    ids = np.asarray(events, np.int64)[happened]
    stride = math.isqrt(len(ids)) + 1
    # Only the rows where blocks begin are kept; those within are made again on the way back.
    begins = [-skipped]
    for t in range(0, len(ids), stride):
        rows = _alignment_rows(pssm, begins[-1], ids[t : t + stride], gap, skipped)
        begins.append(rows[-1].copy())  # a view would keep all of them
    out = np.full(len(events), -1)
    j = int(begins[-1].argmax())
    for t in reversed(range(0, len(ids), stride)):
        rows = _alignment_rows(pssm, begins[t // stride], ids[t : t + stride], gap, skipped)
        i = len(rows) - 1
        while i > 0 and j > 0:
            here, near = rows[i, j], 1e-12 * (1 + abs(rows[i, j]))
            if abs(here - rows[i - 1, j] + gap) <= near:
                i -= 1
            elif abs(here - rows[i, j - 1] + costs[j - 1]) <= near:
                j -= 1
            else:
                i, j = i - 1, j - 1
                out[happened[t + i]] = j
    return out


def _alignment_rows(
    pssm: np.ndarray, first: np.ndarray, events: np.ndarray, gap: float, skipped: np.ndarray
) -> np.ndarray:
    """Return the best scores with the first j columns before each event and after the last."""
    n, length = pssm.shape
    rows = np.empty((len(events) + 1, length + 1))
    rows[0] = first
    for t, e in enumerate(events):
        matched = pssm[e] if e < n else np.full(length, -np.inf)
        shifted = np.concatenate([[-np.inf], rows[t, :-1] + matched])
        reached = np.maximum(rows[t] - gap, shifted)
        rows[t + 1] = np.maximum.accumulate(reached + skipped) - skipped
    return rows


Array = Any  # of NumPy, or of JAX in the twin of the tracker


class Step(NamedTuple):
    """What the tracker says of a step; of the steps of an episode, in arrays (T,).

    Attributes:
        event: Its event, -1 for none, n for any that the model does not know.
        score: S(τ_t), zero after the start state.
        cell: Where on the profiles the episode stands.
        column: The profile column to which the step is matched, -1 for none.
        subgoal: Index of the next sub-goal.
        reward: The redistributed reward R_{t+1}.
    """

    event: Array
    score: Array
    cell: Array
    column: Array
    subgoal: Array
    reward: Array


@dataclass(frozen=True, eq=False, repr=False)
class Redistribution(RichDisplay):
    """The share of every step in the return of one episode.

    Attributes:
        rewards: R_{t+1} (T,), for the step into observations[t+1].
        scores: S(τ_t) (T,), zero after the start state.
        events: The event of each step (T,), -1 for none, n for any that the model does not know.
        cells: Where on the profiles the best alignment of each prefix ends (T,).
        own: The environment's rewards (T,).
        ret: The return of the episode.
        terminated: Whether the environment ended the episode, not a time limit.
    """

    rewards: np.ndarray
    scores: np.ndarray
    events: np.ndarray
    cells: np.ndarray
    own: np.ndarray
    ret: float
    terminated: bool = True

    @classmethod
    def from_scores(
        cls,
        scores: np.ndarray,
        events: np.ndarray,
        cells: np.ndarray,
        own: np.ndarray,
        scale: float,
        terminated: bool = True,
    ) -> Redistribution:
        """Turn prefix scores into rewards R_{t+1} = (S(τ_t) − S(τ_{t−1}))·C."""
        own = np.asarray(own, float)
        rewards = np.diff(scores, prepend=0.0) * scale
        return cls(rewards, scores, events, cells, own, float(own.sum()), terminated)

    @classmethod
    def from_steps(cls, steps: Step, own: np.ndarray, terminated: bool = True) -> Redistribution:
        """Take the steps of an episode as the tracker saw them."""
        own = np.asarray(own, float)
        ret = float(own.sum())
        return cls(steps.reward, steps.score, steps.event, steps.cell, own, ret, terminated)

    @classmethod
    def at_end(cls, steps: Step, ret: float) -> Redistribution:
        """Take an episode whose return is all paid at its end."""
        own = np.zeros(len(steps.reward))
        own[-1:] = ret
        return cls(steps.reward, steps.score, steps.event, steps.cell, own, float(ret))

    @property
    def correction(self) -> float:
        """R_{T+2}, what is left of the return; `rewards.sum() + correction == ret`."""
        return self.ret - float(self.rewards.sum())

    @property
    def kappa(self) -> np.ndarray:
        """κ̂_t (T,), the redistributed reward still to come after step t, correction included.

        Near zero from the first events on: the reward is no longer delayed. Equal to the return
        up to the end: nothing was redistributed.
        """
        return self.ret - np.cumsum(self.rewards)

    def settled(self, settlement: Settlement | str = "even") -> np.ndarray:
        """Return the rewards to learn from (T,); see `align_rudder.settlement`.

        Args:
            settlement: "even" (default), "potential", "last", "beside", or a `Settlement`.
        """
        return Settlement.of(settlement).rewards(self.own, self.rewards, self.terminated)

    def with_correction(self) -> np.ndarray:
        """Return the rewards (T,) with the rest of the return on the last step, as in the paper."""
        return self.settled("last")

    def __repr__(self) -> str:
        rewarded = int(np.count_nonzero(self.rewards))
        return (
            f"Redistribution(return {self.ret:g} over {len(self.rewards)} steps: "
            f"{self.rewards.sum():g} on {rewarded} of them, correction {self.correction:g})"
        )
