"""Files of models: those of version 0.1 give the same rewards, and damaged ones are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_models import RUNS, state_episodes

import align_rudder as ar

OLD = Path(__file__).parent / "data" / "v0.1"
REWARDS = json.loads((OLD / "rewards.json").read_text())
WORDS = [["cat", "key", "key", "door"], ["key", "door", "chest", "dragon"], []]
ODD = [
    [("a", 1), b"x", frozenset([1, 2]), None, 2.5, True],
    [("a", 1), b"x", None, frozenset([1, 2]), 2.5],
    [b"x", frozenset([2, 1]), 2.5, float("inf")],
]
SEQUENCES = {"symbols-odd": ODD, "symbols-two": ["abcuvw", "uvwxyz"]}


@pytest.mark.parametrize("name", REWARDS)
def test_a_model_of_version_0_1_gives_the_same_rewards(name):
    if name == "inventory":
        pytest.importorskip("jax")
    model = (ar.LstmRudder if name.startswith("lstm") else ar.AlignRudder).load(OLD / f"{name}.npz")
    episodes = OLD / f"{name}-episodes.npz"
    if episodes.exists():
        found = [model.redistribute(episode) for episode in ar.load_episodes(episodes)]
    else:
        found = [model.redistribute_events(s, 1.0) for s in SEQUENCES.get(name, WORDS)]
    assert [rr.rewards.tolist() for rr in found] == REWARDS[name]


def test_a_model_of_a_function_of_version_0_1_takes_the_function():
    def entered(obs, action, reward, next_obs, info):
        return int(next_obs) if next_obs != obs else None

    model = ar.AlignRudder.load(OLD / "function.npz", function=entered)
    other = ar.AlignRudder.load(OLD / "states.npz")
    assert len(model.returns_) == len(other.returns_)
    assert [g.symbol for g in model.subgoals_][-1] == 15


def test_episodes_of_version_0_1_are_read():
    first, second = ar.load_episodes(OLD / "infos.npz")
    assert first.infos[0]["c"] == {"d": "x"}
    assert np.isnan(first.infos[2]["n"])
    assert second.infos == [{}, {}, {}]
    assert [len(e) for e in ar.load_episodes(OLD / "plain.npz")] == [2, 4]


def changed(path, change):
    """Change header and arrays of a saved model."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays["header"].tobytes().decode())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


def put(name, value, at=0):
    """Return a change that sets one value of an array."""

    def change(header, arrays):
        array = arrays[name].copy()
        array.flat[at] = value
        arrays[name] = array

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("sequences", 99), "event beyond the 3 that there are"),
        (put("sequences", -2), "'sequences' holds -2; at least -1"),
        (put("starts", 5), "event beyond the 3"),
        (put("steps", 7), "have 11 steps, but there are 7"),
        (put("lengths", 4), "'lengths' and 'steps' differ"),
        (put("returns", 1e257), "'returns' holds 1e"),
        (put("returns", np.nan), "'returns' holds nan; finite"),
        (put("background", 0.9), "'background' is not how often each event occurs"),
        (put("scores", 9.0), "'scores' are not those of scoring 'inverse'"),
        (put("tree", 5.0), "joins a group that there is not yet"),
        (put("tree", 1.0), "joins a group twice"),
        (put("tree", 0.5), "whole numbers are needed"),
        (put("tree", 9.0, 3), "sizes or distances that cannot be"),
        (put("strategy/0/members", 1), "each may be in one strategy once"),
        (put("strategy/0/members", 2), "'strategy/0/members' holds 2; at most 1"),
        (put("strategy/0/matrix", -1), "does not spell demonstration 0"),
        (put("strategy/0/matrix", 7), "'strategy/0/matrix' holds 7; at most 2"),
        (put("strategy/0/scores", 9.0), "scores of strategy 0 are not those of the model"),
        (lambda h, a: a.pop("strategy/0/tree"), "two or more have a tree"),
        (lambda h, a: h.update(n_strategies=0), "of a strategy, but 0 strategies"),
        (lambda h, a: h.update(n_strategies=9), "9 strategies of 2 demonstrations"),
        (lambda h, a: h.update(more=1), "its header has 'more', which is not known"),
        (lambda h, a: a.update(more=np.zeros(1)), "it has an array 'more', which is not known"),
        (lambda h, a: h["parameters"].update(gap=1e308), r"\['gap'\] is 1e\+308; a number"),
        (lambda h, a: h["events"].update(symbols=["a", "a", "b"]), "0 and 1 have the same symbol"),
        (lambda h, a: h["events"].update(symbols=["a", None, "b"]), "event 1 is None"),
        (lambda h, a: h["events"].update(symbols=["a", {"x": 1}, "b"]), "stands for no symbol"),
        (lambda h, a: h["events"].update(source="reward"), "'reward'; one of 'observation'"),
        (lambda h, a: h["events"].update(kind="InventoryEvents", module="os"), "'os'; one of"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_used(tmp_path, change, message):
    path = tmp_path / "model.npz"
    ar.AlignRudder().fit_events(["abc", "abbc"]).save(path)
    changed(path, change)
    with pytest.raises(
        ValueError, match=rf"model\.npz is damaged .*{message}.*fit the model again"
    ):
        ar.AlignRudder.load(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("states", put("events/labels", 40), "event 40; there are 8"),
        ("states", put("events/labels", 1), "some are of no state"),
        ("states", put("events/states", 8), "a state is there twice"),
        ("states", lambda h, a: a.update({"events/visits": np.zeros(2)}), "'visits' holds numbers"),
        ("states", lambda h, a: h["events"]["shapes"].update(x=[2]), "have 3 numbers, not 1"),
        ("delta", put("events/labels", 99), "an exemplar is of event 99"),
        ("delta", put("events/projection", np.inf), "'projection' holds inf"),
        ("feature", put("events/scale", 0.0), "'scale' holds 0.0"),
        ("feature", put("events/width", -1.0), "'width' holds -1.0"),
        ("feature", lambda h, a: h["events"]["parameters"].update(gamma="x"), "gamma.* is 'x'"),
        ("inventory", put("events/labels", 99), "an exemplar is of event 99"),
    ],
)
def test_what_encoders_store_is_held_to_what_they_declare(tmp_path, name, change, message):
    path = tmp_path / "model.npz"
    path.write_bytes((OLD / f"{name}.npz").read_bytes())
    changed(path, change)
    with pytest.raises(ValueError, match=rf"model\.npz is damaged .*{message}"):
        ar.AlignRudder.load(path)


def test_symbols_that_no_file_can_hold_are_refused(tmp_path):
    class Thing:
        pass

    a, b = Thing(), Thing()
    model = ar.AlignRudder().fit_events([[a, b], [a, b]])
    with pytest.raises(ValueError, match=r"of type Thing cannot be stored in a file; use strings"):
        model.save(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = tmp_path / "m.npz"
    ar.AlignRudder().fit_events(RUNS).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"m\.npz cannot be read as an npz file: it is truncated"):
        ar.AlignRudder.load(path)


def test_damaged_bytes_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    ar.AlignRudder().fit_events(RUNS).save(path)
    content = bytearray(path.read_bytes())
    content[60:200] = bytes(140)
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"m\.npz cannot be read"):
        ar.AlignRudder.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=99), r"has version 99 of format .*reads version \d+"),
        (
            lambda h, a: h.update(format="cake"),
            r"of kind 'cake'; one of kind 'model'",
        ),
        (lambda h, a: a.pop("returns"), r"damaged .*: it has no array 'returns'"),
        (
            lambda h, a: a.pop("strategy/0/matrix"),
            r"it has no array 'strategy/0/matrix'",
        ),
        (lambda h, a: h.pop("events"), r"damaged .*: its header has no 'events'"),
        (
            lambda h, a: a.update(returns=a["returns"][1:]),
            r"'returns' has shape .* is needed",
        ),
        (
            lambda h, a: a.update(starts=a["starts"][1:]),
            r"'steps' has shape .* is needed",
        ),
        (
            lambda h, a: h["events"].update(kind="Oracle"),
            r"events is 'Oracle'; one of .*'State",
        ),
    ],
)
def test_a_changed_file_is_refused(change, message, tmp_path):
    ar.AlignRudder().fit_events(RUNS).save(tmp_path / "m.npz")
    changed(tmp_path / "m.npz", change)
    with pytest.raises(ValueError, match=message):
        ar.AlignRudder.load(tmp_path / "m.npz")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*m\.npz"):
        ar.AlignRudder.load(tmp_path / "m.npz")
    ar.save_episodes(tmp_path / "e.npz", state_episodes(2))
    with pytest.raises(ValueError, match="of kind 'episodes'; one of kind 'model' is needed"):
        ar.AlignRudder.load(tmp_path / "e.npz")
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="not one of format 'align-rudder-model': no header"):
        ar.AlignRudder.load(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"the folder .*none does not exist; create it"):
        ar.AlignRudder().fit_events(RUNS).save(tmp_path / "none" / "m.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.npz"
    ar.AlignRudder().fit_events(RUNS).save(path)
    before = path.read_bytes()
    model = ar.AlignRudder().fit_events([[object, "a"], [object, "a"]])
    with pytest.raises(ValueError, match="cannot be stored"):
        model.save(path)
    assert path.read_bytes() == before
