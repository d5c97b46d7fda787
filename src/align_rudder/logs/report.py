"""`report_data`: all that a page, a table in the terminal and `--json` show of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.data.logs import Run, RunLog
from align_rudder.data.logs.events import arguments_of
from align_rudder.logs.divergence import COMMON, Divergence
from align_rudder.logs.hints import lone_symbols, what_else
from align_rudder.logs.marks import ANYWHERE, Mark
from align_rudder.logs.model import LogModel, Reading
from align_rudder.logs.shares import share_data
from align_rudder.logs.table import Left, divergence_table, row_key
from align_rudder.logs.turns import outcome_of, settled, turn_shares
from align_rudder.text import short

__all__ = ["VERSION", "report_data"]

VERSION = 2


def report_data(
    model: LogModel, log: RunLog, *, most_text: int = 400, all_text: int = 4_000_000
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

        - version: of this form, 2.
        - counts: runs, successes, failures, unknown, distinct (sequences), groups, without_events.
        - within: whether runs are compared within tasks: None if not, else {tasks: that have
          successes and failures, successes, failures: of those, alone: failures of tasks without
          any success, alone_tasks}.
        - faults: what could not be read, and why, a line each.
        - notes: what was assumed of the log, a line each.
        - hints: what else could become an event, where nothing tells; a line each.
        - options: events, per_group.
        - symbols: the name of each event.
        - groups: for each task {name, runs, successes (a share), divergences (as below, of this
          task alone)}; empty if there is but one.
        - roads: for each strategy {members, group, successes, failures: how many are on it,
          columns, funnel, beside}. A column is {symbol, successes, failures: shares that hold it,
          p, telling, subgoal}; telling if it differs at a false discovery rate of 5 %, a sub-goal
          if half of the successes hold it. The funnel has {column, successes, failures: shares
          that do this step of the road or a later one} for each sub-goal. "beside" has what tells
          beside this road, {symbol, column (due; None: beside any road), successes, failures, p,
          good (done more by successes), at_all: {successes, failures} that do it at all}.
        - often: what tells by how many times it is done, one number for each symbol: {symbol,
          more_than, successes, failures: shares that do it more often, p, good}.
        - between: what goes with tasks that fail, but not with failing within a task, as "often"
          with p_all, of all runs without looking at tasks, and within: {successes, failures} of
          the tasks with both outcomes.
        - uneven: what tells in some tasks in one way or the other, but not in all: {symbol, p}.
        - divergences: where failures left, what explains most of them first. Each is {how, road,
          column (-1: several), symbol, other, failures, successes: shares of all that left here,
          within: the same of the tasks with both outcomes, or None, excess: how many more failures
          that are than if as many did so as successes of their task, cause: whether it is one,
          p (one-sided, within tasks),
          q (the false discovery rate of the rows up to it), telling, instead: [{way, symbol,
          failures}], to_come: columns, parts: [{road, column, failures, successes}], says}. how:
          "leaves" out the symbol that was due, does "other" before it ("order"), does it as
          something "extra" while "other" was due, "beside" any road or wherever it comes ("does"),
          more "often" than "other" times or fewer ("seldom"), directly "after" "other", but never
          so ("apart"), or as its "last" event. way: "event", "stops", "goes on".
          Within tasks the numbers in "says" are those of "within".
        - explained: failures that left in a row that tells, in one that may be chance, that did not
          leave; "alone", of tasks without any success, which are held against other tasks' roads.
        - runs: one for all runs with the same events, task and outcome, failures last: {id, count,
          group, outcome ("success", "failure", "unknown"), return, road, events, columns (None:
          beside), chances: of success, before the first event, after each and at the end,
          divergence: None or {row: place in divergences or None, at (the event; as many as there
          are: the end), how, column, symbol, other, instead, telling, to_come}, explains: of a
          failure, which of "explained" it is, each: the runs, those that differ in nothing else
          together, {names, messages: the index of the message of each event, turns: [[message,
          reward]] or None without outcome, texts: [[role, text]], or None}}.

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
    table = divergence_table(_left(kinds, model.within_), symbols, model.within_)
    rows = {
        (r["how"], r["symbol"], -1 if r["other"] is None else r["other"], r["cause"]): i
        for i, r in enumerate(table)
    }
    for kind in kinds:
        kind.row = None if (left := kind.reading.divergence) is None else rows.get(row_key(left))
        kind.explains = _explains(kind, model, table)
    budget = _Texts(most_text, all_text)
    runs = [_run(kind, i, model, budget) for i, kind in enumerate(kinds)]
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
        "within": _within(model) if model.within_ else None,
        "faults": list(log.faults),
        "notes": list(log.notes),
        "hints": _hints(model, log, kinds, table),
        "options": {
            "events": _said(model.events),
            "per_group": model.per_group,
        },
        "symbols": symbols,
        "groups": [_group(name, kinds, symbols) for name in names] if len(names) > 1 else [],
        "roads": [_road(model, k, kinds) for k in range(len(model.roads_))],
        **_often(model),
        "divergences": table,
        "explained": _explained(kinds),
        "runs": runs,
    }


class _Kind:
    """Runs with the same events, task and outcome; the row they are in, and what that explains."""

    def __init__(self, run: Run, reading: Reading) -> None:
        self.run, self.reading = run, reading
        self.runs: list[tuple[Run, np.ndarray]] = []
        self.row: int | None = None
        self.explains = "none"

    @property
    def count(self) -> int:
        return len(self.runs)

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

    def of(self, said: Sequence[tuple[str, str]]) -> list[list[str]] | None:
        length = sum(len(text) for _, text in said)
        if not said or length > self.room:
            return None
        self.room -= length
        return [[role, text] for role, text in said]


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
            kind = found.setdefault((*key, run.success, run.ret), _Kind(run, read[key]))
        kind.runs.append((run, events.messages))
    order = {True: 0, None: 1, False: 2}
    return sorted(
        found.values(), key=lambda k: (order[k.run.success], k.reading.path.road, -k.count)
    )


def _left(kinds: Sequence[_Kind], within: bool = False) -> list[Left]:
    tasks = {group: i for i, group in enumerate(dict.fromkeys(k.run.group for k in kinds))}
    return [
        Left(k.reading.divergence, k.successes, k.failures, tasks[k.run.group] if within else 0)
        for k in kinds
    ]


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
            "at_all": _at_all(kinds, m.event),
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


def _at_all(kinds: Sequence[_Kind], event: int) -> dict[str, Any]:
    """Return the shares of all runs that do something at all."""
    numbers = np.array([(k.successes, k.failures) for k in kinds]).reshape(-1, 2)
    does = np.array([event in k.reading.events.ids for k in kinds], bool)
    (n_s, n_f), (good, bad) = numbers.sum(axis=0), numbers[does].sum(axis=0)
    return {"successes": share_data(good, n_s), "failures": share_data(bad, n_f)}


def _hints(
    model: LogModel, log: RunLog, kinds: Sequence[_Kind], table: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return what to say of the choice of events: what else could tell, what cannot."""
    if not (log.successes and log.failures):
        return []
    mixed = any(good and bad for good, bad in model.outcomes_.values())
    tells = any(row["telling"] for row in table) or (model.within_ and not mixed)
    known = range(len(model.symbols_))
    symbols = [(set(kind.reading.events.ids.tolist()) & set(known), kind.count) for kind in kinds]
    hints = [
        what_else(log.runs) if model.events == "tool" and not tells else "",
        lone_symbols(symbols, _said(model.events), bool(arguments_of(model.events))),
    ]
    return [hint for hint in hints if hint]


def _said(events: Any) -> str:
    return events if isinstance(events, str) else "a function"


def _within(model: LogModel) -> dict[str, int]:
    mixed = [(good, bad) for good, bad in model.outcomes_.values() if good and bad]
    alone = [bad for good, bad in model.outcomes_.values() if not good]
    return {
        "tasks": len(mixed),
        "successes": sum(good for good, _ in mixed),
        "failures": sum(bad for _, bad in mixed),
        "alone": sum(alone),
        "alone_tasks": len(alone),
    }


def _often(model: LogModel) -> dict[str, list[dict[str, Any]]]:
    """Return what tells by how often it is done, what tells only tasks apart, and what some."""
    found = model.contrast_

    def one(mark: Mark, i: int) -> dict[str, Any]:
        return {
            "symbol": mark.event,
            "more_than": mark.column,
            "successes": share_data(found.successes[i], found.n_successes[i]),
            "failures": share_data(found.failures[i], found.n_failures[i]),
            "p": float(found.p[i]),
            "good": bool(found.yes[i] > 0),
        }

    best: dict[int, tuple[float, Mark, int]] = {}
    uneven: dict[int, float] = {}
    between = []
    for mark, i in found.index.items():
        if found.uneven[i]:
            uneven[mark.event] = min(float(found.p[i]), uneven.get(mark.event, 1.0))
        if mark.kind != "more":
            continue
        if found.telling[i]:
            # Of numbers that tell alike the first that is too often.
            entry = float(found.p[i]), mark, i
            best[mark.event] = min(best.get(mark.event, entry), entry)
        if found.between[i] and not mark.column:
            k, n, j, m = found.within[:, i]
            within = {"successes": share_data(k, n), "failures": share_data(j, m)}
            between.append(one(mark, i) | {"p_all": float(found.p_all[i]), "within": within})
    return {
        "often": [one(mark, i) for _, mark, i in sorted(best.values())],
        "between": sorted(between, key=lambda row: row["p_all"]),
        "uneven": [{"symbol": e, "p": p} for e, p in sorted(uneven.items(), key=lambda x: x[1])],
    }


def _explained(kinds: Sequence[_Kind]) -> dict[str, int]:
    out = Counter({"telling": 0, "other": 0, "none": 0, "alone": 0})
    for kind in kinds:
        out[kind.explains] += kind.failures
    return dict(out)


def _explains(kind: _Kind, model: LogModel, table: Sequence[Mapping[str, Any]]) -> str:
    """Return which of "explained" a kind of run is: where it left tells if its row does."""
    if model.within_ and not model.outcomes_.get(kind.run.group, (1, 1))[0]:
        return "alone"
    if kind.reading.divergence is None:
        return "none"
    return "telling" if kind.row is not None and table[kind.row]["telling"] else "other"


def _run(kind: _Kind, i: int, model: LogModel, texts: _Texts) -> dict[str, Any]:
    run, (events, path, values, left) = kind.run, kind.reading
    outcome = {True: "success", False: "failure", None: "unknown"}[run.success]
    return {
        "id": i,
        "count": kind.count,
        "group": run.group,
        "outcome": outcome,
        "return": run.ret,
        "road": path.road,
        "events": events.ids.tolist(),
        "columns": [None if c < 0 else c for c in path.columns.tolist()],
        "chances": [round(v, 4) for v in values.tolist()],
        "divergence": None if left is None else _divergence(left, kind),
        "explains": kind.explains if run.success is False else None,
        "each": _each(kind, model, texts),
    }


def _each(kind: _Kind, model: LogModel, texts: _Texts) -> list[dict[str, Any]]:
    """Return the runs of a kind, those together that differ in nothing but their names."""
    out: dict[Any, dict[str, Any]] = {}
    for run, messages in kind.runs:
        said = tuple((m.role, _cut(m.text, texts.most)) for m in run.messages)
        key = messages.tobytes(), tuple(run.turns), said
        if key not in out:
            out[key] = {
                "names": [],
                "messages": messages.tolist(),
                "turns": _turns(run, messages, kind.reading.values, model),
                "texts": texts.of(said),
            }
        out[key]["names"].append(run.name)
    return list(out.values())


def _turns(
    run: Run, messages: np.ndarray, values: np.ndarray, model: LogModel
) -> list[list[float]] | None:
    if run.ret is None and run.success is None:
        return None
    shares, ret = turn_shares(run, messages, values), outcome_of(run)
    if not len(shares) and ret:
        return None
    rewards = settled(shares, ret, model.worth_, run.name)
    return [[t, round(float(r), 6)] for t, r in zip(run.turns, rewards, strict=True)]


def _divergence(left: Divergence, kind: _Kind) -> dict[str, Any]:
    return {
        "row": kind.row,
        "how": left.place.how,
        "column": left.place.column,
        "symbol": left.place.event,
        "other": None if left.place.other < 0 else left.place.other,
        "at": left.at,
        "instead": left.instead if left.instead >= 0 else None,
        "telling": kind.explains == "telling",
        "to_come": list(left.to_come),
    }
