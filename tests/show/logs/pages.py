"""Logs of many kinds as data of a page, made once."""

from dataclasses import replace
from functools import cache

from logs.planted import conversation, planted
from logs.small import hard_and_easy, log_of

from align_rudder.data.logs import Entry, Message, Run, RunLog
from align_rudder.logs import LogModel, report_data

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"><!--"
RTL = "\u202eevil\u05d0\u05d1"
LONG = "x" * 1_000_000


def _data(log, fitted_to=None, **options):
    return report_data(LogModel().fit(fitted_to or log), log, **options)


def _planted():
    return _data(planted(11, "left out").log)


def grouped(run, group):
    """Return a run as one of a task."""
    return Run(run.name, run.entries, run.messages, success=run.success, ret=run.ret, group=group)


def _grouped():
    runs = []
    for i in range(60):
        tools = ["look", "read", "edit", "test"] if i % 2 else ["plan", "ask", "send", "close"]
        good = i % 5 > 1
        done = tools if good else [tools[0], tools[1], tools[3]]
        runs.append(grouped(conversation(f"file.json: {i}", done, good), f"task {i % 4}"))
    runs.append(grouped(conversation("file.json: 60", ["look", "read"], None), "task 0"))
    runs.append(grouped(conversation("file.json: 61", [], False), "task 1"))
    return _data(RunLog(tuple(runs), faults=("broken.json: it ends too early",) * 5))


def _hostile():
    def run(i, tools, success):
        messages = [Message("user", HOSTILE), Message(RTL, RTL), Message("system", LONG)]
        entries = []
        for tool in tools:
            entries.append(Entry("call", tool, len(messages)))
            messages.append(Message("assistant", HOSTILE))
        name = f"{HOSTILE} {RTL} {i}"
        return Run(
            name, tuple(entries), tuple(messages), success=success, group=f"{HOSTILE}{i % 2}"
        )

    good, bad = [HOSTILE, RTL, "\ud800", "c" * 400], [HOSTILE, "c" * 400]
    runs = [run(i, good, True) for i in range(8)] + [run(8 + i, bad, False) for i in range(8)]
    log = RunLog(tuple(runs), faults=(HOSTILE,))
    return _data(log, most_text=2_000_000, all_text=9_000_000)


def _copies():
    """Forty runs of two kinds that say other things, some with a turn more."""
    runs = []
    for i in range(40):
        run = conversation(f"run {i}", ["look", "read", "send"] if i % 2 else ["look"], i % 2 == 1)
        talk = [Message("user", f"I am number {i}.")] * (i % 4 > 0) + [
            Message("assistant", f"Hm, {i}.")
        ]
        talk += [Message("user", "One moment")] * (i % 3 == 0)
        if i % 4 == 0:
            talk.append(Message("user", f"I am number {i}."))
        entries = tuple(replace(e, message=e.message + len(talk)) for e in run.entries)
        runs.append(replace(run, entries=entries, messages=(*talk, *run.messages)))
    return _data(RunLog(tuple(runs)))


def _no_successes():
    return _data(log_of(("a b", False, 3)), log_of(("a b c d", True, 4), ("a b", False, 2)))


def _thousands(part):
    """Return data with a thousand times as many runs."""
    if isinstance(part, dict):
        many = {"count", "of", "runs", "successes", "failures", "telling"}
        return {
            k: v * 1000 if k in many and type(v) is int else _thousands(v) for k, v in part.items()
        }
    return [_thousands(v) for v in part] if isinstance(part, list) else part


MADE = {
    "thousands": lambda: _thousands(_planted()),
    "large": lambda: _data(planted(5, "wrong tool", runs=900, extra=0.5).log),
    "planted": _planted,
    "grouped": _grouped,
    "hostile": _hostile,
    "copies": _copies,
    "tasks": lambda: _data(hard_and_easy(cause=True)),
    "no failures": lambda: _data(log_of(("a b c d", True, 6))),
    "no successes": _no_successes,
    "one run": lambda: _data(log_of(("a b c", True, 1))),
    "no runs": lambda: _data(RunLog(()), log_of(("a b c d", True, 4), ("a b", False, 2))),
    "no outcome": lambda: _data(log_of(("a b", None, 3)), log_of(("a b c d", True, 4))),
    "nothing in common": lambda: _data(log_of(("a", True, 1), ("b", True, 1), ("c", False, 2))),
}


@cache
def data_of(name):
    """Return the data of a page by its name."""
    return MADE[name]()
