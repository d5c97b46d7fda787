"""Which runs succeeded: what the file says of it, a condition like 'reward >= 1', or a function."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from align_rudder.data.logs.runs import Run, RunLog
from align_rudder.text import short

__all__ = [
    "Condition",
    "as_written",
    "condition",
    "fields_said",
    "has_field",
    "judge",
    "not_told",
    "why_none_succeeded",
    "with_outcome",
]

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_TRUE = "is true"
_CONDITION = re.compile(
    r"\s*(?P<field>[^<>=!]*?[^<>=!\s])\s*"
    r"(?:(?P<how>>=|<=|==|!=|>|<)|\s(?P<has>has)\s)\s*"
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^<>=!\s'\"](?:[^<>=!]*[^<>=!\s])?)\s*"
)
_JOINED = re.compile(r"\s(and|or|not)\s|&&|\|\|")
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]{0,299})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)
_SUCCESS, _RETURN = ("success", "resolved", "outcome"), ("reward", "return", "score")
_TASK = ("task_id", "instance_id", "group")
_OWN = ("last", "length", "names")
_YES, _NO = (
    {"true", "yes", "success", "succeeded", "pass", "passed"},
    {*("false", "no", "failure", "failed", "fail")},
)
_FORM = (
    "write FIELD >= VALUE (or <=, ==, !=, >, <), FIELD has VALUE, or the name of a field that is "
    "true for successes"
)
_FIELDS, _VALUES = 10, 4  # of so many fields so many values are named in messages


@dataclass(frozen=True)
class Condition:
    """A condition of success; called with a run it says whether the run meets it.

    Attributes:
        text: As it was written.
        field: The field that it asks of.
        how: A sign of comparison, "has" or "is true".
        value: What the field is compared with.
    """

    text: str
    field: str
    how: str
    value: bool | float | str

    def __call__(self, run: Run) -> bool | None:
        """Return whether a run meets it, None if it lacks the field.

        `ValueError` where the two cannot be compared.
        """
        there, wanted = as_written(_field(run, self.field)), self.value
        if there is None:
            return None
        if isinstance(there, list) or self.how == "has":
            return self._has(there)
        if isinstance(wanted, bool):
            truth = _truth(there)
            if truth is None:
                raise ValueError(
                    f"{self._said(there)}, neither true nor false; {self._advice(there)}"
                )
            return _COMPARED["==" if self.how == _TRUE else self.how](truth, wanted)
        comparable = str if isinstance(wanted, str) else int | float
        if not isinstance(there, comparable) or there != there:
            raise ValueError(
                f"{self._said(there)}, and cannot be compared with {_kind(wanted)}; "
                + self._advice(there)
            )
        return _COMPARED[self.how](there, wanted)

    def _has(self, there: Any) -> bool:
        if self.how != "has" or isinstance(there, bool):
            form = "has VALUE" if isinstance(there, list) else "== true"
            raise ValueError(f"{self._said(there)}; write {self.field} {form}")
        return str(self.value) in (there if isinstance(there, list) else str(there))

    def _said(self, there: Any) -> str:
        return f"{self.field} is {_kind(there)}"

    def _advice(self, there: Any) -> str:
        if isinstance(there, bool):
            return f"write {self.field} == true"
        if not isinstance(there, int | float) or there != there:
            return f"write {self.field} == TEXT, or mend the value"
        return f"write {self.field} {'>=' if self.how == _TRUE else self.how} NUMBER, not in quotes"


def condition(text: str) -> Condition:
    """Return a condition that says whether a run succeeded, None of one that lacks the field.

    Args:
        text: FIELD >= VALUE, also <=, ==, !=, >, <; or FIELD alone for one that must be true; or
            FIELD has VALUE, for a text that must come in it. Fields are those of the file, by
            dotted names. Where the file has none of these names, "last" is the last tool or
            activity ("" in a run without any), "length" the number of tools or activities, and
            `names has VALUE` asks whether one came at all. Plain messages count in none of them.
            Numbers are compared with numbers and texts with texts; quotes make a text of a number.

    Example:
        >>> met = condition("info.score > 0.5")
        >>> met(Run("a", (), fields={"info.score": 0.7})), met(Run("b", ()))
        (True, None)
        >>> met(Run("c", (), fields={"info.score": "high"}))
        Traceback (most recent call last):
        ...
        ValueError: info.score is the text 'high', and cannot be compared with the number 0.5;
            write info.score == TEXT, or mend the value
    """
    if text.strip() and not re.search(r"[<>=!]|\shas(\s|$)", text):
        return Condition(text, text.strip(), _TRUE, True)
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(
            f"the condition {text!r} cannot be read; {_FORM}. A VALUE with signs of comparison "
            "stands in quotes"
        )
    how, given = found["how"] or "has", found["value"]
    quoted = given[0] in "'\""
    if not quoted and _JOINED.search(f" {given} "):
        raise ValueError(
            f"the condition {text!r} cannot be read: it is one comparison, without and, or, not; "
            f"{_FORM}. A VALUE that holds such a word stands in quotes; in Python, success may be "
            "a function of a run"
        )
    value: Any = given[1:-1] if quoted else given
    if not quoted and how != "has":
        value = {"true": True, "false": False}.get(given.lower(), as_written(given))
    if isinstance(value, bool) and how not in ("==", "!="):
        raise ValueError(f"the condition {text!r} cannot be read: {given} has no order; use ==")
    if not quoted and how != "has" and given.lower() == "null":
        raise ValueError(
            f"the condition {text!r} cannot be read: null is no value; runs without a field have "
            "no outcome. In Python, success may be a function of a run"
        )
    return Condition(text, found["field"], how, value)


def as_written(value: Any) -> Any:
    """Return a text that is written as a number as that number, and anything else as it is.

    Texts like "007" are names, not numbers.

    Example:
        >>> as_written("0.5"), as_written("12"), as_written("007"), as_written("nan")
        (0.5, 12, '007', 'nan')
    """
    if not isinstance(value, str) or not _NUMBER.fullmatch(text := value.strip()):
        return value
    if text.lstrip("+-").isdigit():
        return int(text)
    return number if math.isfinite(number := float(text)) else value


def judge(run: Run, success: Callable[[Run], bool | None]) -> bool | None:
    """Return what a function says of a run: whether it succeeded, None if that is not known.

    Args:
        run: The run.
        success: The function; True and False of NumPy will do, and 0 and 1.
    """
    said: Any = success(run)
    if said is None or isinstance(said, bool):
        return said
    if isinstance(said, np.bool_ | Real) and said in (0, 1):
        return bool(said)
    raise ValueError(
        f"the function of success returned {short(repr(said), 60)} ({type(said).__name__}) for "
        f"{run.name}; True, False, or None for a run of which it is not known are needed"
    )


def with_outcome(run: Run, met: Callable[[Run], bool | None] | None, group: str | None) -> Run:
    """Return a run with success, return and group, as far as they are known.

    Args:
        run: The run, whose fields are as the file has them; those written as numbers become so.
        met: What says who succeeded; None for what the file itself says: a field "success",
            "resolved" or "outcome" that is true or false, or a "reward", "return" or "score" of
            exactly 0 or 1.
        group: The field that names the task; None for "task_id", "instance_id" or "group", "" for
            no tasks.
    """
    # The task is named as it is written: 1.10 is another version than 1.1.
    names = _TASK if group is None else (group,)
    task = next((run.fields[name] for name in names if run.fields.get(name) is not None), None)
    fields = {name: as_written(value) for name, value in run.fields.items()}
    ret = next((r for name in _RETURN if (r := _number(fields.get(name))) is not None), None)
    run = replace(run, fields=fields, ret=ret, group=None if task is None else str(task))
    if met is not None:
        success = met(run) if isinstance(met, Condition) else judge(run, met)
    else:
        said = (run.fields[name] for name in _SUCCESS if name in run.fields)
        success = next((t for value in said if (t := _truth(value)) is not None), None)
        if success is None and ret in (0.0, 1.0):
            success = ret == 1.0
    if ret is None and success is not None:
        ret = float(success)
    return replace(run, success=success, ret=ret)


def not_told(runs: Sequence[Run]) -> list[str]:
    """Return a note for each field that should say who succeeded, and says something else.

    Args:
        runs: Runs with outcomes, from what the file says.

    Example:
        >>> rewards = [0.0, 0.5, 1.0, 0.5]
        >>> runs = [with_outcome(Run("", (), fields={"reward": r}), None, None) for r in rewards]
        >>> print(not_told(runs)[0])
        2 runs have reward 0.5, neither 0 nor 1: say which succeeded, such as --success
            'reward >= 1'
    """
    said: dict[str, list[Any]] = {}
    for run in runs:
        if run.success is None:
            names = (name for name in (*_SUCCESS, *_RETURN) if run.fields.get(name) is not None)
            if name := next(names, None):
                said.setdefault(name, []).append(run.fields[name])
    return [_neither(name, values, runs) for name, values in said.items()]


def _neither(name: str, values: Sequence[Any], runs: Sequence[Run]) -> str:
    """Return what to say of runs that have such values in a field of outcomes."""
    n = f"{len(values):,} run{'s have' if len(values) > 1 else ' has'}"
    advice = "say which succeeded, such as --success"
    numbers = [x for value in values if (x := _number(value)) is not None]
    if len(numbers) < len(values):
        there = _some(dict.fromkeys(short(value, 24) for value in values))
        return f"{n} {name} {there}, neither true nor false: {advice} '{name} == VALUE'"
    least, most = min(numbers), max(numbers)
    there = f"{least:g}" if least == most else f"from {least:g} to {most:g}"
    all_ = [x for run in runs if (x := _number(run.fields.get(name))) is not None]
    enough = "1" if 1.0 in all_ else repr(max(all_))
    return f"{n} {name} {there}, neither 0 nor 1: {advice} '{name} >= {enough}'"


def has_field(runs: Iterable[Run], name: str, own: bool = True) -> bool:
    """Return whether any of some runs has a field.

    Args:
        runs: The runs.
        name: The field.
        own: Whether "last", "length" and "names", which every run has, count.
    """
    return (own and name in _OWN) or any(run.fields.get(name) is not None for run in runs)


def fields_said(runs: Iterable[Run]) -> str:
    """Return the fields of some runs and some of their values, for messages.

    Example:
        >>> fields_said([Run("a", (), fields={"reward": 1.0}), Run("b", (), fields={"by": "me"})])
        'reward (1.0), by (me)'
    """
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in run.fields.items():
            values = found.setdefault(name, {})
            if value is not None and len(values) <= _VALUES:
                values[short(as_written(value), 16)] = None
    said = [f"{short(name, 40)} ({_some(values)})" for name, values in found.items()]
    more = [f"{len(said) - _FIELDS} more"] if len(said) > _FIELDS else []
    return ", ".join([*said[:_FIELDS], *more]) or "no fields"


def why_none_succeeded(log: RunLog) -> str:
    """Return what to say where no run of a log succeeded: what was asked, and what is there."""
    text = log.options.success
    if text is not None:
        asked = condition(text).field
        there = {short(value, 24): None for run in log.runs for value in _values(run, asked)}
        return f"{text!r} is true of none; {asked} there: {_some(there)}"
    if log.options.function or not log.unknown:
        return ""
    return f"the fields are {fields_said(log.runs)}; say success='FIELD == VALUE' (--success)"


def _values(run: Run, name: str) -> list[Any]:
    value = _field(run, name)
    return value if isinstance(value, list) else [] if value is None else [value]


def _some(values: Iterable[str]) -> str:
    names = list(values)
    return ", ".join([*names[:_VALUES], *(["…"] if len(names) > _VALUES else [])]) or "empty"


def _field(run: Run, name: str) -> Any:
    if run.fields.get(name) is not None:
        return run.fields[name]
    if name not in _OWN:
        return None
    names = [entry.name for entry in run.entries if entry.kind != "message"]
    if name == "last":
        return names[-1] if names else ""
    return len(names) if name == "length" else names


def _kind(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'}, {short(repr(value), 60)}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the {'text' if isinstance(value, str) else 'number'} {short(repr(value), 60)}"


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _YES else False if word in _NO else None
    return bool(value) if value in (0, 1) else None


def _number(value: Any) -> float | None:
    # The bounds also leave out nan, and whole numbers beyond what a float holds.
    return float(value) if isinstance(value, int | float) and -1e300 < value < 1e300 else None
