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
    if data["between"]:
        parts.append("\n".join(_between(data)))
    parts.append("\n".join(_table(data, rows)))
    parts += data["hints"]
    if data["uneven"] and not data["options"]["per_group"]:
        parts.append(_uneven(data))
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
    if within := data["within"]:
        yield (
            f"compared within tasks: {within['tasks']:,} have both outcomes, with "
            f"{within['successes']:,} successes and {within['failures']:,} failures"
        )
        if within["alone"]:
            tasks = f"{within['alone_tasks']:,} task{'s' * (within['alone_tasks'] != 1)}"
            yield (
                f"{within['alone']:,} failures are of {tasks} "
                "without any success: they are held against other tasks' roads, and tell nothing"
            )
    elif n["groups"]:
        yield "compared over all tasks: most have one run, so that nothing is tested within tasks"
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
    head = f"  {'step':{width}}  {'successes: this or later':24}  {'failures: this or later':24}"
    yield (head + "  do it").rstrip()
    for j, column in columns:
        cells = [_bar(funnel[j][who]) if j in funnel else "" for who in ("successes", "failures")]
        did = f"{_percent(column['successes'])} : {_percent(column['failures'])}"
        tells = f"  tells, {_p(column['p'], 'p ')}" if column["telling"] else ""
        line = f"  {_name(data, column['symbol']):{width}}  {cells[0]:24}  {cells[1]:24}  {did}"
        yield (line + tells).rstrip()


def _beside(data: Mapping[str, Any]) -> list[str]:
    """Return a table of what tells that is no column: events beside roads, and how often."""
    lines = {}
    for k, road in enumerate(data["roads"], 1):
        for one in road["beside"]:
            name, j, columns = _name(data, one["symbol"]), one["column"], road["columns"]
            if j is None:
                all_ = one["at_all"]
                did = f"{_percent(all_['failures'])} : {_percent(all_['successes'])}"
                said = f"{name}, where their road has none ({did} do it at all)"
            else:
                due = _name(data, columns[j]["symbol"]) if j < len(columns) else "the end"
                said = f"{name}, on road {k} where {due} is due"
            lines[said] = one
    for one in data["often"]:
        times = f"more than {one['more_than']:,} times" if one["more_than"] else "at all"
        lines[f"{_name(data, one['symbol'])} {times}"] = one
    rows = [
        (
            one["p"],
            f"  {_percent(one['failures']):>9}  {_percent(one['successes']):>9}  "
            f"{_p(one['p']):>8}  {said}",
        )
        for said, one in lines.items()
    ]
    head = (
        f"  {'failures':>9}  {'successes':>9}  {'p':>8}  do what tells, beside the steps of roads"
    )
    return [head, *(line for _, line in sorted(rows)[:10])] if rows else []


def _between(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of what goes with tasks that fail, but not with failing within a task."""
    yield (
        f"  {'failures':>9}  {'successes':>9}  {'p':>8}  {'within tasks':>13}  {'p':>8}  "
        "go with tasks that fail or succeed; not, beyond chance, with failing within a task"
    )
    for one in data["between"][:8]:
        within = f"{_percent(one['within']['failures'])} : {_percent(one['within']['successes'])}"
        yield (
            f"  {_percent(one['failures']):>9}  {_percent(one['successes']):>9}  "
            f"{_p(one['p_all']):>8}  {within:>13}  {_p(one['p']):>8}  {_name(data, one['symbol'])}"
        )


def _uneven(data: Mapping[str, Any]) -> str:
    names = [_name(data, one["symbol"]) for one in data["uneven"][:3]]
    return (
        f"{', '.join(names)}: this makes runs of some tasks fail and not of others; --per-task "
        "looks at each task by itself"
    )


def _table(data: Mapping[str, Any], most: int) -> Iterator[str]:
    table, told = data["divergences"], data["explained"]
    if not table:
        yield "no failure leaves the road of the successes"
        return
    within = f"  {'within tasks':>13}" if data["within"] else ""
    yield (
        f"  {'failures':>9}  {'successes':>9}{within}  {'p':>8}  "
        "where failures leave the road first"
    )
    for row in table[:most]:
        mark = "" if row["telling"] else "  (may be chance)"
        if row["within"]:
            both = f"{row['within']['failures']['count']} : {row['within']['successes']['count']}"
            within = f"  {both:>13}"
        yield (
            f"  {row['failures']['count']:>9,}  {row['successes']['count']:>9,}{within}  "
            f"{_p(row['p']):>8}  {row['says'].split(') ', 1)[1]}{mark}"
        )
    if len(table) > most:
        yield f"  … and {len(table) - most} more places"
    alone = f", {told['alone']:,} are of tasks without a success" if told["alone"] else ""
    yield (
        f"  of the failures {told['telling']:,} leave where it tells, {told['other']:,} elsewhere, "
        f"{told['none']:,} do what successes do{alone}"
    )


def _groups(data: Mapping[str, Any]) -> Iterator[str]:
    name = [short(group["name"], 30) for group in data["groups"]]
    width = max(len("task"), *map(len, name))
    yield f"  {'task':{width}}  {'runs':>5}  {'succeeded':>9}  where most of its failures leave"
    for title, group in zip(name, data["groups"], strict=True):
        rows = group["divergences"]
        says = max(rows, key=lambda r: r["failures"]["count"])["says"] if rows else ""
        if says and not group["successes"]["count"]:
            says += " (no success of this task: held against others' roads)"
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


def _p(p: float, name: str = "") -> str:
    """Return p in words, after its name if there is one.

    Example:
        >>> _p(0.03), _p(0.03, "p "), _p(1e-9, "p ")
        ('0.03', 'p = 0.03', 'p < 0.0001')
    """
    return f"{name}< 0.0001" if p < 1e-4 else f"{name}{'= ' if name else ''}{p:.2g}"
