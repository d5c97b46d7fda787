"""A planted cause of failure is found, and where there is none, none is."""

from dataclasses import replace

import numpy as np
import pytest
from logs.planted import CAUSES, judged, planted
from logs.small import log_of

from align_rudder.data.logs import RunLog
from align_rudder.logs import LogModel, report_data

SETS = 8


@pytest.mark.parametrize("cause", CAUSES)
def test_a_planted_cause_is_named_first_and_its_turn_has_the_lowest_reward(cause):
    found = [judged(seed, cause) for seed in range(500, 500 + SETS)]
    assert sum(first for first, _ in found) >= SETS - 1
    assert np.mean([turns for _, turns in found]) >= 0.85


def test_the_score_tells_runs_that_were_not_seen():
    seen, new = planted(7, "wrong tool"), planted(7, "wrong tool", runs=300)
    model = LogModel().fit(seen.log)
    good = [model.score(run) for run in new.log.successes]
    bad = [model.score(run) for run in new.log.failures]
    above = np.mean([g > b for g in good for b in bad])
    assert above > 0.95


def test_where_outcomes_are_dealt_at_random_nothing_tells():
    telling = []
    for seed in range(12):
        log, rng = planted(seed, "left out").log, np.random.default_rng(seed)
        dealt = [log.runs[i].success for i in rng.permutation(len(log))]
        runs = (
            replace(run, success=ok, ret=float(ok)) for run, ok in zip(log.runs, dealt, strict=True)
        )
        telling.append(bool(LogModel().fit(RunLog(tuple(runs))).contrast_.telling.any()))
    assert sum(telling) <= 2


def test_a_run_counts_as_often_as_it_is_there():
    kinds = [("a b c d", True, 9), ("a c d", False, 7), ("a b c", True, 2), ("b a d", False, 3)]
    one = log_of(*kinds)
    twice = log_of(*((words, ok, 2 * n) for words, ok, n in kinds))
    left, right = (report_data(LogModel(strategies=1).fit(log), log) for log in (one, twice))
    assert len(left["runs"]) == len(right["runs"]) == 4
    assert [2 * run["count"] for run in left["runs"]] == [run["count"] for run in right["runs"]]
    for a, b in zip(left["roads"][0]["columns"], right["roads"][0]["columns"], strict=True):
        assert a["failures"]["share"] == b["failures"]["share"]
        assert 2 * a["successes"]["count"] == b["successes"]["count"]


def test_each_task_has_its_own_road():
    tasks = {"fly": "find book pay", "stay": "pay book find"}
    runs = []
    for group, words in tasks.items():
        good, bad = log_of((words, True, 8)).runs, log_of((words.split()[0], False, 8)).runs
        runs += [replace(run, group=group) for run in (*good, *bad)]
    log = RunLog(tuple(runs))
    model = LogModel(per_group=True).fit(log)
    roads = {r.group: " ".join(str(model.symbols_[e]) for e in r.events) for r in model.roads_}
    assert roads == tasks
    for group in report_data(model, log)["groups"]:
        (row,) = group["divergences"]
        assert row["says"] == "8 of 8 failures (0 of 8 successes) stop before book"
