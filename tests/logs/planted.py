"""Made-up logs with a known cause of failure, and whether a model finds it."""

from dataclasses import dataclass

import numpy as np

from align_rudder.data.logs import Entry, Message, Run, RunLog
from align_rudder.logs import LogModel, report_data

CAUSES = ("left out", "swapped", "wrong tool")
TOOLS = [f"tool_{letter}" for letter in "abcdefghijkl"]
STEPS = 8


@dataclass
class Planted:
    """A log with a planted cause.

    Attributes:
        log: The log.
        cause: Which of `CAUSES`.
        step: The tool that is left out, done too late, or replaced.
        other: The tool that is done too early, or in its place; "" for a step left out.
        turns: The message with which the cause is done or known, for each failure that has it,
            by its name.
    """

    log: RunLog
    cause: str
    step: str
    other: str
    turns: dict


def planted(
    seed, cause, runs=100, failures=0.4, extra=0.15, missing=0.05, repeats=0.1, without=0.0
):
    """Return runs of one script with noise, a share of which fail for one cause.

    Before each step something else comes with probability `extra`; a step is left out with
    probability `missing` and done again with `repeats`. What makes a run fail is not noise: in
    failures no tool of the cause comes as something else, which could undo it or do it before.
    A share `without` of the failures has no cause that the log shows.
    """
    rng = np.random.default_rng([seed, CAUSES.index(cause)])
    script = rng.permutation(TOOLS)[:STEPS].tolist()
    at = int(rng.integers(STEPS - 1 if cause == "swapped" else STEPS))
    spare = [tool for tool in TOOLS if tool not in script]
    step, other = script[at], ""
    if cause == "swapped":
        other = script[at + 1]
    elif cause == "wrong tool":
        other = spare[int(rng.integers(len(spare)))]
    out, turns = [], {}
    for i in range(runs):
        failed = i < failures * runs
        has = failed and i >= without * failures * runs
        # (what is done, whether the cause is seen here)
        plan = [(tool, False) for tool in script]
        sure = set()
        if has and cause == "left out":
            del plan[at]
        elif has and cause == "swapped":
            plan[at : at + 2] = [(other, True), (step, False)]
            sure = {step, other}
        elif has:
            plan[at], sure = (other, True), {other}
        others = [tool for tool in TOOLS if not (has and tool in (step, other))]
        done, seen = [], None
        for k, (tool, here) in enumerate(plan):
            if rng.random() < extra:
                done.append(others[int(rng.integers(len(others)))])
            if tool in sure or rng.random() >= missing:
                if here or (has and cause == "left out" and k >= at and seen is None):
                    seen = len(done)
                done += [tool] * (1 + (rng.random() < repeats))
        run = conversation(f"run {i}", done, not failed)
        if has:  # what nothing shows before the end is known with the last turn
            turns[run.name] = run.turns[-1] if seen is None else run.turns[seen]
        out.append(run)
    return Planted(RunLog(tuple(out)), cause, step, other, turns)


def conversation(name, tools, success, ret=None):
    """Return a run: a request, a turn with its answer for each tool, a last turn that ends it."""
    messages = [Message("user", "please")]
    entries = []
    for tool in tools:
        entries.append(Entry("call", tool, len(messages), result="ok"))
        messages += [Message("assistant", tool), Message("tool", "ok")]
    messages.append(Message("assistant", "done"))
    ret = float(success) if ret is None and success is not None else ret
    return Run(name, tuple(entries), tuple(messages), success=success, ret=ret)


def named_first(data, one):
    """Return whether the first row of the divergence table names the cause."""
    if not data["divergences"]:
        return False
    row = data["divergences"][0]
    name = data["symbols"].__getitem__
    other = "" if row["other"] is None else name(row["other"])
    if one.cause == "left out":
        return row["how"] == "leaves" and name(row["symbol"]) == one.step
    if one.cause == "swapped":
        return (row["how"], name(row["symbol"]), other) == ("order", one.step, one.other)
    if row["how"] == "extra":
        return (name(row["symbol"]), other) == (one.other, one.step)
    first = row["instead"][0]["symbol"]
    return name(row["symbol"]) == one.step and first is not None and name(first) == one.other


def lowest_at_cause(model, one):
    """Return the share of failures whose lowest reward is that of the turn with the cause."""
    hits = []
    for run in (run for run in one.log.failures if run.name in one.turns):
        rewards = model.turn_rewards(run)
        lowest = min((r, t) for t, r in enumerate(rewards) if r is not None)[1]
        hits.append(lowest == one.turns[run.name])
    return float(np.mean(hits))


def judged(seed, cause, **noise):
    """Return whether the cause is named first, and the share of turns that are right."""
    one = planted(seed, cause, **noise)
    model = LogModel().fit(one.log)
    return named_first(report_data(model, one.log), one), lowest_at_cause(model, one)
