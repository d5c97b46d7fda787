"""Minari datasets as episodes and back, on real datasets collected into a temporary folder."""

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import types
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from align_rudder import AlignRudder, StateEvents, SymbolEvents
from align_rudder.data.minari import load_minari, write_minari
from align_rudder.episodes import tree_index

minari = pytest.importorskip("minari")
h5py = pytest.importorskip("h5py")

LEFT, DOWN, RIGHT, UP = range(4)
TO_GOAL = [DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT]
LAKE_RUNS = [
    TO_GOAL,
    [LEFT, *TO_GOAL],
    [*TO_GOAL[:2], LEFT, *TO_GOAL[2:]],
    [DOWN, UP, *TO_GOAL],
    [DOWN, DOWN, RIGHT, UP],  # into a hole
    [LEFT, LEFT],  # cut off
]


class Rooms(gym.Env):
    """Go through rooms 0 to 4; observations and actions of every kind that Minari stores."""

    NAMES = ("hall", "cellar", "crypt", "", "tömb")

    def __init__(self, kind="dict", reward_type=float):
        box = gym.spaces.Box(-9, 9, (2,), np.float32)
        text = gym.spaces.Text(8, min_length=0, charset="abcdehlmnprtyö")
        parts = {"place": box, "room": gym.spaces.Discrete(5), "name": text}
        self.kind, self.reward_type = kind, reward_type
        self.observation_space = {
            "dict": gym.spaces.Dict({**parts, "pair": gym.spaces.Tuple((text, box))}),
            "tuple": gym.spaces.Tuple((text, gym.spaces.Dict(parts), box)),
            "text": text,
            "image": gym.spaces.Box(0, 255, (32, 32, 3), np.uint8),
        }[kind]
        self.action_space = gym.spaces.Dict(
            {"go": gym.spaces.Discrete(2), "how": gym.spaces.MultiBinary(3)}
        )

    def _observe(self):
        name = self.NAMES[self.room]
        place = np.array([self.room, -self.steps / 3], np.float32)
        parts = {"place": place, "room": np.int64(self.room), "name": name}
        return {
            "dict": {**parts, "pair": (name, place)},
            "tuple": (name, parts, place),
            "text": name,
            "image": np.random.default_rng(self.steps).integers(0, 256, (32, 32, 3), np.uint8),
        }[self.kind]

    def _info(self):
        return {
            "step": self.steps,
            "name": self.NAMES[self.room],
            "where": {"room": self.room, "deep": {"xy": np.array([self.room, self.steps / 7])}},
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room = self.steps = 0
        return self._observe(), self._info()

    def step(self, action):
        self.steps += 1
        self.room += int(action["go"])
        done = self.room == 4
        reward = self.reward_type(0.3 if done else 0.1 if action["go"] else -0.7 / 3)
        return self._observe(), reward, done, False, self._info()


ROOM_RUNS = [[1, 1, 1, 1], [1, 0, 1, 1, 1], [0, 1, 1, 0, 1, 1], [1, 1, 0]]


def room_actions(run):
    how = [np.array([go, 1, t % 2], np.int8) for t, go in enumerate(run)]
    return [{"go": np.int64(go), "how": h} for go, h in zip(run, how, strict=True)]


def _tree_map(function, tree, *rest):
    if isinstance(tree, dict):
        return {k: _tree_map(function, tree[k], *(r[k] for r in rest)) for k in tree}
    if isinstance(tree, tuple):
        return tuple(_tree_map(function, *parts) for parts in zip(tree, *rest, strict=True))
    return function(tree, *rest)


@contextlib.contextmanager
def collecting():
    """Minari's collector takes one function from jax; let it run where jax is not installed."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari on authors and links that are not given
        if importlib.util.find_spec("jax") is None:
            jax, tree_util = types.ModuleType("jax"), types.ModuleType("jax.tree_util")
            jax.tree_util, tree_util.tree_map = tree_util, _tree_map
            patch.setitem(sys.modules, "jax", jax)
            patch.setitem(sys.modules, "jax.tree_util", tree_util)
        yield


def collect(env, runs, dataset_id, *, record_infos=True, data_format=None, about=None):
    """Collect a dataset; return, for each run, what the environment itself gave."""
    seen = []
    with collecting():
        env = minari.DataCollector(env, record_infos=record_infos, data_format=data_format)
        for seed, actions in enumerate(runs):
            obs, _ = env.reset(seed=seed)
            run = {"obs": [obs], "actions": actions, "rewards": [], "infos": [], "end": None}
            for action in actions:
                obs, reward, terminated, truncated, info = env.step(action)
                run["obs"].append(obs)
                run["rewards"].append(float(reward))
                run["infos"].append(info)
                run["end"] = (terminated, truncated or not terminated)
            seen.append(run)
        env.create_dataset(dataset_id, **(about or {}))
        env.close()
    return seen


def lake():
    return gym.make("FrozenLake-v1", map_name="4x4", is_slippery=False)


def model_for(episodes):
    return AlignRudder(SymbolEvents()).fit(episodes)


def snapshot(root):
    return {p.relative_to(root): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


def assert_is(episode, run):
    """The episode is what the environment gave, step by step and bit by bit."""
    steps = len(run["rewards"])
    assert len(episode) == steps
    for t in range(steps + 1):
        np.testing.assert_equal(tree_index(episode.observations, t), run["obs"][t])
    for t in range(steps):
        np.testing.assert_equal(tree_index(episode.actions, t), run["actions"][t])
    np.testing.assert_array_equal(episode.rewards, run["rewards"])
    assert (episode.terminated, episode.truncated) == run["end"]


def assert_same(new, old):
    """All but rewards and infos is equal."""
    np.testing.assert_equal(new.observations, old.observations)
    np.testing.assert_equal(new.actions, old.actions)
    assert (new.terminated, new.truncated) == (old.terminated, old.truncated)


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    path = tmp_path / "datasets"
    path.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(path))
    return path


@pytest.fixture
def lake_runs(root):
    about = {
        "author": {"Ada", "Bob"},
        "author_email": "ada@example.org",
        "description": "walks",
        "algorithm_name": "by hand",
        "code_permalink": "https://example.org/code",
        "requirements": ["gymnasium>=1.0"],
        "eval_env": "FrozenLake8x8-v1",
    }
    return collect(lake(), LAKE_RUNS, "lake/walks-v0", about=about)


@pytest.fixture
def lake_model(lake_runs):
    return model_for(load_minari("lake/walks-v0", episodes=range(4)))


# Reading


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


# Writing


@pytest.mark.parametrize("correction", ["last", "info"])
def test_redistributed_rewards_are_the_models_and_returns_stay(lake_runs, lake_model, correction):
    source = load_minari("lake/walks-v0")
    written = write_minari("lake/walks-v0", lake_model, "lake/dense-v0", correction=correction)
    assert written.id == "lake/dense-v0"
    raw = list(minari.load_dataset("lake/dense-v0"))
    assert written.total_steps == sum(map(len, source)) == sum(map(len, raw))
    for new, data, old in zip(load_minari("lake/dense-v0"), raw, source, strict=True):
        assert_same(new, old)
        rr = lake_model.redistribute(old)
        ours = data.infos["align_rudder"]
        np.testing.assert_array_equal(new.rewards, data.rewards)
        if correction == "last":
            np.testing.assert_allclose(new.ret, old.ret, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(new.rewards, rr.with_correction())
            assert "correction" not in ours
        else:
            np.testing.assert_array_equal(new.rewards, rr.rewards)
            given = [info["align_rudder"]["correction"] for info in new.infos]
            assert given[:-1] == [0] * (len(old) - 1)
            np.testing.assert_allclose(new.ret + given[-1], old.ret, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(ours["original_reward"], [0, *old.rewards])
        np.testing.assert_array_equal(ours["event"], [-1, *rr.events])
        np.testing.assert_array_equal(ours["score"], [0, *rr.scores])
        for t, info in enumerate(new.infos):
            assert info["align_rudder"]["original_reward"] == old.rewards[t]
            assert info["prob"] == old.infos[t]["prob"]
    # Not the rewards of before: a demonstration earns on its way what it got at its end.
    assert raw[0].rewards[:-1].max() > 0.1


def test_the_start_state_has_its_event(lake_runs):
    demonstrations = load_minari("lake/walks-v0", episodes=range(4))
    model = AlignRudder(StateEvents(preference=None)).fit(demonstrations)
    written = write_minari("lake/walks-v0", model, "dense-v0")
    for data, episode in zip(written, load_minari("lake/walks-v0"), strict=True):
        start = model.encode(episode).start
        assert start >= 0
        assert data.infos["align_rudder"]["event"][0] == start


def test_env_spec_spaces_and_metadata_are_carried_over(lake_runs, lake_model):
    source = minari.load_dataset("lake/walks-v0")
    written = write_minari(source, lake_model, "lake/dense/shaped-v3")
    assert written.spec.namespace == "lake/dense"
    assert "lake/dense/shaped-v3" in minari.list_local_datasets()
    assert written.env_spec == source.env_spec
    assert written.observation_space == source.observation_space
    assert written.action_space == source.action_space
    with written.recover_environment() as env:
        env.reset()
        assert [env.step(a)[1] for a in TO_GOAL] == [0, 0, 0, 0, 0, 1]  # not slippery
    with written.recover_environment(eval_env=True) as env:
        assert env.observation_space.n == 64
    old, new = source.storage.metadata, written.storage.metadata
    for key in (
        "author",
        "author_email",
        "description",
        "algorithm_name",
        "code_permalink",
        "requirements",
        "total_steps",
        "total_episodes",
    ):
        assert new[key] == old[key]
    assert new["author"] == {"Ada", "Bob"}
    assert new["redistributed_from"] == "lake/walks-v0"


def test_metadata_of_episodes_is_carried_over(lake_runs, lake_model):
    source = minari.load_dataset("lake/walks-v0")
    source.storage.update_episode_metadata([{"player/name": f"p{i}", "grade": i} for i in range(6)])
    part = source.filter_episodes(lambda e: e.id in (1, 4))
    written = write_minari(part, lake_model, "part-v0", correction="info")
    about = list(written.storage.get_episode_metadata([0, 1]))
    for i, (index, data) in enumerate(zip([1, 4], written, strict=True)):
        assert about[i]["id"] == data.id == i
        assert about[i]["seed"] == index
        assert about[i]["grade"] == index
        assert about[i]["player"]["name"] == f"p{index}"
        assert about[i]["rewards_sum"] == pytest.approx(data.rewards.sum())
        assert about[i]["rewards_max"] == data.rewards.max()
        assert_same(load_minari(written)[i], load_minari(source)[index])


def test_reset_options_are_carried_over():
    with collecting():
        env = minari.DataCollector(lake())
        for _ in range(2):
            env.reset(seed=2**63 + 5, options={"start": {"x": 3}, "hard": True})
            for action in TO_GOAL:
                env.step(action)
        env.create_dataset("lake-v0")
        env.close()
    written = write_minari("lake-v0", model_for(load_minari("lake-v0")), "dense-v0")
    for about in written.storage.get_episode_metadata([0, 1]):
        assert about["options"] == {"start": {"x": 3}, "hard": True}
        assert about["seed"] == 2**63 + 5


@pytest.mark.parametrize("kind", ["dict", "tuple", "text", "image"])
def test_every_kind_of_space_is_written(kind):
    collect(Rooms(kind), [room_actions(r) for r in ROOM_RUNS], "rooms-v0")
    source = load_minari("rooms-v0")
    model = AlignRudder(lambda obs, action, r, after, info: info["name"]).fit(source[:3])
    written = write_minari("rooms-v0", model, "dense-v0")
    assert written.env_spec is None
    assert written.observation_space == Rooms(kind).observation_space
    for new, old in zip(load_minari("dense-v0"), source, strict=True):
        assert_same(new, old)  # images too: JPEG is not applied a second time
        assert new.ret == pytest.approx(old.ret, rel=1e-9)
        for info in new.infos:
            info.pop("align_rudder")
        np.testing.assert_equal(list(new.infos), list(old.infos))


def test_rewards_of_single_precision_keep_their_returns():
    collect(Rooms("dict", np.float32), [room_actions(r) for r in ROOM_RUNS], "rooms-v0")
    source = minari.load_dataset("rooms-v0")
    assert source[0].rewards.dtype == np.float32
    episodes = load_minari(source)
    model = AlignRudder(lambda obs, action, r, after, info: info["name"]).fit(episodes[:3])
    for data, episode in zip(write_minari(source, model, "dense-v0"), episodes, strict=True):
        assert data.rewards.dtype == np.float64
        np.testing.assert_allclose(data.rewards.sum(), episode.ret, rtol=1e-9)
        original = data.infos["align_rudder"]["original_reward"][1:]
        np.testing.assert_array_equal(original, episode.rewards)


@pytest.mark.parametrize("data_format", ["arrow", "parquet"])
def test_other_storage_formats(data_format):
    pytest.importorskip("pyarrow")
    seen = collect(lake(), LAKE_RUNS, "lake-v0", data_format=data_format)
    source = load_minari("lake-v0")
    written = write_minari("lake-v0", model_for(source[:4]), "dense-v0", correction="info")
    assert written.storage.metadata["data_format"] == data_format
    for new, old, run in zip(load_minari(written), source, seen, strict=True):
        assert_is(old, run)
        assert_same(new, old)
        ours = [info["align_rudder"] for info in new.infos]
        assert [o["original_reward"] for o in ours] == old.rewards.tolist()
        assert new.ret + ours[-1]["correction"] == pytest.approx(old.ret, rel=1e-9)
        assert [info["prob"] for info in new.infos] == [info["prob"] for info in old.infos]


def test_the_source_is_left_as_it_was(lake_runs, lake_model, root):
    before = snapshot(root / "lake" / "walks-v0")
    write_minari("lake/walks-v0", lake_model, "lake/dense-v0")
    assert snapshot(root / "lake" / "walks-v0") == before


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


def test_existing_datasets_are_not_overwritten(lake_runs, lake_model, root):
    write_minari("lake/walks-v0", lake_model, "lake/dense-v0")
    (root / "folder-v0").mkdir()
    before = snapshot(root)
    for new_id in ("lake/walks-v0", "lake/dense-v0", "folder-v0"):
        with pytest.raises(ValueError, match=rf"already a dataset '{new_id}' .*choose another"):
            write_minari("lake/walks-v0", lake_model, new_id)
        assert snapshot(root) == before


def test_a_dataset_that_appears_meanwhile_stays(lake_runs, lake_model, root, monkeypatch):
    redistribute, other = lake_model.redistribute, root / "dense-v0"

    def and_another_writer(episode):
        other.mkdir(exist_ok=True)
        (other / "theirs").write_text("theirs")
        return redistribute(episode)

    monkeypatch.setattr(lake_model, "redistribute", and_another_writer)
    with pytest.raises(ValueError, match="already a dataset 'dense-v0'"):
        write_minari("lake/walks-v0", lake_model, "dense-v0")
    assert snapshot(other) == {Path("theirs"): b"theirs"}
    assert sorted(p.name for p in root.iterdir()) == ["dense-v0", "lake"]


@pytest.mark.parametrize(
    "new_id", ["dense", "", "../dense-v0", "/dense-v0", "a b-v0", "lake/-v", None, 3]
)
def test_ids_that_are_none(lake_runs, lake_model, root, new_id):
    before = snapshot(root.parent)
    with pytest.raises(ValueError, match=r"is not a Minari id; .* \(namespace/\)name-v0"):
        write_minari("lake/walks-v0", lake_model, new_id)
    assert snapshot(root.parent) == before


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


def test_wrong_arguments_of_a_write(lake_runs, lake_model, root):
    before = snapshot(root)
    with pytest.raises(ValueError, match='correction=\'first\' is not known; use "last" or "info"'):
        write_minari("lake/walks-v0", lake_model, "dense-v0", correction="first")
    with pytest.raises(ValueError, match="not fitted"):
        write_minari("lake/walks-v0", AlignRudder(), "dense-v0")
    assert snapshot(root) == before


def test_nothing_is_redistributed_twice(lake_runs, lake_model, root):
    write_minari("lake/walks-v0", lake_model, "dense-v0")
    before = snapshot(root)
    with pytest.raises(ValueError, match="dense-v0 was redistributed before"):
        write_minari("dense-v0", lake_model, "dense-v1")
    assert snapshot(root) == before


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("new_id", ["dense-v0", "new/space/dense-v0"])
def test_a_write_that_fails_leaves_nothing(
    lake_runs, lake_model, root, monkeypatch, failure, new_id
):
    redistribute, before, calls = lake_model.redistribute, snapshot(root), []

    def fails_midway(episode):
        calls.append(episode)
        assert list(minari.list_local_datasets()) == ["lake/walks-v0"]  # nothing half shows
        if len(calls) == 4:
            raise failure("midway")
        return redistribute(episode)

    with monkeypatch.context() as patch:
        patch.setattr(lake_model, "redistribute", fails_midway)
        with pytest.raises(failure, match="midway"):
            write_minari("lake/walks-v0", lake_model, new_id)
    assert len(calls) == 4
    assert snapshot(root) == before
    assert list(minari.list_local_datasets()) == ["lake/walks-v0"]
    assert write_minari("lake/walks-v0", lake_model, new_id).total_episodes == 6


def test_without_minari_the_extra_is_named(monkeypatch, lake_model):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r'pip install "align-rudder\[minari\]"'):
        load_minari("lake/walks-v0")
    with pytest.raises(ImportError, match=r'pip install "align-rudder\[minari\]"'):
        write_minari("lake/walks-v0", lake_model, "dense-v0")
