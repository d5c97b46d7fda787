"""What tells successes from failures: columns of a road held or not, and events beside the road.

A *mark* is something that a run either shows or not: that it holds a column of its road, or that
an event happens beside the road, while a certain column is due or anywhere. Successes and failures
that show it are counted; the logarithm of the ratio of their shares is what it weighs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from align_rudder.logs.roads import Path, Road
from align_rudder.logs.shares import differ, fisher, least_p

__all__ = ["ANYWHERE", "Contrast", "Mark", "Seen", "contrast", "marks_of"]

ANYWHERE = -1
_PRIOR = 2.0  # runs that the share of all marks of a kind counts as
_BOUNDS = 0.02, 0.98
_RATE = 0.05  # of false discoveries among what is said to tell


class Mark(NamedTuple):
    """Something that a run shows or not.

    Attributes:
        kind: "holds" a column, or does something "beside" the road.
        road: Which road, `ANYWHERE` for any.
        column: The column; of an event beside the road the one that is due, `ANYWHERE` for any.
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


@dataclass(frozen=True, eq=False)
class Contrast:
    """Marks, how many successes and failures show each, and what that weighs.

    Attributes:
        marks: The marks (M).
        successes: How many successes show each (M,).
        failures: How many failures show each (M,).
        n_successes: How many successes are on the road of each mark (M,).
        n_failures: How many failures are (M,).
        p: Fisher's exact test of each, two-sided (M,).
        telling: Which of them tell, at a false discovery rate of 5 % (M,).
        yes: What it weighs to show each (M,), the logarithm of a ratio of shares.
        no: What it weighs not to (M,).
        index: The place of each mark.
    """

    marks: tuple[Mark, ...]
    successes: np.ndarray
    failures: np.ndarray
    n_successes: np.ndarray
    n_failures: np.ndarray
    p: np.ndarray
    telling: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    index: dict[Mark, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {mark: i for i, mark in enumerate(self.marks)})

    @property
    def beside(self) -> tuple[Mark, ...]:
        """The marks beside roads."""
        return tuple(mark for mark in self.marks if mark.kind == "beside")

    def weight(self, seen: Seen) -> float:
        """Return what a mark in a run weighs; 0 for one that no run showed before."""
        i = self.index.get(seen.mark)
        return 0.0 if i is None else float(self.yes[i] if seen.shown else self.no[i])

    def speaks_against(self, seen: Seen) -> bool:
        """Return whether a mark tells, and what the run does is what failures do."""
        i = self.index.get(seen.mark)
        return i is not None and bool(self.telling[i]) and self.weight(seen) < 0


def marks_of(
    path: Path, events: np.ndarray, roads: Sequence[Road], beside: Iterable[Mark]
) -> list[Seen]:
    """Return which marks a run shows and which it does not, and when that is known.

    That a column is not held is known when the run passes it by, or when it ends. That something
    is not done beside the road is known when what was due then is passed.

    Args:
        path: How it goes along its road.
        events: Its events (T,).
        roads: The roads.
        beside: Marks beside roads that are looked for; those that the run shows are found anyway.
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
    for mark in beside:
        if mark.road in (k, ANYWHERE) and mark not in shown:
            column = mark.column
            at = -1 if column < 0 else n if column == len(path.passed) else int(path.passed[column])
            out.append(Seen(mark, False, at))
    return out


def contrast(
    paths: Sequence[Path],
    events: Sequence[np.ndarray],
    successes: np.ndarray,
    failures: np.ndarray,
    roads: Sequence[Road],
) -> Contrast:
    """Return what tells successes from failures.

    Args:
        paths: How each kind of run goes along its road.
        events: Its events.
        successes: How many successes are of each kind (N,).
        failures: How many failures are.
        roads: The roads.

    Notes:
        A mark that s of S successes and f of F failures on its road show weighs
        b (ln((s + a q) / (S + a)) − ln((f + a r) / (F + a))) if it is shown, and the same of the
        others if not. q and r are the shares with which successes and failures show marks of this
        kind at all, and a = 2: with few runs a column weighs what columns do on average. b is the
        probability that the two shares differ, where one half is that they do beforehand and all
        shares are equally likely (`shares.differ`). Of events beside roads while a certain column
        is due, of which there are many kinds, only those count that tell by themselves.
    """
    counts: dict[Mark, np.ndarray] = {}
    on = np.zeros((2, len(roads)))
    for path, ids, good, bad in zip(paths, events, successes, failures, strict=True):
        if not (good or bad):
            continue
        on[:, path.road] += good, bad
        for seen in marks_of(path, ids, roads, ()):
            count = counts.setdefault(seen.mark, np.zeros(2))
            if seen.shown:
                count += good, bad
    marks = sorted(m for m, (s, f) in counts.items() if m.kind == "holds" or s + f >= 2)
    road = np.array([mark.road for mark in marks], int)
    on = np.hstack([on, on.sum(axis=1, keepdims=True)])  # the last: on any road
    n_s, n_f = on[0, road], on[1, road]
    good, bad = np.array([counts[mark] for mark in marks]).reshape(-1, 2).T
    p = fisher(good, n_s, bad, n_f)
    telling = _telling(p, least_p(good, n_s, bad, n_f))
    holds = np.array([mark.kind == "holds" for mark in marks], bool)
    keep = _kept(marks, p, telling)
    q, r = _shares(good, n_s, holds), _shares(bad, n_f, holds)
    yes = np.log((good + _PRIOR * q) / (n_s + _PRIOR)) - np.log((bad + _PRIOR * r) / (n_f + _PRIOR))
    no = np.log((n_s - good + _PRIOR * (1 - q)) / (n_s + _PRIOR)) - np.log(
        (n_f - bad + _PRIOR * (1 - r)) / (n_f + _PRIOR)
    )
    b = differ(good, n_s, bad, n_f) * ((n_s > 0) & (n_f > 0))  # one kind alone tells nothing
    arrays = (good, bad, n_s, n_f, p, telling, b * yes, b * no)
    return Contrast(
        tuple(mark for mark, kept in zip(marks, keep, strict=True) if kept),
        *(array[keep] for array in arrays),
    )


def _telling(p: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return which marks tell: false discoveries are counted among those that could be found."""
    could, out = least <= _RATE, np.zeros(len(p), bool)
    if could.any():
        out[could] = false_discovery_control(p[could]) <= _RATE
    return out


def _shares(shown: np.ndarray, n: np.ndarray, holds: np.ndarray) -> np.ndarray:
    """Return the share with which runs show marks of each one's kind."""
    out = np.full(len(shown), 0.5)
    for kind in (holds, ~holds):
        if n[kind].sum():
            out[kind] = shown[kind].sum() / n[kind].sum()
    return np.clip(out, *_BOUNDS)


def _kept(marks: Sequence[Mark], p: np.ndarray, telling: np.ndarray) -> np.ndarray:
    """Return which marks are kept: columns, and of each event beside roads what tells it best.

    That is that it happens where a certain column is due, if that tells as clearly as that it
    happens at all; else the latter, whether it tells or not.
    """
    values, tells = p.tolist(), telling.tolist()
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
    return out
