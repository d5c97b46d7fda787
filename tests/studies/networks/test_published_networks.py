"""Committed trials with networks: run as tuned, and tables and pages follow from them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from align_rudder.studies.networks.methods import METHODS, chosen_parameters
from align_rudder.studies.networks.settings import FIRST_SEED, PACES, STEPS, TRIALS, Setting
from align_rudder.studies.networks.study import configuration
from align_rudder.studies.networks.trials import NetworkTrial
from align_rudder.studies.networks.tune import FIRST_SEED as TUNED

ROOT = Path(__file__).parents[3]
FOLDER, SEARCH = ROOT / "results" / "networks", ROOT / "results" / "tune-networks"


def trials_in(folder):
    with open(folder / "trials.csv") as file:
        return [NetworkTrial.parse(row) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def trials():
    return trials_in(FOLDER)


def test_the_study_was_run_with_what_tuning_chose():
    config = json.loads((FOLDER / "config.json").read_text())
    assert config == configuration(chosen_parameters(), STEPS)
    tuned = json.loads((SEARCH / "hyperparameters.json").read_text())
    assert tuned["parameters"] == chosen_parameters()


def test_every_method_has_the_same_budget_of_tuning_and_its_best_was_taken():
    found = trials_in(SEARCH)
    for name, method in METHODS.items():
        lost = []
        for variant, _ in enumerate(method.configurations()):
            mine = [t for t in found if (t.setting.method, t.setting.variant) == (name, variant)]
            assert [t.seed for t in mine] == [TUNED, TUNED + 1]
            lost.append(np.mean([t.lost(STEPS) for t in mine]))
        assert chosen_parameters()[name] == method.configurations()[int(np.argmin(lost))], name


def test_every_method_has_all_trials_and_the_summary_follows_from_them(trials):
    cells = json.loads((FOLDER / "summary.json").read_text())
    wanted = {(name, pace) for name in METHODS for pace in PACES}
    assert {(cell["method"], cell["pace"]) for cell in cells} == wanted
    for cell in cells:
        setting = Setting(**{name: cell[name] for name in Setting.COLUMNS})
        mine = [t for t in trials if t.setting == setting]
        assert [t.seed for t in mine] == list(range(FIRST_SEED, FIRST_SEED + TRIALS))
        assert cell["median"] == np.median([t.steps for t in mine])
        assert cell["solved"] == sum(t.solved for t in mine)
        assert cell["final"] == np.median([t.final for t in mine])


def test_the_median_string_is_level_with_ours(trials):
    for pace in PACES:
        ours, median = (
            [t for t in trials if (t.setting.method, t.setting.pace) == (name, pace)]
            for name in ("align-rudder", "median")
        )
        assert sum(t.solved for t in ours) == sum(t.solved for t in median) == 4 + (pace == 40)
        for first, second in ((ours, median), (median, ours)):
            steps = [[t.steps for t in found] for found in (first, second)]
            assert mannwhitneyu(*steps, alternative="less").pvalue > 0.3


def test_no_other_method_solves_a_seed_where_time_is_short(trials):
    solved = {t.setting.method for t in trials if t.setting.pace == 20 and t.solved}
    assert solved == {"align-rudder", "median"}


def test_the_readme_has_the_steps_where_time_is_long(trials):
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    for name, phrase in {
        "align-rudder": "Align-RUDDER solves all five in {:,} to {:,} steps",
        "median": "the median string of the logs in {:,} to {:,}",
        "shortest-log": "the shortest log in {:,} to {:,}",
    }.items():
        steps = [
            t.steps for t in trials if (t.setting.method, t.setting.pace) == (name, 40) and t.solved
        ]
        assert phrase.format(min(steps), max(steps)) in readme
