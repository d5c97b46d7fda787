"""Logs as CSV: a line for each event, with columns for case, activity, time and outcome."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from align_rudder.data.logs.runs import Entry, Part, Run
from align_rudder.data.logs.times import ORDERS, has_zone, seconds
from align_rudder.files import read_text
from align_rudder.text import short

__all__ = ["COLUMNS", "check_columns", "read_csv"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "case": ("case", "case_id", "caseid", "case id", "case:concept:name", "run", "run_id"),
    "activity": ("activity", "concept:name", "event", "action", "name"),
    "time": ("time", "timestamp", "time:timestamp", "start_time", "date"),
    "outcome": ("outcome", "success", "case:outcome", "result", "reward"),
}
"""Names that columns have if nobody says which they are; upper and lower case are the same."""

_MOST = 2**24  # characters of a field
_NEEDED = ("case", "activity")


@dataclass
class _Table:
    """The lines of a CSV by their cases.

    Attributes:
        names: The names of the columns.
        cases: The rows of each case, each with its time and its line.
        bad: What is wrong with lines: number, reason, and the case as far as it can be seen.
    """

    names: list[str]
    cases: dict[str, list[tuple[float, int, list[str]]]] = field(default_factory=dict)
    bad: list[tuple[int, str, str]] = field(default_factory=list)


def read_csv(path: Path, title: str, columns: Mapping[str, str] | None = None) -> Part:
    """Return the cases of a CSV file as runs, events in the order of their times.

    A case with a line that cannot be read is left out. Without being told, a column is taken as the
    outcome only if it is the same in all lines of each case.

    Args:
        path: The file; comma, semicolon or tab separate its columns.
        title: What names of runs begin with.
        columns: Which column is "case", "activity", "time" and "outcome"; see `COLUMNS`. "" as time
            is the order of the lines, as it is where there are none, "" as outcome is none.
            "dates" may be "dmy" or "mdy", for dates that do not begin with the year.
    """
    given = dict(columns or {})
    check_columns(given)
    lines = read_text(path).split("\n")
    separator = max(",;\t", key=lines[0].count)
    rows = _rows(lines, separator)
    names = [name.strip() for name in next(rows, (1, [], ""))[1]]
    at = _columns(names, given)
    table = _table(rows, names, at, given.get("dates"))
    if not table.cases and not table.bad:
        raise ValueError("it holds no event: a line with the names of columns, then one for each")
    faults = _faults(table)
    outcome, notes = _outcome(table, given)
    if guessed := [what for what in (*_NEEDED, "time") if what in at and what not in given]:
        said = ", ".join(f"{what} is the column {names[at[what]]!r}" for what in guessed)
        order = "" if "time" in at or "time" in given else ", events are in the order of the lines"
        notes.insert(0, f"by their names, {said}{order} (--column WHAT=NAME takes others)")
    if "time" in at:
        notes.extend(_mixed_zones(table, at["time"]))
    runs = []
    for case, events in table.cases.items():
        try:
            runs.append(_run(f"{title}: {case}", events, table.names, at["activity"], outcome))
        except ValueError as error:
            faults.append(f"case {case!r} is left out: {error}")
    return Part(runs, faults, notes)


def check_columns(given: Mapping[str, str]) -> None:
    """Refuse names of columns that are not known, and empty ones where one is needed."""
    if unknown := given.keys() - {*COLUMNS, "dates"}:
        known = ", ".join((*COLUMNS, "dates"))
        raise ValueError(f"columns={sorted(unknown)} are not known; {known} are")
    if empty := [what for what in _NEEDED if given.get(what) == ""]:
        raise ValueError(f"columns: {empty[0]} is empty; give the name of a column")
    if given.get("dates", ORDERS[0]) not in ORDERS:
        raise ValueError(f"columns: dates is {given['dates']!r}; {' or '.join(ORDERS)} is needed")


def _columns(names: list[str], given: Mapping[str, str]) -> dict[str, int]:
    """Return the columns of case, activity and time; that of the outcome is `_outcome`'s."""
    lower, at = [name.lower() for name in names], {}
    for what, usual in COLUMNS.items():
        if given.get(what):
            if given[what] not in names:
                raise ValueError(f"it has no column {given[what]!r}; it has {', '.join(names)}")
            at[what] = names.index(given[what])
        elif what in given or what == "outcome":
            continue
        elif found := [name for name in usual if name in lower]:
            at[what] = lower.index(found[0])
        elif what in _NEEDED:
            raise ValueError(
                f"none of its columns {', '.join(names)[:200]} is known as the {what}; say which "
                f"one is (columns={{{what!r}: …}}, or --column {what}=NAME)"
            )
    return at


@contextmanager
def _larger_fields() -> Iterator[None]:
    before = csv.field_size_limit(_MOST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield number and cells of each line, and what is wrong with its quotes."""
    rows = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    while True:
        start, why = rows.line_num + 1, ""
        try:
            with _larger_fields():
                row = next(rows, None)
        except csv.Error as error:
            if "field larger" in str(error):
                raise ValueError(
                    f"line {start} has a field of more than {_MOST:,} characters, or a quote that "
                    "is not closed; mend it"
                ) from None
            if rows.line_num >= len(lines):
                raise ValueError(f"line {start} has a quote that is not closed") from None
            row, why = (
                lines[rows.line_num - 1].split(separator),
                f"its quotes are damaged ({error})",
            )
        if row is None:
            return
        yield start, row, why


def _table(
    rows: Iterator[tuple[int, list[str], str]],
    names: list[str],
    at: Mapping[str, int],
    order: str | None,
) -> _Table:
    table = _Table(names)
    for line, row, why in rows:
        if not any(cell.strip() for cell in row):
            continue
        case = row[at["case"]].strip('"') if len(row) > at["case"] else ""
        try:
            when = _when(row, why, len(names), at, order)
        except ValueError as error:
            table.bad.append((line, str(error), case))
        else:
            table.cases.setdefault(row[at["case"]], []).append((when, line, row))
    return table


def _when(row: list[str], why: str, n: int, at: Mapping[str, int], order: str | None) -> float:
    """Return the time of a line; `ValueError` if it is no event."""
    if why:
        raise ValueError(why)
    if len(row) != n:
        raise ValueError(f"it has {len(row)} columns, the first line {n}")
    for what in _NEEDED:
        if not row[at[what]].strip():
            raise ValueError(f"its {what} is empty")
    return seconds(row[at["time"]], order) if "time" in at else 0.0


def _faults(table: _Table) -> list[str]:
    """Take the cases with bad lines out of a table, and return what to say of them."""
    faults, gone = [], set()
    for line, why, case in table.bad:
        if case in gone:
            continue
        if table.cases.pop(case, None) is None:
            faults.append(f"line {line} is left out: {why}")
        else:
            gone.add(case)
            faults.append(f"case {case!r} is left out, as of line {line}: {why}")
    return faults


def _mixed_zones(table: _Table, time: int) -> Iterator[str]:
    """Yield a note if cases have times with a zone and others without, which may be in any."""
    mixed = [
        case
        for case, events in table.cases.items()
        if {True, False} <= {has_zone(row[time]) for *_, row in events}
    ]
    if mixed:
        more = f", as have {len(mixed) - 1:,} more cases" if len(mixed) > 1 else ""
        yield (
            f"case {short(repr(mixed[0]), 40)} has times with a zone and times without{more}: "
            "those without are taken as UTC, which decides the order of its events"
        )


def _outcome(table: _Table, given: Mapping[str, str]) -> tuple[int | None, list[str]]:
    """Return the column of outcomes, and what to say of how it was found."""
    if "outcome" in given:
        return (table.names.index(given["outcome"]) if given["outcome"] else None), []
    lower, notes = [name.lower() for name in table.names], []
    for j in (lower.index(name) for name in COLUMNS["outcome"] if name in lower):
        name = table.names[j]
        said = {
            case: list(dict.fromkeys(row[j] for *_, row in events if row[j]))
            for case, events in table.cases.items()
        }
        several = next((case for case, values in said.items() if len(values) > 1), None)
        if several is not None:
            two = " and ".join(short(repr(value), 30) for value in said[several][:2])
            notes.append(
                f"the column {name!r} is not taken as the outcome, as case {several!r} has {two} "
                f"(--column outcome={name} takes it, and leaves such cases out)"
            )
        elif any(said.values()):
            notes.append(f"by its name, the outcome is the column {name!r}")
            return j, notes
    return None, notes


def _run(
    name: str,
    events: list[tuple[float, int, list[str]]],
    names: list[str],
    activity: int,
    outcome: int | None,
) -> Run:
    rows = [row for *_, row in sorted(events, key=lambda event: event[:2])]
    entries = tuple(
        Entry("activity", row[activity], i, dict(zip(names, row, strict=True)))
        for i, row in enumerate(rows)
    )
    # What is the same in all lines of a case is said of the case.
    same = {
        column: values.pop()
        for j, column in enumerate(names)
        if len(values := {row[j] for row in rows}) == 1
    }
    if outcome is not None and (said := {row[outcome] for row in rows} - {""}):
        if len(said) > 1:
            raise ValueError(f"it has several outcomes: {', '.join(sorted(said))[:80]}")
        same["outcome"] = said.pop()
    return Run(name, entries, fields=same)
