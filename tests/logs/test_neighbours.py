"""Causes that no step by itself shows: what comes directly after what, and what is last."""

import random
from itertools import pairwise

import numpy as np
import pytest
from logs.small import case

from align_rudder.data.logs import RunLog
from align_rudder.logs import LogModel, report_data


def noisy(words, rng, noise):
    """Return words with another one before some of them."""
    out = []
    for word in words:
        out += [rng.choice("lmnop")] * (rng.random() < noise) + [word]
    return out


def untested(rng, bad, noise):
    """An agent edits and tests up to three times; a failure edits once more, untested."""
    rounds = ["edit", "test"] * rng.randint(1, 3) + ["edit"] * bad
    return noisy(["read", *rounds, "submit"], rng, noise)


def unfinished(rng, bad, noise):
    """The same without `submit`: the run just ends."""
    return untested(rng, bad, noise)[:-1]


def clash(rng, bad, noise):
    """Six tools in any order; a failure has b directly after d, a success never."""
    while True:
        words = [rng.choice("abcdef") for _ in range(rng.randint(6, 10))]
        if (("d", "b") in pairwise(words)) == bad:
            return words


def log_of(make, seed, noise, runs=100):
    rng, out = random.Random(seed), []
    for i in range(runs):
        bad = rng.random() < 0.4
        out.append(case(" ".join(make(rng, bad, noise)), not bad, f"run {i}"))
    return RunLog(tuple(out))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (untested, "do submit directly after edit"),
        (unfinished, "end with edit"),
        (clash, "do b directly after d"),
    ],
)
def test_what_only_neighbours_show_is_named_first_and_its_turn_has_the_lowest_reward(make, says):
    named, right = [], []
    for seed in range(8):
        log = log_of(make, seed, 0.1)
        data = report_data(model := LogModel().fit(log), log)
        named.append(says in data["divergences"][0]["says"] and data["divergences"][0]["telling"])
        shown = says.split()[-1], says.split()[1] if make is not unfinished else None
        for run in log.failures:
            names = [entry.name for entry in run.entries]
            pairs = [i + 1 for i, pair in enumerate(pairwise([*names, None])) if pair == shown]
            if not pairs:  # noise came between
                continue
            rewards = model.turn_rewards(run)
            right.append(int(np.argmin(rewards)) == min(pairs[0], len(names) - 1))
    assert sum(named) >= 7
    assert np.mean(right) > 0.9


def test_what_is_never_directly_after_something_is_a_cause():
    """Failures do any of many things between test and submit."""
    rng, runs = random.Random(0), []
    for i in range(60):
        bad = i % 3 == 0
        before, between = rng.sample("abcdefghijklmnop", 2)
        words = ["read", before, "test", *([between] if bad else []), "submit"]
        runs.append(case(" ".join(words), not bad, f"run {i}"))
    log = RunLog(tuple(runs))
    data = report_data(LogModel().fit(log), log)
    row = data["divergences"][0]
    assert row["telling"]
    assert row["failures"]["count"] == 20
    assert row["successes"]["count"] == 0
    assert "submit, but never directly after test: " in row["says"]


def test_of_most_causes_neighbours_say_nothing_more():
    """A step is left out: what is named is the step, though it brings new neighbours as well."""
    rng, runs = random.Random(0), []
    for i in range(100):
        bad = i % 5 < 2
        words = noisy(["look", "find", "read", "edit", "send"], rng, 0.1)
        runs.append(case(" ".join(w for w in words if w != "read" or not bad), not bad, f"run {i}"))
    log = RunLog(tuple(runs))
    rows = report_data(LogModel().fit(log), log)["divergences"]
    assert " leave out read: " in rows[0]["says"]


def test_a_saved_model_does_the_same(tmp_path):
    for make in (untested, unfinished):
        log = log_of(make, 1, 0.1)
        model = LogModel().fit(log)
        assert {cause.mark.kind for cause in model.contrast_.causes} & {"after", "last"}
        model.save(tmp_path / "m.json")
        assert report_data(LogModel.load(tmp_path / "m.json"), log) == report_data(model, log)


@pytest.mark.parametrize("runs", [300, 3000])
def test_the_number_of_runs_does_not_change_the_cause(runs):
    """Of thousands of runs p is too small for a number; what tells best is named all the same."""
    rng, out = random.Random(0), []
    for i in range(runs):
        bad = rng.random() < 0.4
        times = rng.randint(5, 7) if bad else rng.randint(1, 3)
        out.append(case(f"auth{' find' * times} edit submit", not bad, f"run {i}"))
    log = RunLog(tuple(out))
    row = report_data(LogModel().fit(log), log)["divergences"][0]
    assert row["says"].endswith("do find more than 3 times")
    assert row["successes"]["count"] == 0
    assert row["failures"]["count"] == len(log.failures)
