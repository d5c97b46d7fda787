"""Hints: what else could become an event, where nothing tells, and what comes in one run only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from align_rudder.data.logs import Run
from align_rudder.data.logs.events import value_text
from align_rudder.text import short

__all__ = ["lone_symbols", "repeating_arguments", "what_else"]

_MOST = 3
"""No more arguments than this are named."""
_LONE = 0.8  # so many symbols of one run only are nearly all
_RUNS = 10  # of fewer runs nothing is said of that
_NAME = re.compile(r"[\w.-]+")  # an argument that can be written after tool:


def what_else(runs: Sequence[Run]) -> str:
    """Return what else could become an event, where the names of the tools do not tell.

    Example:
        >>> from align_rudder.data.logs import Entry
        >>> entry = Entry("call", "book", 0, {"cabin": "economy"}, error=True)
        >>> other = Entry("call", "book", 0, {"cabin": "business"})
        >>> print(what_else([Run("a", (entry,)), Run("b", (other,)), Run("c", (entry, other))]))
        nothing tells with --events tool; --events tool:cabin adds arguments, --events tool+error
            whether results are errors
    """
    ways = []
    if names := repeating_arguments(runs):
        ways.append(f"--events tool:{','.join(names)} adds arguments")
    entries = [entry for run in runs for entry in run.entries]
    if any(entry.error for entry in entries):
        ways.append("--events tool+error whether results are errors")
    if any(entry.kind == "message" for entry in entries):
        ways.append(f"--events tool+message {'' if ways else 'adds '}plain messages")
    return f"nothing tells with --events tool; {', '.join(ways)}" if ways else ""


def repeating_arguments(runs: Iterable[Run]) -> list[str]:
    """Return the arguments of calls whose values differ, and come again in other runs the most."""
    seen: dict[str, Counter[str]] = {}
    for run in runs:
        calls = (entry for entry in run.entries if entry.kind == "call")
        pairs = {(name, value_text(v)) for call in calls for name, v in call.arguments.items()}
        for name, value in pairs:
            seen.setdefault(name, Counter())[value] += 1
    share = {
        name: len(values) / values.total()
        for name, values in seen.items()
        if len(values) > 1 and _NAME.fullmatch(name)
    }
    often = [name for name in share if share[name] <= 0.5]
    return sorted(often, key=lambda name: (share[name], name))[:_MOST]


def lone_symbols(
    runs: Sequence[tuple[Iterable[Hashable], int]], events: str, arguments: bool
) -> str:
    """Return what to say where nearly all symbols come in one run only; "" where they do not.

    Args:
        runs: The symbols of each kind of run, and how many runs it is.
        events: What became an event.
        arguments: Whether arguments are part of it.

    Example:
        >>> print(lone_symbols([({f"deploy(n={i})"}, 1) for i in range(12)], "tool:n", True))
        12 of 12 symbols come in one run only, so that runs can hardly be compared: leave out
            arguments whose values seldom come again (--events tool:n)
    """
    count = Counter[Hashable]()
    for symbols, n in runs:
        count.update(dict.fromkeys(symbols, n))
    lone = sum(n == 1 for n in count.values())
    if sum(n for _, n in runs) < _RUNS or lone < _LONE * max(len(count), 1):
        return ""
    what = "arguments whose values seldom" if arguments else "what does not"
    return (
        f"{lone:,} of {len(count):,} symbols come in one run only, so that runs can hardly be "
        f"compared: leave out {what} come again (--events {short(events, 60)})"
    )
