"""Causes: of all that tells against runs, what tells by itself and does not follow from the rest.

Who is lost early does less of everything, and who stays long does more of it. So what tells best
is a cause, the failures that show it are explained, and the other marks are tested again among the
runs that are left.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from align_rudder.logs.marks import ANYWHERE, NEIGHBOURS, Kinds, Mark, MarkTable
from align_rudder.logs.within import Exact, exact_test

__all__ = ["RATE", "Cause", "find_causes", "telling_of"]

RATE = 0.05
"""The rate of false discoveries among what is said to tell."""
RATE_NEIGHBOURS = 0.01
"""The same among pairs of neighbours, which are many and say little of why."""
MOST = 50
"""No more causes than this are looked for."""
_OVERLAP = 0.9  # what so many of the same failures show says where they left
_NEARLY = 0.7  # if the logarithm of its p is so large a share
_IN_PLACE = 0.8  # of the failures that do something where one thing was due, in its place


class Cause(NamedTuple):
    """A mark that failures show, or do not show, and that tells by itself.

    Attributes:
        mark: The mark.
        shown: Whether failures show it (or do not).
        due: What most failures do it in place of; -1 for nothing certain.
    """

    mark: Mark
    shown: bool
    due: int = -1


class Found(NamedTuple):
    """A cause, and the runs that it was found among.

    Attributes:
        cause: The cause.
        place: The place of its mark among the marks.
        left: Which kinds of run no cause before explains (N,).
    """

    cause: Cause
    place: int
    left: np.ndarray


def telling_of(test: Exact, neighbours: np.ndarray) -> np.ndarray:
    """Return which marks tell: false discoveries are counted among those that could be found.

    Args:
        test: The test of each.
        neighbours: Which of them are of neighbours, which are counted by themselves (M,).
    """
    out = np.zeros(len(test.p), bool)
    for some, rate in ((~neighbours, RATE), (neighbours, RATE_NEIGHBOURS)):
        could = some & (test.least <= rate)
        if could.any():
            out[could] = false_discovery_control(test.p[could]) <= rate
    return out


def find_causes(seen: MarkTable, candidates: np.ndarray) -> tuple[list[Found], np.ndarray]:
    """Return the causes, the surest first, and which kinds of run none of them explains.

    Args:
        seen: Which kinds of run show which marks.
        candidates: The places of the marks that tell.
    """
    left, out = np.ones(len(seen.on), bool), []
    bad = np.asarray(seen.failures.sum(axis=1)).ravel()
    while len(candidates) and len(out) < MOST:
        tables = seen.tables(candidates, left)
        test = exact_test(tables)
        pairs, shows = seen.neighbours[candidates], tables.excess > 0
        telling = telling_of(test, pairs) & (shows | ~pairs)
        if not telling.any():
            break
        candidates, log_p, shows = candidates[telling], test.log_p[telling], shows[telling]
        best = _cause(seen, candidates, log_p, shows, left * bad)
        place, shown = int(candidates[best]), bool(shows[best])
        against = seen.against(place, shown) & left
        mark = seen.marks[place]
        due = _in_place_of(mark, shown, against * bad, seen.kinds)
        out.append(Found(Cause(mark, shown, due), place, left))
        left = left & ~against
        candidates = np.delete(candidates, best)
    return out, left


def _cause(
    seen: MarkTable, places: np.ndarray, log_p: np.ndarray, shows: np.ndarray, bad: np.ndarray
) -> int:
    """Return which mark is the next cause.

    What comes directly after what only where it tells far more than anything else: most causes
    bring new neighbours. What is done rather than what is not, if it is nearly as sure.
    """
    kinds = np.array([seen.marks[place].kind for place in places.tolist()])
    neighbours = np.flatnonzero(np.isin(kinds, NEIGHBOURS))
    others = np.flatnonzero(~np.isin(kinds, NEIGHBOURS))
    if len(neighbours):
        surest = log_p[neighbours].min()
        if not len(others) or _NEARLY * surest < log_p[others].min():
            near = neighbours[log_p[neighbours] <= _NEARLY * surest]
            return min(near.tolist(), key=lambda i: (kinds[i] == "apart", log_p[i], places[i]))
    best = _best(seen, places, log_p, shows, others.tolist())
    best = _exactly(seen, places, log_p, shows, best, bad)
    return _fewer(seen, places, log_p, shows, best)


def _best(
    seen: MarkTable, places: np.ndarray, log_p: np.ndarray, shows: np.ndarray, some: list[int]
) -> int:
    """Return what tells best; of equals what says most exactly what happens, and the earliest."""

    def key(i: int) -> tuple[float, int, int, Mark]:
        mark, shown = seen.marks[places[i]], bool(shows[i])
        n = mark.column
        if mark.kind == "more":  # too often from the first time that is; too seldom below the last
            return float(log_p[i]), (0 if n else 2) if shown else 5, n if shown else -n, mark
        kind = 3 if mark.kind == "holds" else 4 if n == ANYWHERE else 1
        return float(log_p[i]), kind, n, mark

    return min(some, key=key)


def _exactly(
    seen: MarkTable,
    places: np.ndarray,
    log_p: np.ndarray,
    shows: np.ndarray,
    best: int,
    bad: np.ndarray,
) -> int:
    """Return what says where, if it is nearly as sure and explains nearly the same failures.

    Of columns that are lacking the first: later ones follow from it. Of what is done wherever it
    comes where it is done, if that is at one place.
    """
    mark = seen.marks[places[best]]
    wherever = mark.kind != "holds" and mark.column == (0 if mark.kind == "more" else ANYWHERE)
    if bool(shows[best]) != wherever or (mark.kind == "more" and not shows[best]):
        return best
    same = seen.against(int(places[best]), bool(shows[best])) * bad
    for i in range(len(places)):  # marks are sorted: earlier columns come first
        one = seen.marks[places[i]]
        if wherever:
            exact = one.kind == "beside" and one.column >= 0 and one.event == mark.event
        else:
            exact = one[:2] == mark[:2] and one.column < mark.column
        near = log_p[i] <= _NEARLY * log_p[best]
        if exact and near and bool(shows[i]) == bool(shows[best]):
            both = (seen.against(int(places[i]), bool(shows[i])) * same).sum()
            if both >= _OVERLAP * same.sum():
                return i
    return best


def _fewer(
    seen: MarkTable, places: np.ndarray, log_p: np.ndarray, shows: np.ndarray, best: int
) -> int:
    """Return that something is done too seldom, where columns beside each other are the same."""
    mark = seen.marks[places[best]]
    if mark.kind != "holds" or shows[best]:
        return best
    events = seen.kinds.roads[mark.road].events
    beside = events[max(mark.column - 1, 0) : mark.column + 2] == mark.event
    some = [
        i
        for i, one in enumerate(seen.marks[place] for place in places.tolist())
        if one.kind == "more" and one.event == mark.event and one.column and not shows[i]
    ]
    near = [i for i in some if log_p[i] <= _NEARLY * log_p[best]]
    if beside.sum() < 2 or not near:
        return best
    return min(near, key=lambda i: (log_p[i], -seen.marks[places[i]].column))


def _in_place_of(mark: Mark, shown: bool, bad: np.ndarray, kinds: Kinds) -> int:
    """Return what nearly all failures that do something wherever it is do it in place of, or -1."""
    wherever = mark.column == ANYWHERE if mark.kind == "beside" else mark.column == 0
    if not shown or not wherever or mark.kind == "holds":
        return -1
    due: Counter[int] = Counter()
    for i in np.flatnonzero(bad).tolist():
        path = kinds.paths[i]
        road = kinds.roads[path.road]
        for t in np.flatnonzero(kinds.events[i] == mark.event).tolist():
            j = int(path.due[t])
            if path.columns[t] < 0 and j < len(road) and not path.held[j]:
                due[int(road.events[j])] += int(bad[i])
                break
    event, most = max(due.items(), key=lambda one: (one[1], -one[0]), default=(-1, 0))
    return event if most and most >= _IN_PLACE * bad.sum() else -1
