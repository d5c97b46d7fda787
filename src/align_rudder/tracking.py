"""The tracker: where a running episode stands, and what each of its steps is worth.

Events so far → score, cell, matched column, next sub-goal, reward of the step; for a whole
episode here (`track`), for those that run in `streams`. `tracking_jax` is the same in JAX.

The *cell* is where on the profiles the best alignment of the events so far ends. A step is
*matched* to the column of that cell if its event took the alignment there: the score rose, or an
equally good alignment ends earlier. The *next sub-goal* is the first one behind the last that was
reached, that is, to whose column a step was matched. An event between sub-goals does not move an
episode on, however late its column: a surplus stone may be aligned to one at the very end. It
takes it back where the best alignment now ends before the last sub-goal reached.

An event may *undo* others: where the key is dropped, the last one taken is struck from the events
so far, and the rest is scored anew. The score falls to what it would be without the key, so that
taking and dropping it in turn earns nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from align_rudder._compile import njit
from align_rudder.events import Encoded, EventEncoder
from align_rudder.redistribution import Scorer, Step, advance

__all__ = ["TrackedModel", "TrackerTables", "follow", "follow_many", "take_back", "track"]


@dataclass(frozen=True, eq=False)
class TrackerTables:
    """What tracking needs of a fitted model. They never change; a model aligned again has others.

    Attributes:
        encoder: The event encoder.
        scorer: Scores of events in every cell.
        scale: C, which scales scores to returns.
        places: For each cell (C, 4) its strategy, its column (-1: nothing matched yet), whether
            that is a sub-goal's, and the first sub-goal behind it.
        undoes: For each event those of which it takes back the last (n + 1, w), filled up with -1;
            None if none does.
    """

    encoder: EventEncoder
    scorer: Scorer
    scale: float
    places: np.ndarray
    undoes: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        encoder: EventEncoder,
        scorer: Scorer,
        scale: float,
        goals: Sequence[Sequence[int]] = (),
        undoes: np.ndarray | None = None,
    ) -> TrackerTables:
        """Return the tables of a model whose strategies have sub-goals at these columns."""
        parts = []
        for k, width in enumerate(np.diff(scorer.bounds)):
            columns, of_goals = np.arange(-1, width - 1), list(goals[k]) if goals else []
            behind = np.searchsorted(of_goals, columns, side="right")
            is_goal = np.isin(columns, of_goals)
            parts.append(np.column_stack([np.full(width, k), columns, is_goal, behind]))
        return cls(encoder, scorer, float(scale), np.concatenate(parts).astype(np.int64), undoes)

    @property
    def strategy_of(self) -> np.ndarray:
        """For each cell, the strategy to which it belongs."""
        return self.places[:, 0]

    @property
    def column_of(self) -> np.ndarray:
        """For each cell its profile column, -1 for "nothing matched yet"."""
        return self.places[:, 1]

    @property
    def subgoal_of(self) -> np.ndarray:
        """For each cell, the index of the first sub-goal behind it."""
        return self.places[:, 3]


class TrackedModel(Protocol):
    """A fitted model with the tables of its tracker."""

    @property
    def tables_(self) -> TrackerTables:
        """The tables as they are now."""
        ...


@njit(cache=True, nogil=True)
def follow(row, event, score, cell, subgoal, wide, bounds, gap, skipped, places):
    """Add an event to a row in place; return score, cell, matched column and next sub-goal."""
    reached, to = advance(row, event, wide, bounds, gap, skipped, cell)
    if reached <= score and to == cell:
        return reached, cell, -1, subgoal
    if places[to, 2] or places[to, 3] < subgoal or places[to, 0] != places[cell, 0]:
        subgoal = places[to, 3]
    return reached, to, places[to, 1], subgoal


@njit(cache=True, nogil=True)
def follow_many(rows, events, scores, cells, columns, subgoals, wide, bounds, gap, skipped, places):
    """Add an event to each row, in place; -1 is none, and no step is matched with it."""
    for i in range(len(events)):
        columns[i] = -1
        if events[i] >= 0:
            scores[i], cells[i], columns[i], subgoals[i] = follow(
                rows[i],
                events[i],
                scores[i],
                cells[i],
                subgoals[i],
                wide,
                bounds,
                gap,
                skipped,
                places,
            )


@njit(cache=True, nogil=True)
def take_back(row, history, count, undone, before, wide, bounds, gap, skipped, places):
    """Strike the last of the events `undone` from the history, in place, and score the rest anew.

    `before` is the score, cell and next sub-goal as they are, and stay if there is no such event.
    Returns the number of events left, score, cell and next sub-goal.
    """
    score, cell, subgoal = before
    at = count - 1
    while at >= 0 and not (undone == history[at]).any():
        at -= 1
    if at < 0:
        return count, score, cell, subgoal
    history[at : count - 1] = history[at + 1 : count].copy()
    row[:] = 0.0
    score, cell, subgoal = 0.0, 0, 0
    for i in range(count - 1):
        score, cell, _, subgoal = follow(
            row, history[i], score, cell, subgoal, wide, bounds, gap, skipped, places
        )
    return count - 1, score, cell, subgoal


@njit(cache=True, nogil=True)
def _follow_all(
    events, history, undoes, scores, cells, columns, subgoals, wide, bounds, gap, skipped, places
):
    """Add the events of one episode one after the other, and note where it stands after each.

    `history` has room for all events if some undo others, for none otherwise.
    """
    row = np.zeros(len(places))
    score, cell, subgoal, count = 0.0, 0, 0, 0
    for t in range(len(events)):
        columns[t] = -1
        if events[t] >= 0:
            if len(history) and undoes[events[t], 0] >= 0:
                count, score, cell, subgoal = take_back(
                    row,
                    history,
                    count,
                    undoes[events[t]],
                    (score, cell, subgoal),
                    wide,
                    bounds,
                    gap,
                    skipped,
                    places,
                )
            else:
                if len(history):
                    history[count] = events[t]
                    count += 1
                score, cell, columns[t], subgoal = follow(
                    row, events[t], score, cell, subgoal, wide, bounds, gap, skipped, places
                )
        scores[t], cells[t], subgoals[t] = score, cell, subgoal


def track(tables: TrackerTables, encoded: Encoded) -> Step:
    """Return what the tracker says of each step of a whole episode (T,)."""
    events = tables.scorer.known(np.concatenate([[encoded.start], encoded.events]))
    scores = np.empty(len(events))
    cells, columns, subgoals = (np.empty(len(events), np.int64) for _ in range(3))
    undoes = np.empty((0, 1), np.int64) if tables.undoes is None else tables.undoes
    history = np.empty(0 if tables.undoes is None else len(events), np.int64)
    arrays = (*tables.scorer.tables, tables.places)
    _follow_all(events, history, undoes, scores, cells, columns, subgoals, *arrays)
    rewards = np.diff(scores - scores[0]) * tables.scale
    return Step(events[1:], scores[1:] - scores[0], cells[1:], columns[1:], subgoals[1:], rewards)
