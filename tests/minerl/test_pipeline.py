"""MineRL: alignment, sub-goals and segments, found in generated trajectories."""

import collections
import shutil
import subprocess
import sys
from itertools import groupby, pairwise

import numpy as np
import pytest
from small_world import DIAMOND, IRON, TREECHOP, planted

import align_rudder as ar
from align_rudder import AlignRudderWarning
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.dataset import Pool, load_pool, shortest_with_diamond
from align_rudder.minerl.events import OWNED, InventoryEvents, change_name
from align_rudder.minerl.pipeline import (
    as_text,
    demonstrations,
    event_episode,
    fit_events,
    segments,
)
from align_rudder.minerl.testing.synthetic import CHAIN, write_dataset


def gained(symbol):
    """The item of the chain that an event stands for, or None."""
    item = str(symbol).split("+")[0]
    return item if item in CHAIN and "+" in str(symbol) else None


def test_the_consensus_is_the_chain(model):
    for share in (1.0, 0.8):
        found = [gained(s) for s in model.profile_.consensus(share)]
        assert list(dict.fromkeys(item for item in found if item is not None)) == list(CHAIN)
    consensus = [str(s) for s in model.profile_.consensus(1.0)]
    assert not any("dirt" in s or "torch" in s for s in consensus)
    # What all have in common is a part of what each one did, in that order.
    symbols = list(model.events_.symbols_)
    for encoded in model.encoded_:
        rest = iter(symbols[e] for e in encoded.sequence)
        assert all(symbol in rest for symbol in consensus)


def test_sub_goals_are_at_the_planted_places(pool, model):
    goals = [str(goal.symbol) for goal in model.subgoals_]
    items = [gained(goal) for goal in goals]
    others = {goal for goal, item in zip(goals, items) if item is None}
    assert list(dict.fromkeys(i for i in items if i is not None)) == list(CHAIN)
    # What is no item of the chain is what all need on the way.
    assert others <= {"coal+1", "crafting_table-1", "furnace-1"}
    # In every demonstration the sub-goals of single items are where the item was first had.
    subtasks = model.subtasks()
    for i, trajectory in enumerate(shortest_with_diamond(pool, 10)):
        changes = planted(trajectory)
        for task in subtasks:
            item = gained(task.goal.symbol)
            (segment,) = [s for s in task.segments if s.episode == i]
            reached = change_name(changes[segment.stop - 1])
            assert sorted(reached.split()) == sorted(str(task.goal.symbol).split())
            if item in ("wooden_pickaxe", "stone_pickaxe", "furnace", "iron_pickaxe", "diamond"):
                had = np.flatnonzero(changes[:, OWNED.index(item)] > 0)
                assert segment.stop - 1 == had[0]


def test_a_threshold_on_the_reward_is_another_rule(pool, model):
    strict = fit_events(pool, subgoal_threshold=30.0, workers=1)
    assert 0 < len(strict.subgoals_) < len(model.subgoals_)
    assert all(goal.reward > 30 for goal in strict.subgoals_)
    assert strict.subgoals_[-1].symbol == "diamond+1"


def test_segments_are_those_of_the_library_without_extras(pool, model):
    found = segments(pool, model, extras=False, workers=2)
    for trajectory in pool:
        own = [(t.index, *s[1:]) for t in found for s in t.segments if s.trajectory == trajectory]
        subtasks = model.subtasks([event_episode(trajectory)])
        assert own == [(t.index, s.start, s.stop) for t in subtasks for s in t.segments]


def test_segments_end_where_the_sub_goal_is_reached(pool, model):
    found = segments(pool, model, workers=2)
    assert [task.goal for task in found] == model.subgoals_
    assert [task.index for task in found] == list(range(len(found)))
    wanted = {goal.event for goal in model.subgoals_}
    by_trajectory = collections.defaultdict(list)
    changes = {trajectory: planted(trajectory) for trajectory in pool}
    plain = collections.defaultdict(list)
    for task in segments(pool, model, extras=False, workers=2):
        for trajectory, start, stop in task.segments:
            plain[trajectory].append((start, stop))
    for task in found:
        for trajectory, start, stop in task.segments:
            by_trajectory[trajectory].append((start, stop))
            last = changes[trajectory][stop - 1]
            first = str(task.goal.symbol).split()[0]  # such as log+1
            assert np.sign(last[OWNED.index(first[:-2])]) == np.sign(int(first[-2:]))
    for trajectory in pool:
        cuts = sorted(by_trajectory[trajectory], key=lambda cut: cut[1])
        # There is one for each event that is a sub-goal's.
        events = model.encode(event_episode(trajectory)).events
        at = [t + 1 for t, e in enumerate(events) if e in wanted]
        assert [stop for _, stop in cuts] == at
        if trajectory.has_diamond:
            assert cuts[-1][1] == len(trajectory)
        # Those of the alignment lie end to end and lose nothing to the extras between them, which
        # begin behind the one before.
        aligned = sorted(plain[trajectory])
        assert [start for start, _ in aligned] == [0, *(stop for _, stop in aligned)][
            : len(aligned)
        ]
        for (_, before), (start, stop) in pairwise([(0, 0), *cuts]):
            assert (start, stop) in aligned or start == before
    again = segments(Pool(list(pool)), model, workers=1)
    assert [task.segments for task in again] == [task.segments for task in found]


def test_every_task_of_the_pool_contributes(pool, model):
    found = segments(pool, model, workers=2)
    treechop = [task for task in found if task.count(TREECHOP)]
    assert {str(task.goal.symbol) for task in treechop} == {"log+1"}
    logs = sum(int(t.rewards.sum()) for t in pool if t.task == TREECHOP)
    assert sum(task.count(TREECHOP) for task in treechop) == logs
    names = [str(task.goal.symbol) for task in found]
    end = names.index("iron_pickaxe+1 iron_ingot-3 stick-2")  # where that task ends
    assert all((task.count(IRON) >= 2) == (task.index <= end) for task in found)
    assert all(task.count(DIAMOND) >= 12 for task in found)  # 12 mined a diamond
    assert found[0].count(DIAMOND) > found[-1].count(DIAMOND) == 12
    text = as_text(model, shortest_with_diamond(pool, 10), found)
    for needed in ("Treechop", "ObtainIronPickaxe", "consensus", "diamond+1", "10 shortest"):
        assert needed in text
    assert all(t.name in text for t in shortest_with_diamond(pool, 10))


def test_noise_free_people_agree_on_everything(tmp_path):
    write_dataset(tmp_path, 20, 3, DIAMOND, 40, noise=0.0, video=False)
    model = fit_events(load_pool(tmp_path, video=None), 5, workers=1)
    symbols = list(model.events_.symbols_)
    assert len(symbols) == 16
    # Everyone does the same, some things more often: in common is the least number of times.
    sequences = [e.sequence.tolist() for e in model.encoded_]
    consensus = [symbols.index(s) for s in model.profile_.consensus(1.0)]
    others = [e for e in range(16) if symbols[e] != "cobblestone+1"]
    for event in others:
        assert consensus.count(event) == min(sequence.count(event) for sequence in sequences)
    orders = [
        [e for e, _ in groupby(sequence) if e in others] for sequence in (consensus, *sequences)
    ]
    assert all(order == orders[0] for order in orders)


def test_a_model_is_saved_and_loaded(pool, model, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    loaded = ar.AlignRudder.load(path)
    assert isinstance(loaded.events_, InventoryEvents)
    assert repr(loaded.events_) == repr(model.events_)
    for trajectory in list(pool)[::5]:
        episode = event_episode(trajectory)
        a, b = model.redistribute(episode), loaded.redistribute(episode)
        np.testing.assert_array_equal(a.events, b.events)
        np.testing.assert_array_equal(a.rewards, b.rewards)
    assert loaded.subgoals_ == model.subgoals_
    a, b = segments(pool, model, workers=1), segments(pool, loaded, workers=1)
    assert [task.segments for task in a] == [task.segments for task in b]


def test_neither_jax_nor_pyav_is_needed_for_the_inventory(filmed, tmp_path):
    path = tmp_path / "model.npz"
    fit_events(filmed, 5).save(path)
    code = (
        "import sys\n"
        "sys.modules['jax'] = sys.modules['av'] = None\n"
        "import align_rudder as ar\n"
        f"model = ar.AlignRudder.load({str(path)!r})\n"
        "from align_rudder.minerl.dataset import load_pool\n"
        "from align_rudder.minerl.pipeline import fit_events, segments\n"
        f"pool = load_pool({str(filmed.trajectories[0].path.parents[1])!r}, video=None)\n"
        "assert fit_events(pool, 5).subgoals_ == model.subgoals_\n"
        "assert len(segments(pool, model)) == len(model.subgoals_)\n"
        "try:\n    import align_rudder.minerl.autoencoder\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[jax]'" in out.stdout


def test_pictures_do_not_destroy_the_events(filmed, encoder, tmp_path):
    cache = ArrayCache(tmp_path / "cache")

    def features(trajectory):
        return encoder.features(trajectory, cache)

    plain = fit_events(filmed, 5)
    seen = fit_events(filmed, 5, features)
    assert seen.events_.features == "features"
    assert seen.events_.symbols_ == plain.events_.symbols_
    for a, b in zip(seen.encoded_, plain.encoded_, strict=True):
        np.testing.assert_array_equal(a.events, b.events)
    assert [g.column for g in seen.subgoals_] == [g.column for g in plain.subgoals_]
    found, without = segments(filmed, seen, features), segments(filmed, plain)
    assert [task.segments for task in found] == [task.segments for task in without]
    # Few events, so that similarity decides what is merged: still only what gains the same.
    few = fit_events(filmed, 5, features, max_events=10)
    assert few.events_.n_events == 10
    assert "diamond+1" in few.events_.symbols_
    seen.save(tmp_path / "seen.npz")
    loaded = ar.AlignRudder.load(tmp_path / "seen.npz")
    episode = event_episode(filmed.trajectories[0], features)
    np.testing.assert_array_equal(loaded.encode(episode).events, seen.encode(episode).events)
    np.testing.assert_array_equal(
        features(filmed.trajectories[0]), encoder.features(filmed.trajectories[0])
    )
    with pytest.raises(ValueError, match="fitted with features of pictures; give features"):
        segments(filmed, seen)
    with pytest.raises(ValueError, match="fitted without features of pictures; leave out"):
        segments(filmed, plain, features)


def test_too_few_diamonds_are_an_error_that_names_the_damaged(tmp_path):
    root = tmp_path / "data"
    folders = write_dataset(root, 4, 3, DIAMOND, 0, diamonds=3, video=False)
    pool = load_pool(root, video=None)
    with pytest.raises(ValueError, match=r"3 of 4 trajectories mined.* 10 are needed: take"):
        fit_events(pool)
    with pytest.raises(ValueError, match="n=1; at least 2"):
        fit_events(pool, 1)
    assert len(fit_events(pool, 3).encoded_) == 3
    stored = folders[0] / "rendered.npz"
    stored.write_bytes(stored.read_bytes()[:500])
    shutil.rmtree(folders[1])
    with pytest.warns(AlignRudderWarning, match="damaged"):
        pool = load_pool(root, video=None)
    with pytest.raises(ValueError, match="1 of 2 trajectories") as error:
        fit_events(pool, 2)
    assert folders[0].name in str(error.value)
    write_dataset(tmp_path / "none", 2, 4, TREECHOP, 0, lengths=[50, 60], video=False)
    pool = load_pool(tmp_path / "none", video=None)
    with pytest.raises(ValueError, match=r"0 of 2 trajectories mined.*MineRLObtainDiamond-v0"):
        fit_events(pool)


def test_one_that_proves_damaged_is_replaced(filmed, tmp_path):
    pool = Pool(list(filmed))
    first = shortest_with_diamond(pool, 1)[0]

    def features(trajectory):
        if trajectory == first:
            raise trajectory.damaged("its pictures cannot be decoded")
        return np.zeros((len(trajectory) + 1, 2))

    with pytest.warns(AlignRudderWarning, match="cannot be decoded"):
        chosen = [trajectory for trajectory, _ in demonstrations(pool, 3, features)]
    assert chosen == shortest_with_diamond(filmed, 4)[1:]
    assert [d.name for d in pool.damaged] == [first.name]
    assert len(pool) == len(filmed) - 1
    with pytest.raises(ValueError, match=r"have shape \(2, 3\)"):
        event_episode(first, lambda trajectory: np.zeros((2, 3)))


def test_models_of_another_kind_are_refused(pool):
    other = ar.AlignRudder().fit_events(["abc", "abc"])
    with pytest.raises(ValueError, match="SymbolEvents; give one that fit_events returned"):
        segments(pool, other)
