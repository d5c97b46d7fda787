"""The divergence table: where failed runs left the successes' road, grouped over runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from align_rudder.logs.divergence import GOES_ON, STOPS, Divergence, Place
from align_rudder.logs.shares import fisher_more, share_data

__all__ = ["Left", "divergence_table", "sentence"]


class Left(NamedTuple):
    """A kind of run, and where it left its road.

    Attributes:
        divergence: Where; None if it did not.
        successes: How many successes it is.
        failures: How many failures.
    """

    divergence: Divergence | None
    successes: int
    failures: int


def divergence_table(runs: Iterable[Left], symbols: Sequence[str]) -> list[dict[str, Any]]:
    """Return where failed runs left their road, what explains most failures first.

    Args:
        runs: The runs.
        symbols: The symbol of each event id.

    Returns:
        A row for each place that failures left at; see `report_data`. Rows are sorted by p of the
        one-sided Fisher test that no more failures than successes leave there.
    """
    runs = list(runs)
    n_s, n_f = sum(r.successes for r in runs), sum(r.failures for r in runs)
    places: dict[Place, list[Left]] = {}
    for run in runs:
        if run.divergence is not None:
            places.setdefault(run.divergence.place, []).append(run)
    rows = [_row(place, some, n_s, n_f, symbols) for place, some in places.items()]
    rows = [row for row in rows if row["failures"]["count"]]
    if rows:
        adjusted = false_discovery_control(np.clip([row["p"] for row in rows], 0, 1))
        for row, q in zip(rows, adjusted.tolist(), strict=True):
            row["q"] = q
    return sorted(
        rows,
        key=lambda r: (r["p"], not r["telling"], -r["failures"]["count"], r["road"], r["column"]),
    )


def _row(
    place: Place, runs: Sequence[Left], n_s: int, n_f: int, symbols: Sequence[str]
) -> dict[str, Any]:
    good, bad = sum(r.successes for r in runs), sum(r.failures for r in runs)
    found = [run.divergence for run in runs if run.divergence is not None]
    ways: Counter[int] = Counter()
    for run, one in zip(runs, found, strict=True):
        ways[one.instead] += run.failures
    return {
        "how": place.how,
        "road": place.road,
        "column": place.column,
        "symbol": place.event,
        "other": None if place.other < 0 else place.other,
        "failures": share_data(bad, n_f),
        "successes": share_data(good, n_s),
        "p": fisher_more(bad, n_f, good, n_s) if n_s and n_f else 1.0,
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
        "to_come": list(found[0].to_come),
        "says": sentence(place, bad, n_f, good, n_s, ways, symbols),
    }


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
    name = symbols[place.event]
    who = f"{bad:,} of {n_f:,} failures ({good:,} of {n_s:,} successes)"
    if place.how == "order":
        return f"{who} do {symbols[place.other]} before {name}"
    if place.how == "extra":
        if place.column < 0:
            return f"{who} do {name} beside the road"
        due = f"where {symbols[place.other]} is due" if place.other >= 0 else "at the end"
        return f"{who} do {name} {due}"
    if set(ways) == {STOPS}:
        return f"{who} stop before {name}"
    parts = []
    for way, n in sorted(ways.items(), key=lambda item: (-item[1], item[0]))[:3]:
        if n:
            told = {GOES_ON: "go on without it", STOPS: "stop"}.get(way)
            parts.append(f"{n:,} {told or f'do {symbols[way]} instead'}")
    return f"{who} leave out {name}" + (f": {', '.join(parts)}" if parts else "")
