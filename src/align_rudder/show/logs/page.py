"""The page of a log as a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from align_rudder.files import write_text
from align_rudder.logs.report import VERSION
from align_rudder.show.logs.finding import finding_data
from align_rudder.show.logs.letters import initials
from align_rudder.show.page import event_data, html_page

__all__ = ["page", "page_data", "write_page"]

_LINKS = {
    "roads": "Roads",
    "divergences": "Divergences",
    "runs": "Runs",
    "detail": "One run",
}
_SCRIPTS = (
    "log",
    "finding",
    "meters",
    "roads",
    "divergences",
    "tasks",
    "filter",
    "cells",
    "runs",
    "pointing",
    "way",
    "detail",
    "main",
)


def write_page(
    path: str | os.PathLike[str], data: Mapping[str, Any], *, title: str = "Why runs fail"
) -> None:
    """Write what a model found in a log as one HTML file that needs no network.

    Args:
        path: The file.
        data: From `align_rudder.logs.report_data`.
        title: Title of the page.
    """
    write_text(path, page(page_data(data, title)))


def page_data(data: Mapping[str, Any], title: str = "Why runs fail") -> dict[str, Any]:
    """Return what the page is made of: the log, the finding at its top, colours of events."""
    if data.get("version") != VERSION:
        raise ValueError(
            f"data of version {data.get('version')!r} is not known; report_data of this release "
            f"makes version {VERSION}"
        )
    counts: Counter[int] = Counter()
    for run in data["runs"]:
        for event in run["events"]:
            counts[event] += run["count"]
    *known, unknown = data["symbols"]
    events = event_data(known, [counts[e] for e in range(len(known))])
    letters = initials([event["name"] for event in events], [counts[e] for e in range(len(known))])
    events = [{**event, "letter": x} for event, x in zip(events, letters, strict=True)]
    last = {"name": unknown, "letter": "?", "color": "#777777", "count": counts[len(known)]}
    return {
        "title": title,
        "version": version("align-rudder"),
        "finding": finding_data(data),
        "events": [*events, last],
        "log": dict(data),
    }


def page(data: Mapping[str, Any]) -> str:
    """Return the page that shows what `page_data` returned."""
    return html_page("align_rudder.show.logs", _LINKS, _SCRIPTS, data)
