"""MineRL: events, alignment, sub-goals and segments, found in generated trajectories."""

import collections
import json
import shutil
import subprocess
import sys
from itertools import groupby, pairwise

import numpy as np
import pytest
from align_rudder.minerl.testing.colours import frame_colour

import align_rudder as ar
from align_rudder import AlignRudderWarning
from align_rudder.cli.main import main
from align_rudder.episodes import tree_index
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
from align_rudder.minerl.spaces import HELD, ITEMS, TASKS
from align_rudder.minerl.testing.synthetic import CHAIN, write_dataset

pytest.importorskip("av")
pytest.importorskip("equinox")

from align_rudder.minerl.autoencoder import AutoEncoder, train_autoencoder

DIAMOND, IRON, TREECHOP = TASKS
SIDE = 16


def write_pool(root, seed, version=3, *, noise=0.3, video=False):
    """All three tasks; without videos it takes a moment only."""
    write_dataset(root, 20, version, DIAMOND, 10 * seed, noise=noise, video=video)
    write_dataset(root, 3, version, IRON, 10 * seed + 1, noise=noise, video=video)
    lengths = [60, 80, 70]
    write_dataset(root, 3, version, TREECHOP, 10 * seed + 2, lengths=lengths, video=video)
    return load_pool(root, video="packets" if video else None, workers=2)


@pytest.fixture(scope="module", params=[(0, 3), (1, 4), (2, 3)], ids=str)
def pool(request, tmp_path_factory):
    seed, version = request.param
    return write_pool(tmp_path_factory.mktemp("minerl") / "data", seed, version)


@pytest.fixture(scope="module")
def model(pool):
    return fit_events(pool, workers=1)


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    """A smaller pool with recordings."""
    root = tmp_path_factory.mktemp("filmed") / "data"
    write_dataset(root, 6, 3, DIAMOND, 5, diamonds=5)
    write_dataset(root, 1, 3, TREECHOP, 6, lengths=[60])
    return load_pool(root, workers=2)


@pytest.fixture(scope="module")
def encoder(filmed):
    return train_autoencoder(
        filmed, size=SIDE, latent=32, steps=250, batch=64, buffer=600, every=1, learning_rate=3e-3
    )


def planted(trajectory):
    """The change of what is owned at each step (T, 19), read from the file by itself."""
    with np.load(trajectory.path / "rendered.npz") as stored:
        rewards = stored["reward"]
        changes = np.zeros((len(rewards), len(OWNED)), np.int64)
        if trajectory.task == TREECHOP:
            changes[:, OWNED.index("log")] = rewards
        else:
            for i, item in enumerate(ITEMS):
                changes[:, i] = np.diff(stored[f"observation$inventory${item}"])
        changes[:, -1] = rewards >= 1024
    return changes


def kinds_in(trajectories):
    """How often each kind of change was planted."""
    return collections.Counter(
        tuple(change) for t in trajectories for change in planted(t).tolist() if any(change)
    )


def gained(symbol):
    """The item of the chain that an event stands for, or None."""
    item = str(symbol).split("+")[0]
    return item if item in CHAIN and "+" in str(symbol) else None


# Events


def test_events_are_the_planted_changes_one_to_one(pool):
    chosen = shortest_with_diamond(pool, 10)
    kinds = kinds_in(chosen)
    encoder = InventoryEvents(max_events=40)
    episodes = [event_episode(t) for t in chosen]
    many = len(kinds) > 20
    if many:
        with pytest.warns(AlignRudderWarning, match="events"):
            encoder.fit(episodes)
    else:
        encoder.fit(episodes)
    pairs = set()
    for trajectory, episode in zip(chosen, episodes, strict=True):
        events, changes = encoder.encode(episode).events, planted(trajectory)
        np.testing.assert_array_equal(events >= 0, changes.any(axis=1))
        pairs |= {(int(e), tuple(c)) for e, c in zip(events, changes.tolist()) if e >= 0}
    assert len(pairs) == len(kinds) == encoder.n_events
    assert len({e for e, _ in pairs}) == len({c for _, c in pairs}) == len(pairs)
    assert len(set(encoder.symbols_)) == len(pairs)
    for event, change in pairs:
        parts = dict(part.replace("-", "+-").split("+") for part in encoder.symbols_[event].split())
        assert {k: int(v) for k, v in parts.items()} == {
            OWNED[j]: c for j, c in enumerate(change) if c
        }


def test_the_diamond_is_an_event_at_the_step_of_its_reward(pool, model):
    event = list(model.events_.symbols_).index("diamond+1")
    for i, trajectory in enumerate(shortest_with_diamond(pool, 10)):
        (at,) = np.flatnonzero(model.encoded_[i].events == event)
        assert trajectory.rewards[at] == 1024
        assert model.returns_[i] == 1024  # it is all that pays
    assert model.subgoals_[-1].symbol == "diamond+1"


def test_rare_changes_are_merged_into_what_gains_the_same_and_the_diamond_stays(pool):
    episodes = [event_episode(t) for t in shortest_with_diamond(pool, 10)]
    kinds = np.array(list(kinds_in(shortest_with_diamond(pool, 10))))
    for most in (13, 8, 3):
        encoder = InventoryEvents(max_events=most).fit(episodes)
        assert encoder.n_events == most
        assert "diamond+1" in encoder.symbols_
        _, arrays = encoder.state()
        for event in range(most):
            members = arrays["kinds"][arrays["labels"] == event]
            marks = [{j for j in range(19) if m[j] > 0} for m in members]
            assert all(a <= b or b <= a for a in marks for b in marks)
    assert len(arrays["kinds"]) == len(kinds)  # what is no event is remembered as such


def test_changes_never_shown_go_to_what_gains_nothing_else(model):
    def change(**counts):
        before = {"inventory": np.full(18, 64), "equipped": np.int64(0), "diamond": np.int64(0)}
        after = {**before, "inventory": before["inventory"].copy()}
        for item, count in counts.items():
            after["inventory"][ITEMS.index(item)] += count
        event = model.events_.transition_event(before, None, 0.0, after, {})
        return None if event < 0 else model.events_.symbols_[event]

    assert change(log=1) == "log+1"
    assert change(log=3) == "log+1"
    assert change(planks=8, log=-2) == "planks+4 log-1"
    assert change(cobblestone=2, stone=1) == "cobblestone+1"
    # An axe takes what a pickaxe takes and is none.
    assert change(iron_axe=1, iron_ingot=-3, stick=-2) is None
    assert change(wooden_pickaxe=1, planks=-3, stick=-2).startswith("wooden_pickaxe+1")
    assert change(stone=-1) is None
    assert change() is None


def test_hands_make_no_events_and_steps_agree_with_whole_episodes(pool, model):
    trajectory = shortest_with_diamond(pool, 1)[0]
    episode = event_episode(trajectory)
    assert (np.diff(episode.observations["equipped"]) != 0).sum() > 3
    whole = model.encode(episode).events
    states = [tree_index(episode.observations, t) for t in range(len(episode) + 1)]
    single = [
        model.events_.transition_event(before, None, 0.0, after, {})
        for before, after in pairwise(states)
    ]
    np.testing.assert_array_equal(whole, single)
    other = {**episode.observations, "equipped": np.zeros(len(episode) + 1, np.int64)}
    again = ar.Episode(other, episode.actions, episode.rewards, terminated=True)
    np.testing.assert_array_equal(model.encode(again).events, whole)
    stream, paid = model.stream(), []
    stream.reset(states[0])
    for before, after in pairwise(states):
        paid.append(stream.step(before, None, 0.0, after, {}))
    np.testing.assert_allclose(paid, model.redistribute(episode).rewards)


def test_very_large_clusters_are_no_events():
    inventory = np.zeros((41, 18), int)
    inventory[:, ITEMS.index("dirt")] = np.arange(41) // 2  # at every other step
    inventory[20:, ITEMS.index("log")] = 1
    observations = {"inventory": inventory, "equipped": [0] * 41, "diamond": [0] * 41}
    demos = [ar.Episode(observations, [0] * 40, [0.0] * 39 + [1.0])] * 2
    inventory[20:, ITEMS.index("dirt")] -= 1
    assert InventoryEvents().fit(demos).symbols_ == ["log+1"]
    assert InventoryEvents(max_share=0.6).fit(demos).symbols_ == ["dirt+1", "log+1"]


def test_what_does_not_fit_is_said():
    good = {"inventory": np.zeros((4, 18), int), "equipped": [0] * 4, "diamond": [0] * 4}

    def fit(options=None, **entries):
        observations = {k: v for k, v in {**good, **entries}.items() if v is not None}
        episode = ar.Episode(observations, [0] * 3, [0.0, 0.0, 1.0])
        return InventoryEvents(**(options or {})).fit([episode, episode])

    assert fit().n_events == 0
    with pytest.raises(ValueError, match=r"no \['diamond'\]; it has"):
        fit(diamond=None)
    with pytest.raises(ValueError, match=r"no \['features'\]"):
        fit({"features": "features"})
    with pytest.raises(ValueError, match=r"inventory \[4\].*\[18\] counts"):
        fit(inventory=np.zeros((4, 4), int))
    with pytest.raises(ValueError, match="an index in HELD is needed, 0 to 8"):
        fit(equipped=[len(HELD)] * 4)
    with pytest.raises(ValueError, match="an index in HELD is needed"):
        fit(equipped=["air"] * 4)
    with pytest.raises(ValueError, match="max_events=0"):
        fit({"max_events": 0})
    with pytest.raises(ValueError, match="max_share=2"):
        fit({"max_share": 2})


# Alignment and sub-goals


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


# Segments


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
    pool = write_pool(tmp_path / "data", 4, noise=0.0)
    model = fit_events(pool, 5, workers=1)
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


# Files


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
    assert "pip install 'align-rudder[jax]'" in out.stdout


# The auto-encoder


def colours(numbers):
    return np.stack([np.full((SIDE, SIDE, 3), frame_colour(n), np.uint8) for n in numbers])


def test_the_autoencoder_learns_the_pictures(encoder, filmed):
    trajectory = filmed.trajectories[-1]
    frames = trajectory.frame_array(size=SIDE)
    seen = np.concatenate([t.frame_array(size=SIDE) for t in filmed])
    of_mean = float((seen / 255.0).var(axis=0).mean())
    assert encoder.error(seen) < 0.1 * of_mean
    assert encoder.error(frames) < 0.1 * of_mean
    assert encoder.notes["error"] < 0.1 * encoder.notes["error_of_mean_picture"]
    assert encoder.notes["steps"] == 250


def test_features_tell_the_colour(encoder):
    numbers = np.arange(0, 400)
    features, shown = encoder.encode(colours(numbers)), colours(numbers)[:, 0, 0].astype(float)
    assert features.shape == (400, 32)
    x = np.column_stack([features, np.ones(len(numbers))])
    weights = np.linalg.lstsq(x[::2], shown[::2], rcond=None)[0]
    off = x[1::2] @ weights - shown[1::2]
    assert (off**2).mean() < 0.05 * shown[1::2].var()


def test_an_autoencoder_is_saved_and_loaded(encoder, tmp_path):
    path = tmp_path / "encoder.npz"
    encoder.save(path)
    loaded = AutoEncoder.load(path)
    frames = colours(range(5))
    np.testing.assert_array_equal(loaded.encode(frames), encoder.encode(frames))
    assert (loaded.size, loaded.latent, loaded.notes) == (SIDE, 32, encoder.notes)
    assert loaded.digest == encoder.digest
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, 16, 16, 3\) is needed"):
        encoder.encode(frames.astype(float))
    with pytest.raises(ValueError, match="is needed"):
        encoder.encode(frames[:, :8])
    (tmp_path / "half.npz").write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="truncated, damaged"):
        AutoEncoder.load(tmp_path / "half.npz")


def test_training_is_repeatable_and_says_what_is_wrong():
    frames = colours(range(40))
    options = {"size": SIDE, "latent": 4, "steps": 3, "batch": 8, "buffer": 16}
    a, b = (train_autoencoder(frames, **options, seed=1) for _ in range(2))
    assert a.digest == b.digest
    once = train_autoencoder(iter(frames[:20]), **{**options, "steps": 100})
    assert once.notes["steps"] == 2  # an iterator is gone through once
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield frames[len(taken) % 40]

    assert train_autoencoder(endless(), **options).notes["steps"] == 3
    assert len(taken) <= 16 + 2 * 8  # no more than the buffer is held
    for wrong, said in (
        ({"size": 20}, "size=20; a multiple of 8"),
        ({"latent": 0}, "latent=0"),
        ({"steps": 0}, "steps=0"),
        ({"buffer": 4}, "buffer=4 is smaller than a batch of 8"),
    ):
        with pytest.raises(ValueError, match=said):
            train_autoencoder(frames, **{**options, **wrong})
    with pytest.raises(ValueError, match="fewer frames than a batch of 8"):
        train_autoencoder(iter(frames[:5]), **options)
    with pytest.raises(ValueError, match="uint8 of shape"):
        train_autoencoder(frames[:, :8], **options)


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


def test_both_blocks_have_the_same_information(filmed, encoder):
    episodes = [event_episode(t, encoder.features) for t in shortest_with_diamond(filmed, 5)]
    events = InventoryEvents(features="features").fit(episodes)
    projection = events.state()[1]["projection"]
    own = len(OWNED) + len(HELD)
    assert projection.shape == (own + 32, 2 * own)  # as many components each
    deltas = np.concatenate(
        [np.diff(events._vectors(e.observations, len(e) + 1), axis=0) for e in episodes]
    )
    z = deltas @ projection
    for block in (z[:, :own], z[:, own:]):
        assert (block**2).sum(axis=1).mean() == pytest.approx(1.0)
    sizes = np.sqrt((z[:, : len(OWNED)] ** 2).mean(axis=0))
    np.testing.assert_allclose(sizes[sizes > 0], sizes.max())  # a diamond counts like all logs


# What can go wrong


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


# The command


def test_the_command_finds_events_and_segments(filmed, encoder, tmp_path, capsys):
    root = filmed.trajectories[0].path.parents[1]
    encoder.save(tmp_path / "encoder.npz")
    out = tmp_path / "model.npz"
    call = ["minerl", "events", str(root), "-o", str(out), "--n", "5", "--workers", "2"]
    extra = ["--json", str(tmp_path / "found.json"), "--figure", str(tmp_path / "drawn.png")]
    assert main([*call, "--autoencoder", str(tmp_path / "encoder.npz"), *extra]) == 0
    shown = capsys.readouterr().out
    for needed in (
        "0 damaged",
        "5 shortest",
        "consensus",
        "Treechop",
        "diamond+1",
        str(out),
    ):
        assert needed in shown
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found["demonstrations"]) == 5
    assert found["subtasks"][-1]["event"] == "diamond+1"
    assert len(found["subtasks"][-1]["segments"]) == 5
    assert (tmp_path / "drawn.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["show", str(out)]) == 0
    assert "diamond+1" in capsys.readouterr().out
    train = ["--train-autoencoder", "--steps", "2", "--frame-size", "8", "--latent", "3"]
    assert main([*call, *train]) == 0
    assert AutoEncoder.load(tmp_path / "model-autoencoder.npz").latent == 3
    assert "of that of the mean picture" in capsys.readouterr().out
    assert main([*call, "--autoencoder", "x.npz", "--train-autoencoder"]) == 2
    assert "both given" in capsys.readouterr().err
    assert main([*call, "--cache", str(tmp_path / "cache")]) == 2
    assert "needs an auto-encoder" in capsys.readouterr().err
    assert main(["minerl", "events", str(tmp_path), "-o", str(out)]) == 2
    assert "there are no trajectories" in capsys.readouterr().err
    assert main(["minerl", "check", str(root), "--json", str(tmp_path / "damaged.json")]) == 0
    assert "6 trajectories" in capsys.readouterr().out
    assert json.loads((tmp_path / "damaged.json").read_text()) == {"trajectories": 7, "damaged": []}
