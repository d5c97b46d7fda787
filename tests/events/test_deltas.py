"""Changes as events."""

from dataclasses import replace

import numpy as np
import pytest
from encoders import (
    NO_EVENT,
    assert_same_encoder,
    assert_streamed_like_whole,
    episode_of,
    through_file,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    AlignRudder,
    AlignRudderWarning,
    DeltaEvents,
    Episode,
    FeatureEvents,
    StateEvents,
)
from align_rudder.events.deltas import same_information, without_rounding

examples = settings(deadline=None, max_examples=40, derandomize=True)


_RECIPES = [
    {"log": 1},
    {"log": -1, "plank": 4},
    {"plank": -2, "stick": 4},
    {"table": 1},
    {"stick": -1},
]
_ITEMS = ["log", "plank", "stick", "table"]


def _inventory(seed, recipes=_RECIPES, steps=60, idle=0.4, weights=None, scale=None):
    """Return an episode of inventory changes and the recipe of each step (-1: nothing)."""
    rng = np.random.default_rng(seed)
    if weights is None:
        truth = np.r_[np.arange(len(recipes)), rng.integers(0, len(recipes), steps)]
    else:
        truth = np.repeat(np.arange(len(recipes)), weights)
    truth = rng.permutation(np.r_[truth, np.full(int(len(truth) * idle / (1 - idle)), NO_EVENT)])
    change = np.zeros((len(truth) + 1, len(_ITEMS)))
    for t, k in enumerate(truth):
        for item, amount in (recipes[k] if k >= 0 else {}).items():
            change[t + 1, _ITEMS.index(item)] = amount
    total = 50 + change.cumsum(axis=0)
    tree = {item: total[:, i] * (scale or {}).get(item, 1) for i, item in enumerate(_ITEMS)}
    return episode_of(tree), truth


def _assert_one_to_one(events, truth):
    pairs = set(zip(events.tolist(), truth.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert (NO_EVENT, NO_EVENT) in pairs


@given(st.integers(0, 10**6), st.integers(1, len(_RECIPES)))
@examples
def test_planted_changes_are_found_one_to_one(seed, k):
    recipes = _RECIPES[:k]
    demos = [_inventory(seed + i, recipes) for i in range(2)]
    encoder = DeltaEvents(max_share=0.9).fit([demo for demo, _ in demos])
    assert encoder.n_events == k
    for episode, truth in [*demos, _inventory(seed + 9, recipes)]:
        _assert_one_to_one(encoder.encode(episode).events, truth)
        assert_streamed_like_whole(encoder, episode)


def test_changes_are_called_by_what_changed_in_the_order_they_occur():
    demos = [episode_of({"log": [0, 0, 1, 2, 1, 1], "plank": [0, 0, 0, 0, 4, 3]})] * 2
    encoder = DeltaEvents().fit(demos)
    assert encoder.symbols_ == ["log+1", "plank+4 log-1", "plank-1"]
    whole = encoder.encode(demos[0])
    assert whole.start == NO_EVENT
    assert whole.events.tolist() == [-1, 0, 0, 1, 2]  # each time it occurs: no run is collapsed


def test_a_very_frequent_change_is_no_event():
    clock = np.arange(21)
    log = np.repeat([0, 1, 2], 7)
    demos = [episode_of({"clock": clock, "log": log})] * 2
    encoder = DeltaEvents().fit(demos)
    assert encoder.symbols_ == ["log+1 clock+1"]
    assert np.flatnonzero(encoder.encode(demos[0]).events != NO_EVENT).tolist() == [6, 13]
    kept = DeltaEvents(max_share=1.0).fit(demos)
    assert kept.n_events == 2


def test_a_very_frequent_change_takes_no_place_of_an_event():
    change = np.zeros((31, 2))
    change[1:, 0] = 1
    change[[5, 11, 17], 1] = 1
    change[[8, 23], 1] = 3
    clock, log = change.cumsum(axis=0).T
    encoder = DeltaEvents(max_events=2).fit([episode_of({"clock": clock, "log": log})])
    assert encoder.symbols_ == ["log+1 clock+1", "log+3 clock+1"]


@pytest.mark.parametrize("item", _ITEMS)
@pytest.mark.parametrize("factor", [1000, 1024, 1e-3])
def test_the_unit_of_a_part_does_not_matter(item, factor):
    plain = [_inventory(i) for i in range(3)]
    scaled = [_inventory(i, scale={item: factor}) for i in range(3)]
    for max_events in (20, 3):
        a = DeltaEvents(max_events).fit([e for e, _ in plain[:2]])
        b = DeltaEvents(max_events).fit([e for e, _ in scaled[:2]])
        for (one, _), (other, _) in zip(plain, scaled, strict=True):
            np.testing.assert_array_equal(a.encode(one).events, b.encode(other).events)


def test_parts_have_the_same_variance_and_keep_what_they_hold():
    rng = np.random.default_rng(0)
    tree = {
        "large": rng.normal(size=(80, 6)) * [9, 5, 3, 1, 1, 1],
        "one": rng.normal(size=80),
        "small": 1e-3 * rng.normal(size=(80, 2)),
    }
    projection = DeltaEvents(4).fit([episode_of(tree)]).state()[1]["projection"]
    deltas = np.diff(np.column_stack([tree["large"], tree["one"], tree["small"]]), axis=0)
    parts = [np.arange(6), np.array([6]), np.array([7, 8])]
    blocks = [deltas[:, part] @ projection[part] for part in parts]
    assert [np.linalg.matrix_rank(block) for block in blocks] == [6, 1, 2]
    for block in blocks:
        assert (block**2).sum(axis=1).mean() == pytest.approx(1.0)
    # Asked for two components, those of the large part are the ones that hold most of it.
    projection = same_information(deltas, parts, 2)
    kept = np.linalg.svd(deltas[:, :6] @ np.linalg.qr(projection[:6])[0], compute_uv=False)
    best = np.linalg.svd(deltas[:, :6], compute_uv=False)
    np.testing.assert_allclose(kept[:2], best[:2])


def test_a_large_part_does_not_drown_a_small_one():
    # The view has 40 noisy components, the inventory two; a log is found all the same.
    rng = np.random.default_rng(0)
    demos, logs = [], []
    for _ in range(3):
        taken = rng.random(80) < 0.15
        bag = np.column_stack([np.r_[0, taken.cumsum()], np.zeros(81)])
        demos.append(episode_of({"view": rng.normal(0, 100, (81, 40)).cumsum(axis=0), "bag": bag}))
        logs.append(taken)
    encoder = DeltaEvents(max_events=8).fit(demos)
    for demo, taken in zip(demos, logs, strict=True):
        events = encoder.encode(demo).events
        # Knowing the event says more about the log than guessing does.
        guess = min(taken.mean(), 1 - taken.mean())
        wrong = sum(
            min(taken[events == e].sum(), (~taken[events == e]).sum()) for e in set(events.tolist())
        )
        assert wrong / len(taken) < 0.5 * guess


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(2, 9), st.integers(1, 12))
@examples
def test_parts_of_any_size_and_demonstrations_of_any_length(seed, a, b, steps):
    rng = np.random.default_rng(seed)
    tree = {"a": rng.normal(size=(steps + 1, a)), "b": rng.normal(size=(steps + 1, b))}
    encoder = DeltaEvents(max_share=1.0).fit([episode_of(tree)])
    assert_streamed_like_whole(encoder, episode_of(tree))


def test_the_rarest_change_is_merged_into_the_most_similar():
    recipes = [{"log": 1}, {"table": 1}, {"log": 2}]
    episode, truth = _inventory(0, recipes, weights=[20, 10, 3])
    assert DeltaEvents(3).fit([episode]).n_events == 3
    encoder = DeltaEvents(2).fit([episode])
    assert encoder.n_events == 2
    assert {"log+1", "table+1"} == set(encoder.symbols_)
    _assert_one_to_one(encoder.encode(episode).events, np.where(truth == 2, 0, truth))


def test_the_rarest_change_is_merged_into_no_change_if_that_is_the_most_similar():
    recipes = [{"log": 3}, {"table": 1}, {"log": 1}]
    episode, truth = _inventory(0, recipes, weights=[20, 10, 3])
    encoder = DeltaEvents(2).fit([episode])
    _assert_one_to_one(encoder.encode(episode).events, np.where(truth == 2, NO_EVENT, truth))


@given(st.integers(0, 10**6), st.integers(1, 5))
@examples
def test_what_is_merged_is_always_the_rarest(seed, max_events):
    weights = np.random.default_rng(seed).permutation([3, 7, 12, 18, 25])
    episode, truth = _inventory(seed, weights=weights)
    encoder = DeltaEvents(max_events).fit([episode])
    assert encoder.n_events <= max_events
    events = encoder.encode(episode).events
    # The most frequent recipe is still one event (others, merged, may outweigh the second).
    top = np.argsort(-weights)[:1]
    found = [set(events[truth == k].tolist()) for k in top]
    assert all(len(s) == 1 for s in found)
    assert len(set.union(*found)) == len(top)


@given(st.integers(0, 10**6))
@examples
def test_real_valued_changes_one_at_a_time_are_those_of_an_episode(seed):
    rng = np.random.default_rng(seed)
    tree = {"a": rng.normal(size=(40, 3)).cumsum(axis=0), "b": rng.normal(size=40)}
    encoder = DeltaEvents(5, max_share=1.0).fit([episode_of(tree)])
    assert 0 < encoder.n_events <= 5
    assert_streamed_like_whole(encoder, episode_of(tree))
    other = {"a": rng.normal(size=(20, 3)), "b": rng.normal(size=20)}
    assert_streamed_like_whole(encoder, episode_of(other))


def _three_directions(seed, steps):
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(3), rng.integers(0, 3, steps - 3)]
    change = 10.0 * np.array([[-1, 0], [0, 1], [1, 0]])[truth] + rng.normal(0, 0.1, (steps, 2))
    return episode_of(np.vstack([[0, 0], change.cumsum(axis=0)])), truth


@pytest.mark.parametrize(("steps", "max_samples"), [(150, 1500), (200, 50)])
def test_clouds_of_changes_are_events_however_many_samples_there_are(steps, max_samples):
    episode, truth = _three_directions(0, steps)
    encoder = DeltaEvents(3, max_samples=max_samples).fit([episode])
    assert encoder.n_events == 3
    for demo, kinds in [(episode, truth), _three_directions(1, 100)]:
        events = encoder.encode(demo).events
        assert {(e, k) for e, k in zip(events.tolist(), kinds.tolist(), strict=True)} == {
            (e, k) for e, k in zip(events[:3].tolist(), range(3), strict=True)
        }
        assert sorted(events[:3].tolist()) == [0, 1, 2]


def test_an_observation_that_never_changes_has_no_events():
    demos = [episode_of({"log": np.zeros(5), "map": np.ones((5, 3))})] * 2
    encoder = DeltaEvents().fit(demos)
    assert encoder.n_events == 0
    assert encoder.symbols_ == []
    assert encoder.encode(demos[0]).events.tolist() == [-1] * 4
    # Even if it changes later: there is no event that it could be.
    later = episode_of({"log": np.arange(5), "map": np.ones((5, 3))})
    assert encoder.encode(later).sequence.tolist() == []


def test_a_part_that_never_changed_does_not_disturb():
    episode, truth = _inventory(0, _RECIPES[:2])
    tree = dict(episode.observations)
    encoder = DeltaEvents(max_share=0.9).fit([episode])
    _assert_one_to_one(encoder.encode(episode).events, truth)
    # A table was never made in the demonstrations: that is no event.
    tree["table"] = tree["table"] + np.arange(len(truth) + 1)
    idle = truth == NO_EVENT
    assert set(encoder.encode(episode_of(tree)).events[idle].tolist()) == {NO_EVENT}


def test_small_unsigned_numbers_go_down_too():
    episode = episode_of({"log": np.array([0, 1, 0, 1, 0, 0, 1, 1], np.uint8)})
    assert DeltaEvents().fit([episode]).symbols_ == ["log+1", "log-1"]


def test_parts_of_a_vector_are_those_given():
    rng = np.random.default_rng(0)
    vector = rng.integers(0, 3, (60, 4)).cumsum(axis=0)
    as_dict = {"a": vector[:, :2], "b": vector[:, 2:]}
    a = DeltaEvents(6, parts={"a": (0, 2), "b": (2, 4)}).fit([episode_of(vector)])
    b = DeltaEvents(6).fit([episode_of(as_dict)])
    np.testing.assert_array_equal(
        a.encode(episode_of(vector)).events, b.encode(episode_of(as_dict)).events
    )


@pytest.mark.parametrize("parts", [{"a": (0, 2)}, {"a": (0, 3), "b": (2, 4)}, {"a": (0, 5)}])
def test_parts_must_cover_the_vector_once(parts):
    with pytest.raises(ValueError, match="must cover each of the 4 components once"):
        DeltaEvents(parts=parts).fit([episode_of(np.zeros((5, 4)))])


@pytest.mark.parametrize("kind", [DeltaEvents, FeatureEvents, StateEvents])
def test_keys_are_a_list_of_names(kind):
    with pytest.raises(ValueError, match=r"keys is 'valve'; give a list of names: keys=\['v"):
        kind(keys="valve")
    with pytest.raises(ValueError, match="keys is empty; name the entries of the observation"):
        kind(keys=[])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("encoder", [DeltaEvents(), FeatureEvents()])
def test_values_that_are_no_numbers_are_refused(encoder, value):
    good = np.random.default_rng(0).normal(size=(9, 2))
    bad = good.copy()
    bad[4, 1] = value
    where = r"^observation 4 of {} \(after step 3\) holds NaN or infinite"
    with pytest.raises(ValueError, match=where.format("demonstration 1")):
        encoder.fit([episode_of(good), episode_of(bad)])
    encoder.fit([episode_of(good)])
    with pytest.raises(ValueError, match=where.format("the episode")):
        encoder.encode(episode_of(bad))
    with pytest.raises(ValueError, match=r"^observation 0 of the episode \(the first one\)"):
        encoder.encode(episode_of(bad[4:]))
    with pytest.raises(ValueError, match=r"^observation 4 of the episode"):
        encoder.encode(episode_of(bad[:5]))
    with pytest.raises(ValueError, match=r"^the observation holds NaN or infinite"):
        encoder.transition_event(good[0], 0, 0.0, bad[4], {})
    with pytest.raises(ValueError, match=r"^observation 1 of 2 holds NaN or infinite"):
        encoder.transition_events(good[:2], [0, 0], [0, 0], bad[3:5], [{}, {}])


def test_a_random_episode_that_cannot_be_used_is_named():
    good, bad = np.arange(18.0).reshape(9, 2), np.full((9, 2), np.nan)
    with pytest.raises(ValueError, match=r"^observation 0 of random episode 1 \(the first one\)"):
        FeatureEvents().fit([episode_of(good)], [episode_of(good), episode_of(bad)])


@pytest.mark.parametrize("encoder", [DeltaEvents(), FeatureEvents()])
def test_strings_are_no_numbers(encoder):
    with pytest.raises(ValueError, match=r"needs numbers.*<U1.*keys"):
        encoder.fit([episode_of(np.array(list("abcd")))])


def test_strings_beside_the_named_entries_are_left_alone():
    episode, truth = _inventory(0)
    tree = {**episode.observations, "name": np.array(["x"] * (len(truth) + 1))}
    encoder = DeltaEvents(keys=_ITEMS).fit([episode_of(tree)])
    _assert_one_to_one(encoder.encode(episode_of(tree)).events, truth)
    assert_streamed_like_whole(encoder, episode_of(tree))


def test_many_changes_are_warned_of():
    demos = [episode_of(np.repeat(np.arange(30) ** 2, 2))] * 2
    with pytest.warns(AlignRudderWarning, match="29 events: with more than about 20"):
        assert DeltaEvents(40).fit(demos).n_events == 29
    assert DeltaEvents().fit(demos).n_events == 20  # a warning here is an error


@pytest.mark.parametrize("max_samples", [1500, 20])
def test_changes_are_the_same_after_a_file(tmp_path, max_samples):
    rng = np.random.default_rng(0)
    smooth = [episode_of(rng.normal(size=(50, 4)).cumsum(axis=0)) for _ in range(3)]
    counted = [_inventory(i)[0] for i in range(3)]
    for demos, options in [(counted, {}), (smooth, {"parts": {"a": (0, 2), "b": (2, 4)}})]:
        encoder = DeltaEvents(6, max_samples=max_samples, **options).fit(demos[:2])
        again = DeltaEvents(6, max_samples=max_samples, **options).fit(demos[:2])
        assert_same_encoder(encoder, again, demos)
        assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), demos)


def _crafting(planks, n=3):
    """Return episodes in which logs become planks; the last change gives so many."""
    log, plank = [0, 1, 2, 1, 0, 0], [0, 0, 0, 4, 8, 8]
    return [episode_of({"log": [*log, 0], "plank": [*plank, 8 + planks]})] * n


@pytest.mark.parametrize("planks", [100, 30])
def test_a_change_far_from_all_known_ones_is_unknown(planks):
    """100 planks are not the 4 that the demonstrations showed, and are not paid as these."""
    model = AlignRudder(DeltaEvents(), strategies=1)
    model.fit([replace(e, rewards=np.eye(6)[-1]) for e in _crafting(4)])
    encoder = model.events_
    assert "plank+4" in encoder.symbols_
    (odd,) = _crafting(planks, 1)
    assert encoder.encode(odd).events[-1] == encoder.n_events
    assert_streamed_like_whole(encoder, odd)
    rewards = model.redistribute(odd).rewards
    assert rewards[-1] == 0.0
    assert (rewards[[0, 1]] > 0).any()
    assert model.redistribute(_crafting(4)[0]).rewards[-1] > 0
    lax = DeltaEvents(radius=None).fit(_crafting(4))
    assert lax.symbols_[lax.encode(odd).events[-1]] == "plank+4"
    wider = DeltaEvents(radius=9.0).fit(_crafting(4))
    assert (wider.encode(odd).events[-1] == wider.n_events) == (planks == 100)


def test_a_change_like_a_known_one_is_that_one():
    encoder = DeltaEvents().fit(_crafting(4))
    for planks, known in ((3, True), (5, True), (8, True), (9, False)):
        found = encoder.encode(_crafting(planks, 1)[0]).events[-1]
        assert (found == encoder.symbols_.index("plank+4")) == known


@pytest.mark.parametrize("samples", [1500, 12])
def test_continuous_changes_are_known_within_the_spread_of_the_demonstrations(samples):
    """Two kinds of noisy change: others of the same kinds are known, far ones are not."""
    kinds = np.array([[5.0, 0.0], [0.0, 7.0]])

    def noisy(seed, far=0.0):
        rng = np.random.default_rng(seed)
        steps = kinds[np.arange(60) % 2] * (1 + far) + rng.normal(0, 0.3, (60, 2))
        return episode_of(np.r_[[[0.0, 0.0]], steps.cumsum(axis=0)])

    demos = [noisy(i) for i in range(4)]
    encoder = DeltaEvents(2, max_share=0.9, max_samples=samples).fit(demos)
    assert encoder.n_events == 2
    for demo in demos:
        assert (encoder.encode(demo).events < 2).all()
    events = encoder.encode(noisy(9)).events
    assert (events < 2).all()
    assert (events[::2] == events[0]).all()
    assert (encoder.encode(noisy(9, far=5.0)).events == 2).all()


def test_radii_come_back_from_a_file_and_old_files_have_none(tmp_path):
    encoder = DeltaEvents().fit(_crafting(4))
    (odd,) = _crafting(100, 1)
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "new.npz"), [odd])
    header, arrays = encoder.state()
    del header["parameters"]["radius"], arrays["radii"]  # as version 0.1 wrote it
    old = DeltaEvents.from_state(header, arrays)
    assert old.radius is None
    assert old.symbols_[old.encode(odd).events[-1]] == "plank+4"
    assert_same_encoder(old, through_file(old, tmp_path / "old.npz"), [odd])


def ramp(dtype, start=0.0):
    """Return an observation that goes up by 0.05 in each step, and a flag at its end."""
    s = np.linspace(start, start + 1, 21, dtype=dtype)
    return np.stack([s, (s == s[-1]).astype(dtype)], 1)


@pytest.mark.parametrize("start", [0.0, 3.0, -100.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_makes_no_kinds_of_change(dtype, start):
    if dtype == np.float16 and start == -100.0:
        pytest.skip("float16 knows no 0.05 beside 100")
    demos = [Episode(ramp(dtype, start), [0] * 20, [0.0] * 19 + [1.0])] * 2
    events = DeltaEvents(max_share=1).fit(demos)
    assert events.n_events == 2
    assert sum("x[1]+1" in str(symbol) for symbol in events.symbols_) == 1
    assert events.encode(demos[0]).events.tolist() == [0] * 19 + [1]


def test_rounding_with_no_room_around_known_changes():
    demos = [Episode(ramp(np.float32), [0] * 20, [0.0] * 19 + [1.0])] * 2
    events = DeltaEvents(max_share=1, radius=0).fit(demos)
    assert events.encode(demos[0]).events.tolist() == [0] * 19 + [1]


def test_small_changes_that_float32_knows_stay_apart():
    reached = np.array([0.5, 0.5 + 1e-5, -0.5, 1e-6, 2e-6], np.float32)
    walk = np.zeros((11, 1))
    walk[1::2, 0] = reached  # each begins at zero, where float32 is precise
    deltas = np.diff(walk, axis=0)
    same = without_rounding(deltas, [walk], np.array([np.finfo(np.float32).eps]))
    assert np.array_equal(same, deltas)


def test_large_whole_numbers_of_float32_stay_apart():
    walk = 1e7 + np.cumsum([0, 1, 2, 1, 2, 3]).astype(float)[:, None]
    deltas = np.diff(walk, axis=0)
    eps = np.array([np.finfo(np.float32).eps])
    assert without_rounding(deltas, [walk], eps) is deltas
    assert len(np.unique(without_rounding(deltas, [walk + 0.5], eps))) == 1
