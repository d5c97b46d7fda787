"""What becomes an event: tool names, with arguments, with errors, plain messages, or a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from align_rudder.data.logs.runs import Entry

__all__ = ["event_chooser"]

_FORM = (
    "give 'tool' (names of tools or activities), 'tool:ARGUMENT,ARGUMENT' (with these arguments), "
    "'message' (roles of plain messages) or several joined by +, with 'error' for whether the "
    "result was one: 'tool+error', 'tool:cabin+message'; or a function of an Entry"
)


def event_chooser(
    events: str | Callable[[Entry], Hashable | None] = "tool",
) -> Callable[[Entry], Hashable | None]:
    """Return a function from an entry to its symbol, None for none.

    Args:
        events: "tool": names of tools and activities. "tool:ARGUMENT,…": with these arguments.
            "message": the roles of messages that call no tool. Several are joined by "+", and
            "error" among them tells calls apart whose result was an error. Or such a function.

    Example:
        >>> choose = event_chooser("tool:cabin+error")
        >>> choose(Entry("call", "book", 3, {"cabin": "economy", "seats": 2}, error=True))
        'book(cabin=economy), error'
        >>> print(choose(Entry("message", "user", 4)))
        None
    """
    if callable(events):
        return events
    if not isinstance(events, str):
        raise ValueError(f"events={events!r} is no choice of events; {_FORM}")
    parts, arguments, messages, errors, tools = events.split("+"), (), False, False, False
    for part in (part.strip() for part in parts):
        head, colon, rest = part.partition(":")
        if head == "tool":
            tools, arguments = True, tuple(a.strip() for a in rest.split(",") if a.strip())
        elif part == "message":
            messages = True
        elif part == "error":
            errors = True
        if head not in ("tool", "message", "error") or (colon and not arguments):
            raise ValueError(f"events={events!r}: {part!r} is not known; {_FORM}")
    if not (tools or messages):
        raise ValueError(f"events={events!r} chooses nothing; {_FORM}")

    def choose(entry: Entry) -> Hashable | None:
        if entry.kind == "message":
            return f"{entry.name} says" if messages else None
        if not tools:
            return None
        given = [f"{a}={_said(entry.arguments[a])}" for a in arguments if a in entry.arguments]
        symbol = f"{entry.name}({', '.join(given)})" if given else entry.name
        return f"{symbol}, error" if errors and entry.error else symbol

    return choose


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
