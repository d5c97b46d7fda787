"""Writing Minari datasets: the rewards are the model's, all else stays."""

from pathlib import Path

import numpy as np
import pytest
from collected import (
    LAKE_RUNS,
    ROOM_RUNS,
    TO_GOAL,
    Rooms,
    assert_is,
    assert_same,
    collect,
    collecting,
    lake,
    model_for,
    room_actions,
)
from settled import KINDS, settlement

from align_rudder import AlignRudder, StateEvents
from align_rudder.data.minari import load_minari, write_minari

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.usefixtures("root")


def snapshot(root):
    return {p.relative_to(root): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


@pytest.mark.parametrize("kind", KINDS)
def test_redistributed_rewards_are_the_models_and_returns_stay(lake_runs, lake_model, kind):
    source = load_minari("lake/walks-v0")
    assert {(e.terminated, e.truncated) for e in source} == {(True, False), (False, True)}
    settled = settlement(kind)
    written = write_minari("lake/walks-v0", lake_model, "lake/dense-v0", settlement=settled)
    assert written.id == "lake/dense-v0"
    raw = list(minari.load_dataset("lake/dense-v0"))
    assert written.total_steps == sum(map(len, source)) == sum(map(len, raw))
    for new, data, old in zip(load_minari("lake/dense-v0"), raw, source, strict=True):
        assert_same(new, old)
        rr = lake_model.redistribute(old)
        ours = data.infos["align_rudder"]
        np.testing.assert_array_equal(new.rewards, data.rewards)
        np.testing.assert_array_equal(new.rewards, rr.settled(settled))
        if kind in ("even", "mean", "last"):
            np.testing.assert_allclose(new.ret, old.ret, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(ours["share"], [0, *rr.rewards])
        np.testing.assert_array_equal(ours["original_reward"], [0, *old.rewards])
        np.testing.assert_array_equal(ours["event"], [-1, *rr.events])
        np.testing.assert_array_equal(ours["score"], [0, *rr.scores])
        for t, info in enumerate(new.infos):
            assert info["align_rudder"]["original_reward"] == old.rewards[t]
            assert info["prob"] == old.infos[t]["prob"]
    # Not the rewards of before: a demonstration earns on its way what it got at its end.
    assert kind == "mean" or raw[0].rewards[:-1].max() > 0.1


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
    written = write_minari(part, lake_model, "part-v0", settlement="beside")
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
    model = model_for(source[:4])
    written = write_minari("lake-v0", model, "dense-v0")
    assert written.storage.metadata["data_format"] == data_format
    for new, old, run in zip(load_minari(written), source, seen, strict=True):
        assert_is(old, run)
        assert_same(new, old)
        ours = [info["align_rudder"] for info in new.infos]
        assert [o["original_reward"] for o in ours] == old.rewards.tolist()
        assert new.ret == pytest.approx(old.ret, rel=1e-9)
        assert sum(o["share"] for o in ours) == pytest.approx(ours[-1]["score"] * model.scale_)
        assert [info["prob"] for info in new.infos] == [info["prob"] for info in old.infos]


def test_the_source_is_left_as_it_was(lake_runs, lake_model, root):
    before = snapshot(root / "lake" / "walks-v0")
    write_minari("lake/walks-v0", lake_model, "lake/dense-v0")
    assert snapshot(root / "lake" / "walks-v0") == before


# Errors


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


def test_wrong_arguments_of_a_write(lake_runs, lake_model, root):
    before = snapshot(root)
    with pytest.raises(ValueError, match="settlement is 'first'; one of 'annealed'"):
        write_minari("lake/walks-v0", lake_model, "dense-v0", settlement="first")
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
