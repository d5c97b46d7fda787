"""Segments as a file: what was saved is loaded for the same model and data, all else is refused."""

import json
import shutil

import numpy as np
import pytest
from small_world import DIAMOND

from align_rudder.files import load_npz, save_npz
from align_rudder.minerl.pipeline import fit_events, segments
from align_rudder.minerl.segments import beside_model, cut, load_segments, save_segments
from align_rudder.subtasks import SubGoal

FORMAT = "align-rudder-minerl-segments"


@pytest.fixture(scope="module")
def saved(filmed, tmp_path_factory):
    """A model and its segments in a folder, and the sub-tasks they were made from."""
    folder = tmp_path_factory.mktemp("saved")
    model = fit_events(filmed, 5)
    model.save(folder / "model.npz")
    found = segments(filmed, model)
    save_segments(beside_model(folder / "model.npz", "segments"), folder / "model.npz", found)
    return folder, filmed.trajectories[0].path.parents[1], found


@pytest.fixture
def copy(saved, tmp_path):
    """The same, and the data, to be harmed."""
    folder = shutil.copytree(saved[0], tmp_path / "saved")
    return folder, shutil.copytree(saved[1], tmp_path / "data")


def load(folder, root):
    return load_segments(folder / "model-segments.npz", folder / "model.npz", root)


def test_what_is_loaded_is_what_was_saved(saved, copy):
    folder, root, found = saved
    assert load(folder, root) == found
    # A copy of the data in another place will do; what it is counts, not where or when.
    again = load(*copy)
    assert [task.goal for task in again] == [task.goal for task in found]
    for mine, theirs in zip(again, found, strict=True):
        assert [(s.trajectory.name, *s[1:]) for s in mine.segments] == [
            (s.trajectory.name, *s[1:]) for s in theirs.segments
        ]


def test_another_model_is_refused(filmed, copy):
    folder, root = copy
    fit_events(filmed, 4).save(folder / "model.npz")
    with pytest.raises(ValueError, match=r"belongs to another model .*minerl events again, or del"):
        load(folder, root)


def test_other_data_is_refused(saved, copy):
    folder, root = copy
    victim = saved[2][0].segments[0].trajectory
    rendered = root / DIAMOND / victim.name / "rendered.npz"
    whole = rendered.read_bytes()
    rendered.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=rf"{victim.name} has changed since the segments"):
        load(folder, root)
    rendered.write_bytes(whole)
    load(folder, root)
    shutil.rmtree(root / DIAMOND / victim.name)
    with pytest.raises(ValueError, match=rf"segments of {DIAMOND}/{victim.name}, which is not in"):
        load(folder, root)


def harmed(name, value):
    def harm(header, arrays):
        header[name] = value

    return harm


def row(values):
    def harm(header, arrays):
        arrays["segments"] = np.vstack([arrays["segments"], np.array(values)])

    return harm


@pytest.mark.parametrize(
    "harm",
    [
        harmed("goals", ["log+1"]),
        harmed("trajectories", 3),
        harmed("trajectories", [["Chess", "v3_a_0-9", 3, ""]]),
        harmed("trajectories", [[DIAMOND, "../v3_a_0-9", 3, ""]]),
        harmed("trajectories", [[DIAMOND, "v3_a_0-9", [3], ""]]),
        lambda header, arrays: header.pop("trajectories"),
        lambda header, arrays: arrays.pop("segments"),
        lambda header, arrays: arrays.update(segments=np.zeros((3, 4))),
        lambda header, arrays: arrays.update(segments=np.zeros((3, 3), int)),
        row([1000, 0, 0, 1]),
        row([0, 1000, 0, 1]),
        row([-1, 0, 0, 1]),
        row([0, 0, 5, 5]),
        row([0, 0, 0, 1_000_000]),
    ],
)
def test_damage_is_said(copy, harm):
    folder, root = copy
    path = folder / "model-segments.npz"
    header, arrays = load_npz(path, FORMAT, 1)
    header = {key: header[key] for key in ("model", "goals", "trajectories")}
    header = json.loads(json.dumps(header))
    harm(header, arrays)
    save_npz(path, FORMAT, 1, header, arrays)
    with pytest.raises(ValueError, match=r"model-segments\.npz is damaged .*events again, or"):
        load(folder, root)


def test_extra_events_end_segments_of_their_own_sub_task():
    goals = [SubGoal(0, 0, "log", 0.5, 0.0), SubGoal(2, 1, "planks", 0.5, 0.0)]
    events, columns = np.array([-1, 0, -1, 0, 1]), np.array([-1, 0, -1, -1, 2])
    assert cut(events, columns, goals, extras=False) == [(0, 0, 2), (1, 2, 5)]
    assert cut(events, columns, goals, extras=True) == [(0, 0, 2), (0, 2, 4), (1, 2, 5)]
