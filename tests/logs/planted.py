"""Made-up logs with a known cause of failure, and whether a model finds it."""

from dataclasses import dataclass, replace

import numpy as np

from align_rudder.data.logs import Entry, Message, Run, RunLog
from align_rudder.logs import LogModel, report_data

CAUSES = (
    "left out",
    "swapped",
    "wrong tool",
    "too often",
    "too seldom",
    "left out anywhere",
    "task",
)
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
        turns: The messages with which the cause is done or known, for each failure that has it,
            by its name.
    """

    log: RunLog
    cause: str
    step: str
    other: str
    turns: dict


def planted(
    seed,
    cause,
    runs=100,
    failures=0.4,
    extra=0.15,
    missing=0.05,
    repeats=0.1,
    without=0.0,
    tasks=0,
):
    """Return runs of one script with noise, a share of which fail for one cause.

    Before each step something else comes with probability `extra`; a step is left out with
    probability `missing` and done again with `repeats`. What makes a run fail is not noise: in
    failures no tool of the cause comes as something else, which could undo it or do it before.
    A share `without` of the failures has no cause that the log shows. Of so many `tasks` half are
    hard: three times as many of their runs fail, and all of them do two more things on the way.
    """
    rng = np.random.default_rng([seed, CAUSES.index(cause)])
    script = rng.permutation(TOOLS)[:STEPS].tolist()
    at = int(rng.integers(STEPS - 1 if cause == "swapped" else STEPS))
    spare = [tool for tool in TOOLS if tool not in script]
    step, other = script[at], ""
    if cause == "swapped":
        other = script[at + 1]
    elif cause in ("wrong tool", "task"):
        other = spare[int(rng.integers(len(spare)))]
    ways = [script]
    if cause == "left out anywhere":  # three ways to succeed that have only this step in common
        ways = [[f"way_{w}_{i}" for i in range(5)] for w in range(3)]
        for w, way in enumerate(ways):
            way.insert(w + 1, step)
    tasks = 10 if cause == "task" else tasks
    out, turns = [], {}
    for i in range(runs):
        task = int(rng.integers(tasks)) if tasks else 0
        failed = i < failures * runs
        if tasks and cause != "task":
            failed = rng.random() < failures * (1.5 if task % 2 else 0.5)
        has = failed and i >= without * failures * runs
        way = ways[int(rng.integers(len(ways)))] if len(ways) > 1 else script
        plan, sure = _plan(cause, way, step, other, has, task, rng)
        if tasks and task % 2 and cause != "task":
            plan[2:2] = [("hard_1", False), ("hard_2", False)]
        others = [tool for tool in TOOLS if not (tool in (step, other) and (has or sure))]
        once = {step} if cause.startswith("too") else set()
        done, seen = _noisy(plan, sure, once, others, rng, extra, missing, repeats)
        out.append(conversation(f"run {i}", done, not failed))
        if has:  # what nothing shows before the end is known with the last turn
            turns[out[-1].name] = [out[-1].turns[t] for t in seen] or [out[-1].turns[-1]]
        if tasks:
            out[-1] = replace(out[-1], group=f"task {task}")
    return Planted(RunLog(tuple(out)), cause, step, other, turns)


def _plan(cause, way, step, other, has, task, rng):
    """Return what a run does, each with whether the cause is seen there, and what is no noise."""
    plan, at = [(tool, False) for tool in way], way.index(step)
    sure = set()
    if cause in ("too often", "too seldom"):
        sure = {step}
        n = int(rng.integers(5, 9) if has else rng.integers(1, 4)) if cause == "too often" else 3
        plan[at : at + 1] = [(step, has and k >= 3) for k in range(n)]
        if cause == "too seldom" and has:
            plan[at : at + 3] = [(step, False)]
            plan[at + 1 : at + 2] = [(tool, True) for tool, _ in plan[at + 1 : at + 2]]
            sure |= {tool for tool, _ in plan[at + 1 : at + 2]}
    elif cause == "task":  # what is right in one task is wrong in another
        sure = {step, other}
        plan[at] = (step if has == bool(task % 2) else other, has)
    elif has and cause.startswith("left out"):
        del plan[at]
        plan[at : at + 1] = [(tool, True) for tool, _ in plan[at : at + 1]]
        sure = {"(left out)"}
    elif has and cause == "swapped":
        plan[at : at + 2] = [(other, True), (step, False)]
        sure = {step, other}
    elif has:
        plan[at], sure = (other, True), {other}
    return plan, sure


def _noisy(plan, sure, once, others, rng, extra, missing, repeats):
    """Return a plan with noise, and where of it the cause is seen."""
    done, seen, late = [], [], False
    for tool, here in plan:
        if rng.random() < extra:
            done.append(others[int(rng.integers(len(others)))])
        late |= here and "(left out)" in sure
        if tool in sure or rng.random() >= missing:
            if (here and not late) or (late and not seen):
                seen.append(len(done))
            done += [tool] * (1 + (rng.random() < repeats and tool not in once))
    return done, seen


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
    if one.cause.startswith("left out"):
        return row["how"] == "leaves" and name(row["symbol"]) == one.step
    if one.cause in ("too often", "too seldom"):
        return (row["how"], name(row["symbol"])) == (one.cause.split()[1], one.step)
    if one.cause == "task":  # of some tasks one is wrong, of others the other
        return {name(row["symbol"])} <= {one.step, one.other} and row["telling"]
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
        hits.append(lowest in one.turns[run.name])
    return float(np.mean(hits))


def judged(seed, cause, **noise):
    """Return whether the cause is named first, and the share of turns that are right.

    Where it depends on the task, each task is looked at by itself, and the hint to do so counts.
    """
    one = planted(seed, cause, **noise)
    model = LogModel(per_group=cause == "task").fit(one.log)
    first = named_first(report_data(model, one.log), one)
    return first and (cause != "task" or hinted(one)), lowest_at_cause(model, one)


def hinted(one):
    """Return whether a model of all tasks says that the cause tells in some tasks only."""
    data = report_data(LogModel().fit(one.log), one.log)
    return bool({data["symbols"][row["symbol"]] for row in data["uneven"]} & {one.step, one.other})
