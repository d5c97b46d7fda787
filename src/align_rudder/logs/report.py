"""`report_data`: all that a page, a table in the terminal and `--json` show of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.data.logs import Run, RunLog
from align_rudder.logs.contrast import ANYWHERE
from align_rudder.logs.divergence import COMMON, Divergence
from align_rudder.logs.model import LogModel, Reading
from align_rudder.logs.shares import share_data
from align_rudder.logs.table import Left, divergence_table
from align_rudder.logs.turns import outcome_of, settled, turn_shares
from align_rudder.text import short

__all__ = ["VERSION", "report_data"]

VERSION = 1
_NAMES = 5  # of equal runs so many are named


def report_data(
    model: LogModel, log: RunLog, *, most_text: int = 400, all_text: int = 2_000_000
) -> dict[str, Any]:
    """Return what a model finds in a log as plain data, ready for JSON.

    Events are given by their place in "symbols", columns by their place on their road. A share is
    {count, of, share, low, high} with Wilson's 95 % interval; share is None of no run.

    Args:
        model: A fitted model.
        log: The log, mostly the one that it was fitted to.
        most_text: Characters kept of each message.
        all_text: Characters kept of all messages together; runs beyond that come without texts.

    Returns:
        An object with

        - version: of this form, 1.
        - counts: runs, successes, failures, unknown, distinct (sequences), groups, without_events.
        - faults: what could not be read, and why, a line each.
        - options: events, per_group.
        - symbols: the name of each event.
        - groups: for each task {name, runs, successes (a share), divergences (as below, of this
          task alone)}; empty if there is but one.
        - roads: for each strategy {members, group, successes, failures: how many are on it,
          columns, funnel, beside}. A column is {symbol, successes, failures: shares that hold it,
          p, telling, subgoal}; telling if it differs at a false discovery rate of 5 %, a sub-goal
          if half of the successes hold it. The funnel has {column, successes, failures: shares
          that get so far or further} for each sub-goal. "beside" has what tells beside this road,
          {symbol, column (due; None: anywhere, on any road), successes, failures, p, good (done
          more by successes)}.
        - divergences: where failures left, sorted by how well that explains failures. Each is
          {how, road, column, symbol, other, failures, successes: shares of all that first left
          here, p (one-sided), q (the false discovery rate of the rows up to it), telling, instead:
          [{way, symbol, failures}], to_come: columns, says}. how: "leaves" out the symbol that was
          due, does "other" before it ("order"), or does the symbol as something "extra" while
          "other" was due (road and column -1: anywhere). way: "event", "stops", "goes on".
        - explained: failures with a telling divergence, with another one, with none.
        - runs: one for all runs with the same events, task and outcome, failures last: {id, names
          (of five), count, group, outcome ("success", "failure", "unknown"), return, road, events,
          columns (None: beside), messages: the index of the message of each event, chances: of
          success, before the first event, after each and at the end, turns: [[message, reward]] or
          None without outcome, divergence: None or {row: place in divergences or None, at (the
          event; as many as there are: the end), how, column, instead, telling, to_come}, texts:
          [[role, text]] of the first of the runs, or None}.

    Example:
        >>> from align_rudder.data.logs import Entry
        >>> def run(words, success):
        ...     entries = [Entry("activity", w, i) for i, w in enumerate(words.split())]
        ...     return Run(words, tuple(entries), success=success, ret=float(success))
        >>> good, bad = run("look read edit test", True), run("look edit test", False)
        >>> log = RunLog((good,) * 6 + (bad,) * 6)
        >>> report_data(LogModel().fit(log), log)["divergences"][0]["says"]
        '6 of 6 failures (0 of 6 successes) leave out read: 6 go on without it'
    """
    model._check_fitted()
    symbols = [short(symbol) for symbol in model.symbols_] + ["(not known)"]
    kinds = _kinds(model, log)
    table = divergence_table(_left(kinds), symbols)
    rows = {
        (r["how"], r["road"], r["column"], r["symbol"], r["other"]): i for i, r in enumerate(table)
    }
    budget = _Texts(most_text, all_text)
    runs = [_run(kind, i, model, rows, budget) for i, kind in enumerate(kinds)]
    names = list(dict.fromkeys(run.group for run in log.runs))
    return {
        "version": VERSION,
        "counts": {
            "runs": len(log.runs),
            "successes": len(log.successes),
            "failures": len(log.failures),
            "unknown": len(log.unknown),
            "distinct": len({tuple(kind.reading.events.ids.tolist()) for kind in kinds}),
            "groups": len(names) if len(names) > 1 else 0,
            "without_events": sum(k.count for k in kinds if not len(k.reading.events.ids)),
        },
        "faults": list(log.faults),
        "options": {
            "events": model.events if isinstance(model.events, str) else "a function",
            "per_group": model.per_group,
        },
        "symbols": symbols,
        "groups": [_group(name, kinds, symbols) for name in names] if len(names) > 1 else [],
        "roads": [_road(model, k, kinds) for k in range(len(model.roads_))],
        "divergences": table,
        "explained": _explained(kinds),
        "runs": runs,
    }


class _Kind:
    """Runs with the same events, task and outcome."""

    def __init__(self, run: Run, reading: Reading) -> None:
        self.run, self.reading = run, reading
        self.count, self.names = 0, []

    @property
    def successes(self) -> int:
        return self.count if self.run.success is True else 0

    @property
    def failures(self) -> int:
        return self.count if self.run.success is False else 0


class _Texts:
    """Texts of messages, as long as there is room."""

    def __init__(self, most: int, room: int) -> None:
        self.most, self.room = most, room

    def of(self, run: Run) -> list[list[str]] | None:
        texts = [[m.role, _cut(m.text, self.most)] for m in run.messages]
        length = sum(len(text) for _, text in texts)
        if not texts or length > self.room:
            return None
        self.room -= length
        return texts


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def _kinds(model: LogModel, log: RunLog) -> list[_Kind]:
    """Return the runs, equal ones once: successes, unknown, failures, and by road."""
    found: dict[Any, _Kind] = {}
    read: dict[Any, Reading] = {}
    chosen = model.choose(log.runs)
    for run, events in zip(log.runs, chosen, strict=True):
        key = events.ids.tobytes(), run.group
        kind = found.get((*key, run.success, run.ret))
        if kind is None:
            if key not in read:
                read[key] = model.read_events(events, run.group)
            reading = read[key]._replace(events=events)
            kind = found.setdefault((*key, run.success, run.ret), _Kind(run, reading))
        kind.count += 1
        if len(kind.names) < _NAMES:
            kind.names.append(run.name)
    order = {True: 0, None: 1, False: 2}
    return sorted(
        found.values(), key=lambda k: (order[k.run.success], k.reading.path.road, -k.count)
    )


def _left(kinds: Sequence[_Kind]) -> list[Left]:
    return [Left(k.reading.divergence, k.successes, k.failures) for k in kinds]


def _group(name: str | None, kinds: Sequence[_Kind], symbols: Sequence[str]) -> dict[str, Any]:
    own = [kind for kind in kinds if kind.run.group == name]
    good, bad = sum(k.successes for k in own), sum(k.failures for k in own)
    return {
        "name": name,
        "runs": sum(k.count for k in own),
        "successes": share_data(good, good + bad),
        "divergences": divergence_table(_left(own), symbols),
    }


def _road(model: LogModel, k: int, kinds: Sequence[_Kind]) -> dict[str, Any]:
    road, found = model.roads_[k], model.contrast_
    on = [kind for kind in kinds if kind.reading.path.road == k]
    numbers = np.array([(kind.successes, kind.failures) for kind in on]).reshape(-1, 2)
    n_s, n_f = (int(n) for n in numbers.sum(axis=0))
    held = np.array([kind.reading.path.held for kind in on]).reshape(len(on), len(road))
    # A column is reached if it or a later one is held.
    reached = np.maximum.accumulate(held[:, ::-1], axis=1)[:, ::-1] if len(road) else held
    holds, gets = numbers.T @ held, numbers.T @ reached
    place = {(m.column, m.event): i for m, i in found.index.items() if m[:2] == ("holds", k)}
    columns = []
    for j, event in enumerate(road.events.tolist()):
        i = place.get((j, event))
        columns.append(
            {
                "symbol": event,
                "successes": share_data(holds[0, j], n_s),
                "failures": share_data(holds[1, j], n_f),
                "p": 1.0 if i is None else float(found.p[i]),
                "telling": False if i is None else bool(found.telling[i]),
                "subgoal": bool(road.shares[j] >= COMMON),
            }
        )
    beside = [
        {
            "symbol": m.event,
            "column": None if m.column == ANYWHERE else m.column,
            "successes": share_data(found.successes[i], found.n_successes[i]),
            "failures": share_data(found.failures[i], found.n_failures[i]),
            "p": float(found.p[i]),
            "good": bool(found.yes[i] > 0),
        }
        for m, i in found.index.items()
        if m.kind == "beside" and m.road in (k, ANYWHERE) and found.telling[i]
    ]
    return {
        "members": road.members,
        "group": road.group,
        "successes": n_s,
        "failures": n_f,
        "columns": columns,
        "funnel": [
            {
                "column": j,
                "successes": share_data(gets[0, j], n_s),
                "failures": share_data(gets[1, j], n_f),
            }
            for j in range(len(road))
            if columns[j]["subgoal"]
        ],
        "beside": sorted(beside, key=lambda entry: entry["p"]),
    }


def _explained(kinds: Sequence[_Kind]) -> dict[str, int]:
    out = Counter({"telling": 0, "other": 0, "none": 0})
    for kind in kinds:
        left = kind.reading.divergence
        out["none" if left is None else "telling" if left.telling else "other"] += kind.failures
    return dict(out)


def _run(
    kind: _Kind, i: int, model: LogModel, rows: Mapping[Any, int], texts: _Texts
) -> dict[str, Any]:
    run, (events, path, values, left) = kind.run, kind.reading
    shares = turn_shares(run, events.messages, values)
    turns, known = None, run.ret is not None or run.success is not None
    if known and (len(shares) or not outcome_of(run)):
        rewards = settled(shares, outcome_of(run), model.worth_, run.name)
        turns = [[t, round(float(r), 6)] for t, r in zip(run.turns, rewards, strict=True)]
    outcome = {True: "success", False: "failure", None: "unknown"}[run.success]
    return {
        "id": i,
        "names": kind.names,
        "count": kind.count,
        "group": run.group,
        "outcome": outcome,
        "return": run.ret,
        "road": path.road,
        "events": events.ids.tolist(),
        "columns": [None if c < 0 else c for c in path.columns.tolist()],
        "messages": events.messages.tolist(),
        "chances": [round(v, 4) for v in values.tolist()],
        "turns": turns,
        "divergence": None if left is None else _divergence(left, rows),
        "texts": texts.of(run),
    }


def _divergence(left: Divergence, rows: Mapping[Any, int]) -> dict[str, Any]:
    place = left.place
    other = None if place.other < 0 else place.other
    return {
        "row": rows.get((place.how, place.road, place.column, place.event, other)),
        "how": place.how,
        "column": place.column,
        "at": left.at,
        "instead": left.instead if left.instead >= 0 else None,
        "telling": left.telling,
        "to_come": list(left.to_come),
    }
