"""XES (IEEE 1849), also gzipped: read as a stream, without entities."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any
from xml.parsers import expat

from align_rudder.data.logs.lifecycle import happened
from align_rudder.data.logs.runs import Entry, Part, Run

__all__ = ["read_xes"]

_CHUNK, _MOST = 2**20, 2**34
_ONE = 2**24  # bytes of one element
_FREE, _RATIO = 2**28, 200  # what is longer than that must not be packed more tightly than this
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

    def __init__(self, title: str) -> None:
        self.title, self.part = title, Part([], [], [])
        self.path: list[str] = []
        self.traces = 0
        self.trace: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.fault = ""
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
            self.trace, self.events, self.fault = {}, [], ""
            self.traces += 1
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
            line, given_value = self.parser.CurrentLineNumber, given.get("value")
            self.fault = self.fault or f"line {line}: {given_value!r} is no {tag} ({given['key']})"

    def end(self, tag: str) -> None:
        if self.path == ["log", "trace"]:
            self.keep_trace()
        self.path.pop()

    def keep_trace(self) -> None:
        name = str(self.trace.get("concept:name", self.traces))
        nameless = [i for i, event in enumerate(self.events, 1) if "concept:name" not in event]
        if nameless:
            self.fault = self.fault or f"event {nameless[0]} has no concept:name"
        if self.fault:
            self.part.faults.append(f"trace {name!r} is left out: {self.fault}")
            return
        events = [self.events[i] for i in happened(self.events)]
        entries = tuple(
            Entry("activity", str(event["concept:name"]), i, event)
            for i, event in enumerate(events)
        )
        self.part.runs.append(Run(f"{self.title}: {name}", entries, fields=self.trace))


def read_xes(path: Path, title: str) -> Part:
    """Return the traces of an XES file as runs.

    Attributes of a trace are its fields. Where `lifecycle:transition` says how far an activity has
    come, its completion is the event, or its beginning if it never completes; see `happened`. A
    trace with an event without name, or with a value that is not of its kind, is left out. Of a
    damaged file the traces before the damage are read.

    Args:
        path: The file.
        title: What names of runs begin with.
    """
    reader, read = _Reader(title), 0
    gzipped = path.suffix.lower() == ".gz"
    most = min(max(_FREE, _RATIO * path.stat().st_size), _MOST) if gzipped else _MOST
    try:
        with gzip.open(path, "rb") if gzipped else open(path, "rb") as file:
            while chunk := file.read1(_CHUNK):  # what is left of a damaged file, too
                read += len(chunk)
                if read > most:
                    raise ValueError(f"it holds more than {most:,} bytes; {_advice(most)}")
                reader.parser.Parse(chunk, False)
                if read - reader.parser.CurrentByteIndex > _ONE + _CHUNK:
                    line = reader.parser.CurrentLineNumber
                    raise ValueError(
                        f"line {line} has an element of more than {_ONE:,} bytes; shorten it"
                    )
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        if not reader.part.runs:
            raise ValueError(f"it is damaged or no XES: {error}") from error
        lost = reader.traces + ("trace" not in reader.path)
        reader.part.faults.append(
            f"what follows trace {lost - 1} is lost, as it is damaged: {error}; write it again, "
            "whole"
        )
    return reader.part


def _advice(most: int) -> str:
    packed = f"which is more than {_RATIO} times its size; unpack it with gzip, or split it"
    return "split it" if most == _MOST else packed
