"""MineRL: a dataset recorded in the scripted world is one that the package reads as any other."""

import numpy as np
import pytest

pytest.importorskip("av")
from small_world import REWARDS, replay

from align_rudder.minerl.dataset import load_pool
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.pipeline import fit_events, segments
from align_rudder.minerl.spaces import ITEMS
from align_rudder.minerl.testing import recording
from align_rudder.minerl.testing.recording import record_dataset
from align_rudder.runs.lock import only_here

WORLD = {"hits": 2, "distance": 2}
CHAIN = (
    "log planks stick log planks crafting_table log planks crafting_table-1 wooden_pickaxe "
    "cobblestone cobblestone cobblestone stone_pickaxe stick iron_ore iron_ore iron_ore "
    "coal coal coal" + " cobblestone" * 8 + " furnace furnace-1 iron_ingot iron_ingot iron_ingot "
    "iron_pickaxe diamond"
).split()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Trajectories of people who now and then do something else."""
    root = tmp_path_factory.mktemp("recorded")
    record_dataset(root, 3, seed=5, noise=0.05, world=WORLD)
    return load_pool(root, video="frames")


def test_all_is_as_the_format_wants_it_and_finds_the_diamond(recorded):
    assert len(recorded) == 3
    assert not recorded.damaged
    for trajectory in recorded:
        assert trajectory.has_diamond
        assert trajectory.rewards.sum() == sum(REWARDS.values())
        assert len(trajectory) + 1 == trajectory.n_frames


def test_the_recorded_actions_lead_to_the_recorded_states(recorded):
    """Inventories exactly, pictures as far as the codec keeps them, in the world of the seed."""
    with MineRLEnv(module="scripted", module_options=WORLD) as env:
        for i, trajectory in enumerate(recorded):
            actions, frames = trajectory.actions(), list(trajectory.frames())
            inventory = trajectory.inventory()
            for t in (0, 1, len(trajectory) // 2, len(trajectory) - 1):
                obs = replay(env, 5 + i, {head: x[:t] for head, x in actions.items()})
                np.testing.assert_array_equal(obs["inventory"], inventory[t])
                off = np.abs(obs["pov"].astype(int) - frames[t])
                assert np.median(off) <= 4
                assert off.mean() < 12


def test_versions_differ_in_form_only(tmp_path):
    for version in (3, 4):
        record_dataset(tmp_path / str(version), 1, version, seed=2, noise=0.05, world=WORLD)
    (old,), (new,) = (load_pool(tmp_path / str(version)) for version in (3, 4))
    np.testing.assert_array_equal(old.inventory(), new.inventory())
    np.testing.assert_array_equal(old.rewards, new.rewards)
    for head, values in old.actions().items():
        np.testing.assert_array_equal(values, new.actions()[head])
    assert old.mainhand()["type"][0] == "none"
    assert new.mainhand()["type"][0] == "air"


def test_sub_goals_are_the_tool_chain(tmp_path):
    record_dataset(tmp_path / "data", 3, noise=0.0, world=WORLD)
    pool = load_pool(tmp_path / "data")
    model = fit_events(pool, 3)
    found = [str(goal.symbol).split()[0] for goal in model.subgoals_]
    assert [name if "-" in name else name[: name.index("+")] for name in found] == CHAIN
    tasks = segments(pool, model)
    assert [len(task.segments) for task in tasks] == [3] * len(CHAIN)


def test_noise_is_dirt_logs_and_looks(recorded, tmp_path):
    record_dataset(tmp_path / "data", 3, seed=5, noise=0.0, world=WORLD)
    plain = load_pool(tmp_path / "data")
    assert sum(map(len, recorded)) > sum(map(len, plain))
    dirt = ITEMS.index("dirt")
    assert all(t.inventory()[:, dirt].max() == 0 for t in plain)


def test_a_folder_that_is_taken_is_refused(recorded):
    root = recorded.trajectories[0].path.parents[1]
    for other in ({"seed": 6}, {"noise": 0.1}, {"version": 4}, {"world": {"hits": 3}}):
        with pytest.raises(ValueError, match=r"is .* there and .* here.*give another folder"):
            record_dataset(root, 1, **{"seed": 5, "noise": 0.05, "world": WORLD, **other})
    (root / "recording.json").rename(root / "kept.json")  # a dataset of other people
    with pytest.raises(ValueError, match="is already there; give another folder"):
        record_dataset(root, 1)
    with pytest.raises(ValueError, match="holds version 3 of the dataset; version 4 needs"):
        record_dataset(root, 1, 4)
    (root / "kept.json").rename(root / "recording.json")
    with only_here(root), pytest.raises(ValueError, match="another run is writing to"):
        record_dataset(root, 3, seed=5, noise=0.05, world=WORLD)


def test_an_interrupted_recording_goes_on_and_leaves_nothing_half_done(tmp_path, monkeypatch):
    def interrupted(path, pictures):
        if "player-1" in str(path):
            raise KeyboardInterrupt
        write_video(path, pictures)

    write_video = recording.write_video
    monkeypatch.setattr(recording, "write_video", interrupted)
    root = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        record_dataset(root, 2, noise=0.0, world=WORLD)
    (first,) = load_pool(root)
    made = (first.path / "rendered.npz").stat().st_mtime_ns
    assert not list(root.glob(".recording-*"))
    monkeypatch.undo()
    whole = record_dataset(root, 2, noise=0.0, world=WORLD)
    assert [trajectory.path for trajectory in load_pool(root, video="frames")] == whole
    assert (first.path / "rendered.npz").stat().st_mtime_ns == made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"noise": float("nan")}, "noise=nan; 0 to 0.5"),
        ({"seed": -1}, "seed is -1"),
        ({"world": {"foo": 3}}, "no option foo; it has version, stage, distance, spread, hits"),
        ({"world": {"hits": "abc"}}, "hits='abc' is no whole number"),
        ({"world": {"hits": 1.5}}, r"hits=1\.5 is no whole number"),
        ({"world": {"spread": None}}, "spread=None is no number"),
        ({"world": {"stage": "nowhere"}}, "stage='nowhere' is not known"),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_leaves_no_folder(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        record_dataset(tmp_path / "data", **{"n": 1, **options})
    assert not (tmp_path / "data").exists()
