"""Models of logs as JSON files."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from align_rudder.data.logs import LogOptions
from align_rudder.data.logs.outcomes import condition
from align_rudder.data.logs.tables import check_columns
from align_rudder.files import read_json, write_json
from align_rudder.logs.causes import Cause
from align_rudder.logs.chance import Chance
from align_rudder.logs.contrast import Contrast
from align_rudder.logs.marks import NEIGHBOURS, Mark
from align_rudder.logs.roads import Road

__all__ = ["KIND", "load", "save"]

KIND = "align-rudder-log-model"
_VERSION = 2
_COUNTS = ("successes", "failures", "n_successes", "n_failures")
_FLAGS = ("telling", "between", "uneven")
_ARRAYS = ("p", "p_all", *_FLAGS, "yes", "no", "rest_yes", "rest_no")
_REMEDY = "fit the log again (align-rudder logs RUNS --model FILE)"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; `ValueError` for one whose events are those of a function."""
    if not isinstance(model.events, str) or not all(isinstance(s, str) for s in model.symbols_):
        raise ValueError(
            "a model whose events come from a function cannot be saved, as the function cannot; "
            "choose events by a text, such as 'tool+error', or fit again where it is needed"
        )
    found = model.contrast_
    data = {
        "kind": KIND,
        "version": _VERSION,
        "parameters": model.get_params(deep=False),
        "log": asdict(model.options_),
        "symbols": list(model.symbols_),
        "roads": [
            {
                "events": road.events.tolist(),
                "shares": road.shares.tolist(),
                "members": int(road.members),
                "group": road.group,
            }
            for road in model.roads_
        ],
        "marks": [list(mark) for mark in found.marks],
        **{name: getattr(found, name).tolist() for name in (*_COUNTS, *_ARRAYS)},
        "within": found.within.tolist(),
        "causes": [[found.index[mark], bool(shown), due] for mark, shown, due in found.causes],
        "tasks": [[name, good, bad] for name, (good, bad) in model.outcomes_.items()],
        "compared": model.within_,
        "chance": [model.chance_.offset, model.chance_.slope],
        "worth": model.worth_,
        "runs": [model.n_successes_, model.n_failures_],
    }
    write_json(path, data)


def load(cls: type, path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds; `ValueError` if it holds none."""
    data = read_json(path, remedy=_REMEDY)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise ValueError(f"{path} is no model of a log; {_REMEDY}")
    if data.get("version") != _VERSION:
        raise ValueError(
            f"{path} has version {data.get('version')!r}; this package reads {_VERSION}; {_REMEDY}"
        )
    try:
        return _model(cls, data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}: {error}); {_REMEDY}"
        ) from None


def _model(cls: type, data: dict[str, Any]) -> Any:
    parameters = data["parameters"]
    if set(parameters) != set(cls()._get_param_names()):
        raise ValueError("its parameters are others")
    if not isinstance(parameters["events"], str):
        raise ValueError("its events are no text")
    model = cls(**parameters)
    # Files of before this entry are of logs that were read without being told how.
    model.options_ = _options(data["log"]) if "log" in data else LogOptions()
    model.symbols_ = [_of(symbol, str) for symbol in data["symbols"]]
    n = len(model.symbols_)
    if len(set(model.symbols_)) < n:
        raise ValueError("a symbol comes twice")
    model._ids = {symbol: i for i, symbol in enumerate(model.symbols_)}
    model.roads_ = [_road(road, n) for road in data["roads"]]
    if not model.roads_:
        raise ValueError("it has no road")
    marks = tuple(_mark(mark, model.roads_, n) for mark in data["marks"])
    if len(set(marks)) < len(marks):
        raise ValueError("a mark comes twice")
    model.contrast_ = _contrast(data, marks, n)
    model.outcomes_ = {
        None if name is None else _of(name, str): (_of(good, int), _of(bad, int))
        for name, good, bad in data["tasks"]
    }
    model.within_ = _of(data["compared"], bool)
    offset, slope = _numbers(data["chance"], 2).tolist()
    model.chance_ = Chance(offset, slope)
    model.worth_ = float(_numbers([data["worth"]], 1)[0])
    model.n_successes_, model.n_failures_ = (int(_of(k, int)) for k in data["runs"])
    return model


def _options(data: dict[str, Any]) -> LogOptions:
    success, group, columns = data["success"], data["group"], data["columns"]
    if success is not None:
        condition(_of(success, str))
    if group is not None:
        _of(group, str)
    if columns is not None:
        check_columns({_of(what, str): _of(name, str) for what, name in columns.items()})
    return LogOptions(success, group, columns, _of(data["function"], bool))


def _contrast(data: dict[str, Any], marks: tuple[Mark, ...], n: int) -> Contrast:
    if len(data["within"]) != 4:
        raise ValueError("its numbers within tasks are not four")
    within = np.array([_numbers(row, len(marks)) for row in data["within"]]).reshape(4, -1)
    arrays = {name: _numbers(data[name], len(marks)) for name in (*_COUNTS, *_ARRAYS)}
    arrays |= {name: arrays[name].astype(bool) for name in _FLAGS}
    causes = tuple(
        Cause(marks[_index(i, len(marks))], _of(shown, bool), due if due == -1 else _index(due, n))
        for i, shown, due in data["causes"]
    )
    return Contrast(marks, within=within, causes=causes, **arrays)


def _road(data: dict[str, Any], n: int) -> Road:
    events = np.array([_index(e, n) for e in data["events"]], int)
    shares = _numbers(data["shares"], len(events))
    if ((shares < 0) | (shares > 1)).any():
        raise ValueError("a share is not from 0 to 1")
    group = data["group"]
    return Road(events, shares, _of(data["members"], int), None if group is None else str(group))


def _mark(data: list[Any], roads: list[Road], n: int) -> Mark:
    kind, road, column, event = data
    if kind not in ("holds", "beside", "more", *NEIGHBOURS):
        raise ValueError(f"{kind!r} is no kind of mark")
    k = _of(road, int)
    if kind in ("more", "after", "apart") and k == -1:
        most = 10**9 if kind == "more" else n
        return Mark(kind, k, _index(column, most), _index(event, n))
    if not -1 <= k < len(roads) or (k < 0 and (kind not in ("beside", "last") or column != -1)):
        raise ValueError(f"there is no road {road}")
    most = 0 if k < 0 else len(roads[k]) + (kind == "beside")
    if k >= 0:
        _index(column, most)
    return Mark(kind, k, _of(column, int), _index(event, n))


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:40]!r} is no {kind.__name__}")
    return value


def _index(value: Any, n: int) -> int:
    if not 0 <= _of(value, int) < n:
        raise IndexError(f"{value} is not from 0 to {n - 1}")
    return value


def _numbers(values: Any, n: int) -> np.ndarray:
    if not isinstance(values, list) or len(values) != n:
        raise ValueError(f"{n} numbers are needed")
    if not all(isinstance(v, int | float) and math.isfinite(v) and abs(v) < 1e50 for v in values):
        raise ValueError("a number is not finite")
    return np.array(values, float)
