"""`reproduce` and `tune`: trials are counted once, survive a kill, and whoever runs them."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from align_rudder.cli.main import main
from align_rudder.studies.recipes.methods import METHODS as RECIPE_METHODS
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms.methods import COMPARED, FAIR, LONGER, POOR, REPLAYED

OF_OURS = {
    "gamma": 0.99,
    "learning_rate": 0.2,
    "trace": 0.8,
    "initial_mean": 0.02,
    "settlement": "mean",
}


def command(folder, *more):
    return [
        *("reproduce", "four-rooms", "--methods", "align-rudder", "bc-q", "--demos", "2"),
        *("--max-episodes", "600", "--out", str(folder), *more),
    ]


def family(pid):
    """Return the processes that a process started, and those that they started."""
    try:
        direct = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [below for child in direct for below in (int(child), *family(int(child)))]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert main(command(folder, "--trials", "12", "--jobs", "1")) == 0
    return (folder / "four-rooms" / "trials.csv").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_stopped_in_the_middle_no_process_stays_and_nothing_is_lost_or_doubled(
    tmp_path, undisturbed, number
):
    """The main process alone gets the signal; its workers must notice by themselves."""
    path = tmp_path / "four-rooms" / "trials.csv"
    process = subprocess.Popen(
        [sys.executable, "-m", "align_rudder", *command(tmp_path, "--trials", "12", "--jobs", "2")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n") > 4):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    workers = family(process.pid)
    assert len(workers) >= 2
    process.send_signal(number)
    assert process.stderr is not None
    said = process.stderr.read()
    assert process.wait() == (-number if number == signal.SIGKILL else 143)
    if number != signal.SIGKILL:
        assert "interrupted; what is finished is kept" in said
        assert "Traceback" not in said
    deadline = time.monotonic() + 8
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in workers if alive(pid)] == []
    found = path.read_bytes().count(b"\n") - 1
    assert 4 <= found < 24
    assert main(command(tmp_path, "--trials", "12", "--jobs", "1")) == 0
    assert path.read_bytes() == undisturbed
    calls = json.loads((tmp_path / "four-rooms" / "time.json").read_text())
    assert sum(call["trials"] for call in calls) == 24 - found


def test_a_study_whose_output_nobody_reads_stops_with_a_status_and_keeps_what_is_finished(tmp_path):
    """The tables of the first study cannot be shown; the others are not begun."""
    given = ["reproduce", "all", "--trials", "1", "--methods", "bc-q", "--demos", "2"]
    given += ["--jobs", "1", "--max-episodes", "50", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "align_rudder", *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait() == 141
    assert "Traceback" not in said
    assert "nobody reads the output; what is finished is kept" in said
    assert [path.parent.name for path in tmp_path.glob("*/trials.csv")] == ["four-rooms"]


@pytest.mark.slow
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
        (["key-chest", "--trials", "0"], "from 1 to"),
        (["key-chest", "--methods", "bc-q"], "'bc-q' is not known"),
        (["key-chest", "--steps", "9"], "--steps is of networks alone; key-chest has none"),
        (["key-chest", "--max-episodes", "9"], "key-chest has no cap on episodes"),
        (["key-chest", "--hyperparameters", "h.json"], "key-chest has none that are tuned"),
        (["recipes", "--steps", "9"], "recipes has none; its cap is --max-episodes"),
        (["networks", "--max-episodes", "9"], "no cap on episodes; its cap is --steps"),
    ],
)
def test_studies_refuse_what_they_cannot_show(tmp_path, capsys, args, expected):
    assert main(["reproduce", *args, "--out", str(tmp_path)]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
        (["--trials", "0"], "trials is 0; a whole number from 1"),
        (["--max-episodes", "5"], "before its first evaluation"),
        (["--jobs", "0"], "number of trials at once"),
        (["--jobs", "-5"], "jobs=-5: give the number of trials at once"),
        (["--backend", "ray", "--address", "127.0.0.1:1"], "no Ray cluster answers"),
        (["--address", "1.2.3.4:6379"], "add backend ray"),
        (["--hyperparameters", "none.json"], "`align-rudder tune` writes such a file"),
        (["--json", "missing/x.json"], "missing does not exist"),
        (["--steps", "100"], "--steps is of networks alone; four-rooms has none; its cap is --max"),
        (["--out", ""], "--out is empty; give the name of a folder"),
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


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["networks", "--max-episodes", "9"], "no cap on episodes; its cap is --steps"),
        (["paper", "--steps", "9"], "--steps is of networks alone; the cap of paper is --max-epis"),
        (["paper", "--out", ""], "--out is empty"),
        (["networks", "--steps", "0"], "--steps is 0; a whole number of at least 1"),
        (["networks", "--steps", "-5"], "--steps is -5; a whole number of at least 1"),
    ],
)
def test_tune_refuses_what_it_would_not_look_at(tmp_path, monkeypatch, capsys, args, expected):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *args]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "others"),
    [
        (["rooms"], [name for name in FAIR if name != "rudder-discounted"]),
        (["rooms", "--methods", "rudder-discounted", "default"], ["default"]),
        (["four-rooms"], [name for name in COMPARED if name != "rudder"]),
        (["key-chest"], ["alignment", "alignment-all", "alignment-states"]),
        (["rooms", "--methods", "rudder-discounted"], []),
    ],
)
def test_without_jax_it_is_said_before_trials_are_and_which_methods_do_without(
    tmp_path, monkeypatch, capsys, args, others
):
    monkeypatch.setattr(networks, "find_spec", lambda name: None)
    assert main(["reproduce", *args, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "trials to run" not in said
    assert "the extra jax; in a clone: pip install '.[jax]'" in said
    _, _, named = said.strip().partition("or leave RUDDER out: --methods ")
    assert named.split() == others
    assert not list(tmp_path.rglob("trials.csv"))


@pytest.mark.parametrize("search", ["rooms", "recipes", "networks"])
def test_a_search_of_no_trials_is_refused(search, tmp_path, capsys):
    for number in ("0", "-3"):
        assert main(["tune", search, "--trials", number, "--out", str(tmp_path / "x")]) == 2
        assert "--trials" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_hyperparameter_out_of_its_range_claims_no_folder(tmp_path, capsys):
    path = tmp_path / "h.json"
    for study, method in (("recipes", "align-rudder"), ("rooms", "default")):
        path.write_text(json.dumps({"parameters": {method: {**OF_OURS, "gamma": 7}}}))
        given = ["--hyperparameters", str(path), "--out", str(tmp_path / "x")]
        assert main(["reproduce", study, *given]) == 2
        assert (
            "['gamma'] is 7; a number at least 0 and at most 1 is needed" in capsys.readouterr().err
        )
    assert not (tmp_path / "x").exists()


def test_a_damaged_choice_of_a_search_says_that_its_trials_are_kept(tmp_path, capsys):
    given = ["tune", "recipes", "--trials", "1", "--methods", "rounds", "--max-episodes", "10"]
    given += ["--jobs", "1", "--out", str(tmp_path)]
    assert main(given) == 0
    path = tmp_path / "hyperparameters.json"
    whole, trials = path.read_bytes(), (tmp_path / "trials.csv").read_bytes()
    path.write_bytes(whole[:-20])
    assert main(given) == 2
    said = capsys.readouterr().err
    assert "All trials are kept beside it: delete this file and give the same command" in said
    assert "trials to run" not in said.split("trials to run", 2)[-1]
    assert path.read_bytes() == whole[:-20]
    path.unlink()
    assert main(given) == 0
    assert (path.read_bytes(), (tmp_path / "trials.csv").read_bytes()) == (whole, trials)


def test_all_methods_that_a_study_knows_are_in_the_help(capsys):
    for command, studies in (("reproduce", (POOR, LONGER, RECIPE_METHODS)), ("tune", (REPLAYED,))):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = "".join(
            character for character in capsys.readouterr().out if character.isprintable()
        )
        squeezed = said.replace(" ", "").replace("│", "")
        assert [n for names in studies for n in names if n not in squeezed] == []
