"""`read_log`: files and folders of runs in any form."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from align_rudder.data.logs.chat import is_run, run_of
from align_rudder.data.logs.outcomes import condition, with_outcome
from align_rudder.data.logs.runs import Entry, Run, RunLog
from align_rudder.data.logs.tables import read_csv
from align_rudder.data.logs.xes import read_xes
from align_rudder.files import check_file, parse_json, read_text

__all__ = ["ENDINGS", "read_log"]

ENDINGS = (".json", ".jsonl", ".traj", ".xes", ".xes.gz", ".csv")
"""Endings of files that hold logs."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_log(
    paths: Paths,
    success: str | Callable[[Run], bool | None] | None = None,
    group: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> RunLog:
    """Return the runs of a log.

    A file or run that cannot be read is named in `RunLog.faults`, and the others are read; it is an
    error if nothing can be.

    Args:
        paths: A file, a folder of files, or several: chat messages with tool calls (.json with one
            run or a list, .jsonl with one a line), τ-bench results (.json), SWE-agent trajectories
            (.traj), XES (.xes, .xes.gz), CSV (.csv), and JSON lines of symbols (.jsonl).
        success: Which runs succeeded: a condition such as "reward >= 1" (see `condition`), or a
            function of a run; None for what the file says.
        group: The field that names the task; None for "task_id", "instance_id" or "group".
        columns: For CSV, which column is "case", "activity", "time" and "outcome".

    Example:
        >>> import json, tempfile
        >>> call = {"function": {"name": "search", "arguments": "{}"}, "id": "1"}
        >>> run = [
        ...     {"role": "user", "content": "hi"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "runs.json"
        ...     _ = path.write_text(json.dumps([{"messages": run, "reward": 1}]))
        ...     read_log(path)
        RunLog(1 runs, 1 succeeded, 0 failed)
    """
    met = condition(success) if isinstance(success, str) else success
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("no file was given; give files or folders of runs")
    runs, faults = [], []
    for path in (file for one in given for file in _files(Path(one))):
        try:
            for run in _runs(path, columns, faults):
                runs.append(with_outcome(run, met, group))
        except (ValueError, OSError) as error:
            said = str(error)
            faults.append(said if str(path) in said else f"{path}: {said}")
    if not runs:
        told = "".join(f"\n  {fault}" for fault in faults[:5])
        raise ValueError(f"no run could be read:{told or ' the files hold none'}")
    return RunLog(tuple(runs), tuple(faults))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [check_file(path)]
    found = sorted(p for p in path.rglob("*") if p.name.lower().endswith(ENDINGS) and p.is_file())
    if not found:
        raise ValueError(f"{path} has no file that ends with {', '.join(ENDINGS)}")
    return found


def _runs(path: Path, columns: Mapping[str, str] | None, faults: list[str]) -> Iterator[Run]:
    name = path.name.lower()
    if name.endswith((".xes", ".xes.gz")):
        yield from read_xes(check_file(path))
    elif name.endswith(".csv"):
        yield from read_csv(check_file(path), columns)
    elif name.endswith((".json", ".traj")):
        yield from _json(path, faults)
    elif name.endswith(".jsonl"):
        yield from _lines(path, faults)
    else:
        raise ValueError(f"{path} has an ending that is not known; {', '.join(ENDINGS)} are")


def _json(path: Path, faults: list[str]) -> Iterator[Run]:
    value = parse_json(read_text(path, 2**30), constants=True)
    if is_run(value):
        yield run_of(value, path.name)
        return
    if isinstance(value, dict):
        value = next((v for k in ("results", "runs") if isinstance(v := value.get(k), list)), None)
    if not isinstance(value, list) or not value:
        raise ValueError(
            "it holds no run: a list of messages, an object with one (messages, traj or "
            "trajectory), or a list of such objects is needed"
        )
    yield from _each(path, enumerate(value, 1), "run", faults)


def _lines(path: Path, faults: list[str]) -> Iterator[Run]:
    def values() -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(read_text(path).split("\n"), 1):
            if line.strip():
                try:
                    yield number, parse_json(line, constants=True)
                except ValueError as error:
                    faults.append(f"{path}, line {number} is not JSON: {error}")

    yield from _each(path, values(), "line", faults)


def _each(path: Path, values: Any, what: str, faults: list[str]) -> Iterator[Run]:
    for number, value in values:
        try:
            yield _run(value, f"{path.name}: {number}")
        except ValueError as error:
            faults.append(f"{path}, {what} {number}: {error}")


def _run(value: Any, name: str) -> Run:
    """Return a run of messages, or one of symbols."""
    if is_run(value):
        return run_of(value, name)
    fields: dict[str, Any] = {}
    if isinstance(value, dict):
        fields = {k: v for k, v in value.items() if k != "events"}
        value = value.get("events")
    if not isinstance(value, list):
        raise ValueError(
            'a run is needed: a list of messages or symbols, or an object with "messages" or '
            '"events"'
        )
    if any(isinstance(symbol, dict) and "role" in symbol for symbol in value):
        return run_of(value, name)  # which says what is wrong with the others
    if not value:
        raise ValueError("it is empty; a run has at least one message or symbol")
    entries = (Entry("activity", str(symbol), i) for i, symbol in enumerate(value))
    return Run(name, tuple(entries), fields=fields)
