"""Where the command line takes demonstrations from: npz, Minari, FASTA, JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from align_rudder.episodes import Episode, load_episodes
from align_rudder.text import read_fasta

__all__ = ["Source", "load_source"]


@dataclass(frozen=True)
class Source:
    """Either episodes, or sequences of symbols with their returns."""

    episodes: list[Episode] | None = None
    sequences: list[list[Hashable]] | None = None
    returns: list[float] | None = None

    def __len__(self) -> int:
        return len(self.episodes if self.episodes is not None else self.sequences or [])


def load_source(source: str) -> Source:
    """Read demonstrations or episodes.

    Args:
        source: A file of episodes (.npz), of sequences as FASTA (.fasta, .fa; one letter an event,
            "return=0.5" in a name gives its return) or JSON lines (.jsonl; a list of symbols or
            {"events": […], "return": 1.0} a line), the folder of a Minari dataset, or the id of a
            local one.
    """
    if not source:
        raise ValueError("the name of the file is empty; give a file or the id of a dataset")
    path = Path(source)
    readers = {".npz": _npz, ".fasta": _fasta, ".fa": _fasta, ".jsonl": _jsonl}
    reader = readers.get(path.suffix.lower())
    if reader is not None:
        if not path.is_file():
            raise ValueError(f"there is no file {source}" + ": it is a folder" * path.is_dir())
        return reader(path)
    if path.is_file():
        raise ValueError(
            f"{source} has an ending that is not known; .npz (episodes), .fasta or .fa, and .jsonl "
            "(sequences of symbols) are"
        )
    from align_rudder.data.minari import load_minari

    return Source(episodes=load_minari(path if path.is_dir() else source))


def _npz(path: Path) -> Source:
    return Source(episodes=load_episodes(path))


def _fasta(path: Path) -> Source:
    names, rows = read_fasta(path)
    returns = []
    for name in names:
        found = re.search(r"\breturn=(\S+)", name)
        try:
            returns.append(float(found.group(1)) if found else 1.0)
        except ValueError as error:
            raise ValueError(f"{path}: the return in '>{name}' is not a number") from error
    return Source(sequences=[list(row.replace("-", "")) for row in rows], returns=returns)


def _jsonl(path: Path) -> Source:
    sequences, returns = [], []
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}") from error
        if isinstance(value, dict):
            if not isinstance(value.get("events"), list):
                raise ValueError(f'{path}, line {number} needs "events": [ … ], got {line[:60]}')
            events, ret = value["events"], value.get("return", 1.0)
        else:
            events, ret = value, 1.0
        if not isinstance(events, list):
            raise ValueError(f"{path}, line {number} is not a list of symbols: {line[:60]}")
        if isinstance(ret, bool) or not isinstance(ret, (int, float)) or not np.isfinite(ret):
            raise ValueError(f"{path}, line {number}: the return {ret!r} is not a finite number")
        sequences.append([_symbol(e) for e in events])
        returns.append(float(ret))
    if not sequences:
        raise ValueError(f"{path} holds no sequence; one JSON list of symbols a line is needed")
    return Source(sequences=sequences, returns=returns)


def _symbol(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_symbol(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _symbol(v)) for k, v in sorted(value.items()))
    return value
