"""What a model finds in a log, as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from align_rudder.text import short

__all__ = ["as_text"]

_BAR = 10


def as_text(
    data: Mapping[str, Any], *, roads: int = 3, rows: int = 12, groups: bool = False
) -> str:
    """Return the data of a report as text: counts, funnels, and where failures leave.

    Args:
        data: From `report_data`.
        roads: The most roads shown.
        rows: The most rows of the divergence table.
        groups: Whether to add the first row of the table of each task.
    """
    parts = ["\n".join(_counts(data))]
    shown = [road for road in data["roads"] if road["columns"]]
    parts += ["\n".join(_road(data, road, k)) for k, road in enumerate(shown[:roads], 1)]
    if len(shown) > roads:
        parts.append(f"… and {len(shown) - roads} more roads, of fewer successes each")
    if not shown:
        parts.append("the successes have no order of steps in common beyond chance")
    if beside := _beside(data):
        parts.append("\n".join(beside))
    parts.append("\n".join(_table(data, rows)))
    if groups and data["groups"]:
        parts.append("\n".join(_groups(data)))
    return "\n\n".join(parts)


def _counts(data: Mapping[str, Any]) -> Iterator[str]:
    n = data["counts"]
    tasks = f" of {n['groups']:,} tasks" if n["groups"] else ""
    line = f"{n['runs']:,} runs{tasks}: {n['successes']:,} succeeded, {n['failures']:,} failed"
    line += f", {n['unknown']:,} without outcome" if n["unknown"] else ""
    yield f"{line}; {n['distinct']:,} distinct sequences of {len(data['symbols']) - 1} symbols"
    if n["without_events"]:
        yield f"{n['without_events']:,} runs have no event ({data['options']['events']})"
    for fault in data["faults"][:3]:
        yield f"left out: {short(fault, 200)}"
    if len(data["faults"]) > 3:
        yield f"… and {len(data['faults']) - 3} more that could not be read"


def _road(data: Mapping[str, Any], road: Mapping[str, Any], k: int) -> Iterator[str]:
    task = f" of task {road['group']}" if road["group"] is not None else ""
    yield f"road {k}{task}: {road['successes']:,} successes, {road['failures']:,} failures on it"
    funnel = {step["column"]: step for step in road["funnel"]}
    columns = [(j, c) for j, c in enumerate(road["columns"]) if j in funnel or c["telling"]]
    width = max([len("step"), *(len(_name(data, c["symbol"])) for _, c in columns)])
    head = f"  {'step':{width}}  {'successes get here':24}  {'failures get here':24}"
    yield (head + "  do it").rstrip()
    for j, column in columns:
        cells = [_bar(funnel[j][who]) if j in funnel else "" for who in ("successes", "failures")]
        did = f"{_percent(column['successes'])} : {_percent(column['failures'])}"
        tells = f"  tells, p = {_p(column['p'])}" if column["telling"] else ""
        line = f"  {_name(data, column['symbol']):{width}}  {cells[0]:24}  {cells[1]:24}  {did}"
        yield (line + tells).rstrip()


def _beside(data: Mapping[str, Any]) -> list[str]:
    """Return a table of the events beside roads that tell."""
    seen, lines = set(), []
    for k, road in enumerate(data["roads"], 1):
        for one in road["beside"]:
            key = one["symbol"], one["column"], None if one["column"] is None else k
            if key in seen:
                continue
            seen.add(key)
            j = one["column"]
            where = "anywhere"
            if j is not None:
                columns = road["columns"]
                due = _name(data, columns[j]["symbol"]) if j < len(columns) else "the end"
                where = f"road {k}, where {due} is due"
            lines.append(
                (
                    one["p"],
                    f"  {_percent(one['failures']):>9}  {_percent(one['successes']):>9}  "
                    f"{_p(one['p']):>8}  {_name(data, one['symbol'])} ({where})",
                )
            )
    if not lines:
        return []
    head = f"  {'failures':>9}  {'successes':>9}  {'p':>8}  beside the roads"
    return [head, *(line for _, line in sorted(lines)[:10])]


def _table(data: Mapping[str, Any], most: int) -> Iterator[str]:
    table, told = data["divergences"], data["explained"]
    if not table:
        yield "no failure leaves the road of the successes"
        return
    yield f"  {'failures':>9}  {'successes':>9}  {'p':>8}  where failures leave the road first"
    for row in table[:most]:
        mark = "" if row["q"] <= 0.05 else "  (may be chance)"
        yield (
            f"  {row['failures']['count']:>9,}  {row['successes']['count']:>9,}  "
            f"{_p(row['p']):>8}  {row['says'].split(') ', 1)[1]}{mark}"
        )
    if len(table) > most:
        yield f"  … and {len(table) - most} more places"
    yield (
        f"  of the failures {told['telling']:,} leave where it tells, {told['other']:,} elsewhere, "
        f"{told['none']:,} do what successes do"
    )


def _groups(data: Mapping[str, Any]) -> Iterator[str]:
    name = [short(group["name"], 30) for group in data["groups"]]
    width = max(len("task"), *map(len, name))
    yield f"  {'task':{width}}  {'runs':>5}  {'succeeded':>9}  where most of its failures leave"
    for title, group in zip(name, data["groups"], strict=True):
        rows = group["divergences"]
        says = max(rows, key=lambda r: r["failures"]["count"])["says"] if rows else ""
        share = _percent(group["successes"])
        yield f"  {title:{width}}  {group['runs']:>5,}  {share:>9}  {says}".rstrip()


def _name(data: Mapping[str, Any], symbol: int) -> str:
    return short(data["symbols"][symbol], 40)


def _percent(share: Mapping[str, Any]) -> str:
    return "–" if share["share"] is None else f"{share['share']:.0%}"


def _bar(share: Mapping[str, Any]) -> str:
    if share["share"] is None:
        return "–"
    return f"{share['share']:>4.0%} {'█' * round(_BAR * share['share']):{_BAR}} {share['count']:,}"


def _p(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"
