"""Tables of the recipes: episodes to the first success, and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from align_rudder.studies.recipes.methods import METHODS, OURS, OURS_UNTUNED
from align_rudder.studies.recipes.settings import AXES, Axis, Setting
from align_rudder.studies.statistics import Summary, compare
from align_rudder.studies.tables import Table

__all__ = ["report_tables"]

Found = dict[Setting, Summary[Setting]]


def report_tables(found: Sequence[Summary[Setting]], cap: int) -> list[Table]:
    """Return two tables for each axis of the study that has trials: episodes, and p-values."""
    cells = {summary.setting: summary for summary in found}
    tables = []
    for axis in AXES:
        methods = [name for name in axis.methods if any(s.method == name for s in cells)]
        tasks = [
            task
            for task in axis.tasks
            if any(replace(task, method=name) in cells for name in methods)
        ]
        if tasks:
            tables.append(_episodes(axis, tasks, methods, cells, cap))
            compared = _p_values(axis, tasks, methods, cells)
            tables += [] if compared is None else [compared]
    return tables


def _heads(axis: Axis, tasks: Sequence[Setting]) -> list[str]:
    if axis.name in ("detours", "missing"):
        return [f"{getattr(task, axis.name):.0%}" for task in tasks]
    return [str(getattr(task, axis.name)) for task in tasks]


def _episodes(
    axis: Axis, tasks: Sequence[Setting], methods: Sequence[str], cells: Found, cap: int
) -> Table:
    rows, trials = [], 0
    for name in methods:
        row = [METHODS[name].label, METHODS[name].knows]
        for task in tasks:
            summary = cells.get(replace(task, method=name))
            row.append("–" if summary is None else _cell(summary))
            trials = max(trials, summary.trials if summary else 0)
        rows.append(row)
    title = f"Episodes to a greedy success: median / mean, solved; {axis.title}"
    title += f" ({trials} task{'s' * (trials != 1)})"
    note = f"a trial without success in {cap:,} episodes counts as {cap:,}"
    return Table(title, ["method", "is given", *_heads(axis, tasks)], rows, (note,))


def _cell(summary: Summary[Setting]) -> str:
    solved = summary.trials - summary.capped
    return f"{summary.median:,.0f} / {summary.mean:,.0f}, {solved}/{summary.trials}"


def _p_values(
    axis: Axis, tasks: Sequence[Setting], methods: Sequence[str], cells: Found
) -> Table | None:
    rows = []
    for ours, name in product((OURS, OURS_UNTUNED), methods):
        if name in (ours, OURS):
            continue
        pairs = [
            (cells.get(replace(task, method=ours)), cells.get(replace(task, method=name)))
            for task in tasks
        ]
        if any(a and b for a, b in pairs):
            values = [f"{compare(a, b):.1e}" if a and b else "–" for a, b in pairs]
            rows.append([METHODS[ours].label, METHODS[name].label, *values])
    if not rows:
        return None
    note = "one-sided Mann–Whitney U, unpaired: the first of the two needs fewer episodes"
    header = ["method", "against", *_heads(axis, tasks)]
    return Table(f"p-values; {axis.title}", header, rows, (note,))
