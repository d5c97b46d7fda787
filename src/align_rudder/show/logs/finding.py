"""What the top of the page says in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from align_rudder.logs.shares import share_data

__all__ = ["finding_data"]

_SURE = 0.05
_FAULTS = 3


def finding_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return {state, headline, more, succeeded, warnings: [{what, do}], left_out} of a log.

    state: "good" if something tells why runs fail, "fair" if not, "bad" if nothing can be said.
    left_out are the reasons of the files that are not among the warnings.
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
    if table[0]["q"] > _SURE:
        more = f"What comes nearest, and may be chance: {table[0]['says']}. {_explained(data)}"
        return "fair", "Nothing tells beyond chance why runs fail", more
    headline, rest = _split(data, table[0])
    return "good", headline, f"{rest}{_explained(data)}"


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
        f"{told['other']:,} elsewhere, and {told['none']:,} do what successes do."
    )


def _warnings(data: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    n = data["counts"]
    for fault in data["faults"][:_FAULTS]:
        yield {"what": f"Left out: {fault}", "do": ""}
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
