"""Finished trials come back, are counted once, and belong to one configuration."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rooms_trials import trial_record

from align_rudder.runs.workers import Workers
from align_rudder.studies.key_chest import Detection
from align_rudder.studies.recipes.trials import RecipeTrial
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.trials import Trials, open_trials

RESULTS = Path(__file__).parents[2] / "results"


def opened(folder, config=None):
    return open_trials(folder, {"a": 1} if config is None else config, TrialRecord)


def test_trials_come_back_as_they_were_stored(tmp_path):
    kept = [trial_record(3, 120, curve=(0.25, 0.5)), trial_record(1, 20_000, False)]
    with opened(tmp_path) as trials:
        for one in kept:
            trials.add(one)
    with opened(tmp_path) as trials:
        assert list(trials.found.values()) == kept
        trials.sort()
    with opened(tmp_path) as trials:
        assert list(trials.found.values()) == kept[::-1]


def test_a_torn_line_is_run_again(tmp_path):
    with opened(tmp_path) as trials:
        for seed in range(3):
            trials.add(trial_record(seed))
    path = tmp_path / "trials.csv"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    keys = [trial_record(seed).key for seed in range(3)]
    with opened(tmp_path) as trials:
        trials.complete(keys, lambda _, seed: (trial_record, (seed,)), Workers(1))
        assert list(trials.found) == keys
    assert path.read_bytes() == whole
    assert [c["trials"] for c in json.loads((tmp_path / "time.json").read_text())] == [1]


def test_a_folder_of_another_configuration_is_refused_and_left_alone(tmp_path):
    with opened(tmp_path, {"protocol": {"max_episodes": 100}}) as trials:
        trials.add(trial_record())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"protocol\.max_episodes is 100 there and 200 here"):
        opened(tmp_path, {"protocol": {"max_episodes": 200}}).__enter__()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match=r"no config\.json"):
        opened(tmp_path).__enter__()


def test_an_empty_folder_takes_another_configuration(tmp_path):
    with opened(tmp_path, {"a": 1}), pytest.raises(ValueError, match="another run is writing"):
        opened(tmp_path).__enter__()
    with opened(tmp_path, {"a": 2}) as trials:
        trials.add(trial_record())
    assert json.loads((tmp_path / "config.json").read_text()) == {"a": 2}


def test_a_line_that_is_not_a_trial_is_named(tmp_path):
    with opened(tmp_path) as trials:
        trials.add(trial_record(0))
    path = tmp_path / "trials.csv"
    for wrong in (b"4,0.01,fifteen,2,bc-q,-1,0.2,0,50,1,350,\n", b"4,0.01,fifteen\n", b"\xff\n"):
        whole = path.read_bytes()
        path.write_bytes(whole + wrong)
        with pytest.raises(ValueError, match=r"trials\.csv"):
            opened(tmp_path).__enter__()
        path.write_bytes(whole)
    path.write_bytes(whole + b"4,0.01,fifteen,2,bc-q,-1,0.2,0,50,1,350,\n")
    with pytest.raises(ValueError, match=r"line 3 of .*fifteen.*delete that line"):
        opened(tmp_path).__enter__()


CAPPED = {"protocol": {"max_episodes": 3000, "evaluate_every": 10}}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ((4000, True, 9000), "above the cap of 3000"),
        ((4000, False, 9000), "above the cap of 3000"),
        ((2990, False, 9000), "not solved, and episodes is 2990 instead of the cap"),
        ((0, True, 9000), "solved after 0 episodes"),
        ((15, True, 9000), "judged after every 10"),
        ((20, True, 19), "19 steps in 20 episodes"),
        ((20, True, 0), "steps is 0"),
    ],
)
def test_a_trial_that_cannot_have_ended_so_is_named(tmp_path, row, why):
    episodes, solved, steps = row
    with opened(tmp_path, CAPPED) as trials:
        trials.add(trial_record(0, 3000))
        trials.add(replace(trial_record(1), episodes=episodes, solved=solved, steps=steps))
    with pytest.raises(ValueError, match=rf"line 3 of .*trials\.csv .*{why}.*delete that line"):
        opened(tmp_path, CAPPED).__enter__()


def test_two_ends_of_one_trial_are_refused(tmp_path):
    with opened(tmp_path) as trials:
        for one in (trial_record(0, 50), trial_record(1, 50), trial_record(0, 60)):
            trials.add(one)
    with pytest.raises(ValueError, match=r"lines 2 and 4 of .*different ends; delete both"):
        opened(tmp_path).__enter__()


@pytest.mark.parametrize("wrong", [b"\x80\xff\x00\x13", b"\0" * 40, b"4," * 40, b"4,0.01\x07"])
def test_what_is_no_torn_row_is_not_dropped(tmp_path, wrong):
    with opened(tmp_path) as trials:
        trials.add(trial_record(0))
    path = tmp_path / "trials.csv"
    whole = path.read_bytes() + wrong
    path.write_bytes(whole)
    with pytest.raises(
        ValueError, match=r"line 3 of .*trials\.csv has no end and is not the begin"
    ):
        opened(tmp_path).__enter__()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "folder", sorted(RESULTS.glob("*/trials.csv")), ids=lambda p: p.parent.name
)
def test_all_that_is_committed_may_be(folder):
    name = folder.parent.name
    if "networks" in name:
        pytest.importorskip("stable_baselines3")
        from align_rudder.studies.networks.trials import NetworkTrial as Kind
    elif "recipes" in name:
        Kind = RecipeTrial
    else:
        Kind = Detection if name == "key-chest" else TrialRecord
    trials = Trials(folder.parent, Kind)
    trials.check(json.loads((folder.parent / "config.json").read_text()))
    assert trials.found
