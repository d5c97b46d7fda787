"""Where a run left its road, and what it did instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from align_rudder.logs.causes import Cause
from align_rudder.logs.contrast import Contrast
from align_rudder.logs.marks import ANYWHERE, NEIGHBOURS, Mark, Seen, marks_of
from align_rudder.logs.roads import Path, Road

__all__ = ["COMMON", "Divergence", "Place", "divergence_of"]

COMMON = 0.5
"""Columns that so many successes hold are sub-goals."""
_CLEAR = 0.35  # of what the lack of a column weighs


class Place(NamedTuple):
    """Where runs leave a road, and how: what runs are grouped by.

    Attributes:
        how: "leaves" out a column (or does something else), does two things in the wrong "order",
            does something "extra" while a certain column is due, "beside" the road wherever that
            is or "does" it at all, does it too "often" or too "seldom", directly "after" something,
            but never so ("apart"), or "last".
        road: Which road; -1 for any.
        column: The column that was due; of a wrong order that of what should have come first; -1
            where that does not matter.
        event: What was due, or what is done.
        other: Of a wrong order, what was done first; of something extra what was due then, -1 at
            the end of the road; of too often or too seldom the number of times that is the most or
            the least; of directly after or never so what comes before; else -1.
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
            where it stops. Of what is never directly after something, what it was after.
        telling: Whether failures do so more than successes, beyond chance.
        to_come: The columns that were still to come, the one that was due among them.
        cause: Which of the causes it is; -1 for none.
    """

    place: Place
    at: int
    instead: int
    telling: bool
    to_come: tuple[int, ...]
    cause: int = -1


GOES_ON, STOPS = -1, -2


def divergence_of(
    path: Path, events: np.ndarray, roads: Sequence[Road], found: Contrast
) -> Divergence | None:
    """Return where a run left its road, or None if it did not.

    That is where it shows the first cause that it has; of a run without any, where it first leaves
    out what most successes do.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        found: What tells.
    """
    road = roads[path.road]
    seen = marks_of(path, events, roads, found.others)
    k = found.cause_of(seen)
    if k >= 0:
        cause = found.causes[k]
        (shown,) = (one for one in seen if one.mark == cause.mark)
        return _told(cause, shown, path, events, road, found)._replace(cause=k)
    missed = np.flatnonzero(~path.held & (road.shares >= COMMON))
    return _missed(int(missed[0]), path, events, road, found, False) if len(missed) else None


def _told(
    cause: Cause, seen: Seen, path: Path, events: np.ndarray, road: Road, found: Contrast
) -> Divergence:
    """Return the divergence of a run that shows a cause."""
    mark = cause.mark
    if mark.kind == "holds":
        if not cause.shown:
            return _missed(mark.column, path, events, road, found, True)
        place = Place("does", ANYWHERE, ANYWHERE, mark.event)
        at = int(path.passed[mark.column])
        return Divergence(place, at, mark.event, True, _to_come(road, mark.column + 1))
    if mark.kind in NEIGHBOURS:
        return _neighbours(cause, seen.at, path, events, road)
    if mark.kind == "more":
        return _times(cause, seen, path, events, road, found)
    if not cause.shown:
        place = Place("leaves", ANYWHERE, ANYWHERE, mark.event)
        return Divergence(place, len(events), GOES_ON, True, ())
    return _beside(cause, seen.at, path, events, road, found)


def _neighbours(cause: Cause, at: int, path: Path, events: np.ndarray, road: Road) -> Divergence:
    """Return the divergence of a run by what comes directly after what."""
    kind, _, before, event = cause.mark
    if kind == "last":
        return Divergence(Place(kind, ANYWHERE, ANYWHERE, event), at, STOPS, True, ())
    instead = event if kind == "after" else int(events[at - 1]) if at else GOES_ON
    place = Place(kind, ANYWHERE, ANYWHERE, event, before)
    return Divergence(place, at, instead, True, _to_come(road, int(path.due[at])))


def _times(
    cause: Cause, seen: Seen, path: Path, events: np.ndarray, road: Road, found: Contrast
) -> Divergence:
    """Return the divergence of a run that does something too often, or not often enough."""
    _, _, n, event = cause.mark
    if cause.shown:
        if not n:
            return _beside(cause, seen.at, path, events, road, found)
        place = Place("often", ANYWHERE, ANYWHERE, event, n)
        return Divergence(place, seen.at, event, True, _to_come(road, int(path.due[seen.at])))
    lacking = np.flatnonzero((road.events == event) & ~path.held)
    if not n:
        if len(lacking):
            return _missed(int(lacking[0]), path, events, road, found, True)
        place = Place("leaves", ANYWHERE, ANYWHERE, event)
        return Divergence(place, len(events), GOES_ON, True, ())
    # That it is not done again is known with the next step of the road.
    done = np.flatnonzero(events == event)
    last = int(done[-1]) if len(done) else -1
    later = [t for t in np.flatnonzero(path.columns >= 0).tolist() if t > last]
    at = later[0] if later else len(events)
    place = Place("seldom", ANYWHERE, ANYWHERE, event, n + 1)
    return Divergence(place, at, STOPS if at == len(events) else GOES_ON, True, ())


def _beside(
    cause: Cause, at: int, path: Path, events: np.ndarray, road: Road, found: Contrast
) -> Divergence:
    """Return the divergence of a run that does something that successes do not."""
    mark, event, held = cause.mark, cause.mark.event, path.held
    wherever = mark.kind == "more" or mark.column == ANYWHERE
    if wherever and cause.due < 0:
        column = int(path.due[at])
        how = "does" if mark.kind == "more" else "beside"
        place = Place(how, ANYWHERE, ANYWHERE, event)
        return Divergence(place, at, event, True, _to_come(road, column))
    if wherever:  # in place of one thing: where that was due, if it was
        inside = [t for t in np.flatnonzero(events == event).tolist() if path.columns[t] < 0]
        at = next((t for t in inside if _due(path, road, t) == cause.due), at)
    column = int(path.due[at])
    later = np.flatnonzero((road.events == event) & ~held & (np.arange(len(road)) > column))
    if column < len(road) and held[column] and len(later):
        return _order(event, column, at, path.road, road, True)
    earlier = np.flatnonzero((road.events == event) & ~held & (np.arange(len(road)) < column))
    if len(earlier):  # it comes too late
        return _missed(int(earlier[-1]), path, events, road, found, True)
    after = np.flatnonzero(held & (np.arange(len(road)) >= column))
    skipped = range(column, int(after[0]) if len(after) else len(road))
    for j in skipped:  # something else was done in place of what was due
        tells = found.speaks_against(
            Seen(Mark("holds", path.road, j, int(road.events[j])), False, 0)
        )
        if tells or (j == mark.column and road.shares[j] >= COMMON):
            found_there = _missed(j, path, events, road, found, True)
            if found_there.place.how != "leaves":
                return found_there
            return found_there._replace(at=at, instead=event)
    if wherever:
        place = Place("does" if mark.kind == "more" else "beside", ANYWHERE, ANYWHERE, event)
    else:
        due = int(road.events[column]) if column < len(road) else -1
        place = Place("extra", path.road, column, event, due)
    return Divergence(place, at, event, True, _to_come(road, column))


def _due(path: Path, road: Road, t: int) -> int:
    column = int(path.due[t])
    return int(road.events[column]) if column < len(road) else -1


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
    if at == n and not between:
        return Divergence(place, at, STOPS, telling, _to_come(road, column))

    lack = min(found.weight(Seen(Mark("holds", path.road, column, event), False, at)), -1e-9)

    def badness(t: int) -> tuple[float, int]:
        marks = [
            m
            for m in found.others
            if m.event == events[t] and m.column in (-1, int(path.due[t])) and m.kind == "beside"
        ]
        seen = [Seen(m, True, t) for m in marks]
        # Where the run comes back, what is done instead must tell nearly as much as the lack.
        weights = [found.weight(s) for s in seen]
        enough = [w for w in weights if at == n or w <= _CLEAR * lack]
        return min(enough, default=0.0), t

    bad = [t for t in between if at == n or badness(t)[0] < 0]
    if not bad:
        return Divergence(place, at, GOES_ON, telling, _to_come(road, column))
    first = min(bad, key=badness)
    return Divergence(place, first, int(events[first]), telling, _to_come(road, column))


def _order(first: int, column: int, at: int, k: int, road: Road, telling: bool) -> Divergence:
    place = Place("order", k, column, int(road.events[column]), first)
    return Divergence(place, at, first, telling, _to_come(road, column))


def _to_come(road: Road, column: int) -> tuple[int, ...]:
    return tuple(j for j in range(column, len(road)) if road.shares[j] >= COMMON)
