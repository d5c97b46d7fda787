"""The divergence table: where failed runs left the successes' road, grouped over runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from align_rudder.logs.divergence import GOES_ON, STOPS, Divergence, Place
from align_rudder.logs.shares import share_data
from align_rudder.logs.within import Tables, exact_test

__all__ = ["Left", "divergence_table", "row_key", "sentence"]

_SURE = 0.05


class Left(NamedTuple):
    """A kind of run, and where it left its road.

    Attributes:
        divergence: Where; None if it did not.
        successes: How many successes it is.
        failures: How many failures.
        task: A number from 0 on for its task; the same for all to compare all.
    """

    divergence: Divergence | None
    successes: int
    failures: int
    task: int = 0


def row_key(left: Divergence) -> tuple[str, int, int, bool]:
    """Return what runs share that are in one row: what they do, on whichever road, and if it tells.

    Example:
        >>> one = Divergence(Place("leaves", 0, 3, 7), 5, -1, True, (), 0)
        >>> row_key(one) == row_key(one._replace(place=Place("leaves", 2, 0, 7), cause=1))
        True
    """
    return left.place.how, left.place.event, left.place.other, left.cause >= 0


def divergence_table(
    runs: Iterable[Left], symbols: Sequence[str], within: bool = False
) -> list[dict[str, Any]]:
    """Return where failed runs left their road, what explains most failures first.

    Args:
        runs: The runs.
        symbols: The symbol of each event id.
        within: Whether runs are compared within their tasks.

    Returns:
        A row for each thing that failures do, on whichever road; see `report_data`. What tells
        comes first, then what more failures do than would if they did it as often as successes.
    """
    runs = list(runs)
    n_tasks = 1 + max((run.task for run in runs), default=0)
    n = np.zeros((2, n_tasks))
    places: dict[tuple[str, int, int, bool], list[Left]] = {}
    for run in runs:
        n[:, run.task] += run.successes, run.failures
        if run.divergence is not None:
            places.setdefault(row_key(run.divergence), []).append(run)
    rows = [_row(some, n, symbols, within) for some in places.values()]
    rows = [row for row in rows if row["failures"]["count"]]
    if rows:
        adjusted = false_discovery_control(np.clip([row["p"] for row in rows], 0, 1))
        for row, q in zip(rows, adjusted.tolist(), strict=True):
            row["q"] = q
            row["telling"] = row["telling"] and q <= _SURE
    return sorted(
        rows,
        key=lambda r: (
            *(not r["telling"], -r["excess"], r["p"], -r["failures"]["count"]),
            *(r["road"], r["column"], r["symbol"]),
        ),
    )


def _row(
    runs: Sequence[Left], n: np.ndarray, symbols: Sequence[str], within: bool
) -> dict[str, Any]:
    shown = np.zeros_like(n)
    for run in runs:
        shown[:, run.task] += run.successes, run.failures
    tables = Tables(*(part[None, :] for part in (shown[0], n[0], shown[1], n[1])))
    mixed = tables.mixed[0]
    k, n_s, j, n_f = (int((part[0] * mixed).sum()) for part in tables)
    all_k, all_n, all_j, all_m = (int(part.sum()) for part in tables)
    found = [run.divergence for run in runs if run.divergence is not None]
    ways: Counter[int] = Counter()
    counted: Counter[int] = Counter()  # of the failures that the sentence counts
    for run, one in zip(runs, found, strict=True):
        ways[one.instead] += run.failures
        counted[one.instead] += run.failures * int(mixed[run.task] or not within)
    parts = _parts(runs)
    place = found[0].place if len(parts) == 1 else found[0].place._replace(road=-1, column=-1)
    said = (j, n_f, k, n_s) if within else (all_j, all_m, all_k, all_n)
    return {
        "how": place.how,
        "road": place.road,
        "column": place.column,
        "symbol": place.event,
        "other": None if place.other < 0 else place.other,
        "failures": share_data(all_j, all_m),
        "successes": share_data(all_k, all_n),
        "within": {"failures": share_data(j, n_f), "successes": share_data(k, n_s)}
        if within
        else None,
        "excess": round(float(tables.excess[0]), 4),
        "cause": found[0].cause >= 0,
        "p": float(exact_test(tables).more[0]) if n_s and n_f else 1.0,
        "telling": any(one.telling for one in found),
        "instead": [
            {
                "way": {GOES_ON: "goes on", STOPS: "stops"}.get(way, "event"),
                "symbol": way if way >= 0 else None,
                "failures": n,
            }
            for way, n in sorted(ways.items(), key=lambda item: (-item[1], item[0]))
            if n
        ],
        "to_come": list(found[0].to_come) if len(parts) == 1 else [],
        "parts": parts,
        "says": sentence(place, *said, counted, symbols),
    }


def _parts(runs: Iterable[Left]) -> list[dict[str, Any]]:
    """Return the places of a row, those that most failures leave at first."""
    counts: dict[tuple[int, int], list[int]] = {}
    for run in runs:
        if run.divergence is not None:
            place = run.divergence.place
            one = counts.setdefault((place.road, place.column), [0, 0])
            one[0] += run.successes
            one[1] += run.failures
    return [
        {"road": road, "column": column, "failures": bad, "successes": good}
        for (road, column), (good, bad) in sorted(counts.items(), key=lambda c: (-c[1][1], c[0]))
    ]


def sentence(
    place: Place,
    bad: int,
    n_f: int,
    good: int,
    n_s: int,
    ways: Counter[int],
    symbols: Sequence[str],
) -> str:
    """Return a row of the table as one would say it.

    Example:
        >>> ways = Counter({1: 2, STOPS: 1})
        >>> sentence(Place("leaves", 0, 1, 0), 3, 4, 0, 5, ways, ["send", "ask"])
        '3 of 4 failures (0 of 5 successes) leave out send: 2 do ask instead, 1 stop'
    """
    return f"{bad:,} of {n_f:,} failures ({good:,} of {n_s:,} successes) " + _does(
        place, ways, symbols
    )


def _does(place: Place, ways: Counter[int], symbols: Sequence[str]) -> str:
    name = symbols[place.event]
    times = f"{place.other:,} time{'s' * (place.other != 1)}"
    if place.how == "order":
        return f"do {symbols[place.other]} before {name}"
    if place.how == "often":
        return f"do {name} more than {times}"
    if place.how == "seldom":
        return f"do {name} fewer than {times}"
    if place.how == "does":
        return f"do {name}, wherever it comes"
    if place.how == "beside":
        return f"do {name} where their road has none"
    if place.how == "after":
        return f"do {name} directly after {symbols[place.other]}"
    if place.how == "apart":
        after = _ways(ways, {GOES_ON: "begin with it"}, "do it after {}", symbols)
        return f"do {name}, but never directly after {symbols[place.other]}{after}"
    if place.how == "last":
        return f"end with {name}"
    if place.how == "extra":
        due = f"where {symbols[place.other]} is due" if place.other >= 0 else "at the end"
        return f"do {name} {due}"
    ways = +ways
    if set(ways) == {STOPS}:
        return f"stop before {name}"
    said = {GOES_ON: "go on without it", STOPS: "stop"}
    return f"leave out {name}{_ways(ways, said, 'do {} instead', symbols)}"


def _ways(ways: Counter[int], said: Mapping[int, str], event: str, symbols: Sequence[str]) -> str:
    """Return what most runs do, after a colon; nothing if there are none.

    Args:
        ways: How many do what: an event, or `GOES_ON` or `STOPS`.
        said: What to say of the last two.
        event: What to say of an event.
        symbols: The symbol of each event id.
    """
    most = sorted((+ways).items(), key=lambda item: (-item[1], item[0]))[:3]
    parts = [f"{n:,} {said.get(way) or event.format(symbols[way])}" for way, n in most]
    return f": {', '.join(parts)}" if parts else ""
