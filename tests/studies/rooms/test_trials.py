"""One trial; committed ones, run again, are the same to the last byte."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from align_rudder.baselines import Protocol, learn_q
from align_rudder.studies import key_chest
from align_rudder.studies.rooms.methods import chosen_parameters
from align_rudder.studies.rooms.settings import SEARCHES, STUDIES, Setting, environment
from align_rudder.studies.rooms.studies import configuration, protocol_of
from align_rudder.studies.rooms.trials import TrialRecord, curve_points, run_trial
from align_rudder.studies.rooms.tune import configuration as tuning

RESULTS = Path(__file__).parents[3] / "results"


def test_a_trial_is_its_learner_on_its_seed():
    setting, short = Setting(4, 0.01, 15, 2, "bc-q"), Protocol(max_episodes=100)
    found = run_trial(setting, 3, {"learning_rate": 0.05}, short)
    env = environment(4, 0.01)
    result = learn_q(env.mdp, env.demonstrations(2, 3), seed=3, learning_rate=0.05, protocol=short)
    assert (found.episodes, found.solved, found.steps) == (
        result.episodes,
        result.solved,
        result.steps,
    )
    np.testing.assert_allclose(found.curve, result.curve, atol=5e-4)


def test_curves_are_thinned():
    assert curve_points(3) == [0, 1, 2]
    assert curve_points(75)[48:] == [48, 49, 59, 69, 74]


def stored(study):
    """Return configuration and lines of a committed study; the header is the first."""
    folder = RESULTS / study
    lines = (folder / "trials.csv").read_text().splitlines()
    return json.loads((folder / "config.json").read_text()), lines


CHEAP = [
    *(("four-rooms", method, 2, 0) for method in ("align-rudder", "bc-q", "control")),
    *(("four-rooms", method, 50, 1) for method in ("sqil", "sqil-absorbing", "gail-absorbing")),
    *(("eight-rooms", method, 5, 2) for method in ("align-rudder", "control", "sqil-absorbing")),
    ("eight-rooms", "dqfd", 50, 1),
    ("stochastic", "default", 10, 0),
    *(("stochastic", method, 5, 3) for method in ("unordered", "q-lambda", "gail-discounted")),
    *(("variants", method, 10, 0) for method in ("direct", "kappa", "subtasks")),
    ("clusters", "align-rudder", 2, 0),
    *(("scaling", method, 10, 0) for method in ("default", "q-lambda", "rrd")),
    *(("poor", method, 10, 80_003) for method in ("default", "unordered", "q-lambda", "top-5")),
]


@pytest.mark.parametrize(("study", "method", "demos", "seed"), CHEAP)
def test_committed_trials_run_again_byte_by_byte(study, method, demos, seed):
    config, lines = stored(study)
    protocol = protocol_of(study)
    assert config["protocol"] == asdict(protocol)
    rows = zip(lines[1:], map(TrialRecord.parse, csv.DictReader(lines)), strict=True)
    line, record = next(
        (line, record)
        for line, record in rows
        if (record.setting.method, record.setting.demos, record.seed) == (method, demos, seed)
    )
    again = run_trial(record.setting, seed, config["parameters"][method], protocol)
    assert ",".join(again.row()) == line


@pytest.mark.parametrize("model", ["alignment", "alignment-states"])
def test_committed_detections_run_again_byte_by_byte(model):
    _, lines = stored("key-chest")
    line = next(line for line in lines if line.startswith(f"{model},2,0,"))
    assert ",".join(key_chest.detect(model, 2, 0, int(line.split(",")[3])).row()) == line


@pytest.mark.parametrize("study", STUDIES)
def test_committed_results_can_be_gone_on_with(study):
    """The configuration is the one of today, so that more trials may be added to them."""
    config, _ = stored(study)
    ours = configuration(study, chosen_parameters(study=study), protocol_of(study))
    assert json.loads(json.dumps(ours)) == config


def test_the_committed_tuning_can_be_gone_on_with():
    for search, folder, cap in (
        ("paper", "tune", 3000),
        ("rooms", "tune-rooms", 3000),
        ("poor", "tune-poor", 1500),
    ):
        config = json.loads((RESULTS / folder / "config.json").read_text())
        protocol = protocol_of(SEARCHES[search].study, cap)
        assert json.loads(json.dumps(tuning(protocol, search))) == config
    assert stored("key-chest")[0] == key_chest.CONFIG
