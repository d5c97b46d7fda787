"""What tells successes from failures: columns of a road held or not, events beside it, how often.

A *mark* is something that a run either shows or not. Successes and failures of the same task that
show it are counted; the logarithm of the ratio of their shares is what it weighs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import false_discovery_control

from align_rudder.logs.causes import Cause, Found, find_causes, telling_of
from align_rudder.logs.marks import (
    ANYWHERE,
    NEIGHBOURS,
    Kinds,
    Mark,
    MarkTable,
    Seen,
    mark_table,
)
from align_rudder.logs.within import Tables, differ_within, exact_test, standard, uneven_p

__all__ = ["Contrast", "contrast"]

_PRIOR = 2.0  # runs that the share of all marks of a kind counts as
_BOUNDS = 0.02, 0.98


@dataclass(frozen=True, eq=False)
class Contrast:
    """Marks, how many successes and failures show each, and what that weighs.

    Attributes:
        marks: The marks (M).
        successes: How many successes show each (M,).
        failures: How many failures show each (M,).
        n_successes: How many successes are on the road of each mark (M,).
        n_failures: How many failures are (M,).
        within: Of the tasks with both outcomes alone: the successes that show each mark, all that
            could, the failures that show it, all that could (4, M).
        p: The exact test of each within tasks, two-sided (M,).
        p_all: The same test of all runs, as though there were no tasks (M,).
        telling: Which of them tell, at a false discovery rate of 5 % (M,).
        between: Which of them tell tasks that fail from others, but no runs of a task (M,).
        uneven: Which of them tell in some tasks, in one way or the other, but not in all (M,).
        yes: What it weighs to show each (M,), the logarithm of a ratio of shares.
        no: What it weighs not to (M,).
        rest_yes: The same among the runs that no cause explains; of a cause among the runs that no
            cause before it explains (M,).
        rest_no: What it weighs there not to (M,).
        causes: What tells by itself, the surest first.
        index: The place of each mark.
    """

    marks: tuple[Mark, ...]
    successes: np.ndarray
    failures: np.ndarray
    n_successes: np.ndarray
    n_failures: np.ndarray
    within: np.ndarray
    p: np.ndarray
    p_all: np.ndarray
    telling: np.ndarray
    between: np.ndarray
    uneven: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    rest_yes: np.ndarray
    rest_no: np.ndarray
    causes: tuple[Cause, ...] = ()
    index: dict[Mark, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {mark: i for i, mark in enumerate(self.marks)})
        others = tuple(
            mark
            for mark, tells in zip(self.marks, self.telling, strict=True)
            if mark.kind in ("beside", *NEIGHBOURS) or (mark.kind == "more" and tells)
        )
        object.__setattr__(self, "_others", others)

    @property
    def others(self) -> tuple[Mark, ...]:
        """The marks that a run need not come by: all but columns, of how often those that tell."""
        return self._others  # pyright: ignore[reportAttributeAccessIssue]

    def weight(self, seen: Seen) -> float:
        """Return what a mark in a run weighs; 0 for one that no run showed before."""
        i = self.index.get(seen.mark)
        return 0.0 if i is None else float(self.yes[i] if seen.shown else self.no[i])

    def rest(self, seen: Seen) -> float:
        """Return what it weighs among the runs that causes before it leave."""
        i = self.index.get(seen.mark)
        return 0.0 if i is None else float(self.rest_yes[i] if seen.shown else self.rest_no[i])

    def speaks_against(self, seen: Seen) -> bool:
        """Return whether a mark tells, and what the run does is what failures do."""
        i = self.index.get(seen.mark)
        return i is not None and bool(self.telling[i]) and self.weight(seen) < 0

    def cause_of(self, seen: Iterable[Seen]) -> int:
        """Return the place of the first cause that a run shows among the causes, or -1."""
        how = {one.mark: one.shown for one in seen}
        for i, cause in enumerate(self.causes):
            if how.get(cause.mark) is cause.shown:
                return i
        return -1


def contrast(kinds: Kinds) -> Contrast:
    """Return what tells the successes of a log from its failures.

    Notes:
        A mark that s of S successes and f of F failures on its road show weighs
        b (ln((s + a q) / (S + a)) − ln((f + a r) / (F + a))) if it is shown, and the same of the
        others if not. q and r are the shares with which successes and failures show marks of this
        kind at all, and a = 2: with few runs a column weighs what columns do on average. b is the
        probability that the two shares differ, where one half is that they do beforehand and all
        shares are equally likely (`within.differ_within`). Within tasks s and f are those of
        `within.standard`. Of events beside roads while a certain column is due, of which there are
        many kinds, only those count that tell by themselves; of how often something is done only
        what is a cause.
    """
    seen = mark_table(kinds)
    every = np.arange(len(seen.marks))
    tables = seen.tables(every)
    test = exact_test(tables)
    pairs = seen.neighbours
    telling = telling_of(test, pairs)
    causes, left = find_causes(seen, np.flatnonzero(telling))
    keep = weighs = _kept(seen.marks, test.log_p, telling, {found.place for found in causes})
    # What is done in place of a step is known by what tells there, though it weighs nothing more.
    keep = keep | (telling & np.array([m.kind == "beside" for m in seen.marks], bool))
    all_test = exact_test(tables.together) if tables.k.shape[1] > 1 else test
    between = telling_of(all_test, pairs) & ~telling
    uneven = np.zeros(len(every), bool)
    if tables.k.shape[1] > 1:
        uneven[~pairs] = _uneven(tables.rows(~pairs), telling[~pairs])
    keep |= uneven | (between & np.array([m.kind == "more" for m in seen.marks], bool))
    which = np.flatnonzero(keep)
    kept = tables.rows(which)
    q, r = _shares(kept.together, np.array([seen.marks[i].kind for i in which], str))
    rest = _rest(seen, which, causes, left, q, r, weighs[which])
    mixed = np.array([(part * kept.mixed).sum(axis=1) for part in kept]).reshape(4, -1)
    k, n, j, m = (part[:, 0] for part in kept.together)
    return Contrast(
        tuple(seen.marks[i] for i in which),
        *(k, j, n, m, mixed, test.p[which], all_test.p[which]),
        *(telling[which], between[which], uneven[which]),
        *_weights(kept, q, r),
        *rest,
        tuple(found.cause for found in causes),
    )


def _weights(tables: Tables, q: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what it weighs to show each mark and not to; see `contrast`."""
    good, n_s, bad, n_f = (part[:, 0] for part in standard(tables))
    yes = np.log((good + _PRIOR * q) / (n_s + _PRIOR)) - np.log((bad + _PRIOR * r) / (n_f + _PRIOR))
    no = np.log((n_s - good + _PRIOR * (1 - q)) / (n_s + _PRIOR)) - np.log(
        (n_f - bad + _PRIOR * (1 - r)) / (n_f + _PRIOR)
    )
    b = differ_within(tables) * ((n_s > 0) & (n_f > 0))  # one kind alone tells nothing
    return b * yes, b * no


def _rest(
    seen: MarkTable,
    which: np.ndarray,
    causes: Sequence[Found],
    left: np.ndarray,
    q: np.ndarray,
    r: np.ndarray,
    weighs: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what marks weigh among the runs that causes leave, and causes among those before."""
    yes, no = _weights(seen.tables(which, left), q, r)
    for i, place in enumerate(which.tolist()):
        if seen.marks[place].kind in ("more", *NEIGHBOURS) or not weighs[i]:
            yes[i] = no[i] = 0.0
    place_of = {place: i for i, place in enumerate(which.tolist())}
    for found in causes:
        i = place_of[found.place]
        one = seen.tables(np.array([found.place]), found.left)
        (yes[i],), (no[i],) = _weights(one, q[[i]], r[[i]])
    return yes, no


def _uneven(tables: Tables, telling: np.ndarray) -> np.ndarray:
    """Return which marks tell in some tasks but not in all of them alike."""
    p = uneven_p(tables)
    could = ((tables.k + tables.j > 0) & (tables.k + tables.j < tables.n + tables.m)).any(axis=1)
    could &= tables.mixed.any(axis=1)
    out = np.zeros(len(p), bool)
    if could.any():
        out[could] = false_discovery_control(p[could]) <= 0.01
    return out & ~telling


def _shares(tables: Tables, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share with which successes and failures show marks of each one's kind."""
    out = []
    for shown, n in ((tables.k[:, 0], tables.n[:, 0]), (tables.j[:, 0], tables.m[:, 0])):
        share = np.full(len(shown), 0.5)
        for kind in np.unique(kinds):
            if n[kinds == kind].sum():
                share[kinds == kind] = shown[kinds == kind].sum() / n[kinds == kind].sum()
        out.append(np.clip(share, *_BOUNDS))
    return out[0], out[1]


def _kept(
    marks: Sequence[Mark], log_p: np.ndarray, telling: np.ndarray, causes: set[int]
) -> np.ndarray:
    """Return which marks are kept: columns, and of each event beside roads what tells it best.

    That is that it happens where a certain column is due, if that tells as clearly as that it
    happens at all; else the latter, whether it tells or not. Of how often something is done what
    tells; of neighbours causes alone.
    """
    values, tells = log_p.tolist(), telling.tolist()
    anywhere = {
        m.event: value
        for m, value in zip(marks, values, strict=True)
        if m.kind == "beside" and m.column == ANYWHERE
    }
    local = {
        m.event
        for m, value, tell in zip(marks, values, tells, strict=True)
        if m.kind == "beside" and m.column >= 0 and tell and value <= anywhere[m.event]
    }
    out = np.ones(len(marks), bool)
    for i, (mark, tell) in enumerate(zip(marks, tells, strict=True)):
        if mark.kind == "beside":
            out[i] = (tell or mark.column < 0) and (mark.column >= 0) == (mark.event in local)
        elif mark.kind == "more":
            out[i] = tell
        elif mark.kind in NEIGHBOURS:
            out[i] = False
        out[i] |= i in causes
    return out
