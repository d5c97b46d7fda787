"""Trajectories as episodes of one form, and as Minari datasets."""

import os

import numpy as np
import pytest
from small_world import DIAMOND, IRON, TREECHOP

import align_rudder as ar
from align_rudder.minerl.convert import episode_of, episode_space, to_minari
from align_rudder.minerl.dataset import (
    DamagedTrajectoryError,
    find_trajectories,
    load_pool,
    shortest_with_diamond,
)
from align_rudder.minerl.spaces import ENUMS, HEADS, HELD, ITEMS, action_space
from align_rudder.minerl.testing.synthetic import CHAIN, write_dataset
from align_rudder.minerl.testing.videos import frame_number


def test_episodes_conserve_rewards_and_have_one_form(source, source4):
    space, actions = episode_space(), action_space()
    for trajectory in (*find_trajectories(source), *find_trajectories(source4)):
        episode = episode_of(trajectory)
        np.testing.assert_array_equal(episode.rewards, trajectory.rewards)
        assert episode.ret == trajectory.metadata["total_reward"]
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
    with pytest.raises(ValueError, match="rewards is 'none'; one of 'stored', 'diamond'"):
        episode_of(find_trajectories(source)[0], rewards="none")


def test_treechop_has_its_logs_from_the_reward_and_what_does_nothing_elsewhere(source):
    for trajectory in find_trajectories(source, [TREECHOP]):
        episode = episode_of(trajectory)
        inventory = episode.observations["inventory"]
        log = ITEMS.index("log")
        gained = np.diff(inventory[:, log])
        np.testing.assert_array_equal(gained, trajectory.rewards)
        assert gained.sum() >= 3
        assert not np.delete(inventory, log, axis=1).any()
        assert set(HEADS) - set(trajectory.spec.heads) == set(ENUMS)
        for head in ENUMS:
            assert set(episode.actions[head]) == {ENUMS[head].index("none")}
    for task in (DIAMOND, IRON):
        assert find_trajectories(source, [task])[0].spec.heads == HEADS


def test_pictures_in_episodes(source):
    trajectory = find_trajectories(source, [TREECHOP])[0]
    pov = episode_of(trajectory, frame_size=48).observations["pov"]
    assert pov.shape == (len(trajectory) + 1, 48, 48, 3)
    assert frame_number(pov[7]) == trajectory.lead_frames + 7


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


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    """The folder of local Minari datasets."""
    pytest.importorskip("minari")
    folder = tmp_path / "datasets"
    folder.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


@pytest.mark.parametrize("frame_size", [None, 16])
def test_minari_dataset(source, tmp_path, datasets, frame_size):
    import minari

    trajectories = [t for t in find_trajectories(source) if len(t) < 260]
    write_dataset(tmp_path / "long", 1, task=TREECHOP, lengths=[1100])  # is written in two parts
    trajectories += find_trajectories(tmp_path / "long")
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
        assert about[i]["rewards_sum"] == t.rewards.sum()
        absent = about[i]["absent_heads"].split(",") if about[i]["absent_heads"] else []
        assert absent == (list(ENUMS) if t.task == TREECHOP else [])
    assert len(next(dataset.iterate_episodes([0]))) == len(trajectories[0])


def test_a_minari_dataset_is_whole_or_not_there(root, datasets):
    trajectories = find_trajectories(root, [TREECHOP])
    os.truncate(trajectories[1].video, 500)
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
