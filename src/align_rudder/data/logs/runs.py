"""Runs of a log: what happened, what was said, how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Entry", "LogOptions", "Message", "Part", "Run", "RunLog"]


@dataclass(frozen=True)
class Message:
    """A message of a conversation.

    Attributes:
        role: Whose it is: "system", "user", "assistant" or "tool".
        text: What it says.
    """

    role: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One thing that happened in a run.

    Attributes:
        kind: "call" of a tool, "message" that calls none, or "activity" of a process.
        name: Of the tool or activity; of a message its role.
        message: Index of the message it is part of; of an activity its own index.
        arguments: What the tool was given, or what else is known of the activity.
        error: Whether the result was an error; None if there is none to see.
        result: What the tool answered.
    """

    kind: str
    name: str
    message: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: bool | None = None
    result: str = ""


@dataclass(frozen=True)
class Run:
    """One run of an agent, or one case of a process.

    Attributes:
        name: What it is called: the file and, where one file has several, which of them.
        entries: What happened, in order.
        messages: What was said; empty for a process.
        fields: What else the file says of the run, by dotted names; what is written as a number is
            one.
        success: Whether it succeeded; None if that is not known.
        ret: Its return; of a run without one 1 for a success and 0 for a failure.
        group: The task, where runs of several are in one log.
    """

    name: str
    entries: tuple[Entry, ...]
    messages: tuple[Message, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    success: bool | None = None
    ret: float | None = None
    group: str | None = None

    @property
    def turns(self) -> list[int]:
        """Indices of the assistant's messages; of a process those of its activities."""
        if not self.messages:
            return [entry.message for entry in self.entries]
        return [i for i, message in enumerate(self.messages) if message.role == "assistant"]

    def events(
        self, chooser: Callable[[Entry], Hashable | None]
    ) -> tuple[list[Hashable], list[int]]:
        """Return the symbols of the run, and for each the index of its entry."""
        chosen = ((chooser(entry), i) for i, entry in enumerate(self.entries))
        pairs = [(symbol, i) for symbol, i in chosen if symbol is not None]
        return [symbol for symbol, _ in pairs], [i for _, i in pairs]


class Part(NamedTuple):
    """What one file holds.

    Attributes:
        runs: Its runs, of which nothing is known yet but what it says.
        faults: What of it could not be read, and why, a line for each run.
        notes: What was assumed of it.
    """

    runs: list[Run]
    faults: list[str]
    notes: list[str]


@dataclass(frozen=True)
class LogOptions:
    """How a log was read, so that another can be read in the same way.

    Attributes:
        success: The condition of success; None for what the file says.
        group: The field that names the task; None for the usual names, "" for no tasks.
        columns: For CSV, which column is what.
        function: Whether a function said which runs succeeded; it is not kept.
    """

    success: str | None = None
    group: str | None = None
    columns: Mapping[str, str] | None = None
    function: bool = False


@dataclass(frozen=True)
class RunLog:
    """The runs of one or several files.

    Attributes:
        runs: The runs; no two from files have the same name.
        faults: What could not be read, and why, a line for each file or run.
        notes: What was assumed, such as which columns of a CSV are what, a line each.
        options: How it was read.
    """

    runs: tuple[Run, ...]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    options: LogOptions = LogOptions()

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def successes(self) -> list[Run]:
        """The runs that succeeded."""
        return [run for run in self.runs if run.success is True]

    @property
    def failures(self) -> list[Run]:
        """The runs that failed."""
        return [run for run in self.runs if run.success is False]

    @property
    def unknown(self) -> list[Run]:
        """The runs of which it is not known how they ended."""
        return [run for run in self.runs if run.success is None]

    def __repr__(self) -> str:
        groups = len({run.group for run in self.runs} - {None})
        parts = [
            f"{len(self.runs)} runs",
            f"{len(self.successes)} succeeded",
            f"{len(self.failures)} failed",
        ]
        parts += [f"{len(self.unknown)} without outcome"] if self.unknown else []
        parts += [f"{groups} groups"] if groups > 1 else []
        parts += [f"{len(self.faults)} could not be read"] if self.faults else []
        return f"RunLog({', '.join(parts)})"

    def names(self) -> Counter[str]:
        """Return how often each tool, activity or role comes."""
        return Counter(entry.name for run in self.runs for entry in run.entries)
