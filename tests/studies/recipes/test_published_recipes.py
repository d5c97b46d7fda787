"""Committed trials of the recipes: run again they are the same, and the tables follow from them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from align_rudder.baselines import Protocol
from align_rudder.studies.recipes.methods import METHODS, chosen_parameters
from align_rudder.studies.recipes.settings import FIRST_SEED
from align_rudder.studies.recipes.study import configuration
from align_rudder.studies.recipes.trials import RecipeTrial, run_trial

FOLDER = Path(__file__).parents[3] / "results" / "recipes"


@pytest.fixture(scope="module")
def config():
    return json.loads((FOLDER / "config.json").read_text())


@pytest.fixture(scope="module")
def rows():
    with open(FOLDER / "trials.csv") as file:
        return list(csv.DictReader(file))


def test_the_study_was_run_with_what_tuning_chose(config):
    protocol = Protocol(**config["protocol"])
    assert config == configuration(chosen_parameters(), protocol)
    tuned = json.loads((FOLDER.parent / "tune-recipes" / "hyperparameters.json").read_text())
    assert {**tuned["parameters"], "defaults": {}} == chosen_parameters()


@pytest.mark.parametrize("name", METHODS)
def test_a_committed_trial_run_again_is_the_same(name, config, rows):
    found = [RecipeTrial.parse(row) for row in rows if row["method"] == name]
    for length, seed in ((4, FIRST_SEED + 3), (12, FIRST_SEED)):
        stored = next(t for t in found if t.setting.length == length and t.seed == seed)
        protocol = Protocol(**config["protocol"])
        assert run_trial(stored.setting, seed, config["parameters"][name], protocol) == stored


def test_the_summary_follows_from_the_trials(rows):
    for cell in json.loads((FOLDER / "summary.json").read_text()):
        names = ("length", "wrong", "logs", "detours", "method", "variant")
        mine = [r for r in rows if all(r[name] == str(cell[name]) for name in names)]
        assert len(mine) == cell["trials"]
        assert cell["mean"] == np.mean([int(r["episodes"]) for r in mine])
        assert cell["median"] == np.median([int(r["episodes"]) for r in mine])
        assert cell["capped"] == sum(r["solved"] == "0" for r in mine)


@pytest.mark.parametrize("ours", ["align-rudder", "defaults"])
@pytest.mark.parametrize("length", [8, 12, 24])
def test_ours_is_ahead_of_all_that_lack_the_inventory(rows, ours, length):
    plain = {"length": str(length), "wrong": "nothing", "logs": "10", "detours": "0.5"}
    found = {
        name: [
            int(r["episodes"])
            for r in rows
            if r["method"] == name and all(r[k] == value for k, value in plain.items())
        ]
        for name in METHODS
    }
    assert len(found[ours]) == 40
    for name in ("shortest-log", "unordered", "gail-events", "q-memory", "rrd", "ircr-absorbing"):
        assert mannwhitneyu(found[ours], found[name], alternative="less").pvalue < 1e-6
    assert np.mean(found[ours]) < np.mean(found["gail-inventory"])
    assert ours != "defaults" or max(found[ours]) < 3000
