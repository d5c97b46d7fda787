"""Only event logs: credit for the tool calls of an agent, from a few runs that succeeded.

    python examples/event_logs.py
    python examples/event_logs.py --log my_runs.jsonl --out my_report.html

The log has a line for each call, with the run it belongs to, the tool, and how it went; and a line
for each run that says whether the task was solved. That is all there is: no observations, no reward
but the 1 at the end. The runs that solved it are aligned; then every call of every run, also of
those that failed, gets its share.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import tyro

import align_rudder as ar
from align_rudder.show.report import write_report


@dataclass
class Arguments:
    """Give the tool calls of an agent their share of its success."""

    log: str | None = None
    """JSON lines as in LOG below; default: these."""
    out: str = "event-logs.html"
    """File for the report."""
    smoke: bool = False
    """Nothing to shorten here: the whole example takes seconds."""


def symbol(call: dict) -> str:
    """Return what a call is for the alignment: the tool and how it went, nothing finer.

    Names, patterns and file contents differ in every run. About 20 symbols are as many as can be
    aligned well; here there are 11.
    """
    tool = call["tool"]
    if tool == "search":
        return "search: hits" if call["hits"] else "search: nothing"
    if tool == "run_tests":
        return "tests: red" if call["failed"] else "tests: green"
    return tool if call["exit"] == 0 else f"{tool}: error"


def read_log(lines: list[str]) -> tuple[dict[str, list[str]], dict[str, bool]]:
    """Return the symbols of each run in order, and whether it solved the task."""
    runs, solved = defaultdict(list), {}
    for line in lines:
        record = json.loads(line)
        if "solved" in record:
            solved[record["run"]] = record["solved"]
        else:
            runs[record["run"]].append(symbol(record))
    return dict(runs), solved


def show(name: str, calls: list[str], rr: ar.Redistribution) -> None:
    """Print the share of every call of a run."""
    print(f"\nrun {name}, return {rr.ret:g}")
    for call, reward in zip(calls, rr.rewards):
        print(f"  {reward:6.3f}  {'█' * round(60 * reward):12}  {call}")
    print(f"  {rr.correction:6.3f}  {'':12}  correction, so that the sum is the return")


def main(args: Arguments) -> None:
    """Read, align, give credit, write the report."""
    lines = Path(args.log).read_text().splitlines() if args.log else LOG.split("\n")
    runs, solved = read_log([line for line in lines if line.strip()])

    good = [calls for name, calls in runs.items() if solved[name]]
    model = ar.AlignRudder().fit_events(good)  # every return is 1
    print(model.summary())

    episodes = []
    for name, calls in runs.items():
        ret = float(solved[name])
        episodes.append((calls, ret))
        if not solved[name]:
            show(name, calls, model.redistribute_events(calls, ret))

    # What the calls are worth on average, over all runs: where do failed runs lose the thread?
    total, count = defaultdict(float), defaultdict(int)
    for calls, ret in episodes:
        for call, reward in zip(calls, model.redistribute_events(calls, ret).rewards):
            total[call] += float(reward)
            count[call] += 1
    print("\nmean share of a call, over all runs")
    for call in sorted(total, key=lambda c: -total[c] / count[c]):
        print(f"  {total[call] / count[call]:6.3f}  {count[call]:2} × {call}")

    write_report(model, episodes, args.out, title="Tool calls of an agent")
    print(f"\nopen {args.out} in a browser")


# Eight runs of a coding agent on failing tests: six solved their task, two did not.
LOG = """
{"run": "a", "tool": "list_files", "exit": 0}
{"run": "a", "tool": "run_tests", "failed": 3}
{"run": "a", "tool": "search", "hits": 4}
{"run": "a", "tool": "read_file", "exit": 0}
{"run": "a", "tool": "edit_file", "exit": 0}
{"run": "a", "tool": "run_tests", "failed": 0}
{"run": "a", "tool": "commit", "exit": 0}
{"run": "a", "solved": true}
{"run": "b", "tool": "search", "hits": 0}
{"run": "b", "tool": "list_files", "exit": 0}
{"run": "b", "tool": "run_tests", "failed": 2}
{"run": "b", "tool": "search", "hits": 2}
{"run": "b", "tool": "read_file", "exit": 0}
{"run": "b", "tool": "read_file", "exit": 0}
{"run": "b", "tool": "edit_file", "exit": 0}
{"run": "b", "tool": "run_tests", "failed": 1}
{"run": "b", "tool": "edit_file", "exit": 0}
{"run": "b", "tool": "run_tests", "failed": 0}
{"run": "b", "tool": "commit", "exit": 0}
{"run": "b", "solved": true}
{"run": "c", "tool": "run_tests", "failed": 1}
{"run": "c", "tool": "search", "hits": 3}
{"run": "c", "tool": "read_file", "exit": 0}
{"run": "c", "tool": "edit_file", "exit": 1}
{"run": "c", "tool": "read_file", "exit": 0}
{"run": "c", "tool": "edit_file", "exit": 0}
{"run": "c", "tool": "run_tests", "failed": 0}
{"run": "c", "tool": "commit", "exit": 0}
{"run": "c", "solved": true}
{"run": "d", "tool": "read_file", "exit": 0}
{"run": "d", "tool": "run_tests", "failed": 1}
{"run": "d", "tool": "search", "hits": 0}
{"run": "d", "tool": "search", "hits": 5}
{"run": "d", "tool": "read_file", "exit": 0}
{"run": "d", "tool": "edit_file", "exit": 0}
{"run": "d", "tool": "run_tests", "failed": 0}
{"run": "d", "tool": "commit", "exit": 0}
{"run": "d", "solved": true}
{"run": "e", "tool": "run_tests", "failed": 4}
{"run": "e", "tool": "search", "hits": 1}
{"run": "e", "tool": "read_file", "exit": 0}
{"run": "e", "tool": "edit_file", "exit": 0}
{"run": "e", "tool": "shell", "exit": 127}
{"run": "e", "tool": "run_tests", "failed": 0}
{"run": "e", "tool": "commit", "exit": 0}
{"run": "e", "solved": true}
{"run": "f", "tool": "search", "hits": 7}
{"run": "f", "tool": "run_tests", "failed": 1}
{"run": "f", "tool": "search", "hits": 2}
{"run": "f", "tool": "read_file", "exit": 0}
{"run": "f", "tool": "edit_file", "exit": 1}
{"run": "f", "tool": "edit_file", "exit": 0}
{"run": "f", "tool": "run_tests", "failed": 0}
{"run": "f", "tool": "commit", "exit": 0}
{"run": "f", "solved": true}
{"run": "g", "tool": "list_files", "exit": 0}
{"run": "g", "tool": "search", "hits": 6}
{"run": "g", "tool": "read_file", "exit": 0}
{"run": "g", "tool": "edit_file", "exit": 0}
{"run": "g", "tool": "edit_file", "exit": 0}
{"run": "g", "tool": "shell", "exit": 0}
{"run": "g", "tool": "edit_file", "exit": 1}
{"run": "g", "tool": "read_file", "exit": 0}
{"run": "g", "tool": "edit_file", "exit": 0}
{"run": "g", "solved": false}
{"run": "h", "tool": "run_tests", "failed": 2}
{"run": "h", "tool": "search", "hits": 2}
{"run": "h", "tool": "read_file", "exit": 0}
{"run": "h", "tool": "edit_file", "exit": 0}
{"run": "h", "tool": "run_tests", "failed": 2}
{"run": "h", "tool": "edit_file", "exit": 0}
{"run": "h", "tool": "run_tests", "failed": 1}
{"run": "h", "tool": "edit_file", "exit": 1}
{"run": "h", "tool": "run_tests", "failed": 2}
{"run": "h", "solved": false}
"""

if __name__ == "__main__":
    main(tyro.cli(Arguments))
