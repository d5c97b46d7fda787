"""What the top of the page says in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from align_rudder.logs.shares import share_data

__all__ = ["finding_data"]

_FAULTS = 3


def finding_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return {state, headline, more, succeeded, warnings: [{what, do}], left_out, notes} of a log.

    state: "good" if something tells why runs fail, "fair" if not, "bad" if nothing can be said.
    left_out are the reasons of the files that are not among the warnings, notes what was assumed.
    """
    n, faults = data["counts"], data["faults"]
    state, headline, more = _said(data)
    return {
        "state": state,
        "headline": headline,
        "more": more,
        "succeeded": share_data(n["successes"], n["successes"] + n["failures"]),
        "warnings": list(_warnings(data)),
        "left_out": faults[_FAULTS:],
        "notes": data["notes"],
    }


def _said(data: Mapping[str, Any]) -> tuple[str, str, str]:
    n, table = data["counts"], data["divergences"]
    if not n["runs"]:
        return "bad", "There is no run to look at", ""
    if not n["failures"]:
        outcome = "No run failed" if n["successes"] else "No run has an outcome"
        return "fair", f"{outcome}: there is nothing to explain", ""
    if not n["successes"]:
        return "bad", "No run succeeded: there is nothing to hold the failures against", ""
    if not table:
        return "fair", "No failure leaves the road of the successes", _explained(data)
    within = data["within"] is not None
    if not table[0]["telling"]:
        if within and not data["within"]["tasks"]:
            return "fair", "No task has runs of both outcomes to compare", _explained(data)
        more = f"What comes nearest, and may be chance: {table[0]['says']}. {_explained(data)}"
        where = "within a task " if within else ""
        return "fair", f"Nothing tells {where}beyond chance why runs fail", f"{more}{_tasks(data)}"
    headline, rest = _split(data, table[0])
    where = "Within tasks, " if within else ""
    return "good", f"{where}{headline}", f"{rest}{_explained(data)}{_tasks(data)}"


def _tasks(data: Mapping[str, Any]) -> str:
    """Return what goes with tasks and not with failing within one, as a sentence."""
    if not data["between"]:
        return ""
    names = [data["symbols"][one["symbol"]] for one in data["between"][:3]]
    more = f" and {len(data['between']) - 3} more" if len(data["between"]) > 3 else ""
    return (
        f" With tasks that fail or succeed, but not, beyond chance, with failing within a task, "
        f"{'goes' if len(data['between']) == 1 else 'go'} {', '.join(names)}{more}."
    )


def _split(data: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a row says, and as sentences by themselves what is done instead."""
    head, sign, rest = row["says"].partition(f" leave out {data['symbols'][row['symbol']]}: ")
    if not sign:
        return row["says"], ""
    return head + sign.removesuffix(": "), f"{rest}. "


def _explained(data: Mapping[str, Any]) -> str:
    told = data["explained"]
    return (
        f"Of the failures {told['telling']:,} leave the road of the successes where it tells, "
        f"{told['other']:,} elsewhere, and {told['none']:,} do what successes do"
        + (f"; {told['alone']:,} are of tasks without a success." if told["alone"] else ".")
    )


def _warnings(data: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    n = data["counts"]
    for fault in data["faults"][:_FAULTS]:
        yield {"what": f"Left out: {fault}", "do": ""}
    if data["within"] is None and n["groups"]:
        yield {
            "what": "Most tasks have one run: runs are compared over all tasks.",
            "do": "What tells may go with hard tasks; several runs of a task would show it.",
        }
    elif data["within"] is not None and data["within"]["alone"]:
        within = data["within"]
        yield {
            "what": f"{within['alone']:,} failures are of {within['alone_tasks']:,} "
            f"task{'s' * (within['alone_tasks'] != 1)} without any success.",
            "do": "They are held against other tasks' roads, and nothing is told from them.",
        }
    for hint in data["hints"]:
        what, _, do = hint.partition("; ")
        yield {"what": f"{what[0].upper()}{what[1:]}.", "do": f"{do}." if do else ""}
    if data["uneven"] and not data["options"]["per_group"]:
        names = ", ".join(data["symbols"][one["symbol"]] for one in data["uneven"][:3])
        yield {
            "what": f"What makes runs fail differs between tasks: {names}.",
            "do": "--per-task looks at each task by itself.",
        }
    if n["without_events"]:
        yield {
            "what": f"{n['without_events']:,} of {n['runs']:,} runs have no event.",
            "do": f"--events chooses what becomes one; here it was {data['options']['events']}.",
        }
    if n["unknown"]:
        yield {
            "what": f"{n['unknown']:,} of {n['runs']:,} runs have no outcome.",
            "do": "They are shown and not counted; --success 'reward >= 1' says who succeeded.",
        }
