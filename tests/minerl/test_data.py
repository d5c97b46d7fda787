"""The MineRL dataset: read from generated trees in its format, whose colours tell the frames."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest
from align_rudder.minerl.testing.colours import frame_colour, frame_number, write_video

import align_rudder as ar
from align_rudder import AlignRudderWarning
from align_rudder.minerl import frames as frames_module
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.convert import episode_of, episode_space, to_minari
from align_rudder.minerl.dataset import (
    DamagedTrajectoryError,
    find_trajectories,
    load_pool,
    parallel_map,
    shortest_with_diamond,
)
from align_rudder.minerl.frames import count_frames, read_frames
from align_rudder.minerl.spaces import (
    BUTTONS,
    DECLARED,
    ENUMS,
    HEADS,
    HELD,
    ITEM_REWARDS,
    ITEMS,
    TASKS,
    action_mask,
    action_space,
    enum_indices,
    observation_space,
)
from align_rudder.minerl.testing.synthetic import CHAIN, simulate, write_dataset

av = pytest.importorskip("av")

DIAMOND, IRON, TREECHOP = TASKS
INDEX_ORDER = {
    "craft": "crafting_table none planks stick torch",
    "place": "cobblestone crafting_table dirt furnace none stone torch",
    "equip": "air iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe wooden_pickaxe",
    "nearbyCraft": "furnace iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe "
    "wooden_pickaxe",
    "nearbySmelt": "coal iron_ingot none",
}
INVENTORY = [
    "coal",
    "cobblestone",
    "crafting_table",
    "dirt",
    "furnace",
    "iron_axe",
    "iron_ingot",
    "iron_ore",
    "iron_pickaxe",
    "log",
    "planks",
    "stick",
    "stone",
    "stone_axe",
    "stone_pickaxe",
    "torch",
    "wooden_axe",
    "wooden_pickaxe",
]
KEYS = ["forward", "left", "back", "right", "jump", "sneak", "sprint", "attack"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """All three tasks in version 3; tests that damage something work on a copy."""
    root = tmp_path_factory.mktemp("minerl") / "v3"
    write_dataset(root, 5, 3, DIAMOND, seed=1)
    write_dataset(root, 2, 3, IRON, seed=2)
    write_dataset(root, 3, 3, TREECHOP, seed=3, lengths=[40, 60, 50])
    return root


@pytest.fixture(scope="module")
def source4(tmp_path_factory):
    root = tmp_path_factory.mktemp("minerl") / "v4"
    write_dataset(root, 3, 4, DIAMOND, seed=1)
    write_dataset(root, 2, 4, TREECHOP, seed=3, lengths=[40, 60])
    return root


@pytest.fixture
def root(source, tmp_path):
    return shutil.copytree(source, tmp_path / "data")


def first(root, task=DIAMOND):
    return find_trajectories(root, [task])[0]


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


# The tables of the format


def test_enums_have_the_order_of_the_table():
    assert set(ENUMS) == set(INDEX_ORDER)
    for head, values in INDEX_ORDER.items():
        assert ENUMS[head] == tuple(values.split())
        assert DECLARED[head][0] == "none"
        assert sorted(DECLARED[head]) == list(ENUMS[head])
        indices = enum_indices(head, np.array(DECLARED[head]))
        assert [ENUMS[head][i] for i in indices] == list(DECLARED[head])
    assert ENUMS["craft"].index("torch") == 4
    assert DECLARED["craft"].index("torch") == 1
    assert list(HELD) == sorted(HELD)
    assert len(HELD) == 9
    assert list(ITEMS) == INVENTORY
    assert list(BUTTONS) == KEYS
    assert sum(ITEM_REWARDS.values()) == 1571
    with pytest.raises(ValueError, match="craft has the value 'cake' at step 1; known are craft"):
        enum_indices("craft", np.array(["none", "cake"]))


def test_spaces_are_flat_in_version_3_and_nested_in_4():
    flat, nested = observation_space(version=3), observation_space(version=4)
    assert "equipped_items.mainhand.type" in flat.spaces
    assert set(nested["equipped_items"]["mainhand"]) == {"damage", "maxDamage", "type"}
    for space in (flat, nested):
        assert list(space["inventory"]) == INVENTORY
        assert space["inventory"]["log"].high == 2304
        assert space["pov"].shape == (64, 64, 3)
    assert set(observation_space(TREECHOP)) == {"pov"}
    assert action_space()["craft"].n == 5
    assert set(action_space(TREECHOP)) == {*KEYS, "camera"}
    with pytest.raises(ValueError, match=r"version 5 .* versions 3 and 4"):
        observation_space(version=5)
    with pytest.raises(ValueError, match="the task 'Chess' is not known"):
        action_space("Chess")


@pytest.mark.parametrize("version", [3, 4])
def test_generated_files_have_the_members_types_and_metadata_of_the_format(
    version, source, source4
):
    root = source if version == 3 else source4
    assert (root / "VERSION").read_text() == str(version)
    sep = "." if version == 3 else "$"
    hand = [f"observation$equipped_items{sep}mainhand{sep}{p}" for p in ("damage", "maxDamage")]
    expected = {"reward": "<f4"}
    expected |= {f"observation$inventory${i}": "<i4" if version == 3 else "<i8" for i in INVENTORY}
    expected |= dict.fromkeys(hand, "<i4")
    expected[f"observation$equipped_items{sep}mainhand{sep}type"] = "U"
    expected |= {f"action${key}": "<i8" for key in KEYS} | {"action$camera": "<f4"}
    enums = ("place", "equip", "craft", "nearbyCraft", "nearbySmelt")
    expected |= {f"action${head}": "U" for head in enums}
    assert len(expected) == 36
    for trajectory in find_trajectories(root, [DIAMOND]):
        path = trajectory.path
        with zipfile.ZipFile(path / "rendered.npz") as archive:
            assert [n.removesuffix(".npy") for n in archive.namelist()] == list(expected)
            assert {i.compress_type for i in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        with np.load(path / "rendered.npz", allow_pickle=False) as archive:
            steps = len(archive["reward"])
            for name, kind in expected.items():
                array = archive[name]
                if kind == "U":
                    widest = max(map(len, array.tolist()))
                    assert array.dtype.str == f"<U{widest}"
                else:
                    assert array.dtype.str == kind
                assert len(array) == steps + name.startswith("observation$")
            held = set(archive[f"observation$equipped_items{sep}mainhand{sep}type"])
            assert ("none" if version == 3 else "air") in held
            assert ("air" if version == 3 else "none") not in held
        metadata = json.loads((path / "metadata.json").read_text())
        assert list(metadata) == [
            "success",
            "duration_ms",
            "duration_steps",
            "total_reward",
            "stream_name",
            "true_video_frame_count",
        ]
        assert metadata["success"] == ("False" if version == 3 else False)
        assert metadata["duration_ms"] == 50 * metadata["duration_steps"] == 50 * steps
        assert metadata["stream_name"] == path.name
        assert path.name.startswith(f"v{version}_")
    with zipfile.ZipFile(first(root, TREECHOP).path / "rendered.npz") as archive:
        names = [n.removesuffix(".npy") for n in archive.namelist()]
    assert names == ["reward", *(f"action${key}" for key in KEYS), "action$camera"]


def test_generated_trajectories_follow_the_chain_with_human_noise(rng):
    noises = set()
    for i in range(30):
        arrays = simulate(np.random.default_rng(i), 400)
        rewards = arrays["reward"]
        inventory = {item: arrays[f"observation$inventory${item}"] for item in ITEMS}
        assert min(counts.min() for counts in inventory.values()) >= 0
        when = [int(np.flatnonzero(inventory[item])[0]) for item in CHAIN[:-1]]
        assert when == sorted(when)
        for item, t in zip(CHAIN[:-1], when, strict=True):
            assert rewards[t - 1] >= ITEM_REWARDS[item]  # reward[t-1] belongs to obs[t]
        assert rewards[-1] == 1024
        assert rewards.sum() == 1571
        noises |= {head for head in ("dirt", "torch") if inventory[head].any()}
    assert noises == {"dirt", "torch"}
    for goal in CHAIN:
        assert simulate(rng, 400, goal=goal)["reward"][-1] >= ITEM_REWARDS[goal]
    with pytest.raises(ValueError, match="steps=10 is too few"):
        simulate(rng, 10)
    with pytest.raises(ValueError, match="goal='cake' is not on the way"):
        simulate(rng, 400, goal="cake")


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_dataset(tmp_path / name, 2, 4, seed=5)
    files = [p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert len(files) == 1 + 2 * 3
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    with pytest.raises(ValueError, match="is already there"):
        write_dataset(tmp_path / "a", 1, 4)
    with pytest.raises(ValueError, match=r"holds version 4 .* version 3 needs another folder"):
        write_dataset(tmp_path / "a", 1, 3, TREECHOP)
    with pytest.raises(ValueError, match=r"2 lengths for n=1 trajectories; give one"):
        write_dataset(tmp_path / "c", 1, lengths=[300, 300])
    with pytest.raises(ValueError, match="2 lengths and 1 different names for n=2"):
        write_dataset(tmp_path / "c", 2, lengths=[300, 300], names=["v3_a_0-9"] * 2)


# Reading


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
        assert list(actions) == [h for h, m in zip(HEADS, trajectory.action_mask) if m]
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
        skip = trajectory.n_frames - (steps + 1)
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
            colour = np.array(frame_colour(expected[min(t, steps - 1)]), int)
            assert np.abs(picture.astype(int) - colour).max() <= 6
            (picture,) = trajectory.frames(t, t + 1, repeat_last=False)
            assert frame_number(picture) == expected[t]
        pair = [frame_number(p) for p in trajectory.frames(steps - 1, steps + 1)]
        assert pair == [expected[-2]] * 2
        assert list(trajectory.frames(3, 3)) == []
    assert len(skips) > 3


def test_no_frames_before_the_first_observation(tmp_path):
    (folder,) = write_dataset(tmp_path, 1, task=TREECHOP, lengths=[40])
    metadata = json.loads((folder / "metadata.json").read_text())
    write_video(folder / "recording.mp4", 41)
    (folder / "metadata.json").write_text(json.dumps({**metadata, "true_video_frame_count": 41}))
    trajectory = load_pool(tmp_path).trajectories[0]
    assert [frame_number(p) for p in trajectory.frames()] == [*range(40), 39]


@pytest.mark.parametrize("b_frames", [0, 2])
@pytest.mark.parametrize("index_first", [False, True])
def test_segments_are_found_by_seeking(tmp_path, monkeypatch, b_frames, index_first):
    path = tmp_path / "video.mp4"
    write_video(path, 400, b_frames=b_frames, key_frame_every=50, index_first=index_first)
    assert count_frames(path) == count_frames(path, decode=True) == 400
    whole = np.stack(list(read_frames(path)))
    assert [frame_number(p) for p in whole] == list(range(400))
    monkeypatch.setattr(frames_module, "_WORTH_SEEKING", 0)
    decoded = []
    monkeypatch.setattr(frames_module, "_decoded", lambda *a: decoded.append(a))
    for start, stop in [(1, 3), (49, 51), (50, 51), (99, 160), (397, None), (399, 400)]:
        found = np.stack(list(read_frames(path, start, stop, n_frames=400)))
        np.testing.assert_array_equal(found, whole[start:stop])
    assert not decoded


@pytest.mark.parametrize("b_frames", [0, 2])
def test_frames_that_an_edit_list_hides_do_not_count(tmp_path, monkeypatch, b_frames):
    """Videos cut without encoding hold frames from the last key frame on that are never shown."""
    write_video(tmp_path / "whole.mp4", 120, key_frame_every=50, b_frames=b_frames)
    path, options = tmp_path / "cut.mp4", {"avoid_negative_ts": "disabled", "use_editlist": "1"}
    with (
        av.open(str(tmp_path / "whole.mp4")) as whole,
        av.open(str(path), "w", options=options) as cut,
    ):
        stream = cut.add_stream_from_template(whole.streams.video[0])
        second = int(1 / whole.streams.video[0].time_base)
        for packet in whole.demux(video=0):
            if packet.size:
                packet.pts, packet.dts = packet.pts - second, packet.dts - second
                packet.stream = stream
                cut.mux(packet)
    with av.open(str(path)) as container:
        assert any(packet.is_discard for packet in container.demux(video=0))
    assert count_frames(path) == count_frames(path, decode=True) == 100
    numbers = [frame_number(picture) for picture in read_frames(path)]
    assert numbers == list(range(20, 120))
    monkeypatch.setattr(frames_module, "_WORTH_SEEKING", 0)
    for start in (1, 29, 30, 31, 79, 80, 98):
        found = [frame_number(p) for p in read_frames(path, start, start + 2, n_frames=100)]
        assert found == numbers[start : start + 2]


def test_segments_where_frames_cannot_be_told_by_time(tmp_path, monkeypatch):
    path = tmp_path / "video.mp4"
    write_video(path, 60, key_frame_every=10)
    monkeypatch.setattr(frames_module, "_WORTH_SEEKING", 0)
    monkeypatch.setattr(frames_module, "_timestamps", lambda path: np.zeros(60, np.int64))
    found = [frame_number(p) for p in read_frames(path, 30, 35, n_frames=60)]
    assert found == list(range(30, 35))
    # a seek that lands behind what is wanted
    monkeypatch.setattr(frames_module, "_timestamps", lambda path: np.arange(60) + 1)
    found = [frame_number(p) for p in read_frames(path, 30, 35, n_frames=60)]
    assert found == list(range(30, 35))


def test_small_pictures(source):
    trajectory = first(source)
    small = trajectory.frame_array(size=16)
    assert small.shape == (len(trajectory) + 1, 16, 16, 3)
    numbers = [frame_number(p) for p in trajectory.frame_array()]
    assert [frame_number(p) for p in small] == numbers


def test_order_does_not_depend_on_the_workers(source):
    names = None
    for workers in (1, 2, 7, None):
        pool = load_pool(source, workers=workers)
        got = [(t.task, t.name) for t, _ in pool.map(lambda t: t.total_reward, workers=workers)]
        assert got == [(t.task, t.name) for t in pool]
        names = names or got
        assert got == names
    assert [task for task, _ in names] == [DIAMOND] * 5 + [IRON] * 2 + [TREECHOP] * 3
    assert names[:5] == sorted(names[:5])
    with pytest.raises(ValueError, match="workers=-1"):
        load_pool(source, workers=-1)


def test_few_results_wait_at_a_time():
    alive, most, lock = 0, 0, threading.Lock()

    def work(i):
        nonlocal alive, most
        with lock:
            alive += 1
            most = max(most, alive)
        return i

    for i, result in enumerate(parallel_map(work, range(50), 3)):
        assert i == result
        with lock:
            alive -= 1
    assert most <= 4  # three, and the one being looked at
    stopped = parallel_map(work, iter(range(10**9)), 2)
    assert next(stopped) == 0
    stopped.close()


def test_arrays_are_not_kept(tmp_path):
    write_dataset(tmp_path, 4, lengths=[20_000] * 4, video=False)
    pool = load_pool(tmp_path, video=None, workers=1)
    total = sum(a.nbytes for t in pool for a in t.arrays().values())
    tracemalloc.start()
    sums = [s for _, s in pool.map(lambda t: t.inventory().sum(), workers=1)]
    assert len(sums) == 4
    load_pool(tmp_path, video=None, workers=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 30e6
    assert peak < 0.15 * total


def test_the_ten_shortest_with_a_diamond(tmp_path):
    lengths = [390, 210, 250, 300, 205, 220, 230, 240, 260, 270, 280, 290, 200, 201, 202]
    write_dataset(tmp_path, 15, lengths=lengths, diamonds=12, video=False)
    pool = load_pool(tmp_path, video=None)
    chosen = shortest_with_diamond(pool)
    assert [len(t) for t in chosen] == sorted(lengths[:12])[:10]
    assert all(t.rewards.max() >= 1024 for t in chosen)
    assert all(t.metadata["success"] == "False" for t in chosen)  # which is wrong
    with pytest.raises(ValueError, match="12 trajectories mined a diamond; 13 are asked for"):
        shortest_with_diamond(pool, 13)


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


def one_frame_more(path):
    n = json.loads((path / "metadata.json").read_text())["true_video_frame_count"]
    write_video(path / "recording.mp4", n + 1)


def index_first(path, kept):
    n = json.loads((path / "metadata.json").read_text())["true_video_frame_count"]
    write_video(path / "recording.mp4", n, index_first=True)
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
        "rendered.npz is a single array",
    ),
    "npz byte": (
        lambda p: (p / "rendered.npz").write_bytes(
            (b := (p / "rendered.npz").read_bytes())[:3000] + bytes(4) + b[3004:]
        ),
        "rendered.npz is truncated or damaged at ",
    ),
    "member gone": (
        lambda p: rewrite_array(p, "action$craft", lambda a: None),
        r"rendered.npz has no action\$craft",
    ),
    "array short": (
        lambda p: rewrite_array(p, "action$jump", lambda a: a[:-1]),
        r"action\$jump has shape \(\d+,\); for \d+ steps",
    ),
    "inventory short": (
        lambda p: rewrite_array(p, "observation$inventory$log", lambda a: a[:-1]),
        r"inventory\$log has shape",
    ),
    "enum as numbers": (
        lambda p: rewrite_array(p, "action$craft", lambda a: np.zeros(len(a), int)),
        r"action\$craft holds int64",
    ),
    "unknown item": (
        lambda p: rewrite_array(p, "action$place", set_at(7, "cake")),
        "place has the value 'cake' at step 7",
    ),
    "nan": (lambda p: rewrite_array(p, "reward", set_at(3, np.nan)), "not finite"),
    "nan turn": (
        lambda p: rewrite_array(p, "action$camera", set_at((3, 1), np.inf)),
        r"action\$camera has values that are not finite",
    ),
    "no steps": (
        lambda p: rewrite(p, duration_steps=0, duration_ms=0),
        "duration_steps = 0; a count above 0 is needed",
    ),
    "mp4 cut": (lambda p: truncate(p / "recording.mp4", 0.6), "no readable video, or truncated"),
    "mp4 empty": (lambda p: truncate(p / "recording.mp4", 0), "no readable video, or truncated"),
    "mp4 gone": (lambda p: (p / "recording.mp4").unlink(), "it has no recording.mp4"),
    "mp4 cut, index first": (lambda p: index_first(p, 0.7), r"recording.mp4 has \d+ frames; meta"),
    "one frame more": (one_frame_more, r"recording.mp4 has \d+ frames; metadata.json counts"),
    "metadata gone": (lambda p: (p / "metadata.json").unlink(), "it has no metadata.json"),
    "metadata cut": (lambda p: truncate(p / "metadata.json", 0.5), "metadata.json cannot be read"),
    "metadata list": (lambda p: (p / "metadata.json").write_text("[]"), "holds a list"),
    "steps wrong": (lambda p: rewrite(p, duration_steps=7, duration_ms=350), "has shape"),
    "duration wrong": (lambda p: rewrite(p, duration_ms=7), "has duration_ms = 7"),
    "steps text": (lambda p: rewrite(p, duration_steps="7"), "duration_steps = '7'"),
    "count gone": (lambda p: rewrite(p, true_video_frame_count=None), "frame_count = None"),
    "count one less": (
        lambda p: rewrite(
            p,
            true_video_frame_count=json.loads((p / "metadata.json").read_text())[
                "true_video_frame_count"
            ]
            - 1,
        ),
        "recording.mp4 has",
    ),
    "too few frames": (lambda p: rewrite(p, true_video_frame_count=20), "counts 20 frames"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_trajectory_is_named_skipped_and_counted(root, kind):
    harm, reason = DAMAGES[kind]
    victim = find_trajectories(root, [DIAMOND])[1]
    harm(victim.path)
    with pytest.warns(AlignRudderWarning, match="1 of 10 trajectories in .* are damaged"):
        pool = load_pool(root)
    assert len(pool) == 9
    assert victim.name not in [t.name for t in pool]
    ((task, name, _),) = [(d.task, d.name, d.reason) for d in pool.damaged]
    assert (task, name) == (DIAMOND, victim.name)
    with pytest.raises(DamagedTrajectoryError, match=rf"^{DIAMOND}/{victim.name}: .*{reason}"):
        find_trajectories(root, [DIAMOND])[1].check()
    assert victim.name in pool.report()
    assert "4 trajectories" in pool.report()
    assert "1 damaged and left out" in pool.report()


def test_damage_that_shows_only_when_decoding(root):
    victim = find_trajectories(root, [TREECHOP])[1]
    with av.open(str(victim.video)) as container:
        packets = [(p.pos, p.size) for p in container.demux(video=0) if p.size]
    content = bytearray(victim.video.read_bytes())
    position, size = packets[len(packets) // 2]
    content[position : position + size] = bytes(size)
    victim.video.write_bytes(content)
    pool = load_pool(root)  # all packets are there
    assert len(pool) == 10
    with pytest.warns(AlignRudderWarning, match="left out, as it is damaged"):
        results = list(pool.map(lambda t: sum(1 for _ in t.frames()), workers=2))
    assert len(results) == len(pool) == 9
    assert [d.name for d in pool.damaged] == [victim.name]
    with pytest.warns(AlignRudderWarning, match="1 of 10"):
        assert len(load_pool(root, video="frames")) == 9


def test_stray_files_and_folders(root):
    (root / DIAMOND / ".DS_Store").touch()
    (root / DIAMOND / "notes.txt").write_text("hello")
    (root / "readme.txt").touch()
    pool = load_pool(root)
    assert len(pool) == 10
    assert not pool.damaged
    assert [path.name for path in pool.strays] == [".DS_Store", "notes.txt"]
    assert "notes.txt" in pool.report()
    (root / TREECHOP / "backup").mkdir()
    (root / TREECHOP / "v4_other_version_0-10").mkdir()
    with pytest.warns(AlignRudderWarning, match="2 of 12"):
        pool = load_pool(root)
    reasons = {d.name: d.reason for d in pool.damaged}
    assert reasons["backup"] == "its name is not vN_STREAM_START-END"
    assert "version 4; 3, as the file VERSION says" in reasons["v4_other_version_0-10"]
    (root / "VERSION").unlink()  # then names tell the version
    assert len(find_trajectories(root)) == 11


def test_folders_that_are_no_dataset(root, tmp_path):
    with pytest.raises(ValueError, match=r"missing does not exist; give the folder of the MineRL"):
        load_pool(tmp_path / "missing")
    with pytest.raises(ValueError, match="VERSION is a file"):
        load_pool(root / "VERSION")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"no trajectories in .*empty, which holds nothing; "):
        load_pool(empty)
    (empty / DIAMOND).mkdir()
    with pytest.raises(ValueError, match="which holds MineRLObtainDiamond-v0; needed are folders"):
        find_trajectories(empty)
    with pytest.raises(ValueError, match="has no folder MineRLTreechop-v0; it has MineRLObtainDia"):
        load_pool(empty, [TREECHOP])
    with pytest.raises(ValueError, match="the task 'Chess' is not known; known are MineRLObtain"):
        load_pool(root, ["Chess"])
    with pytest.raises(ValueError, match="video='all' is not known"):
        load_pool(root, video="all")
    (root / "VERSION").write_text("2")
    with pytest.raises(ValueError, match=r"VERSION says '2'; only versions 3 and 4"):
        load_pool(root)


def test_nothing_but_damage_is_an_error(root):
    for path in (root / IRON).iterdir():
        (path / "metadata.json").unlink()
    with pytest.raises(ValueError, match=r"2 of 2 trajectories .*\n.*it has no metadata.json"):
        load_pool(root, [IRON])


def test_wrong_requests(source):
    trajectory = first(source, TREECHOP)
    with pytest.raises(ValueError, match=r"has no arrays \['action\$craft'\]; it has reward, "):
        trajectory.arrays(["action$craft"])
    for start, stop in [(-1, 3), (0, len(trajectory) + 2), (5, 4)]:
        with pytest.raises(ValueError, match="are not a part of the"):
            trajectory.frames(start, stop)
    with pytest.raises(ValueError, match="are no range"):
        read_frames(trajectory.video, 3, 2)


def test_pictures_of_another_size(root):
    trajectory = first(root)
    with av.open(str(trajectory.video), "w") as container:
        stream = container.add_stream("libx264", rate=20)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for _ in range(trajectory.n_frames):
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(DamagedTrajectoryError, match="frames of 32×32; MineRL's are 64×64"):
        next(trajectory.frames())


def test_without_pyav_the_extra_is_named(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    for attempt in (lambda: load_pool(source), lambda: next(first(source).frames())):
        with pytest.raises(ImportError, match=r"pip install 'align-rudder\[minerl\]'"):
            attempt()
    assert len(load_pool(source, video=None)) == 10  # arrays need none


# Cache


def test_what_is_cached_equals_a_fresh_read(source, tmp_path):
    cache = ArrayCache(tmp_path / "cache")
    trajectory = first(source)
    fresh = trajectory.frame_array(size=16)
    for _ in range(2):
        cached = cache.frames(trajectory, 16)
        assert isinstance(cached, np.memmap)
        np.testing.assert_array_equal(cached, fresh)
    np.testing.assert_array_equal(cache.frames(trajectory), trajectory.frame_array())
    calls = []

    def make(t):
        calls.append(t.name)
        return (np.full(3, i) for i in range(len(t) + 1))

    for _ in range(3):
        codes = cache.array(trajectory, "codes", make, (3,), np.float32)
        np.testing.assert_array_equal(codes[:, 1], np.arange(len(trajectory) + 1))
        assert codes.dtype == np.float32
    assert calls == [trajectory.name]
    with pytest.raises(ValueError, match=r"codes@.*npy holds float32 .*use another name"):
        cache.array(trajectory, "codes", make, (3,), np.float64)
    with pytest.raises(ValueError, match="cannot be in the name of a file"):
        cache.array(trajectory, "../codes", make, (3,), np.float32)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file; the cache needs a folder"):
        ArrayCache(tmp_path / "file")


@pytest.mark.parametrize("name", ["recording.mp4", "rendered.npz", "metadata.json"])
def test_a_changed_source_is_computed_again(root, tmp_path, name):
    cache, trajectory, calls = ArrayCache(tmp_path / "cache"), first(root), []

    def make(t):
        calls.append(t)
        return np.full((len(t) + 1, 1), len(calls))

    assert cache.array(trajectory, "n", make, (1,), int)[0] == 1
    assert cache.array(trajectory, "n-2", make, (1,), int)[0] == 2
    status = os.stat(trajectory.path / name)
    os.utime(trajectory.path / name, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert cache.array(trajectory, "n", make, (1,), int)[0] == 3
    files = list((tmp_path / "cache" / DIAMOND / trajectory.name).glob("n@*.npy"))
    assert len(files) == 1  # what is outdated is deleted
    (trajectory.path / name).unlink()
    with pytest.raises(DamagedTrajectoryError, match=f"it has no {name}"):
        cache.array(trajectory, "n", make, (1,), int)


def test_a_failed_computation_leaves_nothing(source, tmp_path):
    cache, trajectory = ArrayCache(tmp_path / "cache"), first(source)

    def rows(n, shape):
        return lambda t: (np.zeros(shape) for _ in range(n))

    n = len(trajectory) + 1
    for make, message in [
        (rows(n - 1, 2), f"x has {n - 1} rows for {trajectory.name}; {n} are needed"),
        (rows(n + 1, 2), f"x has {n + 1} rows"),
        (rows(n, 3), r"row 0 of x has shape \(3,\); \(2,\) is needed"),
    ]:
        with pytest.raises(ValueError, match=message):
            cache.array(trajectory, "x", make, (2,), float)
    folder = tmp_path / "cache" / DIAMOND / trajectory.name
    assert [p.name for p in folder.iterdir()] == [".x.lock"]


def test_a_kill_while_writing_leaves_nothing_half(source, tmp_path):
    script = """
        import os, signal, sys
        from align_rudder.minerl.cache import ArrayCache
        from align_rudder.minerl.dataset import find_trajectories
        trajectory = find_trajectories(sys.argv[1])[0]
        def make(t):
            for i, picture in enumerate(t.frames()):
                if i == len(t) // 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield picture
        ArrayCache(sys.argv[2]).array(trajectory, "frames-64", make, (64, 64, 3), "uint8")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), source, tmp_path / "cache"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    trajectory = first(source)
    folder = tmp_path / "cache" / DIAMOND / trajectory.name
    assert not list(folder.glob("*.npy"))
    assert list(folder.glob(".*.tmp"))  # what the kill left, which nobody takes for an array
    cached = ArrayCache(tmp_path / "cache").frames(trajectory)
    np.testing.assert_array_equal(cached, trajectory.frame_array())
    assert sorted(p.suffix for p in folder.iterdir()) == [".lock", ".npy"]


def test_two_threads_compute_an_array_once(source, tmp_path):
    cache, trajectory, calls = ArrayCache(tmp_path / "cache"), first(source), []
    start = threading.Barrier(4)

    def make(t):
        calls.append(t)
        return np.arange(len(t) + 1.0)

    def get(_):
        start.wait()
        return cache.array(trajectory, "x", make, (), float).sum()

    assert len(set(parallel_map(get, range(4), 4))) == 1
    assert len(calls) == 1


# Conversion


def test_episodes_conserve_rewards_and_have_one_form(source, source4):
    space, actions = episode_space(), action_space()
    for trajectory in (*find_trajectories(source), *find_trajectories(source4)):
        episode = episode_of(trajectory)
        np.testing.assert_array_equal(episode.rewards, trajectory.rewards)
        assert episode.ret == trajectory.metadata["total_reward"] == trajectory.total_reward
        assert episode.terminated
        assert not episode.truncated
        assert list(episode.actions) == list(HEADS)
        for t in (0, len(episode) - 1):
            observation = ar.episodes.tree_index(episode.observations, t + 1)
            assert all(part.contains(np.asarray(observation[k])) for k, part in space.items()), (
                observation
            )
            action = ar.episodes.tree_index(episode.actions, t)
            assert all(part.contains(np.asarray(action[k])) for k, part in actions.items())
        sparse = episode_of(trajectory, rewards="diamond")
        assert sparse.ret == 1024 * trajectory.has_diamond
        diamond = episode.observations["diamond"]
        assert diamond[-1] == trajectory.has_diamond
        assert diamond[:-1].sum() == 0  # it ends the trajectory
        held = np.array(HELD)[episode.observations["equipped"]]
        assert "none" not in held
        if trajectory.task != TREECHOP:
            stored = trajectory.mainhand()["type"]
            np.testing.assert_array_equal(held, np.where(stored == "none", "air", stored))
            np.testing.assert_array_equal(episode.observations["inventory"], trajectory.inventory())
    with pytest.raises(ValueError, match="rewards='none' is not known"):
        episode_of(first(source), rewards="none")


def test_treechop_has_its_logs_from_the_reward_and_absent_heads_masked(source):
    for trajectory in find_trajectories(source, [TREECHOP]):
        episode = episode_of(trajectory)
        inventory = episode.observations["inventory"]
        log = ITEMS.index("log")
        gained = np.diff(inventory[:, log])
        np.testing.assert_array_equal(gained, trajectory.rewards)
        assert gained.sum() >= 3
        assert not np.delete(inventory, log, axis=1).any()
        mask = dict(zip(HEADS, trajectory.action_mask, strict=True))
        assert [head for head in HEADS if not mask[head]] == list(DECLARED)
        for head in DECLARED:
            assert set(episode.actions[head]) == {ENUMS[head].index("none")}
    assert action_mask(DIAMOND).all()
    assert action_mask(IRON).all()


def test_pictures_in_episodes(source):
    trajectory = first(source, TREECHOP)
    episode = episode_of(trajectory, frame_size=48)
    pov = episode.observations["pov"]
    assert pov.shape == (len(trajectory) + 1, 48, 48, 3)
    skip = trajectory.n_frames - len(trajectory) - 1
    assert frame_number(pov[7]) == skip + 7


def test_the_diamond_chain_is_found_in_a_pool_of_all_tasks(source):
    pool = load_pool(source)
    demonstrations = [episode_of(t, rewards="diamond") for t in shortest_with_diamond(pool, 3)]

    def gained(observation, action, reward, after, info):
        if after["diamond"] > observation["diamond"]:
            return "diamond"
        more = np.flatnonzero(after["inventory"] > observation["inventory"])
        return ITEMS[more[0]] if len(more) else None

    model = ar.AlignRudder(gained).fit(demonstrations)
    consensus = list(dict.fromkeys(model.profile_.consensus(threshold=0.9)))
    assert [item for item in consensus if item in CHAIN] == list(CHAIN)
    for trajectory in pool:
        episode = episode_of(trajectory, rewards="diamond")
        rr = model.redistribute(episode)
        assert rr.rewards.sum() + rr.correction == pytest.approx(episode.ret)
        assert rr.rewards.sum() > 0  # all tasks begin with a log


@pytest.mark.parametrize("frame_size", [None, 64])
def test_minari_dataset(source, tmp_path, monkeypatch, frame_size):
    minari = pytest.importorskip("minari")
    (tmp_path / "datasets").mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.setattr("align_rudder.minerl.convert._CHUNK", 64)  # some in one part, some in many
    trajectories = [t for t in find_trajectories(source) if len(t) < 260]
    assert {t.task for t in trajectories} >= {DIAMOND, TREECHOP}
    to_minari(trajectories, "minerl/play-v0", frame_size=frame_size)
    assert "minerl/play-v0" in minari.list_local_datasets()
    dataset = minari.load_dataset("minerl/play-v0")
    assert dataset.total_steps == sum(map(len, trajectories))
    assert dataset.total_episodes == len(trajectories)
    assert dataset.observation_space == episode_space(frame_size)
    assert dataset.action_space == action_space()
    from align_rudder.data.minari import load_minari

    about = list(dataset.storage.get_episode_metadata(range(len(trajectories))))
    for i, (read, t) in enumerate(zip(load_minari(dataset), trajectories, strict=True)):
        episode = episode_of(t, frame_size=frame_size)
        np.testing.assert_equal(read.observations, episode.observations)
        np.testing.assert_equal(read.actions, episode.actions)
        np.testing.assert_array_equal(read.rewards, episode.rewards)
        assert (read.terminated, read.truncated) == (True, False)
        assert about[i]["task"] == t.task
        assert about[i]["trajectory"] == t.name
        assert about[i]["total_steps"] == len(t)
        assert about[i]["rewards_sum"] == t.total_reward
        absent = about[i]["absent_heads"].split(",") if about[i]["absent_heads"] else []
        assert absent == (list(DECLARED) if t.task == TREECHOP else [])
    assert len(next(dataset.iterate_episodes([0]))) == len(trajectories[0])


def test_a_minari_dataset_is_whole_or_not_there(root, tmp_path, monkeypatch):
    pytest.importorskip("minari")
    datasets = tmp_path / "datasets"
    datasets.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(datasets))
    trajectories = find_trajectories(root, [TREECHOP])
    truncate(trajectories[1].video, 0.5)
    with pytest.raises(DamagedTrajectoryError, match=trajectories[1].name):
        to_minari(trajectories, "play-v0", frame_size=16)
    assert list(datasets.iterdir()) == []
    with pytest.raises(ValueError, match="no trajectories to write"):
        to_minari([], "play-v0")
    with pytest.raises(ValueError, match="'play' is not a Minari id"):
        to_minari(trajectories, "play")
    assert list(datasets.iterdir()) == []
    to_minari(trajectories, "play-v0")
    with pytest.raises(ValueError, match="already a dataset 'play-v0'"):
        to_minari(trajectories, "play-v0")
