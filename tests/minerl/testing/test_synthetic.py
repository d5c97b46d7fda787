"""Generated datasets: the format to the last type, people who follow the chain."""

import json
import zipfile

import numpy as np
import pytest
from small_world import DIAMOND, INVENTORY, KEYS, REWARDS, TREECHOP

from align_rudder.minerl.dataset import find_trajectories
from align_rudder.minerl.spaces import ITEMS
from align_rudder.minerl.testing.synthetic import CHAIN, simulate, write_dataset


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
    with zipfile.ZipFile(find_trajectories(root, [TREECHOP])[0].path / "rendered.npz") as archive:
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
            assert rewards[t - 1] >= REWARDS[item]  # reward[t-1] belongs to obs[t]
        assert rewards[-1] == 1024
        assert rewards.sum() == 1571
        noises |= {head for head in ("dirt", "torch") if inventory[head].any()}
    assert noises == {"dirt", "torch"}
    for goal in CHAIN:
        assert simulate(rng, 400, goal=goal)["reward"][-1] >= REWARDS[goal]
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
