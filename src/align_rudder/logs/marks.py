"""Marks: what a run shows or not, and which runs of a log show which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from align_rudder.logs.roads import Path, Road
from align_rudder.logs.within import Tables

__all__ = [
    "ANYWHERE",
    "NEIGHBOURS",
    "Kinds",
    "Mark",
    "MarkTable",
    "Seen",
    "mark_table",
    "marks_of",
]

ANYWHERE = -1
NEIGHBOURS = ("after", "apart", "last")
"""Kinds of mark that know nothing of roads: what comes directly after what."""
_THRESHOLDS = 12
"""Of an event that comes many times, so many numbers of times are looked at."""


class Mark(NamedTuple):
    """Something that a run shows or not.

    Attributes:
        kind: "holds" a column, does something "beside" the road, does something "more" often than
            so many times, on the road or beside it, does one thing directly "after" another, does
            it but never directly after that ("apart"), or does something "last".
        road: Which road, `ANYWHERE` for any.
        column: The column; of an event beside the road the one that is due, `ANYWHERE` for any; of
            "more" the number of times that is exceeded; of "after" and "apart" the event before.
        event: The event.
    """

    kind: str
    road: int
    column: int
    event: int


class Seen(NamedTuple):
    """A mark in a run: whether it shows it, and at which of its events that is known.

    The index of an event; as many as there are where only the end of the run tells. That an event
    does not happen at all is taken for granted until it does, -1.
    """

    mark: Mark
    shown: bool
    at: int


def marks_of(
    path: Path, events: np.ndarray, roads: Sequence[Road], others: Iterable[Mark]
) -> list[Seen]:
    """Return which marks a run shows and which it does not, and when that is known.

    That something is never done directly after another is known when it is done for the last time.
    That a column is not held is known when the run passes it by, or when it ends. That something
    is not done beside the road is known when what was due then is passed.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        others: Marks that are no columns and are looked for; those beside roads that the run shows
            are found anyway.
    """
    k, n = path.road, len(events)
    out, held = [], path.held
    for j, event in enumerate(roads[k].events.tolist()):
        out.append(Seen(Mark("holds", k, j, event), bool(held[j]), int(path.passed[j])))
    shown: dict[Mark, int] = {}
    for t in np.flatnonzero(path.columns < 0).tolist():
        event = int(events[t])
        shown.setdefault(Mark("beside", k, int(path.due[t]), event), t)
        shown.setdefault(Mark("beside", ANYWHERE, ANYWHERE, event), t)
    out += [Seen(mark, True, t) for mark, t in shown.items()]
    for mark in others:
        if mark.kind == "more":
            times = np.flatnonzero(events == mark.event)
            exceeds = len(times) > mark.column
            out.append(Seen(mark, exceeds, int(times[mark.column]) if exceeds else -1))
        elif mark.kind == "last":
            out.append(Seen(mark, n > 0 and int(events[-1]) == mark.event, n))
        elif mark.kind in NEIGHBOURS:
            done = np.flatnonzero(events == mark.event)
            after = [t for t in done.tolist() if t and events[t - 1] == mark.column]
            if mark.kind == "after":
                out.append(Seen(mark, len(after) > 0, after[0] if after else -1))
            else:
                apart = len(done) > 0 and not after
                out.append(Seen(mark, apart, int(done[-1]) if apart else -1))
        elif mark.road in (k, ANYWHERE) and mark not in shown:
            column = mark.column
            at = -1 if column < 0 else n if column == len(path.passed) else int(path.passed[column])
            out.append(Seen(mark, False, at))
    return out


class Kinds(NamedTuple):
    """A log as kinds of run: runs with the same events are one kind.

    Attributes:
        events: The events of each kind.
        paths: How each goes along its road.
        roads: The roads.
        successes: How many successes are of each kind (N,).
        failures: How many failures are.
        tasks: The task of each kind, a number from 0 on (N,); the same for all, to compare all
            runs.
    """

    events: Sequence[np.ndarray]
    paths: Sequence[Path]
    roads: Sequence[Road]
    successes: np.ndarray
    failures: np.ndarray
    tasks: np.ndarray


class MarkTable(NamedTuple):
    """Which kinds of run show which marks.

    Attributes:
        kinds: The kinds of run.
        marks: The marks (M).
        shown: Whether a kind shows a mark, sparse (N, M).
        on: The road of each kind (N,).
        successes: How many successes of which task each kind is, sparse (N, G).
        failures: How many failures.
    """

    kinds: Kinds
    marks: tuple[Mark, ...]
    shown: csr_matrix
    on: np.ndarray
    successes: csr_matrix
    failures: csr_matrix

    def tables(self, which: np.ndarray, left: np.ndarray | None = None) -> Tables:
        """Return the tables of marks, given by their places, of all kinds or those left."""
        road = np.array([self.marks[i].road for i in which.tolist()], int)
        n_roads = int(self.on.max(initial=0)) + 1
        kinds = np.arange(len(self.on))
        keep = np.ones(len(kinds)) if left is None else left.astype(float)
        place = csr_matrix((keep, (self.on, kinds)), (n_roads, len(kinds)))
        shown = self.shown[:, which].multiply(keep[:, None]).T.tocsr()
        parts = []
        for runs in (self.successes, self.failures):
            each = _dense(place @ runs)
            each = np.vstack([each, each.sum(axis=0)])  # the last: on any road
            parts += [_dense(shown @ runs), each[np.where(road < 0, n_roads, road)]]
        return Tables(*parts)

    @property
    def neighbours(self) -> np.ndarray:
        """Which marks are of neighbours (M,)."""
        return np.array([mark.kind in NEIGHBOURS for mark in self.marks], bool)

    def against(self, i: int, shows: bool) -> np.ndarray:
        """Return which kinds show a mark, or do not though they are on its road (N,)."""
        shown = _dense(self.shown[:, [i]]).ravel().astype(bool)
        road = self.marks[i].road
        on = np.ones(len(self.on), bool) if road < 0 else self.on == road
        return on & (shown == shows)


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.todense())


def mark_table(kinds: Kinds) -> MarkTable:
    """Return which kinds of run show which marks that more than one run shows."""
    events, paths, roads, successes, failures, tasks = kinds
    index: dict[Mark, int] = {}
    rows, columns = [], []
    for i, (path, ids) in enumerate(zip(paths, events, strict=True)):
        if not (successes[i] or failures[i]):
            continue
        for seen in marks_of(path, ids, roads, ()):
            place = index.setdefault(seen.mark, len(index))
            if seen.shown:
                rows.append(i)
                columns.append(place)
    runs = successes + failures
    for mark, some in (*_often(events, runs), *_neighbours(events, successes, failures)):
        index[mark] = len(index)
        rows += list(some)
        columns += [index[mark]] * len(some)
    shown = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(paths), len(index)))
    showing = np.asarray(runs @ shown).ravel()
    some = sorted(mark for mark, i in index.items() if mark.kind == "holds" or showing[i] >= 2)
    which = np.array([index[mark] for mark in some], int)
    every, n_tasks = np.arange(len(paths)), int(tasks.max(initial=0)) + 1
    by_task = [
        csr_matrix((numbers.astype(float), (every, tasks)), (len(paths), n_tasks))
        for numbers in (successes, failures)
    ]
    on = np.array([path.road for path in paths], int)
    return MarkTable(kinds, tuple(some), shown[:, which], on, *by_task)


def _often(events: Sequence[np.ndarray], runs: np.ndarray) -> list[tuple[Mark, np.ndarray]]:
    """Return marks of how often something is done, and the kinds that show each.

    The numbers are those of the log: one for each number of times that some run has and another
    exceeds, and of many those that part the runs evenly.
    """
    known = [ids for ids, n in zip(events, runs, strict=True) if n]
    n_symbols = 1 + max((int(ids.max()) for ids in known if len(ids)), default=-1)
    kinds = np.repeat(np.arange(len(events)), [len(ids) for ids in events])
    flat = np.concatenate([*events, np.empty(0, int)]).astype(int)
    some = flat < n_symbols
    times = csr_matrix(
        (np.ones(int(some.sum())), (kinds[some], flat[some])), (len(events), n_symbols)
    ).tocsc()
    out = []
    for event in range(n_symbols):
        column = _dense(times[:, [event]]).ravel().astype(int)
        column = np.where(runs > 0, column, 0)
        numbers = np.unique(column[runs > 0])[:-1]
        if len(numbers) > _THRESHOLDS:
            spread = np.repeat(column, runs.astype(int))
            numbers = np.unique(
                np.quantile(spread, np.linspace(0, 1, _THRESHOLDS + 1)[:-1]).astype(int)
            )
        for n in {0, *numbers.tolist()}:
            showing = np.flatnonzero(column > n)
            if len(showing):
                out.append((Mark("more", ANYWHERE, int(n), event), showing))
    return out


def _neighbours(
    events: Sequence[np.ndarray], successes: np.ndarray, failures: np.ndarray
) -> list[tuple[Mark, Sequence[int]]]:
    """Return marks of what comes directly after what, and the kinds that show each.

    That one thing is never done directly after another only where half of the successes that do it
    do so.
    """
    after: dict[tuple[int, int], list[int]] = {}
    does: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}
    for i, (ids, n) in enumerate(zip(events, successes + failures, strict=True)):
        if n and len(ids):
            for pair in set(zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True)):
                after.setdefault(pair, []).append(i)
            for event in set(ids.tolist()):
                does.setdefault(event, []).append(i)
            last.setdefault(int(ids[-1]), []).append(i)
    out: list[tuple[Mark, Sequence[int]]] = []
    for (first, second), some in after.items():
        out.append((Mark("after", ANYWHERE, first, second), some))
        if successes[some].sum() >= 0.5 * successes[does[second]].sum():
            others = sorted(set(does[second]) - set(some))
            out.append((Mark("apart", ANYWHERE, first, second), others))
    return out + [(Mark("last", ANYWHERE, ANYWHERE, event), some) for event, some in last.items()]
