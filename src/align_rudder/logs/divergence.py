"""Where a run left its road, and what it did instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from align_rudder.logs.contrast import ANYWHERE, Contrast, Mark, Seen, marks_of
from align_rudder.logs.roads import Path, Road

__all__ = ["COMMON", "Divergence", "Place", "divergence_of"]

COMMON = 0.5
"""Columns that so many successes hold are sub-goals."""
_CLEAR = 0.5


class Place(NamedTuple):
    """Where runs leave a road, and how: what runs are grouped by.

    Attributes:
        how: "leaves" out a column (or does something else), does two things in the wrong "order",
            or does something "extra".
        road: Which road; -1 for any, of something that tells anywhere.
        column: The column that was due; of a wrong order that of what should have come first; -1
            where that does not matter.
        event: What was due; of something extra what was done.
        other: Of a wrong order, what was done first; of something extra what was due then, -1 at
            the end of the road; else -1.
    """

    how: str
    road: int
    column: int
    event: int
    other: int = -1


class Divergence(NamedTuple):
    """Where one run left its road.

    Attributes:
        place: Where, and how.
        at: The event with which it is known; as many as there are if the run's end tells.
        instead: What was done instead: an event; -1 where the run goes on with a later column; -2
            where it stops.
        telling: Whether failures do so more than successes, beyond chance.
        to_come: The columns that were still to come, the one that was due among them.
    """

    place: Place
    at: int
    instead: int
    telling: bool
    to_come: tuple[int, ...]


GOES_ON, STOPS = -1, -2


def divergence_of(
    path: Path, events: np.ndarray, roads: Sequence[Road], found: Contrast
) -> Divergence | None:
    """Return where a run left its road, or None if it did not.

    That is where it first does what failures do beyond chance, of what weighs at least half as much
    as the worst that it does; else where it first leaves out what most successes do.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        found: What tells.
    """
    road, held = roads[path.road], path.held
    told = [s for s in marks_of(path, events, roads, found.beside) if found.speaks_against(s)]
    against = [s for s in told if s.shown == (s.mark.kind == "beside")]
    if against:
        worst = min(found.weight(seen) for seen in against)
        clear = [seen for seen in against if found.weight(seen) <= _CLEAR * worst]
        return _told(min(clear, key=lambda seen: (seen.at, seen.mark)), path, events, road, found)
    never = [s.mark for s in told if not s.shown and s.mark.event not in road.events]
    if never:  # what successes do at no certain place is not done at all
        place = Place("leaves", ANYWHERE, ANYWHERE, min(never, key=_p(found)).event)
        return Divergence(place, len(events), GOES_ON, True, ())
    missed = np.flatnonzero(~held & (road.shares >= COMMON))
    return _missed(int(missed[0]), path, events, road, found, False) if len(missed) else None


def _p(found: Contrast) -> Callable[[Mark], float]:
    return lambda mark: float(found.p[found.index[mark]])


def _told(seen: Seen, path: Path, events: np.ndarray, road: Road, found: Contrast) -> Divergence:
    """Return the divergence that a mark tells, of a column not held or an event beside the road."""
    if seen.mark.kind == "holds":
        return _missed(seen.mark.column, path, events, road, found, True)
    column = int(path.due[seen.at])
    event, held = int(events[seen.at]), path.held
    later = np.flatnonzero((road.events == event) & ~held & (np.arange(len(road)) > column))
    if column < len(road) and held[column] and len(later):
        return _order(event, column, seen.at, path.road, road, True)
    earlier = np.flatnonzero((road.events == event) & ~held & (np.arange(len(road)) < column))
    if len(earlier):  # it comes too late
        return _missed(int(earlier[-1]), path, events, road, found, True)
    after = np.flatnonzero(held & (np.arange(len(road)) >= column))
    skipped = range(column, int(after[0]) if len(after) else len(road))
    for j in skipped:  # something else was done in place of what was due
        tells = found.speaks_against(
            Seen(Mark("holds", path.road, j, int(road.events[j])), False, 0)
        )
        if tells or (j == seen.mark.column and road.shares[j] >= COMMON):
            return _missed(j, path, events, road, found, True)
    if seen.mark.column == ANYWHERE:
        place = Place("extra", ANYWHERE, ANYWHERE, event)
    else:
        due = int(road.events[column]) if column < len(road) else -1
        place = Place("extra", path.road, column, event, due)
    return Divergence(place, seen.at, event, True, _to_come(road, column))


def _missed(
    column: int, path: Path, events: np.ndarray, road: Road, found: Contrast, telling: bool
) -> Divergence:
    """Return the divergence of a run that does not hold a column."""
    n, event, at = len(events), int(road.events[column]), int(path.passed[column])
    held_at = np.flatnonzero(path.columns >= 0)
    before = held_at[path.columns[held_at] < column]
    begin = int(before[-1]) + 1 if len(before) else 0
    beside = np.flatnonzero((path.columns < 0) & (events == event))
    if (beside > at).any():
        return _order(int(events[at]), column, at, path.road, road, telling)
    for t in beside[beside < begin].tolist():  # it was done too early: what was due then came later
        due = int(path.due[t])
        if due < column and path.held[due]:
            return _order(event, due, t, path.road, road, telling)
    between = [t for t in range(begin, at) if path.columns[t] < 0]
    place = Place("leaves", path.road, column, event)
    if not between:
        instead = STOPS if at == n else GOES_ON
        return Divergence(place, at, instead, telling, _to_come(road, column))

    def badness(t: int) -> tuple[float, int]:
        marks = [
            m for m in found.beside if m.event == events[t] and m.column in (-1, int(path.due[t]))
        ]
        return min((found.weight(Seen(m, True, t)) for m in marks), default=0.0), t

    first = min(between, key=badness)
    return Divergence(place, first, int(events[first]), telling, _to_come(road, column))


def _order(first: int, column: int, at: int, k: int, road: Road, telling: bool) -> Divergence:
    place = Place("order", k, column, int(road.events[column]), first)
    return Divergence(place, at, first, telling, _to_come(road, column))


def _to_come(road: Road, column: int) -> tuple[int, ...]:
    return tuple(j for j in range(column, len(road)) if road.shares[j] >= COMMON)
