"""The study of recipes: stored trials, tables, and going on after a stop."""

import csv
import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from align_rudder.baselines import learn_q
from align_rudder.cli.main import main
from align_rudder.runs.workers import Workers
from align_rudder.studies.recipes.methods import METHODS, chosen_parameters
from align_rudder.studies.recipes.settings import AXES, FIRST_SEED, Setting
from align_rudder.studies.recipes.study import run_recipes
from align_rudder.studies.recipes.tables import report_tables
from align_rudder.studies.recipes.trials import RecipeTrial, protocol_of, run_trial
from align_rudder.studies.recipes.tune import FIRST_SEED as TUNED
from align_rudder.studies.recipes.tune import tune_recipes
from align_rudder.studies.recipes.worlds import environment
from align_rudder.studies.statistics import summarise
from align_rudder.studies.trials import Scope

PAIR = ("align-rudder", "shortest-log")


def scope(trials, methods=PAIR):
    return Scope(trials, methods, [5], Workers(1), progress=False)


@pytest.mark.parametrize("name", METHODS)
def test_a_trial_repeats_itself_and_is_read_back(name):
    setting = Setting(2, logs=3, method=name)
    first, again = (run_trial(setting, 5, METHODS[name].first, protocol_of(100)) for _ in range(2))
    assert first == again
    assert first.steps > 0
    row = dict(zip(RecipeTrial.COLUMNS, first.row(), strict=True))
    assert RecipeTrial.parse(row) == first


def test_logs_without_anything_in_common_leave_the_reward_of_the_environment(monkeypatch):
    monkeypatch.setattr("align_rudder.studies.recipes.trials.logs_of", lambda *task: ["AB", "CD"])
    setting, protocol = Setting(2, method="common-subsequence"), protocol_of(200)
    rule = {"gamma": 0.9, "learning_rate": 0.1, "trace": 0.8, "initial_mean": 0.01}
    found = run_trial(setting, 5, {**rule, "settlement": "even"}, protocol)
    plain = learn_q(
        environment(setting, 5).mdp, [], seed=5, returns=[1.0], protocol=protocol, **rule
    )
    assert (found.episodes, found.steps) == (plain.episodes, plain.steps)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    return folder / "recipes", run_recipes(chosen_parameters(), folder, scope(4), 400)


def test_the_tables_are_what_the_rows_say(finished):
    folder, report = finished
    with open(folder / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 4
    assert {int(row["seed"]) for row in rows} == {*range(FIRST_SEED, FIRST_SEED + 4)}
    found = {
        name: np.array([int(row["episodes"]) for row in rows if row["method"] == name])
        for name in PAIR
    }
    episodes, p_values = report.tables
    for name, line in zip(PAIR, episodes.rows, strict=True):
        counts, solved = found[name], sum(r["solved"] == "1" for r in rows if r["method"] == name)
        assert line[0] == METHODS[name].label
        assert line[2] == f"{np.median(counts):,.0f} / {counts.mean():,.0f}, {solved}/4"
    p = mannwhitneyu(found["align-rudder"], found["shortest-log"], alternative="less").pvalue
    assert p_values.rows == [[*(METHODS[name].label for name in PAIR), f"{p:.1e}"]]
    assert "unpaired" in p_values.notes[0]
    assert report.data == json.loads((folder / "summary.json").read_text())
    assert (folder / "episodes.png").read_bytes().startswith(b"\x89PNG")
    assert episodes.markdown() in (folder / "tables.md").read_text()


def test_both_rows_of_ours_are_compared_with_every_rival():
    axis, found = AXES[-1], []
    for k, name in enumerate(axis.methods):
        setting = replace(axis.tasks[1], method=name)
        trials = [RecipeTrial(setting, seed, 10 * k + seed, True, 1) for seed in range(5)]
        found += summarise(trials, [setting])
    _, p_values = report_tables(found, 400)
    ours, other, *rivals = (METHODS[name].label for name in axis.methods)
    wanted = [(ours, other), *product((ours, other), rivals)]
    assert sorted(row[:2] for row in p_values.rows) == sorted([*pair] for pair in wanted)
    assert {float(row[2]) for row in p_values.rows} == {4.0e-03}


def test_a_study_that_was_stopped_goes_on_and_doubles_nothing(finished, tmp_path):
    folder, _ = finished
    whole = (folder / "trials.csv").read_bytes()
    path = tmp_path / "recipes" / "trials.csv"
    path.parent.mkdir()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:9])
    (path.parent / "config.json").write_bytes((folder / "config.json").read_bytes())
    run_recipes(chosen_parameters(), tmp_path, scope(4), 400)
    assert path.read_bytes() == whole
    (call,) = json.loads((path.parent / "time.json").read_text())
    assert call["trials"] == 8 - 3
    with pytest.raises(ValueError, match="max_episodes is 400 there and 500 here"):
        run_recipes(chosen_parameters(), tmp_path, scope(4), 500)


def test_tuning_takes_the_best_and_uses_other_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr("align_rudder.studies.recipes.methods.BUDGET", 3)
    chosen, (table,) = tune_recipes(["align-rudder"], 2, 200, tmp_path, Workers(1), progress=False)
    with open(tmp_path / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    assert {int(row["seed"]) for row in rows} == {TUNED, TUNED + 1}
    means = [
        [
            np.mean(
                [int(r["episodes"]) for r in rows if (r["variant"], r["length"]) == (str(v), n)]
            )
            for n in ("8", "12")
        ]
        for v in range(3)
    ]
    best = int(np.exp(np.log(means).mean(axis=1)).argmin())
    assert chosen["align-rudder"] == METHODS["align-rudder"].configurations()[best]
    assert [row[0][0] for row in table.rows] == ["*" if v == best else " " for v in range(3)]
    stored = json.loads((tmp_path / "hyperparameters.json").read_text())
    assert stored["parameters"] == chosen


def test_from_the_command_line(tmp_path, capsys):
    args = ["reproduce", "recipes", "--trials", "1", "--demos", "5", "--max-episodes", "50"]
    args += ["--methods", "q-memory", "--jobs", "1", "--out", str(tmp_path)]
    assert main(args) == 0
    shown = capsys.readouterr().out
    assert "Episodes to a greedy success" in shown
    assert "p-values" not in shown
    assert main(["reproduce", "recipes", "--methods", "dqfd", "--out", str(tmp_path)]) == 2
    assert "'dqfd' is not known" in capsys.readouterr().err
