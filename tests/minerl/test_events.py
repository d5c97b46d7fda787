"""(I) Events of MineRL: the changes that were planted, one to one; merged only with the like."""

import collections
import warnings
from itertools import pairwise

import numpy as np
import pytest
from small_world import planted

import align_rudder as ar
from align_rudder import AlignRudderWarning
from align_rudder.episodes import tree_index
from align_rudder.minerl.dataset import shortest_with_diamond
from align_rudder.minerl.events import OWNED, InventoryEvents
from align_rudder.minerl.pipeline import event_episode
from align_rudder.minerl.spaces import HELD, ITEMS


def kinds_in(trajectories):
    """How often each kind of change was planted."""
    return collections.Counter(
        tuple(change) for t in trajectories for change in planted(t).tolist() if any(change)
    )


def test_events_are_the_planted_changes_one_to_one(pool):
    chosen = shortest_with_diamond(pool, 10)
    kinds = kinds_in(chosen)
    encoder = InventoryEvents(max_events=40)
    episodes = [event_episode(t) for t in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignRudderWarning)  # there may be more than 20
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
    with pytest.raises(ValueError, match="max_events is 0; "):
        fit({"max_events": 0})
    with pytest.raises(ValueError, match="max_share is 2; "):
        fit({"max_share": 2})


def owned(*changes):
    """Return an episode in which what is owned changes so, one after the other."""
    rows = np.zeros((len(changes) + 1, len(OWNED)), int)
    for t, change in enumerate(changes):
        rows[t + 1] = rows[t]
        for item, n in change.items():
            rows[t + 1, OWNED.index(item)] += n
    observations = {"inventory": rows[:, :-1], "equipped": [0] * len(rows), "diamond": rows[:, -1]}
    return ar.Episode(observations, [0] * len(changes), rows[1:, -1] * 1024.0)


LOG, DROP = {"log": 1}, {"log": -1}
PLANKS = {"planks": 4, "log": -1}
TABLE, PLACED = {"crafting_table": 1, "planks": -4}, {"crafting_table": -1}
DIAMOND = {"diamond": 1}


def test_what_is_dropped_is_lost_and_what_is_placed_or_crafted_is_not(tmp_path):
    runs = [(LOG, LOG, PLANKS, TABLE, PLACED, DIAMOND), (LOG, PLANKS, TABLE, PLACED, DIAMOND)]
    model = ar.AlignRudder(InventoryEvents(max_share=1.0)).fit([owned(*run) for run in runs * 2])
    model.save(tmp_path / "m.npz")
    episode = owned(LOG, DROP, LOG, PLANKS, TABLE, PLACED, LOG, DROP)
    for one in (model, ar.AlignRudder.load(tmp_path / "m.npz")):
        names = [one.events_.symbols_[e] for e in one.redistribute(episode).events]
        assert names[1] == names[7] == "log-1 (lost)"
        assert "crafting_table-1" in names
        rewards = one.redistribute(episode).rewards
        assert rewards[0] > 0
        assert rewards[1] == pytest.approx(-rewards[0])
        assert (rewards[2:6] > 0).all()
        stream = one.stream()
        stream.reset(tree_index(episode.observations, 0))
        online = [
            stream.step(
                tree_index(episode.observations, t),
                0,
                0.0,
                tree_index(episode.observations, t + 1),
                {},
            )
            for t in range(len(episode))
        ]
        np.testing.assert_allclose(online, rewards, atol=1e-12)
