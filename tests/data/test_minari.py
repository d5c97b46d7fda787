"""Reading Minari datasets: episodes are what the environment gave."""

import json
import os
import shutil
import sys

import gymnasium as gym
import numpy as np
import pytest
from collected import ROOM_RUNS, Rooms, assert_is, collect, collecting, lake, room_actions

from align_rudder.data.minari import load_minari, write_minari

minari = pytest.importorskip("minari")
h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("root")


def snapshot(root):
    return {p.relative_to(root): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


def test_frozen_lake_is_read_as_collected(lake_runs):
    episodes = load_minari("lake/walks-v0")
    assert [e.ret for e in episodes] == [1, 1, 1, 1, 0, 0]
    for episode, run in zip(episodes, lake_runs, strict=True):
        assert_is(episode, run)
        assert [info["prob"] for info in episode.infos] == [i["prob"] for i in run["infos"]]


def test_cart_pole_is_read_as_collected():
    runs = [[t // 2 % 2 for t in range(20)], [1] * 5, [0, 1] * 10]
    seen = collect(gym.make("CartPole-v1"), runs, "cart-v0", record_infos=False)
    for episode, run in zip(load_minari("cart-v0"), seen, strict=True):
        assert_is(episode, run)
        assert episode.observations.dtype == np.float32
        assert episode.infos is None


def test_continuous_actions_are_read_as_collected():
    runs = [[np.array([x], np.float32) for x in (0.1, -2, 1.7)]]
    seen = collect(gym.make("Pendulum-v1"), runs, "pendulum-v0")
    assert_is(load_minari("pendulum-v0")[0], seen[0])


@pytest.mark.parametrize("kind", ["dict", "tuple", "text"])
def test_trees_and_text_are_read_as_collected(kind):
    seen = collect(Rooms(kind), [room_actions(r) for r in ROOM_RUNS], "rooms-v0")
    for episode, run in zip(load_minari("rooms-v0"), seen, strict=True):
        assert_is(episode, run)


def test_infos_belong_to_the_step_that_they_came_with():
    seen = collect(Rooms(), [room_actions(r) for r in ROOM_RUNS], "rooms-v0")
    for episode, run in zip(load_minari("rooms-v0"), seen, strict=True):
        assert [info["step"] for info in episode.infos] == list(range(1, len(episode) + 1))
        np.testing.assert_equal(list(episode.infos), run["infos"])
        assert isinstance(episode.infos[0]["name"], str)


def _from_buffers(dataset_id, infos, rewards=(0.0, 1.0)):
    buffer = minari.data_collector.EpisodeBuffer(
        observations=[0, 1, 2],
        actions=[1, 1],
        rewards=list(rewards),
        terminations=[False, True],
        truncations=[False, False],
        infos=infos,
    )
    discrete = gym.spaces.Discrete(3)
    with collecting():
        return minari.create_dataset_from_buffers(
            dataset_id, [buffer, buffer], observation_space=discrete, action_space=discrete
        )


def test_infos_without_a_reset_and_of_the_whole_episode():
    dataset = _from_buffers("a-v0", {"after": [1, 2], "with_reset": [0, 1, 2], "level": 7})
    for t, info in enumerate(load_minari(dataset)[0].infos):
        assert info == {"after": t + 1, "with_reset": t + 1, "level": 7}
    _from_buffers("b-v0", None)
    assert load_minari("b-v0")[0].infos is None


def test_infos_of_another_length_are_an_error():
    _from_buffers("a-v0", {"part": {"odd": [1, 2, 3, 4]}})
    with pytest.raises(ValueError, match=r"episode 0 of a-v0: infos/part/odd has length 4; for 2"):
        load_minari("a-v0")


def test_an_episode_that_is_none_is_named():
    _from_buffers("a-v0", None, rewards=(0.0, np.nan))
    with pytest.raises(ValueError, match=r"episode 0 of a-v0: rewards\[1\] is nan"):
        load_minari("a-v0")


def test_a_dataset_is_found_by_id_path_and_object(lake_runs, root, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(root / "lake" / "walks-v0", elsewhere)
    monkeypatch.chdir(tmp_path)
    for dataset in [
        "lake/walks-v0",
        elsewhere,
        str(elsewhere),
        elsewhere / "data",
        "elsewhere",
        minari.load_dataset("lake/walks-v0"),
    ]:
        for episode, run in zip(load_minari(dataset), lake_runs, strict=True):
            assert_is(episode, run)


def test_chosen_episodes_come_in_the_order_asked_for(lake_runs):
    for episode, i in zip(load_minari("lake/walks-v0", episodes=[4, 0, 4]), [4, 0, 4], strict=True):
        assert_is(episode, lake_runs[i])
    numbers = np.array([1, 2])
    assert_is(load_minari("lake/walks-v0", episodes=numbers)[1], lake_runs[2])


def test_episodes_of_a_filtered_dataset_count_from_its_first(lake_runs):
    lost = minari.load_dataset("lake/walks-v0").filter_episodes(lambda e: e.rewards.sum() == 0)
    assert_is(load_minari(lost, episodes=[0])[0], lake_runs[4])
    with pytest.raises(ValueError, match=r"episodes \[2\] do not exist: .* has episodes 0 to 1"):
        load_minari(lost, episodes=[2])


# Errors


def test_unknown_ids_tell_what_there_is(lake_runs, lake_model, root):
    message = r"no dataset 'lake/walk-v0', .* Local datasets: lake/walks-v0\. Nothing is downloaded"
    with pytest.raises(ValueError, match=message):
        load_minari("lake/walk-v0")
    with pytest.raises(ValueError, match=message):
        write_minari("lake/walk-v0", lake_model, "dense-v0")
    with pytest.raises(ValueError, match=r"lake is not a Minari dataset, .*: lake/walks-v0\."):
        load_minari("lake")
    shutil.rmtree(root / "lake")
    with pytest.raises(ValueError, match="Local datasets: none"):
        load_minari("lake/walk-v0")


def test_a_path_that_is_no_dataset(tmp_path):
    (tmp_path / "file").write_text("hello")
    for path in (tmp_path, str(tmp_path), tmp_path / "file", ""):
        with pytest.raises(ValueError, match=r"is not a Minari dataset, .* no data/metadata\.json"):
            load_minari(path)
    with pytest.raises(ValueError, match=r"there is no dataset '.*missing', neither"):
        load_minari(tmp_path / "missing")
    with pytest.raises(ValueError, match="dataset is a int; the id"):
        load_minari(3)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.95])
def test_a_truncated_data_file(lake_runs, lake_model, root, kept):
    file = root / "lake" / "walks-v0" / "data" / "main_data.hdf5"
    os.truncate(file, int(file.stat().st_size * kept))
    before = snapshot(root)
    with pytest.raises(ValueError, match=r"lake/walks-v0 .*cannot be read: .* truncated"):
        load_minari("lake/walks-v0")
    with pytest.raises(ValueError, match=r"lake/walks-v0 .*cannot be read: .* truncated"):
        write_minari("lake/walks-v0", lake_model, "dense-v0")
    assert snapshot(root) == before


def test_a_data_file_without_an_episode_that_it_should_have(lake_runs, root):
    with h5py.File(root / "lake" / "walks-v0" / "data" / "main_data.hdf5", "a") as file:
        del file["episode_3"]
    with pytest.raises(ValueError, match=r"episode 3 of lake/walks-v0 .*cannot be read"):
        load_minari("lake/walks-v0")
    assert len(load_minari("lake/walks-v0", episodes=[0, 4])) == 2


def test_damaged_metadata(lake_runs, root):
    data = root / "lake" / "walks-v0" / "data"
    text = (data / "metadata.json").read_text()
    unknown = json.dumps({**json.loads(text), "minari_version": "99.0"})
    for bad in ("", text[: len(text) // 2], "{}", "[]", unknown):
        (data / "metadata.json").write_text(bad)
        with pytest.raises(ValueError, match=r"walks-v0 cannot be read: .* damaged"):
            load_minari("lake/walks-v0")
    (data / "metadata.json").write_text(text)
    (data / "main_data.hdf5").unlink()
    with pytest.raises(ValueError, match=r"walks-v0 cannot be read: .* No data found"):
        load_minari("lake/walks-v0")


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([0, 6], r"episodes \[6\] do not exist: lake/walks-v0 has episodes 0 to 5"),
        ([-1, 7], r"episodes \[-1, 7\] do not exist"),
        (2, r"episodes=2; a sequence of whole numbers"),
        ([0.5], r"episodes=\[0\.5\]; a sequence of whole numbers"),
        ("01", r"episodes='01'; a sequence of whole numbers"),
    ],
)
def test_episodes_that_do_not_exist(lake_runs, episodes, message):
    with pytest.raises(ValueError, match=message):
        load_minari("lake/walks-v0", episodes=episodes)


def test_a_dataset_without_episodes(lake_model, root):
    with collecting():
        env = minari.DataCollector(lake())
        env.create_dataset("empty-v0")
        env.close()
    before = snapshot(root)
    with pytest.raises(ValueError, match="empty-v0 has no episodes; at least one"):
        load_minari("empty-v0")
    with pytest.raises(ValueError, match="empty-v0 has no episodes; at least one"):
        write_minari("empty-v0", lake_model, "dense-v0")
    assert snapshot(root) == before
    nothing = minari.load_dataset("lake/walks-v0").filter_episodes(lambda e: False)
    with pytest.raises(ValueError, match="lake/walks-v0 has no episodes"):
        load_minari(nothing)


def test_without_minari_the_extra_is_named(monkeypatch, lake_model):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[minari\]"'):
        load_minari("lake/walks-v0")
    with pytest.raises(ImportError, match=r'pip install "\.\[minari\]"'):
        write_minari("lake/walks-v0", lake_model, "dense-v0")
