"""Grid search."""

import csv
import json
from dataclasses import replace

import pytest

from align_rudder.baselines import Protocol
from align_rudder.runs.workers import Workers
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.tune import FIRST_SEED, tune


def test_tuning_finds_the_configuration_that_learns(tmp_path, monkeypatch):
    """A learning rate of zero cannot be the one that is chosen."""
    grid = {"learning_rate": (0.0, 0.1), "initial_scale": (0.3,)}
    monkeypatch.setitem(METHODS, "bc-q", replace(METHODS["bc-q"], grid=grid))
    protocol = Protocol(max_episodes=2000)
    chosen, (table,) = tune(["bc-q"], 2, protocol, tmp_path, Workers(1), progress=False)
    assert chosen == {"bc-q": {"learning_rate": 0.1, "initial_scale": 0.3}}
    assert table.rows[1][0].startswith("* learning_rate=0.1")
    with open(tmp_path / "trials.csv") as file:
        seeds = {int(row["seed"]) for row in csv.DictReader(file)}
    assert min(seeds) == FIRST_SEED > 10_000  # no result uses them
    path = tmp_path / "hyperparameters.json"
    assert json.loads(path.read_text())["parameters"] == chosen
    path.write_text(json.dumps({"parameters": {**chosen, "dqfd": {"n_step": 3}}}))
    tune(["bc-q"], 2, protocol, tmp_path, Workers(1), progress=False)
    assert json.loads(path.read_text())["parameters"] == {**chosen, "dqfd": {"n_step": 3}}


def test_variants_are_not_tuned(tmp_path):
    with pytest.raises(ValueError, match="kappa is a variant of Align-RUDDER"):
        tune(["kappa"], 1, Protocol(), tmp_path, Workers(1))
