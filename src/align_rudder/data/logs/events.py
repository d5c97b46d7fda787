"""What becomes an event: tool names, with arguments, with errors, plain messages, or a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from align_rudder.data.logs.runs import Entry, Run
from align_rudder.text import short

__all__ = ["arguments_of", "check_arguments", "event_chooser", "value_text"]

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
        return _checked(events)
    tools, arguments, messages, errors = _parts(events)

    def choose(entry: Entry) -> Hashable | None:
        if entry.kind == "message":
            return f"{entry.name} says" if messages else None
        if not tools:
            return None
        given = [f"{a}={value_text(entry.arguments[a])}" for a in arguments if a in entry.arguments]
        symbol = f"{entry.name}({', '.join(given)})" if given else entry.name
        return f"{symbol}, error" if errors and entry.error else symbol

    return choose


def check_arguments(events: str | Callable[[Entry], Hashable | None], runs: Iterable[Run]) -> None:
    """Refuse a choice of events that names an argument which no tool of some runs has.

    Args:
        events: The choice; see `event_chooser`.
        runs: The runs.
    """
    if not (wanted := arguments_of(events)):
        return
    there: dict[str, None] = {}
    for run in runs:
        for entry in run.entries:
            there |= dict.fromkeys(entry.arguments)
    if missing := [name for name in wanted if name not in there]:
        said = ", ".join(short(name, 40) for name in list(there)[:20]) or "none at all"
        raise ValueError(
            f"events={events!r}: no tool or activity has the argument {missing[0]!r}; there are: "
            f"{said}"
        )


def arguments_of(events: str | Callable[[Entry], Hashable | None]) -> tuple[str, ...]:
    """Return the arguments that a choice of events names.

    Example:
        >>> arguments_of("tool:cabin,seats+error"), arguments_of("tool")
        (('cabin', 'seats'), ())
    """
    return () if callable(events) else _parts(events)[1]


def _parts(events: str) -> tuple[bool, tuple[str, ...], bool, bool]:
    """Return what a choice asks for: tools, with which arguments, messages, errors."""
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
    return tools, arguments, messages, errors


def _checked(
    function: Callable[[Entry], Hashable | None],
) -> Callable[[Entry], Hashable | None]:
    """Return a function of an entry that says what is wrong with a symbol that is none."""

    def choose(entry: Entry) -> Hashable | None:
        symbol = function(entry)
        try:
            hash(symbol)
        except TypeError:
            raise ValueError(
                f"the function of events returned {short(repr(symbol), 60)} "
                f"({type(symbol).__name__}) for {entry.kind} {short(entry.name, 40)}; a symbol is "
                "needed that can be hashed (a text, a number, or a tuple of them), or None for no "
                "event"
            ) from None
        return symbol

    return choose


def value_text(value: Any) -> str:
    """Return a value of an argument as it stands in a symbol."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
