"""A planted cause of failure is found, and where there is none, none is."""

from dataclasses import replace

import numpy as np
import pytest
from logs.planted import CAUSES, judged, planted
from logs.small import case, hard_and_easy, log_of

from align_rudder.data.logs import RunLog
from align_rudder.logs import LogModel, report_data
from align_rudder.logs.text import as_text

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


def dealt(log, seed, within):
    """Return a log with its outcomes dealt anew within tasks, or as the task alone says."""
    rng, runs = np.random.default_rng(seed), list(log.runs)
    for task in sorted({run.group for run in log.runs}, key=str):
        places = [i for i, run in enumerate(log.runs) if run.group == task]
        old = [log.runs[i].success for i in rng.permutation(places)]
        chance = rng.random()
        new = old if within else [bool(rng.random() < chance) for _ in places]
        for i, ok in zip(places, new, strict=True):
            runs[i] = replace(runs[i], success=ok, ret=float(ok))
    return RunLog(tuple(runs))


@pytest.mark.parametrize("within", [True, False])
def test_where_outcomes_depend_on_the_task_alone_nothing_tells(within):
    """Half of the tasks are hard, and all their runs do two things that no other run does."""
    telling, named = [], []
    for seed in range(10):
        log = dealt(planted(seed, "left out", tasks=8).log, seed, within)
        data = report_data(model := LogModel().fit(log), log)
        telling.append(bool(model.contrast_.telling.any()) or bool(data["uneven"]))
        named.append(any(row["telling"] for row in data["divergences"]))
    assert sum(telling) <= 1
    assert sum(named) <= 1


def test_what_goes_with_hard_tasks_is_said_to_and_is_not_blamed():
    log = hard_and_easy()
    model = LogModel().fit(log)
    data = report_data(model, log)
    assert not model.contrast_.telling.any()
    assert data["symbols"][data["between"][0]["symbol"]] == "search"
    assert data["between"][0]["p_all"] < 0.01
    assert data["between"][0]["p"] == 1
    assert not any(row["telling"] for row in data["divergences"])
    for run in log.runs:  # nothing tells within a task: all turns have the same
        rewards = model.turn_rewards(run)
        assert np.ptp(rewards) < 0.05
    text = as_text(data)
    assert "not, beyond chance, with failing within a task" in text
    assert "6 failures are of 1 task without any success" in text


def test_what_fails_within_tasks_is_named_and_hopeless_tasks_tell_nothing():
    log = hard_and_easy(cause=True)
    model = LogModel().fit(log)
    data = report_data(model, log)
    row = data["divergences"][0]
    assert (data["symbols"][row["symbol"]], row["telling"]) == ("book", True)
    assert row["within"]["failures"]["count"] == row["within"]["failures"]["of"] == 30
    assert row["within"]["successes"] == {**row["within"]["successes"], "count": 0, "of": 30}
    assert data["explained"] == {"telling": 30, "other": 0, "none": 0, "alone": 6}
    for run in log.runs:
        rewards = model.turn_rewards(run)
        if run.group == "hopeless":
            assert np.ptp(rewards) == pytest.approx(0)
            left = model.read(run).divergence
            assert left is None or not left.telling
        elif not run.success:
            assert run.entries[int(np.argmin(rewards))].name == "book"


@pytest.mark.parametrize("per_group", [True, False])
def test_a_task_without_success_has_no_row_that_tells(per_group):
    log = hard_and_easy(cause=True)
    data = report_data(LogModel(per_group=per_group).fit(log), log)
    (hopeless,) = (group for group in data["groups"] if group["name"] == "hopeless")
    assert not any(row["telling"] for row in hopeless["divergences"])


def test_one_run_of_each_task_is_compared_with_all_others():
    log = planted(7, "wrong tool").log
    alone = RunLog(tuple(replace(run, group=run.name) for run in log.runs))
    model, other = LogModel().fit(alone), LogModel().fit(log)
    assert not model.within_
    for run in alone.runs:
        assert model.turn_rewards(run) == other.turn_rewards(run)
    assert "compared over all tasks: most have one run" in as_text(report_data(model, alone))


def test_a_longer_stay_that_gives_noise_more_chance_makes_no_headline():
    for seed in range(600, 605):
        one = planted(seed, "too often", extra=0.5)
        row = report_data(LogModel().fit(one.log), one.log)["divergences"][0]
        assert row["says"].endswith(f"do {one.step} more than 3 times")
        assert row["failures"]["share"] == 1


def test_what_failures_do_at_any_place_has_a_row_of_its_own():
    rng = np.random.default_rng(0)
    road, runs = ["look", "read", "plan", "edit", "test", "send", "mail", "close"], []
    for i in range(60):
        cut = int(rng.integers(2, 7))
        words = [*road[:cut], "give_up"] if i % 2 else road
        kept = [w for w in words if w == "give_up" or rng.random() > 0.05]
        runs.append(case(" ".join(kept), not i % 2, f"run {i}"))
    log = RunLog(tuple(runs))
    data = report_data(model := LogModel().fit(log), log)
    assert data["divergences"][0]["says"] == (
        "30 of 30 failures (0 of 30 successes) do give_up, wherever it comes"
    )
    for run in log.failures:
        rewards = model.turn_rewards(run)
        assert run.entries[int(np.argmin(rewards))].name == "give_up"


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
