"""XES (IEEE 1849), also gzipped: read as a stream, without entities."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any
from xml.parsers import expat

from align_rudder.data.logs.runs import Entry, Run

__all__ = ["read_xes"]

_CHUNK, _MOST = 2**20, 2**34
_KINDS = {
    "string": str,
    "date": str,
    "id": str,
    "int": int,
    "float": float,
    "boolean": lambda text: text.strip().lower() in ("true", "1"),
}


class _Reader:
    """Handlers of expat that collect traces; of attributes those of traces and events are kept."""

    def __init__(self, where: str) -> None:
        self.where, self.runs = where, []
        self.path: list[str] = []
        self.trace: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.EntityDeclHandler = self.entity
        self.parser.buffer_text = True

    def entity(self, name: str, *rest: Any) -> None:
        raise ValueError(f"it declares the entity {name!r}, which is not read; write it out")

    def start(self, tag: str, given: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self.path and tag != "log":
            raise ValueError(f"it begins with <{tag}>; an XES file begins with <log>")
        self.path.append(tag)
        if len(self.path) > 1000:
            raise ValueError("its elements are nested more than 1,000 deep")
        if self.path == ["log", "trace"]:
            self.trace, self.events = {}, []
        elif self.path == ["log", "trace", "event"]:
            self.events.append({})
        elif tag in _KINDS and "key" in given:
            if self.path[:-1] == ["log", "trace"]:
                self.keep(self.trace, tag, given)
            elif self.path[:-1] == ["log", "trace", "event"]:
                self.keep(self.events[-1], tag, given)

    def keep(self, fields: dict[str, Any], tag: str, given: dict[str, str]) -> None:
        try:
            fields[given["key"]] = _KINDS[tag](given.get("value", ""))
        except ValueError:
            line = self.parser.CurrentLineNumber
            raise ValueError(
                f"line {line}: {given.get('value')!r} is no {tag} ({given['key']})"
            ) from None

    def end(self, tag: str) -> None:
        if self.path == ["log", "trace"]:
            self.runs.append(self.run())
        self.path.pop()

    def run(self) -> Run:
        number = len(self.runs) + 1
        name = str(self.trace.get("concept:name", number))
        for i, event in enumerate(self.events):
            if "concept:name" not in event:
                raise ValueError(f"event {i + 1} of trace {name!r} has no concept:name")
        phases = {str(e.get("lifecycle:transition", "")).lower() for e in self.events}
        events = [
            event
            for event in self.events
            # Of an activity that begins and is completed, the completion is what happened.
            if "complete" not in phases
            or str(event.get("lifecycle:transition", "complete")).lower() == "complete"
        ]
        entries = tuple(
            Entry("activity", str(event["concept:name"]), i, event)
            for i, event in enumerate(events)
        )
        return Run(f"{self.where}: {name}", entries, fields=self.trace)


def read_xes(path: Path) -> list[Run]:
    """Return the traces of an XES file as runs.

    Attributes of a trace are its fields. Of events that begin and are completed, as
    `lifecycle:transition` says, the completed ones are taken.
    """
    reader, read = _Reader(path.name), 0
    gzipped = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rb") if gzipped else open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                read += len(chunk)
                if read > _MOST:
                    raise ValueError(f"it holds more than {_MOST:,} bytes; split it")
                reader.parser.Parse(chunk, False)
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"it is damaged or no XES: {error}") from error
    return reader.runs
