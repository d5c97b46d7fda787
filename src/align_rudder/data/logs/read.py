"""`read_log`: files and folders of runs in any form."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from align_rudder.data.logs.chat import is_run, run_of
from align_rudder.data.logs.elements import LISTS, elements
from align_rudder.data.logs.outcomes import (
    Condition,
    condition,
    fields_said,
    has_field,
    not_told,
    with_outcome,
)
from align_rudder.data.logs.runs import Entry, LogOptions, Part, Run, RunLog
from align_rudder.data.logs.tables import check_columns, read_csv
from align_rudder.data.logs.xes import read_xes
from align_rudder.files import check_file, parse_json, read_text
from align_rudder.text import short

__all__ = ["ENDINGS", "read_log"]

ENDINGS = (".json", ".jsonl", ".traj", ".xes", ".xes.gz", ".csv")
"""Endings of files that hold logs."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_MOST_FILE, _MOST_LINE = 2**31, 2**28
_CUT = re.compile(r"\s*[\w.+-]{0,5}\s*")  # what may be left where a text ends too early
_SAID = 5  # lines of an error of many files
_END = 30  # characters of such an end


class _OursError(ValueError):
    """A file that this package wrote."""


def read_log(
    paths: Paths,
    success: str | Callable[[Run], bool | None] | None = None,
    group: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> RunLog:
    """Return the runs of a log.

    A file or run that cannot be read is named in `RunLog.faults`, and the others are read; it is an
    error if nothing can be. What was assumed is said in `RunLog.notes`. A file that is given twice
    is read once, and what this package itself wrote into a folder is passed over.

    Args:
        paths: A file, a folder of files, or several: chat messages with tool calls, in the form of
            OpenAI or Anthropic (.json with one run or a list, .jsonl with one a line), τ-bench
            results (.json), SWE-agent trajectories (.traj), XES (.xes, .xes.gz), CSV (.csv), and
            JSON lines of symbols (.jsonl).
        success: Which runs succeeded: a condition such as "reward >= 1" (see `condition`), or a
            function of a run; None for what the file says.
        group: The field that names the task; None for "task_id", "instance_id" or "group", "" for
            no tasks.
        columns: For CSV, which column is "case", "activity", "time" and "outcome"; "" as time for
            the order of the lines, "" as outcome for none. "dates" is "dmy" or "mdy" where dates
            do not begin with the year.

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
    check_columns(columns or {})
    given = _given(paths)
    all_ = Part([], [], [])
    files = _once([file for one in given for file in _files(Path(one))], all_.notes)
    for path, title in zip(files, _titles(files), strict=True):
        try:
            part = _part(path, title, columns)
            if not part.runs and not part.faults:
                raise ValueError("it holds no run")
        except _OursError as error:
            all_.notes.append(f"{path} is not read: {error}")
        except (ValueError, OSError) as error:
            said = str(error)
            all_.faults.append(said if str(path) in said else f"{path}: {said}")
        else:
            all_.runs.extend(part.runs)
            all_.faults.extend(f"{path}, {fault}" for fault in part.faults)
            all_.notes.extend(f"{path}: {note}" for note in part.notes)
    if not all_.runs:
        raise ValueError(f"no run could be read:{_numbered([*all_.faults, *all_.notes])}")
    runs = _with_outcomes(_named_apart(all_.runs), met, group, all_.faults)
    if met is None:
        all_.notes.extend(not_told(runs))
    kept = met.text if isinstance(met, Condition) else None
    options = LogOptions(kept, group, None if columns is None else dict(columns), callable(success))
    return RunLog(tuple(runs), tuple(all_.faults), tuple(all_.notes), options)


def _given(paths: Any) -> list[str | os.PathLike[str]]:
    """Return paths as a list; an error if there is none, or something else among them."""
    given: list[Any] = [paths]
    if isinstance(paths, Iterable) and not isinstance(paths, str | bytes | os.PathLike):
        given = list(paths)
    if not given:
        raise ValueError("no file was given; give files or folders of runs")
    for path in given:
        if not isinstance(path, str | os.PathLike):
            raise ValueError(
                f"paths: {short(repr(path), 60)} is no path; give a file or folder of runs, or "
                "several in a list"
            )
        if not os.fspath(path):
            raise ValueError("paths: one is empty; give a file or folder, '.' for this folder")
    return given


def _numbered(lines: Sequence[str]) -> str:
    r"""Return the first lines of several, each with its number; the only one without.

    Example:
        >>> _numbered(["a"]), _numbered(["a", "b"])
        ('\n  a', '\n  (1) a\n  (2) b')
    """
    if len(lines) == 1:
        return f"\n  {lines[0]}"
    said = "".join(f"\n  ({i}) {line}" for i, line in enumerate(lines[:_SAID], 1))
    return said + (f"\n  and {len(lines) - _SAID:,} more" if len(lines) > _SAID else "")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [check_file(path)]
    found = sorted(p for p in path.rglob("*") if p.name.lower().endswith(ENDINGS) and p.is_file())
    if not found:
        raise ValueError(f"{path} has no file that ends with {', '.join(ENDINGS)}")
    return found


def _once(paths: Iterable[Path], notes: list[str]) -> list[Path]:
    """Return paths without those that lead to the file of another, which are noted."""
    seen: dict[str, Path] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            notes.append(f"{path} is the same file as {seen[real]}, and is read once")
        seen.setdefault(real, path)
    return list(seen.values())


def _titles(paths: Sequence[Path]) -> list[str]:
    """Return the names of files, with as many folders before them as tell them apart.

    Example:
        >>> _titles([Path("a/r.json"), Path("b/r.json"), Path("b/s.json")])
        ['a/r.json', 'b/r.json', 's.json']
    """
    parts = [Path(os.path.abspath(path)).parts for path in paths]
    titles = [path.name for path in paths]
    for n in range(2, max(map(len, parts), default=0) + 1):
        count = Counter(titles)
        if len(count) == len(titles):
            break
        titles = [
            "/".join(own[-n:]) if count[title] > 1 else title
            for own, title in zip(parts, titles, strict=True)
        ]
    return titles


def _named_apart(runs: Iterable[Run]) -> list[Run]:
    """Return runs of which no two have the same name: the second of one name ends in (2)."""
    out, seen = [], Counter[str]()
    for run in runs:
        seen[run.name] += 1
        name = run.name
        while (n := seen[run.name]) > 1 and (name := f"{run.name} ({n})") in seen:
            seen[run.name] += 1
        if name != run.name:
            seen[name] += 1
        out.append(run if name == run.name else replace(run, name=name))
    return out


def _with_outcomes(
    runs: Sequence[Run],
    met: Callable[[Run], bool | None] | None,
    group: str | None,
    faults: list[str],
) -> list[Run]:
    """Return runs with outcomes and tasks; those of which none can be told are left out."""
    if group and not has_field(runs, group, own=False):
        raise ValueError(f"group={group!r}: no run has this field; there are: {fields_said(runs)}")
    if not isinstance(met, Condition):
        return [with_outcome(run, met, group) for run in runs]
    if not has_field(runs, met.field):
        raise ValueError(
            f"success={met.text!r}: no run has the field {met.field!r}; there are: "
            f"{fields_said(runs)}; and last, length and names, of the tools of a run"
        )
    out, told, first = [], False, ""
    for run in runs:
        try:
            one = with_outcome(run, met, group)
        except ValueError as error:
            first = first or str(error)
            faults.append(f"{run.name} is left out: {error}")
        else:
            out.append(one)
            told = told or one.success is not None
    if first and not told:
        raise ValueError(f"success={met.text!r} can be told of no run: {first}")
    return out


def _part(path: Path, title: str, columns: Mapping[str, str] | None) -> Part:
    name = path.name.lower()
    if name.endswith((".xes", ".xes.gz")):
        return read_xes(check_file(path), title)
    if name.endswith(".csv"):
        return read_csv(check_file(path), title, columns)
    if name.endswith((".json", ".traj")):
        return _json(path, title)
    if name.endswith(".jsonl"):
        return _lines(path, title)
    raise ValueError(f"{path} has an ending that is not known; {', '.join(ENDINGS)} are")


def _json(path: Path, title: str) -> Part:
    text = read_text(path, 2**30)
    value = _parsed(text)
    if isinstance(value, ValueError):
        each = _parsed_each(text)
        if each is None:
            raise value
        value = each
    _check_not_ours(value)
    if is_run(value):
        return Part([run_of(value, title)], [], [])
    if isinstance(value, dict):
        value = next((v for name in LISTS if isinstance(v := value.get(name), list)), None)
    if not isinstance(value, list) or not value:
        raise ValueError(
            "it holds no run: a list of messages, an object with one (messages, traj or "
            "trajectory), or a list of such objects is needed"
        )
    return _each(enumerate(value, 1), "run", title)


def _parsed_each(text: str) -> list[Any] | None:
    """Return the runs of a list that is refused as a whole, an error in the place of bad ones.

    None if there is no list, or if it is one run, of which a message is bad.
    """
    texts = elements(text)
    if texts is None:
        return None
    values = [_parsed(one) for one in texts]
    if any(isinstance(value, dict) and "role" in value for value in values):
        return None
    return values if any(isinstance(value, ValueError) for value in values) else None


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, or the error that says why it has none."""
    try:
        return parse_json(text, constants=True, halves=True)
    except json.JSONDecodeError as error:
        return ValueError(_in_words(text, error))
    except ValueError as error:
        return error


def _in_words(text: str, error: json.JSONDecodeError) -> str:
    """Return why a text is no JSON, and what to do.

    Example:
        >>> for text in ("", '{"messages": [{"ro', '["a"]["b"]', '["a" "b"]'):
        ...     try:
        ...         json.loads(text)
        ...     except json.JSONDecodeError as error:
        ...         print(_in_words(text, error))
        it is empty; write it again, with its runs
        it ends in the middle of '{"messages": [{"ro'; write it again, whole
        it holds more than one value; a file with one in each line is named .jsonl
        it is no JSON: Expecting ',' delimiter: line 1 column 6 (char 5)
    """
    if not text.strip():
        return "it is empty; write it again, with its runs"
    if error.msg == "Extra data":
        return "it holds more than one value; a file with one in each line is named .jsonl"
    if error.msg.startswith("Unterminated string") or _CUT.fullmatch(text, error.pos):
        end = text.rstrip()
        end = f"…{end[-_END:]}" if len(end) > _END else end
        return f"it ends in the middle of {short(repr(end), 2 * _END)}; write it again, whole"
    return f"it is no JSON: {error}"


def _lines(path: Path, title: str) -> Part:
    def values() -> Iterator[tuple[int, Any]]:
        data = check_file(path, _MOST_FILE).read_bytes()
        for number, line in enumerate(data.split(b"\n"), 1):
            if len(line) > _MOST_LINE:
                yield number, ValueError(f"it has {len(line):,} bytes; at most {_MOST_LINE:,} are")
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield number, ValueError(f"it is no text in UTF-8: {error.reason}")
                continue
            if text.strip():
                value = _parsed(text)
                yield number, value

    return _each(values(), "line", title)


def _each(values: Iterable[tuple[int, Any]], what: str, title: str) -> Part:
    part = Part([], [], [])
    for number, value in values:
        try:
            if isinstance(value, ValueError):
                raise value
            _check_not_ours(value)
            part.runs.append(_run(value, f"{title}: {number}"))
        except _OursError:
            raise
        except ValueError as error:
            part.faults.append(f"{what} {number}: {error}")
    return part


def _check_not_ours(value: Any) -> None:
    """Refuse what this package wrote: reports, models and turn rewards of logs."""
    if not isinstance(value, dict):
        return
    if value.get("kind") == "align-rudder-log-model":
        raise _OursError("it is a model of a log, which `align-rudder logs --model` wrote")
    if {"divergences", "roads", "symbols", "runs"} <= value.keys():
        raise _OursError("it is what `align-rudder logs --json` wrote, no log")
    if value.keys() == {"run", "group", "return", "rewards"}:
        raise _OursError("it holds turn rewards, which `align-rudder redistribute` wrote")


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
