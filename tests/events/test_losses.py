"""Losses found in what is held: what is dropped is struck, what is spent is not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.events import DeltaEvents
from align_rudder.sequences import Lost

prop = settings(max_examples=60, deadline=None, derandomize=True)

CHANGES = {
    "take": {"key": 1},
    "buy": {"key": 1, "coin": -1},
    "coin": {"coin": 1},
    "open": {"key": -1, "door": 1},
    "chest": {"chest": 1},
    "lamp": {"lamp": 1},
    "drop": {"key": -1},
    "break": {"chest": -1},
    "wait": {},
}
ITEMS = ("chest", "coin", "door", "key", "lamp")
RUNS = ["take open chest", "lamp take open chest", "take wait open lamp chest", "take open chest"]
actions = st.lists(st.sampled_from(list(CHANGES)), max_size=16)


def play(names, ret=1.0, **more):
    """Return the episode in which these things happen, as far as they can."""
    held, rows, done = dict.fromkeys(ITEMS, 0), [], []
    rows.append(dict(held))
    for name in names:
        change = CHANGES[name]
        if any(held[item] + n < 0 for item, n in change.items()):
            change, name = {}, "wait"
        for item, n in change.items():
            held[item] += n
        rows.append(dict(held))
        done.append(name)
    observations = {item: np.array([row[item] for row in rows]) for item in ITEMS}
    observations |= {name: make(len(rows)) for name, make in more.items()}
    rewards = np.zeros(len(done))
    rewards[-1:] = ret
    return ar.Episode(observations, np.zeros(len(done), int), rewards), done


def fitted(runs=RUNS, encoder=None, **options):
    demos = [play(run.split())[0] for run in runs]
    return ar.AlignRudder(encoder or DeltaEvents(max_share=1.0), **options).fit(demos)


def lost(model):
    return [str(symbol) for symbol in model.events_.symbols_ if isinstance(symbol, Lost)]


def left(done):
    """Return what is left when what is dropped or broken has struck the last that it undoes."""
    out = []
    for name in done:
        undone = {"drop": ("take",), "break": ("chest",)}.get(name)
        if undone is None:
            out.append(name)
        elif any(n in undone for n in out):
            del out[max(i for i, n in enumerate(out) if n in undone)]
    return out


def test_losses_are_the_reverse_of_gains_and_spending_is_none():
    names = {"lamp-1 (lost)", "key-1 (lost)", "door-1 (lost)", "chest-1 (lost)"}
    assert set(lost(fitted())) == names


@prop
@given(actions)
def test_the_score_is_that_of_what_is_left(names):
    """A drop where the last key was spent takes back the one before, as counts do not tell."""
    model = fitted()
    names = [n for n in names if n not in ("buy", "coin")]
    episode, done = play([*names, "wait"], 0.0)
    shares = model.redistribute(episode).rewards
    # The oracle is told what happened by name, and scores the rest as if it were all there was.
    by_name = ar.AlignRudder(undo=None).fit_events(
        [[n for n in r.split() if n != "wait"] for r in RUNS]
    )
    rest = by_name.redistribute_events([n for n in left(done) if n != "wait"], 0.0)
    assert shares.sum() == pytest.approx(rest.rewards.sum(), abs=1e-9)


@prop
@given(actions)
def test_going_there_and_back_earns_nothing(names):
    """Whatever was done: to take the key and drop it again leaves the score where it was."""
    model = fitted()
    before, _ = play([*names, "wait"], 0.0)
    after, _ = play([*names, *["take", "drop"] * 3], 0.0)
    shares = model.redistribute(after).rewards
    assert shares.sum() == pytest.approx(model.redistribute(before).rewards.sum(), abs=1e-9)


def test_what_is_dropped_is_lost_and_can_be_earned_again():
    model = fitted()
    take, drop, again = model.redistribute(play(["take", "drop", "take"], 0.0)[0]).rewards
    assert take > 0
    assert drop == pytest.approx(-take)
    assert again == pytest.approx(take)
    off = fitted(undo=None).redistribute(play(["take", "drop", "take"], 0.0)[0]).rewards
    np.testing.assert_allclose(off, [take, 0, 0])


def test_demonstrations_score_as_without_losses():
    for demos in (crafting_demonstrations(6), [play(run.split())[0] for run in RUNS]):
        found = ar.AlignRudder(DeltaEvents()).fit(demos)
        plain = ar.AlignRudder(DeltaEvents(), undo=None).fit(demos)
        assert found.scale_ == pytest.approx(plain.scale_)
        for episode in [
            *demos,
            *(demos[:0] if len(demos) == 4 else map(crafting_episode, range(40))),
        ]:
            np.testing.assert_allclose(
                found.redistribute(episode).rewards, plain.redistribute(episode).rewards, atol=1e-12
            )


@pytest.mark.parametrize(
    ("runs", "is_lost"),
    [
        # One of four drops the key, and takes it again.
        (["take open chest"] * 3 + ["take drop take open chest"], True),
        # One of four uses it up and does without.
        (["take open chest"] * 3 + ["take open take drop chest"], False),
        # Most of them drop it: that is how it goes.
        (["take open chest"] + ["take drop take open chest"] * 3, False),
        # The key is used up and nothing else is seen of it.
        (["take drop chest"] * 4, False),
    ],
)
def test_demonstrations_make_good_what_they_lose(runs, is_lost):
    model = fitted(runs)
    assert ("key-1 (lost)" in lost(model)) == is_lost
    if is_lost:
        assert [goal.symbol for goal in model.subgoals_] == ["key+1", "door+1 key-1", "chest+1"]


def test_one_of_several_ways_to_gain_is_struck():
    """A key is found or bought: the last one is lost, however it came."""
    model = fitted(["coin take open chest", "coin buy open chest", "coin buy open take chest"])
    undoes = model.tables_.undoes
    assert undoes is not None
    symbols = list(model.events_.symbols_)
    struck = undoes[symbols.index("key-1 (lost)")]
    names = {symbols[e] for e in struck if e >= 0}
    assert names == {"key+1", "coin-1 key+1"}
    for way in ("take", "buy"):
        shares = model.redistribute(play(["coin", way, "drop"], 0.0)[0]).rewards
        alone = model.redistribute(play(["coin", "wait", "wait"], 0.0)[0]).rewards
        assert shares.sum() == pytest.approx(alone.sum())


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("place", lambda n: np.arange(n) / 10),
        ("clock", np.arange),
        ("below", lambda n: -np.arange(n) // 3),
    ],
)
def test_what_is_not_held_may_change_as_it_likes(name, make):
    """A place, a clock or a temperature is not lost, and does not hide that a key is."""
    demos = [play(run.split(), **{name: make})[0] for run in RUNS * 2]
    model = ar.AlignRudder(DeltaEvents(max_share=1.0)).fit(demos)
    losses = model.events_.base.losses_
    if losses is not None:
        assert not losses.held[sorted([*ITEMS, name]).index(name)]


@pytest.mark.parametrize("vector", [False, True])
@prop
@given(st.lists(actions.filter(len), min_size=3, max_size=3))
def test_online_is_as_offline(vector, several):
    model = fitted()
    n = max(map(len, several))
    episodes = [play([*names, *["wait"] * (n - len(names))], 0.0)[0] for names in several]
    wanted = [model.redistribute(episode).rewards for episode in episodes]
    obs = [[e.observations[k] for k in ITEMS] for e in episodes]

    def at(i, t):
        return {k: obs[i][j][t] for j, k in enumerate(ITEMS)}

    if vector:
        stream = model.vector_stream(3)
        batch = [
            {k: np.array([at(i, t)[k] for i in range(3)]) for k in ITEMS} for t in range(n + 1)
        ]
        stream.reset(batch[0])
        found = [
            stream.step(batch[t], np.zeros(3), np.zeros(3), batch[t + 1], [{}] * 3)
            for t in range(n)
        ]
        np.testing.assert_allclose(np.array(found).T, wanted, atol=1e-12)
        return
    for i in range(3):
        stream = model.stream()
        stream.reset(at(i, 0))
        found = [stream.step(at(i, t), 0, 0.0, at(i, t + 1), {}) for t in range(n)]
        np.testing.assert_allclose(found, wanted[i], atol=1e-12)


def test_in_jax_it_is_the_same():
    tracking_jax = pytest.importorskip("align_rudder.tracking_jax")
    import jax

    model = fitted()
    stream = tracking_jax.Stream(model)
    rng = np.random.default_rng(1)
    step = jax.jit(stream.step)
    for _ in range(10):
        episode, _ = play(list(rng.choice(list(CHANGES), 20)), 0.0)
        rows = [{k: v[t] for k, v in episode.observations.items()} for t in range(21)]
        state, found = stream.reset(rows[0]), []
        for t in range(20):
            state, told = step(state, rows[t], 0, 0.0, rows[t + 1], {})
            found.append((int(told.event), float(told.reward)))
        wanted = model.redistribute(episode)
        assert [event for event, _ in found] == wanted.events.tolist()
        np.testing.assert_allclose([reward for _, reward in found], wanted.rewards, atol=1e-5)
    assert not bool(state.tracker.full)


def test_saved_and_loaded(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.npz")
    loaded = ar.AlignRudder.load(tmp_path / "m.npz")
    assert loaded.undo == "auto"
    assert lost(loaded) == lost(model)
    episode, _ = play(["lamp", "take", "drop", "open", "take", "open", "chest", "break"], 0.0)
    np.testing.assert_array_equal(
        loaded.redistribute(episode).rewards, model.redistribute(episode).rewards
    )
    fitted(undo=None).save(tmp_path / "off.npz")
    off = ar.AlignRudder.load(tmp_path / "off.npz")
    assert off.undo is None
    assert off.tables_.undoes is None


def test_a_file_that_says_the_same_event_is_lost_and_a_loss_is_refused():
    header, arrays = fitted().events_.state()
    for change, message in (
        ({"lost_by": np.full(len(arrays["lost_by"]), 1)}, "do not name the same events"),
        ({"lost_by": arrays["lost_by"][:-1]}, "events; there are"),
        ({"pattern_events": arrays["pattern_events"] + 100}, "do not name the same events"),
    ):
        with pytest.raises(ValueError, match=message):
            DeltaEvents.from_state(header, {**arrays, **change})
    with pytest.raises(ValueError, match="but not 'held'"):
        DeltaEvents.from_state(header, {k: v for k, v in arrays.items() if k != "held"})


def test_more_demonstrations_keep_the_losses():
    model = fitted().update([play(["take", "drop", "take", "open", "chest"])[0]])
    take, drop = model.redistribute(play(["take", "drop"], 0.0)[0]).rewards
    assert take > 0
    assert drop == pytest.approx(-take)


def test_states_and_functions_find_none():
    demos = [ar.Episode([0, 1, 2, 3], [0] * 3, [0, 0, 1.0])] * 3
    assert ar.AlignRudder(ar.StateEvents()).fit(demos).tables_.undoes is None
    model = ar.AlignRudder(lambda obs, action, reward, next_obs, info: int(next_obs)).fit(demos)
    assert model.tables_.undoes is None


def test_no_alignment_lists_a_loss():
    text = fitted().summary()
    assert "(lost)" not in text
    assert " 4 kinds of event" in text
