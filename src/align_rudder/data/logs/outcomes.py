"""Which runs succeeded: what the file says of it, or a condition like 'reward >= 1'."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from align_rudder.data.logs.runs import Run

__all__ = ["condition", "with_outcome"]

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(
    r"^\s*(?P<field>.+?)\s*(?P<how>>=|<=|==|!=|>(?!=)|<(?!=)|\bhas\b)\s*(?P<value>.+?)\s*$"
)
_SUCCESS, _RETURN = ("success", "resolved", "outcome"), ("reward", "return", "score")
_YES, _NO = (
    {"true", "yes", "success", "succeeded", "pass", "passed"},
    {*("false", "no", "failure", "failed", "fail")},
)


def condition(text: str) -> Callable[[Run], bool | None]:
    """Return a function that says whether a run meets a condition, None if it lacks the field.

    Args:
        text: FIELD >= VALUE, also <=, ==, !=, >, <; or FIELD alone for one that must be true.
            Fields are those of the file, by dotted names; "last" is the last tool or activity,
            "length" the number of entries, and `names has VALUE` asks whether one came at all.

    Example:
        >>> met = condition("info.score > 0.5")
        >>> met(Run("a", (), fields={"info.score": 0.7})), met(Run("b", ()))
        (True, None)
    """
    found = _CONDITION.match(text)
    if found is None:
        if not text.strip() or any(sign in text for sign in "<>=!"):
            raise ValueError(
                f"the condition {text!r} cannot be read; write FIELD >= VALUE (or <=, ==, !=, >, "
                "<), FIELD has VALUE, or the name of a field that is true for successes"
            )
        name, how, wanted = text.strip(), "==", True
    else:
        name, how, wanted = found["field"], found["how"], _value(found["value"])

    def met(run: Run) -> bool | None:
        there = _field(run, name)
        if there is None:
            return None
        if how == "has":
            return str(wanted) in there if isinstance(there, list | str) else None
        if wanted is True and found is None:
            return _truth(there)
        if isinstance(wanted, str) != isinstance(there, str):
            there, asked = str(there), str(wanted)
            return _COMPARED[how](there, asked) if how in ("==", "!=") else None
        try:
            return bool(_COMPARED[how](there, wanted))
        except TypeError:
            return None

    return met


def with_outcome(run: Run, met: Callable[[Run], bool | None] | None, group: str | None) -> Run:
    """Return a run with success, return and group, as far as they are known.

    Args:
        run: The run.
        met: The condition of success; None for what the file itself says: a field "success",
            "resolved" or "outcome" that is true or false, or a "reward", "return" or "score" of
            exactly 0 or 1.
        group: The field that names the task; None for "task_id", "instance_id" or "group".
    """
    ret = next((r for name in _RETURN if (r := _number(run.fields.get(name))) is not None), None)
    if met is not None:
        success = met(run)
    else:
        said = (run.fields[name] for name in _SUCCESS if name in run.fields)
        success = next((t for value in said if (t := _truth(value)) is not None), None)
        if success is None and ret in (0.0, 1.0):
            success = ret == 1.0
    names = ("task_id", "instance_id", "group") if group is None else (group,)
    task = next((run.fields[name] for name in names if name in run.fields), None)
    if ret is None and success is not None:
        ret = float(success)
    return replace(run, success=success, ret=ret, group=None if task is None else str(task))


def _field(run: Run, name: str) -> Any:
    if name in run.fields:
        return run.fields[name]
    names = [entry.name for entry in run.entries]
    own: Mapping[str, Any] = {
        "last": names[-1] if names else None,
        "length": len(names),
        "names": names,
    }
    return own.get(name)


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _YES else False if word in _NO else None
    return bool(value) if value in (0, 1) else None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _value(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false", "null") else text)
    except ValueError:
        return text
