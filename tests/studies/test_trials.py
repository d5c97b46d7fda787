"""Finished trials come back, are counted once, and belong to one configuration."""

import json

import pytest
from rooms_trials import trial_record

from align_rudder.runs.workers import Workers
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.trials import open_trials


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
