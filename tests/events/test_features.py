"""Regions of vectors: the radius, what a random policy reaches, goals, names, pictures."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from encoders import assert_same_encoder, assert_streamed_like_whole, episode_of, through_file
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder import FeatureEvents
from align_rudder.events import encoder_from_state
from align_rudder.events.names import apart, event_name, region_names
from align_rudder.events.projection import places_of_sample, principal_axes


def line(seed, length=30, end=9.0):
    """Return positions that go from 0 to the end, a little different each time."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, end, length) + rng.normal(0, 0.05, length)
    return episode_of(np.column_stack([x, rng.normal(0, 0.05, length)]))


# The radius


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.5, 4))
def test_states_of_demonstrations_are_known_and_those_far_away_are_not(seed, radius):
    demos = [line(seed + i) for i in range(3)]
    encoder = FeatureEvents(4, radius=radius, gamma=0.9).fit(demos)
    for demo in demos:
        assert encoder.start_events(demo.observations).max() < encoder.n_events
    far = np.array([[4.0, 90.0], [-90.0, 0.0], [900.0, 900.0]])
    assert encoder.start_events(far).tolist() == [encoder.n_events] * 3
    free = FeatureEvents(4, radius=None, gamma=0.9).fit(demos)
    assert free.start_events(far).max() < free.n_events


def test_new_demonstrations_are_within_the_radius_and_earn_what_the_others_do():
    model = ar.AlignRudder(FeatureEvents(5)).fit([line(i) for i in range(6)])
    for i in range(20, 30):
        events = model.events_.base.start_events(line(i).observations)
        assert (events == model.events_.base.n_events).mean() < 0.05
        assert model.redistribute(line(i)).rewards.sum() == pytest.approx(1.0, abs=0.2)


def test_a_larger_radius_knows_more(rng):
    points = rng.uniform((-5, -2), (15, 2), (400, 2))
    known = [
        FeatureEvents(4, radius=r).fit([line(0), line(1)]).start_events(points) < 4
        for r in (0.5, 1.0, 3.0, 10.0, None)
    ]
    for less, more in pairwise(known):
        assert (more | ~less).all()
        assert more.sum() > less.sum()


# What a random policy reaches


def test_what_random_episodes_reach_is_no_event():
    demos, near = [line(i) for i in range(4)], [line(i, end=3.0) for i in range(50, 54)]
    whole, rest = FeatureEvents(9).fit(demos), FeatureEvents(9).fit(demos, near)
    assert 0 < rest.n_events < whole.n_events
    for episode in near:
        assert (rest.encode(episode).sequence == rest.n_events).all()  # at most unknown
    reached = rest.encode(demos[0])
    entered = np.flatnonzero((reached.events >= 0) & (reached.events < rest.n_events))
    assert 3.0 < demos[0].observations[entered[0] + 1, 0] < 5.0
    kept = FeatureEvents(9, max_random=1.0).fit(demos, near)
    assert kept.n_events == whole.n_events


def test_without_random_episodes_the_beginning_of_demonstrations_stands_for_them():
    demos = [line(i) for i in range(4)]
    encoder = FeatureEvents(9, beginning=0.5).fit(demos)
    events = encoder.start_events(demos[0].observations)
    assert (events[:15] == -1).all()
    assert (events[20:] >= 0).all()


# Goals


def with_goal(seed, goal):
    """Return an episode that goes straight to a goal, from a place two away from it."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi)
    away = np.linspace(2, 0, 25)[:, None] * [np.cos(angle), np.sin(angle)]
    at = goal + away + rng.normal(0, 1e-3, away.shape)
    return episode_of(
        {"achieved_goal": at, "desired_goal": np.tile(goal, (25, 1)), "observation": at}
    )


def test_the_distance_from_a_goal_is_the_same_wherever_it_is(tmp_path):
    demos = [with_goal(i, np.array([i * 7.0, -i])) for i in range(4)]
    encoder = FeatureEvents(4, goal="distance", gamma=0.9).fit(demos)
    assert encoder.keys == ["achieved_goal", "desired_goal"]
    assert all(symbol.startswith("distance≈") for symbol in encoder.symbols_)
    sequences = {tuple(encoder.encode(with_goal(i, np.full(2, 100.0))).sequence) for i in range(9)}
    assert sequences == {tuple(encoder.encode(demos[0]).sequence)}
    assert len(next(iter(sequences))) == 4
    for goal in ("distance", "difference"):
        one = FeatureEvents(4, goal=goal).fit(demos)
        assert_same_encoder(one, through_file(one, tmp_path / "e.npz"), demos)
        assert_streamed_like_whole(one, demos[0])
    assert FeatureEvents(4, goal="difference").fit(demos).symbols_[0].count("≈") == 2


def test_goals_need_two_entries_of_the_same_shape():
    demos = [episode_of({"a": np.zeros((3, 2)), "b": np.zeros((3, 1))})]
    with pytest.raises(ValueError, match=r"goal='distance' needs two entries .* 3 numbers"):
        FeatureEvents(keys=["a", "b"], goal="distance").fit(demos)
    with pytest.raises(ValueError, match=r"goal is 'way'; one of"):
        FeatureEvents(goal="way").fit(demos)


# Names


def test_regions_have_the_names_of_entries_and_their_coordinates():
    path = np.repeat([0.0, 4.0, 8.0], 6)
    demo = episode_of({"speed": 0.5 - path / 16, "x": path, "y": np.ones(18)})
    encoder = FeatureEvents(3, gamma=0.9).fit([demo, demo])
    assert encoder.symbols_ == ["speed≈0.5 x≈0", "speed≈0.25 x≈4", "speed≈0 x≈8"]
    assert [event_name(s) for s in encoder.symbols_] == encoder.symbols_


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_no_two_regions_have_the_same_name(n, width, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, 3, (40, width)).astype(float)
    names = region_names(vectors, rng.integers(0, n, 40), n, [f"x[{i}]" for i in range(width)])
    assert len(set(names)) == n


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a (2)'"])))
def test_names_are_set_apart(names):
    assert len(set(apart(names))) == len(names)
    assert [name for name in apart(names) if name in names][:1] == names[:1]


# Pictures


def test_principal_axes_are_those_of_a_singular_value_decomposition(rng):
    rows = rng.normal(size=(12, 40))
    rows -= rows.mean(axis=0)
    axes = principal_axes(rows, 5)
    expected = np.linalg.svd(rows, full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs((axes.T * expected).sum(axis=1)), 1, rtol=1e-9)
    assert principal_axes(rows * 0, 5).shape == (40, 1)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_a_sample_is_of_rows_that_there_are(lengths):
    places = places_of_sample(lengths)
    assert sum(map(len, places)) == min(sum(lengths), 256)
    assert all((at < n).all() and (at >= 0).all() for at, n in zip(places, lengths, strict=True))


def picture_walk(seed, length=40):
    """Return an episode of a bright square that goes along the rows of a noisy picture."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(0, 8, (length, 84, 84, 3), np.uint8)
    for t in range(length):
        cell = t * 7 // length
        pictures[t, 12 * cell : 12 * cell + 12, :12] += 200
    return episode_of(pictures)


@pytest.mark.parametrize("kind", [FeatureEvents, ar.DeltaEvents])
def test_pictures_take_little_memory(kind, tmp_path):
    demos = [picture_walk(i) for i in range(3)]
    encoder = kind().fit([picture_walk(9, 10)] * 2)  # what is imported and compiled counts not
    tracemalloc.start()
    encoder = kind().fit(demos)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 400e6  # all pairs of pixels would take 3.6e9
    stored = sum(array.nbytes for array in encoder.state()[1].values())
    assert stored < 8 * 84 * 84 * 3 * 40
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), demos[:1])


def test_regions_of_pictures_are_found_and_lead_to_a_picture():
    demos = [picture_walk(i) for i in range(4)]
    encoder = FeatureEvents(7, gamma=0.9).fit(demos)
    assert_streamed_like_whole(encoder, demos[0])
    assert {tuple(encoder.encode(picture_walk(i)).sequence) for i in range(20, 24)} == {
        tuple(encoder.encode(demos[0]).sequence)
    }
    assert len(encoder.encode(demos[0]).sequence) >= 4
    for event, name in enumerate(encoder.symbols_):
        assert name.startswith("as in demonstration ")
        i, t = (int(word.rstrip(",")) for word in name.split() if word.rstrip(",").isdigit())
        assert encoder.start_event(demos[i].observations[t]) == event


# Files of before


def test_an_encoder_of_version_0_1_is_read_and_knows_no_radius():
    demos = [line(i) for i in range(3)]
    today = FeatureEvents(4, radius=None, max_random=1.0).fit(demos)
    header, arrays = today.state()
    names = ("max_events", "keys", "gamma", "n_features", "max_samples", "seed")
    old = {**header, "parameters": {name: header["parameters"][name] for name in names}}
    arrays = {name: array for name, array in arrays.items() if name != "radii"}
    assert_same_encoder(today, encoder_from_state("FeatureEvents", old, arrays), demos)


def test_arrays_that_do_not_fit_together_are_refused():
    header, arrays = FeatureEvents(4).fit([line(0), line(1)]).state()
    narrow = {**arrays, "regions": arrays["regions"][:, :1]}
    with pytest.raises(ValueError, match="regions of 1 numbers, not 2"):
        encoder_from_state("FeatureEvents", header, narrow)
    wide = {**arrays, "basis": np.ones((3, 2))}
    with pytest.raises(ValueError, match="basis"):
        encoder_from_state("FeatureEvents", header, wide)
    parameters = {**header["parameters"], "goal": "distance"}
    with pytest.raises(ValueError, match="does not make 2 numbers"):
        encoder_from_state("FeatureEvents", {**header, "parameters": parameters}, arrays)
