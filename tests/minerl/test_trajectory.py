"""Trajectories: read exactly as the reference loader reads them, damage is named."""

import json
import os
import shutil

import numpy as np
import pytest
from small_world import DIAMOND, TREECHOP

from align_rudder.minerl.dataset import find_trajectories, load_pool
from align_rudder.minerl.spaces import ENUMS, ITEMS
from align_rudder.minerl.testing.synthetic import write_dataset
from align_rudder.minerl.testing.videos import (
    frame_color,
    frame_number,
    numbered_frames,
    write_video,
)
from align_rudder.minerl.trajectory import DamagedTrajectoryError, Trajectory

av = pytest.importorskip("av")


def plain_loader(trajectory):
    """What the reference loader does, frame by frame: the oracle for ours."""
    with np.load(trajectory.path / "rendered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    metadata = json.loads((trajectory.path / "metadata.json").read_text())
    with av.open(str(trajectory.path / "recording.mp4")) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(pictures) == metadata["true_video_frame_count"]
    pictures = pictures[len(pictures) - (len(arrays["reward"]) + 1) :]
    pictures[-1] = pictures[-2]
    return arrays, np.stack(pictures)


@pytest.mark.parametrize("version", [3, 4])
def test_everything_is_read_back_exactly(version, source, source4):
    for trajectory in load_pool(source if version == 3 else source4):
        arrays, pictures = plain_loader(trajectory)
        read = trajectory.arrays()
        assert list(read) == list(arrays)
        for name in arrays:
            assert read[name].dtype == arrays[name].dtype
            np.testing.assert_array_equal(read[name], arrays[name])
        np.testing.assert_array_equal(trajectory.frame_array(), pictures)
        assert len(trajectory) == len(arrays["reward"])
        np.testing.assert_array_equal(trajectory.rewards, arrays["reward"])
        actions = trajectory.actions()
        assert list(actions) == list(trajectory.spec.heads)
        for head, values in actions.items():
            stored = arrays[f"action${head}"]
            if head in ENUMS:
                assert [ENUMS[head][i] for i in values] == stored.tolist()
            else:
                np.testing.assert_array_equal(values, stored)
        if trajectory.task == TREECHOP:
            assert trajectory.inventory() is None
            assert trajectory.mainhand() is None
            continue
        columns = [arrays[f"observation$inventory${item}"] for item in ITEMS]
        np.testing.assert_array_equal(trajectory.inventory(), np.stack(columns, 1))
        hand = trajectory.mainhand()
        assert list(hand) == ["damage", "maxDamage", "type"]
        np.testing.assert_array_equal(hand["type"], list(arrays.values())[21])


def test_each_observation_has_its_own_frame(source):
    skips = set()
    for trajectory in find_trajectories(source):
        steps = len(trajectory)
        skip = trajectory.lead_frames
        skips.add(skip)
        numbers = [frame_number(picture) for picture in trajectory.frames()]
        expected = [(skip + t) % 512 for t in range(steps + 1)]
        assert numbers[:-1] == expected[:-1]
        assert numbers[-1] == expected[-2]  # as in the reference loader
        numbers = [frame_number(picture) for picture in trajectory.frames(repeat_last=False)]
        assert numbers == expected
        for t in (0, 1, steps - 1, steps):  # at both ends, one by one
            (picture,) = trajectory.frames(t, t + 1)
            assert frame_number(picture) == expected[min(t, steps - 1)]
            color = np.array(frame_color(expected[min(t, steps - 1)]), int)
            assert np.abs(picture.astype(int) - color).max() <= 6
            (picture,) = trajectory.frames(t, t + 1, repeat_last=False)
            assert frame_number(picture) == expected[t]
        pair = [frame_number(p) for p in trajectory.frames(steps - 1, steps + 1)]
        assert pair == [expected[-2]] * 2
        assert list(trajectory.frames(3, 3)) == []
    assert len(skips) > 3


def test_no_frames_before_the_first_observation(tmp_path):
    (folder,) = write_dataset(tmp_path, 1, task=TREECHOP, lengths=[40])
    metadata = json.loads((folder / "metadata.json").read_text())
    write_video(folder / "recording.mp4", numbered_frames(41))
    (folder / "metadata.json").write_text(json.dumps({**metadata, "true_video_frame_count": 41}))
    trajectory = load_pool(tmp_path).trajectories[0]
    assert [frame_number(p) for p in trajectory.frames()] == [*range(40), 39]


def test_small_pictures_and_batches_are_the_same_frames(source):
    trajectory = find_trajectories(source)[0]
    small = trajectory.frame_array(size=16)
    assert small.shape == (len(trajectory) + 1, 16, 16, 3)
    numbers = [frame_number(p) for p in trajectory.frame_array()]
    assert [frame_number(p) for p in small] == numbers
    batches = list(trajectory.frame_batches(100, size=16))
    assert {len(batch) for batch in batches[:-1]} == {100}
    np.testing.assert_array_equal(np.concatenate(batches), small)


def test_wrong_requests(source):
    trajectory = find_trajectories(source, [TREECHOP])[0]
    with pytest.raises(ValueError, match=r"has no arrays \['action\$craft'\]; it has reward, "):
        trajectory.arrays(["action$craft"])
    for start, stop in [(-1, 3), (0, len(trajectory) + 2), (5, 4)]:
        with pytest.raises(ValueError, match="are not a part of the"):
            trajectory.frames(start, stop)


# Damage


def truncate(path, kept):
    os.truncate(path, int(path.stat().st_size * kept))


def rewrite(path, **changes):
    metadata = json.loads((path / "metadata.json").read_text())
    for key, value in changes.items():
        metadata.pop(key) if value is None else metadata.update({key: value})
    (path / "metadata.json").write_text(json.dumps(metadata))


def rewrite_array(path, name, change):
    with np.load(path / "rendered.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    changed = change(arrays.pop(name))
    np.savez_compressed(
        path / "rendered.npz", **arrays, **({} if changed is None else {name: changed})
    )


def frame_count(path):
    return json.loads((path / "metadata.json").read_text())["true_video_frame_count"]


def one_frame_more(path):
    write_video(path / "recording.mp4", numbered_frames(frame_count(path) + 1))


def index_first(path, kept):
    write_video(path / "recording.mp4", numbered_frames(frame_count(path)), index_first=True)
    truncate(path / "recording.mp4", kept)


def set_at(index, value):
    def change(array):
        array = array.astype("<U20" if isinstance(value, str) else array.dtype)
        array[index] = value
        return array

    return change


DAMAGES = {
    "npz cut": (lambda p: truncate(p / "rendered.npz", 0.7), "rendered.npz is truncated"),
    "npz empty": (lambda p: truncate(p / "rendered.npz", 0), "rendered.npz is truncated"),
    "npz gone": (lambda p: (p / "rendered.npz").unlink(), "it has no rendered.npz"),
    "npz is text": (lambda p: (p / "rendered.npz").write_text("hello"), "truncated or damaged"),
    "npz is npy": (
        lambda p: np.save(open(p / "rendered.npz", "wb"), np.arange(3)),  # noqa: SIM115
        "rendered.npz is truncated or damaged.*it is a single array",
    ),
    "npz byte": (
        lambda p: (p / "rendered.npz").write_bytes(
            (b := (p / "rendered.npz").read_bytes())[:3000] + bytes(4) + b[3004:]
        ),
        r"rendered.npz is truncated or damaged.* \(.*\(at '",
    ),
    "member gone": (
        lambda p: rewrite_array(p, "action$craft", lambda a: None),
        r"rendered.npz has no action\$craft",
    ),
    "array short": (
        lambda p: rewrite_array(p, "action$jump", lambda a: a[:-1]),
        r"metadata.json not its own \(action\$jump has shape \(\d+,\); \(\d+,\) is needed",
    ),
    "inventory short": (
        lambda p: rewrite_array(p, "observation$inventory$log", lambda a: a[:-1]),
        r"inventory\$log has shape",
    ),
    "enum as numbers": (
        lambda p: rewrite_array(p, "action$craft", lambda a: np.zeros(len(a), int)),
        r"action\$craft holds whole numbers; text",
    ),
    "unknown item": (
        lambda p: rewrite_array(p, "action$place", set_at(7, "cake")),
        "place has the value 'cake' at step 7",
    ),
    "nan": (lambda p: rewrite_array(p, "reward", set_at(3, np.nan)), "reward holds nan"),
    "nan turn": (
        lambda p: rewrite_array(p, "action$camera", set_at((3, 1), np.inf)),
        r"action\$camera holds inf; at most 180",
    ),
    "turned too far": (
        lambda p: rewrite_array(p, "action$camera", set_at((3, 0), -180.5)),
        r"rendered.npz .*action\$camera holds -180.5; at least -180",
    ),
    "button twice": (
        lambda p: rewrite_array(p, "action$jump", set_at(3, 2)),
        r"rendered.npz .*action\$jump holds 2; at most 1",
    ),
    "button released": (
        lambda p: rewrite_array(p, "action$attack", set_at(3, -1)),
        r"rendered.npz .*action\$attack holds -1; at least 0",
    ),
    "less than nothing": (
        lambda p: rewrite_array(p, "observation$inventory$log", set_at(3, -1)),
        r"rendered.npz .*inventory\$log holds -1; at least 0",
    ),
    "no steps": (
        lambda p: rewrite(p, duration_steps=0, duration_ms=0),
        "metadata.json cannot be used: duration_steps is 0; a whole number",
    ),
    "mp4 cut": (lambda p: truncate(p / "recording.mp4", 0.6), "no readable video, or truncated"),
    "mp4 empty": (lambda p: truncate(p / "recording.mp4", 0), "no readable video, or truncated"),
    "mp4 gone": (lambda p: (p / "recording.mp4").unlink(), "it has no recording.mp4"),
    "mp4 cut, index first": (lambda p: index_first(p, 0.7), r"recording.mp4 has \d+ frames; meta"),
    "one frame more": (one_frame_more, r"recording.mp4 has \d+ frames; metadata.json counts"),
    "metadata gone": (lambda p: (p / "metadata.json").unlink(), "it has no metadata.json"),
    "metadata cut": (lambda p: truncate(p / "metadata.json", 0.5), "metadata.json cannot be used"),
    "metadata list": (
        lambda p: (p / "metadata.json").write_text("[]"),
        r"its content is \[\]; an object",
    ),
    "steps wrong": (lambda p: rewrite(p, duration_steps=7, duration_ms=350), "has shape"),
    "duration wrong": (lambda p: rewrite(p, duration_ms=7), "has duration_ms = 7"),
    "steps text": (lambda p: rewrite(p, duration_steps="7"), "duration_steps is '7'"),
    "count gone": (lambda p: rewrite(p, true_video_frame_count=None), "frame_count is None"),
    "count one less": (
        lambda p: rewrite(p, true_video_frame_count=frame_count(p) - 1),
        "recording.mp4 has",
    ),
    "too few frames": (lambda p: rewrite(p, true_video_frame_count=20), "counts 20 frames"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_damaged_is_said(source, tmp_path, kind):
    harm, reason = DAMAGES[kind]
    whole = find_trajectories(source, [DIAMOND])[1]
    victim = Trajectory(shutil.copytree(whole.path, tmp_path / whole.name), DIAMOND, 3)
    harm(victim.path)
    with pytest.raises(DamagedTrajectoryError, match=rf"^{DIAMOND}/{victim.name}: .*{reason}"):
        victim.check()
