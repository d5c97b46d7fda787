"""The study with networks: trials, table and figure, going on after a stop, tuning."""

import csv
import json

import numpy as np
import pytest

from align_rudder.cli.main import main
from align_rudder.runs.workers import Workers
from align_rudder.studies.networks.figures import curves_figure
from align_rudder.studies.networks.methods import METHODS, chosen_parameters
from align_rudder.studies.networks.settings import FIRST_SEED, Setting
from align_rudder.studies.networks.tables import report_tables, summarise
from align_rudder.studies.networks.trials import LEARNERS, NetworkTrial, run_trial
from align_rudder.studies.networks.tune import FIRST_SEED as TUNED
from align_rudder.studies.networks.tune import tune_networks

STEPS = 5000


def command(folder, *more):
    return [
        *("reproduce", "networks", "--methods", "align-rudder", "gail-events", "--trials", "1"),
        *("--steps", str(STEPS), "--jobs", "1", "--out", str(folder), *more),
    ]


@pytest.mark.parametrize("name", METHODS)
def test_a_trial_repeats_itself_and_is_read_back(name):
    setting = Setting(2, logs=3, method=name)
    first, again = (run_trial(setting, 5, METHODS[name].first, STEPS) for _ in range(2))
    assert first == again
    assert len(first.curve) == 1
    row = dict(zip(NetworkTrial.COLUMNS, first.row(), strict=True))
    assert NetworkTrial.parse(row) == first


def test_every_method_has_a_learner_and_parameters():
    assert METHODS.keys() == LEARNERS.keys() == chosen_parameters().keys()
    for name, method in METHODS.items():
        tried = method.configurations()
        assert tried[0] == method.first
        assert len(tried) == 10, name
        assert all(sum(c[k] != tried[0][k] for k in c) == 1 for c in tried[1:]), name
        assert chosen_parameters()[name] in tried


def test_cut_in_the_middle_it_goes_on_and_doubles_nothing(tmp_path, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut" / "networks"
    assert main(command(whole)) == 0
    shown = capsys.readouterr().out
    assert all(METHODS[name].label in shown for name in ("align-rudder", "gail-events"))
    rows = (whole / "networks" / "trials.csv").read_bytes()
    lines = rows.splitlines(keepends=True)
    assert len(lines) == 1 + 2 * 2
    assert {line.split(b",")[5] for line in lines[1:]} == {b"60000"}
    cut.mkdir(parents=True)
    (cut / "config.json").write_bytes((whole / "networks" / "config.json").read_bytes())
    (cut / "trials.csv").write_bytes(b"".join(lines[:2]) + lines[2][:9])
    assert main(command(cut.parent)) == 0
    assert (cut / "trials.csv").read_bytes() == rows
    (call,) = json.loads((cut / "time.json").read_text())
    assert call["trials"] == 3
    for name in ("tables.md", "summary.json", "curves.png"):
        assert (cut / name).read_bytes() == (whole / "networks" / name).read_bytes()
    capsys.readouterr()
    assert main(command(cut.parent, "--steps", "6000")) == 2
    assert "steps is 5000 there and 6000 here" in capsys.readouterr().err


def trial(method, seed, curve, steps=None):
    final = curve[-1]
    setting = Setting(method=method)
    return NetworkTrial(setting, seed, steps or 20_000, steps is not None, final, tuple(curve))


TRIALS = [
    trial("align-rudder", 0, [0.0, 0.5, 0.95, 0.9], 15_000),
    trial("align-rudder", 1, [0.5, 0.9, 0.95], 10_000),
    trial("align-rudder", 2, [0.9, 0.9], 5_000),
    trial("gail-inventory", 0, [0.0, 0.0, 0.0, 0.1]),
    trial("gail-inventory", 1, [0.0, 0.0, 0.0, 0.3]),
    trial("gail-inventory", 2, [0.0, 0.0, 0.9, 0.7], 15_000),
]


def test_the_table_has_medians_and_every_seed():
    found = summarise(TRIALS, [Setting(method=m) for m in ("align-rudder", "gail-inventory")])
    (table,) = report_tables(found, 20_000)
    ours, other = table.rows
    assert ours[2:] == ["10", "3/3", "90%", "–", "15, 10, 5"]
    assert other[0].endswith("†")
    assert other[2:5] == ["> 20", "1/3", "30%"]
    assert other[6] == "> 20, > 20, 15"
    assert float(other[5]) == pytest.approx(0.05, abs=0.02)  # the least of 3 against 3, and a tie
    assert found[0].data()["median"] == 10_000


def test_the_figure_goes_on_with_the_last_value():
    (ax,) = curves_figure(TRIALS, 20_000).axes
    line = next(line for line in ax.lines if line.get_label() == "Align-RUDDER")
    assert line.get_xdata().tolist() == [0, 5, 10, 15, 20]
    mean = np.mean([[0, 0, 50, 95, 90], [0, 50, 90, 95, 95], [0, 90, 90, 90, 90]], axis=0)
    assert line.get_ydata().tolist() == pytest.approx(mean.tolist())


def test_steps_that_are_lost_are_the_area_above_the_curve():
    assert TRIALS[0].lost(20_000) == pytest.approx(5000 * (1 + 0.5 + 0.05 + 0.1))
    assert TRIALS[2].lost(20_000) == pytest.approx(5000 * 0.4)  # solved: goes on with 0.9


def test_tuning_takes_the_best_and_uses_other_seeds(tmp_path, monkeypatch):
    tried = [{"learning_rate": 1e-3, "ent_coef": 0.03}, {"learning_rate": 3e-3, "ent_coef": 0.03}]
    kind = type(METHODS["ppo-memory"])
    monkeypatch.setattr(kind, "configurations", lambda self: tried)
    chosen, (table,) = tune_networks(["ppo-memory"], 1, tmp_path, Workers(1), False, STEPS)
    with open(tmp_path / "trials.csv") as file:
        rows = [NetworkTrial.parse(row) for row in csv.DictReader(file)]
    assert {row.seed for row in rows} == {TUNED}
    assert TUNED >= FIRST_SEED + 1000
    best = int(np.argmin([row.lost(STEPS) for row in rows]))
    assert chosen["ppo-memory"] == tried[best]
    assert table.rows[best][0].startswith("*")
    stored = json.loads((tmp_path / "hyperparameters.json").read_text())
    assert stored["parameters"] == chosen


def test_what_is_not_known_is_said(tmp_path, capsys):
    assert main(["reproduce", "networks", "--methods", "dqfd", "--out", str(tmp_path)]) == 2
    assert "'dqfd' is not known" in capsys.readouterr().err


@pytest.mark.slow
def test_ppo_learns_a_recipe_of_one_item():
    found = run_trial(Setting(1, method="ppo-memory"), 5, METHODS["ppo-memory"].first, 80_000)
    assert found.solved
    assert found.curve[0] < 0.5
    assert len(found.curve) < 16  # ended as soon as it held
