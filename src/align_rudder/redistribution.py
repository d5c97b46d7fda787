"""(V) Redistribution: the score of every prefix of an episode, and the reward made of it.

At zero gap cost the best alignment of a growing sequence with the profile is a running maximum:
`row[j]` is the best score with the first j columns, a new event e gives
`row = cummax(max(row, shift(row) + pssm[e]))`, and S(τ_t) is its last entry. With a gap cost g (for
each skipped event, and each column skipped before the last match) the same holds for
u_j = row_j + g·j: `u = cummax(max(u − g, shift(u) + pssm[e] + g))`, S = max_j (u_j − g·j).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from align_rudder._compile import njit
from align_rudder._display import RichDisplay
from align_rudder.sequences import NO_EVENT

__all__ = [
    "Redistribution",
    "Scorer",
    "advance",
    "match_columns",
    "prefix_scores_numpy",
]


def prefix_scores_numpy(pssm: np.ndarray, events: np.ndarray, gap: float = 0.0) -> np.ndarray:
    """Return S(τ_t) for every prefix, in plain NumPy: the definition that the kernels follow.

    Args:
        pssm: Scores (n, L).
        events: Event ids (T,); -1 is no event, n or more an event that the profile does not know.
        gap: Gap cost.
    """
    n, length = pssm.shape
    u = np.zeros(length + 1)
    skipped = gap * np.arange(length + 1)
    out = np.empty(len(events))
    score = 0.0
    for t, e in enumerate(events):
        if e != NO_EVENT:
            matched = pssm[e] if e < n else np.full(length, -np.inf)
            shifted = np.concatenate([[-np.inf], u[:-1] + matched + gap])
            u = np.maximum.accumulate(np.maximum(u - gap, shifted))
            score = (u - skipped).max()
        out[t] = score
    return out


@njit(cache=True, nogil=True)
def advance(row, e, pssm, bounds, gap, hint):
    """Add event e to a row in place; return the new score S and the first cell that has it.

    `hint` is the cell before the event, which is often still the first one.
    """
    best, cell = -np.inf, 0
    for k in range(len(bounds) - 1):
        # Views that start at zero: their indices need no check for being negative.
        part, gain = row[bounds[k] : bounds[k + 1]], pssm[e, bounds[k] : bounds[k + 1]]
        before = part[0]
        running = before - gap
        part[0] = running
        if gap == 0.0:
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
                matched = before + gain[j] + gap
                before = part[j]
                running = max(running, max(before - gap, matched))
                part[j] = running
                if running - gap * j > best:
                    best, cell = running - gap * j, bounds[k] + j
    return best, cell


@njit(cache=True, nogil=True)
def _prefix(row, events, scores, cells, pssm, bounds, gap):
    score, cell = 0.0, 0
    for t in range(len(events)):
        if events[t] >= 0:
            score, cell = advance(row, events[t], pssm, bounds, gap, cell)
        scores[t], cells[t] = score, cell


class Scorer:
    """Scores prefixes against the profiles of one or more strategies; S is the best of them.

    The profiles lie side by side in one row of cells. Strategy k takes len(profile) + 1 cells from
    `bounds[k]` on: the first for "nothing matched yet", then one for each column. A *cell* tells
    where on which profile an episode stands.

    Args:
        pssms: Scores (n, L_k) of each strategy, over the same n events.
        gap: Gap cost.
    """

    def __init__(self, pssms: Sequence[np.ndarray], gap: float = 0.0) -> None:
        self.n_events = pssms[0].shape[0] if pssms else 0
        self.gap = float(gap)
        widths = [pssm.shape[1] + 1 for pssm in pssms] or [1]
        self.bounds = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        # One more row for events that no profile knows: it matches nothing.
        wide = np.full((self.n_events + 1, self.n_cells), -np.inf)
        for k, pssm in enumerate(pssms):
            wide[: self.n_events, self.bounds[k] + 1 : self.bounds[k + 1]] = pssm
        if gap == 0.0:
            wide[wide <= 0] = -np.inf  # never part of a best alignment
        self.tables = (wide, self.bounds, self.gap)

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


def match_columns(pssm: np.ndarray, events: np.ndarray, gap: float = 0.0) -> np.ndarray:
    """Return the profile column to which each event is aligned in the best alignment, or -1.

    Among equally good alignments, the one that ends in the earliest column is taken, and in it
    each column is matched by the earliest event.
    """
    happened = np.flatnonzero(np.asarray(events) != NO_EVENT)
    ids = np.asarray(events, np.int64)[happened]
    stride = math.isqrt(len(ids)) + 1
    # Only the rows where blocks begin are kept; those within are made again on the way back.
    begins = [-gap * np.arange(pssm.shape[1] + 1)]
    for t in range(0, len(ids), stride):
        rows = _alignment_rows(pssm, begins[-1], ids[t : t + stride], gap)
        begins.append(rows[-1].copy())  # a view would keep all of them
    out = np.full(len(events), -1)
    j = int(begins[-1].argmax())
    for t in reversed(range(0, len(ids), stride)):
        rows = _alignment_rows(pssm, begins[t // stride], ids[t : t + stride], gap)
        i = len(rows) - 1
        while i > 0 and j > 0:
            here, near = rows[i, j], 1e-12 * (1 + abs(rows[i, j]))
            if abs(here - rows[i - 1, j] + gap) <= near:
                i -= 1
            elif abs(here - rows[i, j - 1] + gap) <= near:
                j -= 1
            else:
                i, j = i - 1, j - 1
                out[happened[t + i]] = j
    return out


def _alignment_rows(
    pssm: np.ndarray, first: np.ndarray, events: np.ndarray, gap: float
) -> np.ndarray:
    """Return the best scores with the first j columns before each event and after the last."""
    n, length = pssm.shape
    rows = np.empty((len(events) + 1, length + 1))
    rows[0] = first
    steps = gap * np.arange(length + 1)
    for t, e in enumerate(events):
        matched = pssm[e] if e < n else np.full(length, -np.inf)
        shifted = np.concatenate([[-np.inf], rows[t, :-1] + matched])
        reached = np.maximum(rows[t] - gap, shifted)
        rows[t + 1] = np.maximum.accumulate(reached + steps) - steps
    return rows


@dataclass(frozen=True, eq=False, repr=False)
class Redistribution(RichDisplay):
    """The share of every step in the return of one episode.

    Attributes:
        rewards: R_{t+1} (T,), for the step into observations[t+1].
        correction: R_{T+2}, what is left of the return; `rewards.sum() + correction == ret`.
        scores: S(τ_t) (T,), zero after the start state.
        events: The event of each step (T,), -1 for none.
        cells: Where on the profiles the best alignment of each prefix ends (T,).
        ret: The return of the episode.
    """

    rewards: np.ndarray
    correction: float
    scores: np.ndarray
    events: np.ndarray
    cells: np.ndarray
    ret: float

    @classmethod
    def from_scores(
        cls, scores: np.ndarray, events: np.ndarray, cells: np.ndarray, ret: float, scale: float
    ) -> Redistribution:
        """Turn prefix scores into rewards R_{t+1} = (S(τ_t) − S(τ_{t−1}))·C and the correction."""
        rewards = np.diff(scores, prepend=0.0) * scale
        return cls(rewards, float(ret) - float(rewards.sum()), scores, events, cells, float(ret))

    @property
    def kappa(self) -> np.ndarray:
        """κ̂_t (T,), the redistributed reward still to come after step t, correction included.

        Near zero from the first events on: the reward is no longer delayed. Equal to the return
        up to the end: nothing was redistributed.
        """
        return self.ret - np.cumsum(self.rewards)

    def with_correction(self) -> np.ndarray:
        """Return the rewards (T,) with the correction added to the last step."""
        if not len(self.rewards):
            raise ValueError("the sequence has no step, so no last one for the correction")
        out = self.rewards.copy()
        out[-1] += self.correction
        return out

    def __repr__(self) -> str:
        rewarded = int(np.count_nonzero(self.rewards))
        return (
            f"Redistribution(return {self.ret:g} over {len(self.rewards)} steps: "
            f"{self.rewards.sum():g} on {rewarded} of them, correction {self.correction:g})"
        )
