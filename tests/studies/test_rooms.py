"""Experiments: trials are counted once, survive a kill, and do not depend on who runs them."""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from align_rudder.baselines import Protocol, learn_q
from align_rudder.cli.main import main
from align_rudder.studies import key_chest
from align_rudder.studies.rooms import methods as methods_module
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms import store as store_module
from align_rudder.studies.rooms.figures import _on_grid
from align_rudder.studies.rooms.methods import (
    METHODS,
    Method,
    all_methods,
    chosen_parameters,
)
from align_rudder.studies.rooms.runner import Workers
from align_rudder.studies.rooms.settings import Setting, settings_of
from align_rudder.studies.rooms.statistics import compare, summarise
from align_rudder.studies.rooms.store import Store, TrialRecord
from align_rudder.studies.rooms.studies import run_study
from align_rudder.studies.rooms.tables import Table, episode_table
from align_rudder.studies.rooms.trials import curve_points, run_trial
from align_rudder.studies.rooms.tune import FIRST_SEED, tune

SETTING = Setting(4, 0.01, 15, 2, "align-rudder")
SHORT = Protocol(max_episodes=100)


def record(seed=0, episodes=50, solved=True, setting=SETTING, curve=()):
    return TrialRecord(setting, seed, episodes, solved, 7 * episodes, curve)


def opened(folder, config=None):
    return Store(folder, {"a": 1} if config is None else config, TrialRecord)


def command(folder, *more):
    return [
        *("reproduce", "four-rooms", "--methods", "align-rudder", "bc-q", "--demos", "2"),
        *("--max-episodes", "600", "--out", str(folder), *more),
    ]


# Store


def test_trials_come_back_as_they_were_stored(tmp_path):
    kept = [record(3, 120, curve=(0.25, 0.5)), record(1, 20_000, False)]
    with opened(tmp_path) as store:
        for one in kept:
            store.add(one)
    with opened(tmp_path) as store:
        assert list(store.trials.values()) == kept
        store.sort()
    with opened(tmp_path) as store:
        assert list(store.trials.values()) == kept[::-1]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_cut_short_is_dropped_and_the_next_one_is_whole(tmp_path, cut):
    with opened(tmp_path) as store:
        for seed in range(3):
            store.add(record(seed))
    path = tmp_path / "trials.csv"
    path.write_bytes(path.read_bytes()[:-cut])
    with opened(tmp_path) as store:
        assert [r.seed for r in store.trials.values()] == [0, 1]
        store.add(record(2))
    with opened(tmp_path) as store:
        assert [r.seed for r in store.trials.values()] == [0, 1, 2]


def test_only_one_run_writes(tmp_path):
    with opened(tmp_path), pytest.raises(ValueError, match="another run is writing"):
        opened(tmp_path).__enter__()
    with opened(tmp_path):
        pass


def test_a_folder_of_another_configuration_is_refused_and_left_alone(tmp_path):
    with opened(tmp_path, {"protocol": {"max_episodes": 100}}) as store:
        store.add(record())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"protocol\.max_episodes is 100 there and 200 here"):
        opened(tmp_path, {"protocol": {"max_episodes": 200}}).__enter__()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        opened(tmp_path).__enter__()
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"no config\.json"):
        opened(tmp_path).__enter__()


def test_an_empty_folder_takes_another_configuration(tmp_path):
    with opened(tmp_path, {"a": 1}):
        pass
    with opened(tmp_path, {"a": 2}) as store:
        store.add(record())
    assert json.loads((tmp_path / "config.json").read_text()) == {"a": 2}


def test_a_damaged_line_is_named(tmp_path):
    with opened(tmp_path) as store:
        store.add(record(0))
    with open(tmp_path / "trials.csv", "a") as file:
        file.write("4,0.01,fifteen\n")
    with pytest.raises(ValueError, match=r"line 3 of .*fifteen"):
        opened(tmp_path).__enter__()


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_loses_nothing_that_was_finished(tmp_path, monkeypatch, written):
    real = os.write

    def full(handle, data):
        if written:
            return real(handle, data[:written])
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(tmp_path) as store:
        store.add(record(0))
        before = (tmp_path / "trials.csv").read_bytes()
        monkeypatch.setattr(store_module.os, "write", full)
        with pytest.raises(ValueError, match=r"No space left.*safe"):
            store.add(record(1))
        monkeypatch.undo()
        assert (tmp_path / "trials.csv").read_bytes() == before
        store.add(record(1))
    with opened(tmp_path) as store:
        assert [r.seed for r in store.trials.values()] == [0, 1]


# Runs


def test_killed_in_the_middle_it_goes_on_and_counts_nothing_twice(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(command(whole, "--trials", "12", "--jobs", "1")) == 0
    path = killed / "four-rooms" / "trials.csv"
    process = subprocess.Popen(
        [sys.executable, "-m", "align_rudder", *command(killed, "--trials", "12", "--jobs", "2")],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") > 4:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.005)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    found = path.read_bytes().count(b"\n") - 1
    assert 4 <= found < 24
    assert main(command(killed, "--trials", "12", "--jobs", "1")) == 0
    assert path.read_bytes() == (whole / "four-rooms" / "trials.csv").read_bytes()
    calls = json.loads((killed / "four-rooms" / "time.json").read_text())
    assert sum(call["trials"] for call in calls) == 24 - found


def test_same_trials_whatever_the_jobs_and_the_backend(tmp_path):
    pytest.importorskip("ray")
    runs = {
        "one": ["--jobs", "1"],
        "two": ["--jobs", "2"],
        "ray": ["--jobs", "2", "--backend", "ray"],
    }
    for name, options in runs.items():
        assert main(command(tmp_path / name, "--trials", "4", *options)) == 0
    files = [(tmp_path / name / "four-rooms" / "trials.csv").read_bytes() for name in runs]
    assert files[0] == files[1] == files[2]
    assert files[0].count(b"\n") == 9


def test_more_trials_are_added_to_those_that_are_there(tmp_path, capsys):
    assert main(command(tmp_path, "--trials", "2", "--jobs", "1")) == 0
    assert "(2 trials)" in capsys.readouterr().out
    assert main(command(tmp_path, "--trials", "3", "--jobs", "1")) == 0
    assert "(3 trials)" in capsys.readouterr().out
    calls = json.loads((tmp_path / "four-rooms" / "time.json").read_text())
    assert [call["trials"] for call in calls] == [4, 2]
    with open(tmp_path / "four-rooms" / "trials.csv") as file:
        seeds = sorted((row["method"], int(row["seed"])) for row in csv.DictReader(file))
    assert seeds == [(m, s) for m in ("align-rudder", "bc-q") for s in range(3)]


def test_a_trial_is_its_learner_on_its_seed():
    setting = Setting(4, 0.01, 15, 2, "bc-q")
    found = run_trial(setting, 3, {"learning_rate": 0.05}, SHORT)
    env = RoomsEnvOf(setting)
    result = learn_q(env.mdp, env.demonstrations(2, 3), seed=3, learning_rate=0.05, protocol=SHORT)
    assert (found.episodes, found.solved, found.steps) == (
        result.episodes,
        result.solved,
        result.steps,
    )
    np.testing.assert_allclose(found.curve, result.curve, atol=5e-4)


def RoomsEnvOf(setting):
    from align_rudder.tasks import RoomsEnv

    return RoomsEnv(setting.rooms, setting.slip)


def test_a_network_does_not_depend_on_the_trials_that_are_missing(tmp_path):
    setting = Setting(2, 0.01, 15, 2, "rudder")
    small = {"updates": 3, "hidden": 2, "random_episodes": 3}
    names = METHODS["rudder"].network
    assert names is not None
    parameters = {k: v for k, v in small.items() if k in names}
    few = networks.missing([(setting, 3)], lambda _: parameters, tmp_path)
    many = networks.missing([(setting, s) for s in range(10)], lambda _: parameters, tmp_path)
    assert few == many == [(setting, 0, parameters)]
    batch, found = networks.train(*few[0])
    networks.save(tmp_path, batch, found)
    assert networks.missing([(setting, 3)], lambda _: parameters, tmp_path) == []
    loaded = networks.load(tmp_path, setting, 3, parameters)
    assert loaded is not None
    demo = RoomsEnvOf(setting).demonstrations(1, 77)[0]
    np.testing.assert_array_equal(
        loaded.redistribute(demo).rewards, found[3].redistribute(demo).rewards
    )
    assert (loaded.weights_.head != found[4].weights_.head).any()


# Numbers


def test_summaries_count_caps_and_hold_the_mean():
    episodes = [10, 20, 30, 20_000]
    records = [record(s, n, n < 20_000) for s, n in enumerate(episodes)]
    (found,) = summarise(records, [SETTING], range(4))
    assert (found.trials, found.capped, found.median) == (4, 1, 25.0)
    assert found.mean == np.mean(episodes)
    assert found.low < found.mean < found.high <= 20_000
    (fewer,) = summarise(records, [SETTING], range(2))
    assert fewer.episodes == (10, 20)


def test_p_values_are_scipys_one_sided_ones():
    ours = summarise([record(s, 10 * s + 10) for s in range(20)], [SETTING], range(20))[0]
    slower = Setting(4, 0.01, 15, 2, "bc-q")
    other = summarise(
        [record(s, 10 * s + 95, setting=slower) for s in range(20)], [slower], range(20)
    )[0]
    expected = mannwhitneyu(ours.episodes, other.episodes, alternative="less").pvalue
    assert compare(ours, other) == pytest.approx(expected)
    assert compare(ours, other) < 0.01 < 0.9 < compare(other, ours)


def test_tables_say_what_was_capped():
    records = [record(s, 100 if s else 20_000, bool(s)) for s in range(4)]
    found = summarise(records, [SETTING], range(4))
    table = episode_table("Episodes", found, 20_000, "four-rooms")
    assert table.rows == [["Align-RUDDER", "5,075 (1†)"], ["Align-RUDDER, paper", "985"]]
    assert "20,000" in table.notes[0]
    lines = table.text().splitlines()
    assert len({len(line) for line in lines if line.startswith("─")}) == 1
    assert "| Align-RUDDER | 5,075 (1†) |" in table.markdown()


def test_text_tables_are_aligned():
    text = Table("t", ["a", "bb"], [["long name", "1"], ["x", "1,000"]]).text().splitlines()
    assert text[2:6] == ["a             bb", "─" * 16, "long name      1", "x          1,000"]


def test_curves_are_thinned_and_read_back():
    assert curve_points(3) == [0, 1, 2]
    assert curve_points(75)[48:] == [48, 49, 59, 69, 74]
    values = np.linspace(0.0, 0.74, 75)
    one = record(0, 750, curve=tuple(values[curve_points(75)]))
    grid = np.array([10, 500, 650, 750, 2000])
    np.testing.assert_allclose(_on_grid(one, grid, 10), [0.0, 0.49, 0.64, 0.74, 0.74])


# Methods and tuning


def test_every_method_has_the_same_budget_and_no_seed_of_a_result():
    sizes = {name: len(method.configurations()) for name, method in METHODS.items()}
    assert set(sizes.values()) == {methods_module.GRID_SIZE}
    assert FIRST_SEED > 10_000


def test_the_chosen_parameters_come_from_the_grids():
    chosen = chosen_parameters()
    assert set(chosen) == set(all_methods())
    for name, method in METHODS.items():
        assert chosen[name] in method.configurations()
    assert chosen["kappa"] == {**chosen["align-rudder"], "method": "kappa"}


def test_methods_that_a_file_does_not_hold_have_the_packages_parameters(tmp_path):
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"parameters": {"bc-q": {"learning_rate": 0.5}}}))
    found = chosen_parameters(path)
    assert found["bc-q"] == {"learning_rate": 0.5}
    assert found["dqfd"] == chosen_parameters()["dqfd"]


def test_tuning_finds_the_configuration_that_learns(tmp_path, monkeypatch):
    """A learning rate of zero cannot be the one that is chosen."""
    grid = {"learning_rate": (0.0, 0.1), "initial_scale": (0.3,)}
    monkeypatch.setitem(METHODS, "bc-q", Method("BC+Q", learn_q, grid))
    protocol = Protocol(max_episodes=2000)
    chosen, (table,) = tune(["bc-q"], 2, protocol, tmp_path, Workers(1), progress=False)
    assert chosen == {"bc-q": {"learning_rate": 0.1, "initial_scale": 0.3}}
    assert table.rows[1][0].startswith("* learning_rate=0.1")
    with open(tmp_path / "trials.csv") as file:
        assert min(int(row["seed"]) for row in csv.DictReader(file)) == FIRST_SEED
    path = tmp_path / "hyperparameters.json"
    written = json.loads(path.read_text())
    assert written["parameters"] == chosen
    path.write_text(json.dumps({"parameters": {**chosen, "dqfd": {"n_step": 3}}}))
    tune(["bc-q"], 2, protocol, tmp_path, Workers(1), progress=False)
    assert json.loads(path.read_text())["parameters"] == {**chosen, "dqfd": {"n_step": 3}}


def test_studies_have_the_settings_of_the_paper():
    main_study = settings_of("four-rooms")
    assert {s.method for s in main_study} == set(METHODS)
    assert {s.demos for s in main_study} == {2, 5, 10, 50, 100}
    stochastic = {(s.rooms, s.slip) for s in settings_of("stochastic")}
    assert stochastic == {(4, x) for x in (0.05, 0.1, 0.15, 0.25, 0.4)} | {(8, 0.05), (8, 0.1)}
    assert {s.max_events for s in settings_of("clusters")} == {2, 5, 8, 10, 12, 15}
    scaling = {s.rooms: s.max_events for s in settings_of("scaling")}
    assert scaling == {2: 15, 4: 15, 8: 16, 16: 32, 32: 64}


def test_a_study_reports_what_its_trials_say(tmp_path):
    report = run_study(
        "four-rooms",
        chosen_parameters(),
        tmp_path,
        trials=3,
        methods=["align-rudder", "control"],
        demos=[2],
        protocol=Protocol(max_episodes=800),
        workers=Workers(1),
        progress=False,
    )
    with open(tmp_path / "four-rooms" / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    for cell in report.data:
        mine = [int(r["episodes"]) for r in rows if r["method"] == cell["method"]]
        assert cell["mean"] == np.mean(mine)
        assert cell["capped"] == sum(n == 800 for n in mine)
    assert report.data == json.loads((tmp_path / "four-rooms" / "summary.json").read_text())
    for name in ("episodes", "curves"):
        assert (tmp_path / "four-rooms" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_part_leaves_the_report_of_the_whole(tmp_path, capsys):
    assert main(command(tmp_path, "--trials", "2", "--jobs", "1")) == 0
    before = (tmp_path / "four-rooms" / "summary.json").read_bytes()
    assert main(command(tmp_path, "--trials", "1", "--jobs", "1")) == 0
    assert "all trials that are stored" in capsys.readouterr().out
    assert (tmp_path / "four-rooms" / "summary.json").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["scaling", "--demos", "2", "5"], "one number of demonstrations"),
        (["clusters", "--methods", "bc-q"], "align-rudder alone"),
        (["key-chest", "--trials", "0"], "at least 1"),
        (["key-chest", "--methods", "bc-q"], "'bc-q' is not known"),
    ],
)
def test_studies_refuse_what_they_cannot_show(tmp_path, capsys, args, expected):
    assert main(["reproduce", *args, "--out", str(tmp_path)]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# Key and chest


def test_key_steps_are_where_key_and_chest_change():
    env = key_chest.KeyChestEnv()
    episode = env.demonstrations(1, seed=0)[0]
    steps = key_chest.key_steps(episode)
    seen = np.asarray(episode.observations)
    assert len(steps) == 2
    assert (seen[steps[0], 1], seen[steps[0] + 1, 1]) == (0, 1)
    assert (seen[steps[1], 2], seen[steps[1] + 1, 2]) == (0, 1)


def test_alignment_points_at_key_and_chest():
    found = key_chest.detect("alignment", 5, seed=123, tests=50)
    assert found.detected > 0.95
    assert found.flagged < 0.25
    assert key_chest.Detection.parse(dict(zip(found.columns(), found.row()))) == found


def test_key_chest_from_the_command_line(tmp_path, capsys):
    args = ["reproduce", "key-chest", "--trials", "1", "--demos", "2", "--jobs", "1"]
    args += ["--methods", "alignment", "alignment-states", "--out", str(tmp_path)]
    assert main(args) == 0
    shown = capsys.readouterr().out
    assert "large clusters removed" in shown
    rows = (tmp_path / "key-chest" / "trials.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["model", "alignment", "alignment-states"]


# Command line


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--methods", "sarsa"], "method 'sarsa' is not known; use some of align-rudder"),
        (["--demos", "101"], "every trial has a pool of 100"),
        (["--demos", "1"], "an alignment needs 2"),
        (["--trials", "0"], "at least 1 is needed"),
        (["--max-episodes", "5"], "before its first evaluation"),
        (["--jobs", "0"], "number of trials at once"),
        (["--backend", "ray", "--address", "127.0.0.1:1"], "no Ray cluster answers"),
        (["--address", "1.2.3.4:6379"], "add backend ray"),
        (["--hyperparameters", "none.json"], "`align-rudder tune` writes such a file"),
        (["--json", "missing/x.json"], "missing does not exist"),
    ],
)
def test_wrong_arguments_are_explained_and_nothing_is_written(
    tmp_path, monkeypatch, capsys, args, expected
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "four-rooms", *args]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_another_cap_needs_another_folder(tmp_path, capsys):
    assert main(command(tmp_path, "--trials", "1", "--jobs", "1")) == 0
    before = (tmp_path / "four-rooms" / "trials.csv").read_bytes()
    other = [x if x != "600" else "700" for x in command(tmp_path, "--trials", "1")]
    assert main(other) == 2
    error = capsys.readouterr().err
    assert "max_episodes is 600 there and 700 here" in error
    assert "--out" in error
    assert (tmp_path / "four-rooms" / "trials.csv").read_bytes() == before


def test_wrong_hyperparameters_are_explained(tmp_path, capsys):
    path = tmp_path / "h.json"
    for text in ("[]", "{", '{"parameters": {"bc-q": 1}}', '{"parameters": 3}'):
        path.write_text(text)
        assert main(["reproduce", "four-rooms", "--hyperparameters", str(path)]) == 2
        assert "`align-rudder tune` writes such a file" in capsys.readouterr().err
