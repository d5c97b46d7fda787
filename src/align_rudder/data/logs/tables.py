"""Logs as CSV: a line for each event, with columns for case, activity, time and outcome."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from align_rudder.data.logs.runs import Entry, Run
from align_rudder.files import read_text

__all__ = ["COLUMNS", "read_csv"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "case": ("case", "case_id", "caseid", "case id", "case:concept:name", "run", "run_id"),
    "activity": ("activity", "concept:name", "event", "action", "name"),
    "time": ("time", "timestamp", "time:timestamp", "start_time", "date"),
    "outcome": ("outcome", "success", "case:outcome", "result", "reward"),
}
"""Names that columns have if nobody says which they are; upper and lower case are the same."""


def read_csv(path: Path, columns: Mapping[str, str] | None = None) -> list[Run]:
    """Return the cases of a CSV file as runs, events in the order of their times.

    Args:
        path: The file; comma, semicolon or tab separate its columns.
        columns: Which column is "case", "activity", "time" and "outcome"; see `COLUMNS`. Without
            times the order is that of the lines.
    """
    text = read_text(path)
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        at = _columns(names, dict(columns or {}))
        cases: dict[str, list[tuple[Any, int, list[str]]]] = {}
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            line = rows.line_num
            if len(row) != len(names):
                raise ValueError(f"line {line} has {len(row)} columns; the first has {len(names)}")
            when = _time(row[at["time"]], line) if "time" in at else 0.0
            cases.setdefault(row[at["case"]], []).append((when, line, row))
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num} is damaged: {error}") from error
    if not cases:
        raise ValueError("it holds no event: a line with the names of columns, then one for each")
    return [_run(path, case, events, names, at) for case, events in cases.items()]


def _columns(names: list[str], given: dict[str, str]) -> dict[str, int]:
    if unknown := given.keys() - COLUMNS.keys():
        raise ValueError(f"columns={sorted(unknown)} are not known; {', '.join(COLUMNS)} are")
    lower, at = [name.lower() for name in names], {}
    for what, usual in COLUMNS.items():
        if what in given:
            if given[what] not in names:
                raise ValueError(f"it has no column {given[what]!r}; it has {', '.join(names)}")
            at[what] = names.index(given[what])
        elif found := [name for name in usual if name in lower]:
            at[what] = lower.index(found[0])
        elif what in ("case", "activity"):
            raise ValueError(
                f"none of its columns {', '.join(names)[:200]} is known as the {what}; say which "
                f"one is (columns={{{what!r}: …}}, or --column {what}=NAME)"
            )
    return at


def _time(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"line {line}: the time {text!r} cannot be read; write 2024-05-20T13:45:00, or a number"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _run(
    path: Path,
    case: str,
    events: list[tuple[Any, int, list[str]]],
    names: list[str],
    at: Mapping[str, int],
) -> Run:
    rows = [row for *_, row in sorted(events, key=lambda event: event[:2])]
    entries = tuple(
        Entry("activity", row[at["activity"]], i, dict(zip(names, row, strict=True)))
        for i, row in enumerate(rows)
    )
    # What is the same in all lines of a case is said of the case.
    same = {
        name: values.pop()
        for j, name in enumerate(names)
        if len(values := {row[j] for row in rows}) == 1
    }
    if "outcome" in at:
        said = {row[at["outcome"]] for row in rows} - {""}
        if len(said) > 1:
            raise ValueError(f"case {case!r} has several outcomes: {', '.join(sorted(said))[:80]}")
        if said:
            same["outcome"] = _value(said.pop())
    return Run(f"{path.name}: {case}", entries, fields=same)


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
