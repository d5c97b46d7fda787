"""Regions of states as events: discrete states, and vectors."""

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

from align_rudder import AlignRudderWarning, FeatureEvents, StateEvents

examples = settings(deadline=None, max_examples=40, derandomize=True)


_N = 30


def _walks(seed, n=3, steps=60):
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.choice([-1, 1, 1], (n, steps)), axis=1)
    return list(np.clip(np.c_[np.zeros(n, int), walks], 0, _N - 1))


def _pairs(walk):
    return np.column_stack([walk // 6, walk % 6])


_FORMS = {
    "int": lambda w: w,
    "uint8": lambda w: w.astype(np.uint8),
    "bool": lambda w: w % 2 == 0,
    "negative": lambda w: -3 * w,
    "vector": _pairs,
    "one number in a vector": lambda w: w[:, None],
    "grid": lambda w: np.stack([_pairs(w), _pairs(w)], axis=1),
    "string": lambda w: np.array([f"cell {x}" for x in w]),
    "bytes": lambda w: np.array([f"cell {x}" for x in w], dtype="S"),
    "dict": lambda w: {"row": w // 6, "column": w % 6},
    "tuple": lambda w: (w // 6, w % 6),
    "numbers and strings": lambda w: {"row": w // 6, "column": np.array([str(x) for x in w % 6])},
    "far apart": lambda w: w * 10**9,
}


@pytest.mark.parametrize("form", _FORMS)
def test_states_one_at_a_time_are_the_states_of_an_episode(form, tmp_path):
    make = _FORMS[form]
    demos = [episode_of(make(w)) for w in _walks(0)]
    encoder = StateEvents(max_events=6, preference=1e6).fit(demos)
    assert encoder.n_events == (2 if form == "bool" else 6)
    new = [episode_of(make(w + shift)) for w in _walks(1) for shift in (0, 3)]
    for episode in [*demos, *new]:
        assert_streamed_like_whole(encoder, episode)
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), [*demos, *new])


@pytest.mark.parametrize("form", ["vector", "string", "dict", "tuple", "far apart", "grid"])
def test_the_form_of_the_states_does_not_matter(form):
    plain = StateEvents(max_events=6).fit([episode_of(w) for w in _walks(0)])
    other = StateEvents(max_events=6).fit([episode_of(_FORMS[form](w)) for w in _walks(0)])
    for walk in _walks(1):
        a, b = plain.encode(episode_of(walk)), other.encode(episode_of(_FORMS[form](walk)))
        np.testing.assert_array_equal(a.events, b.events)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=6, unique=True))
@examples
def test_states_may_be_any_whole_numbers(states):
    """Hashes of observations, for example."""
    episode = episode_of(np.array(states, np.int64))
    encoder = StateEvents(preference=1e6).fit([episode, episode])
    assert encoder.n_events == len(states)
    assert_streamed_like_whole(encoder, episode)


def test_unsigned_numbers_beyond_int64_are_refused():
    states = np.array([2**63 + 5, 2**63 + 9, 2**63 + 20], np.uint64)
    with pytest.raises(ValueError, match=r"2\^63"):
        StateEvents().fit([episode_of(states)] * 2)
    fits = np.array([2**63 - 5, 2**63 - 1, 7], np.uint64)
    encoder = StateEvents(preference=1e6).fit([episode_of(fits)] * 2)
    assert encoder.encode(episode_of(fits)).sequence.tolist() == [0, 1, 2]
    assert_streamed_like_whole(encoder, episode_of(fits))


def test_only_the_named_entries_make_up_a_state():
    demos = [
        episode_of({"at": w, "noise": np.random.default_rng(i).normal(size=len(w))})
        for i, w in enumerate(_walks(0))
    ]
    named = StateEvents(max_events=6, keys=["at"]).fit(demos)
    plain = StateEvents(max_events=6).fit([episode_of(w) for w in _walks(0)])
    for walk in _walks(1):
        episode = episode_of({"at": walk, "noise": np.zeros(len(walk))})
        np.testing.assert_array_equal(
            named.encode(episode).events, plain.encode(episode_of(walk)).events
        )
        assert_streamed_like_whole(named, episode)
    # Entries that are not named need not be there.
    assert named.start_event({"at": 0}) == plain.start_event(0)


@pytest.mark.parametrize("keys", [["row", "column"], ["column", "row"]])
def test_the_order_of_keys_does_not_matter_for_states(keys):
    demos = [episode_of(_FORMS["dict"](w)) for w in _walks(0)]
    encoder = StateEvents(max_events=6, keys=keys).fit(demos)
    for episode in demos:
        assert_streamed_like_whole(encoder, episode)


def test_events_are_those_of_the_states_table():
    demos = [episode_of(w) for w in _walks(0)]
    encoder = StateEvents(max_events=6).fit(demos)
    table = dict(zip(encoder.states_[:, 0].tolist(), encoder.labels_.tolist(), strict=True))
    visited = {int(x) for d in demos for x in d.observations}
    assert table.keys() == visited
    counts = [sum(int((d.observations == s).sum()) for d in demos) for s in encoder.states_[:, 0]]
    assert encoder.visits_.tolist() == counts
    for state in range(-5, _N + 5):
        assert encoder.start_event(state) == table.get(state, NO_EVENT)
    # Each event is called by its most visited state.
    visits = dict(zip(encoder.states_[:, 0].tolist(), counts, strict=True))
    for e, symbol in enumerate(encoder.symbols_):
        assert table[symbol] == e
        assert visits[symbol] == max(visits[s] for s, label in table.items() if label == e)


def test_unvisited_states_are_no_event_and_do_not_end_a_run():
    encoder = StateEvents(preference=1e6).fit([episode_of([0, 1, 2])] * 2)  # each its own event
    a, b = encoder.start_event(0), encoder.start_event(1)
    assert encoder.start_event(77) == NO_EVENT
    whole = encoder.encode(episode_of([0, 77, 0, 78, 1, 79, 79, 1, 0]))
    assert whole.start == a
    assert whole.events.tolist() == [-1, -1, -1, b, -1, -1, -1, a]
    assert encoder.encode(episode_of([77, 0, 0])).events.tolist() == [a, -1]


@pytest.mark.parametrize("form", ["int", "negative", "vector", "string", "far apart"])
def test_states_between_and_beyond_the_visited_ones_are_no_event(form):
    make = _FORMS[form]
    visited = np.array([3, 8, 14, 25])
    encoder = StateEvents(preference=1e6).fit([episode_of(make(visited))] * 2)
    everywhere = np.arange(-12, 40)
    events = encoder.start_events(make(everywhere))
    assert everywhere[events != NO_EVENT].tolist() == visited.tolist()
    assert events[events != NO_EVENT].tolist() == [0, 1, 2, 3]
    assert [encoder.start_event(x) for x in make(everywhere)] == events.tolist()


def test_states_of_random_episodes_are_learned_from_but_no_events():
    demos = [episode_of([0, 1, 2, 3])] * 2
    random = [episode_of([9, 8, 1, 7])]
    encoder = StateEvents().fit(demos, random)
    assert sorted(encoder.states_[:, 0].tolist()) == [0, 1, 2, 3]
    assert encoder.start_events(np.array([9, 8, 7])).tolist() == [NO_EVENT] * 3


def test_two_rooms_are_two_events():
    # Long walks within each of two rooms, connected by a door.
    rng = np.random.default_rng(0)
    demos = []
    for _ in range(6):
        room = [rng.permutation(np.tile(np.arange(4), 15)) + 10 * k for k in (0, 1)]
        demos.append(episode_of(np.concatenate(room)))
    encoder = StateEvents(max_events=2).fit(demos)
    assert encoder.n_events == 2
    for demo in demos:
        whole = encoder.encode(demo)
        assert np.flatnonzero(whole.events != NO_EVENT).tolist() == [59]


@pytest.mark.parametrize("max_events", [1, 3, 8])
def test_there_are_at_most_max_events(max_events):
    demos = [episode_of(w) for w in _walks(2)]
    encoder = StateEvents(max_events, preference=1e6).fit(demos)
    assert encoder.n_events == max_events
    used = {e for d in demos for e in [encoder.encode(d).start, *encoder.encode(d).events.tolist()]}
    assert used - {NO_EVENT} == set(range(max_events))


def test_states_are_found_again_in_the_same_order():
    a, b = (StateEvents().fit([episode_of(w) for w in _walks(3)]) for _ in range(2))
    assert_same_encoder(a, b, [episode_of(w) for w in _walks(4)])


def test_many_events_are_warned_of():
    demos = [episode_of(np.arange(30))] * 2
    with pytest.warns(AlignRudderWarning, match=r"25 events: with more than about 20.*max_events"):
        encoder = StateEvents(25, preference=1e6).fit(demos)
    assert encoder.n_events == 25
    StateEvents(20, preference=1e6).fit(demos)  # a warning here is an error


@pytest.mark.parametrize(
    "observations", [np.linspace(0, 1, 5), {"a": np.arange(5), "b": np.ones(5)}]
)
def test_real_numbers_are_no_states(observations):
    with pytest.raises(ValueError, match=r"discrete states.*real numbers; use FeatureEvents"):
        StateEvents().fit([episode_of(observations)])
    fitted = StateEvents().fit([episode_of(np.arange(5))])
    with pytest.raises(ValueError, match="discrete states"):
        fitted.start_event(0.5)


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match=r"8001 different states, at most 8000 .*keys"):
        StateEvents().fit([episode_of(np.arange(8001))])


# FeatureEvents

_CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]])


def _path(seed, stay=20):
    """Return a path that stays a while at each corner, and the corner of each observation."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), rng.integers(stay - 5, stay + 5, 3))
    return _CORNERS[truth] + rng.normal(0, 0.3, (len(truth), 2)), truth


def test_regions_of_a_path_are_events(tmp_path):
    demos = [_path(i) for i in range(4)]
    options = {"max_events": 3, "gamma": 0.9, "n_features": 3}
    encoder = FeatureEvents(**options).fit([episode_of(x) for x, _ in demos])
    corners = encoder.start_events(_CORNERS)
    assert sorted(corners.tolist()) == [0, 1, 2]
    assert encoder.n_events == 3
    for x, truth in [*demos, _path(7), _path(8)]:
        whole = encoder.encode(episode_of(x))
        np.testing.assert_array_equal(encoder.start_events(x), corners[truth])
        assert whole.sequence.tolist() == corners.tolist()
        entered = np.flatnonzero(np.diff(truth)).tolist()
        assert np.flatnonzero(whole.events != NO_EVENT).tolist() == entered
        assert_streamed_like_whole(encoder, episode_of(x))
    episodes = [episode_of(_path(9)[0])]
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), episodes)
    again = FeatureEvents(**options).fit([episode_of(x) for x, _ in demos])
    assert_same_encoder(encoder, again, episodes)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_regions_are_found_among_many_features(gamma):
    # With as many features as states, where a state leads to is known too well: at the end of a
    # stay it may be taken for the next region already.
    demos = [_path(i) for i in range(4)]
    encoder = FeatureEvents(3, gamma=gamma).fit([episode_of(x) for x, _ in demos])
    corners = encoder.start_events(_CORNERS)
    assert sorted(corners.tolist()) == [0, 1, 2]
    for x, truth in [*demos, _path(7), _path(8)]:
        assert (encoder.start_events(x) == corners[truth]).mean() > 0.9


_VECTOR_FORMS = {
    "vector": (None, lambda x: x),
    "dict": (None, lambda x: {"x": x[:, 0], "y": x[:, 1]}),
    "keys": (["x", "y"], lambda x: {"x": x[:, 0], "y": x[:, 1], "z": np.array(["?"] * len(x))}),
    "keys not in order": (["y", "x"], lambda x: {"x": x[:, 0], "y": x[:, 1]}),
    "one key": (["at"], lambda x: {"at": x, "z": np.zeros(len(x))}),
    "tuple": (None, lambda x: (x[:, 0], x[:, 1])),
    "long tuple": (None, lambda x: (*(0 * x[:, 0] for _ in range(9)), x[:, 0], x[:, 1])),
    "nested": (None, lambda x: {"a": {"z": x[:, 0]}, "a!": x[:, 1]}),
    "image": (None, lambda x: np.stack([x, x], axis=2)),
}


@pytest.mark.parametrize("form", _VECTOR_FORMS)
def test_vectors_one_at_a_time_are_the_vectors_of_an_episode(form):
    keys, make = _VECTOR_FORMS[form]
    demos = [episode_of(make(_path(i)[0] + [0, 50])) for i in range(3)]
    encoder = FeatureEvents(3, gamma=0.9, keys=keys).fit(demos)
    for episode in [*demos, episode_of(make(_path(5)[0] + [0, 50]))]:
        assert len(encoder.encode(episode).sequence) == 3
        assert_streamed_like_whole(encoder, episode)


def test_the_unit_of_a_feature_does_not_matter():
    scale = np.array([1.0, 1024.0])
    plain, scaled = (
        FeatureEvents(3, gamma=0.9).fit([episode_of(_path(i)[0] * s) for i in range(3)])
        for s in (1.0, scale)
    )
    x = _path(5)[0]
    np.testing.assert_array_equal(plain.start_events(x), scaled.start_events(x * scale))


def test_a_vector_that_never_changes_is_one_region():
    demos = [episode_of(np.ones((6, 2)))] * 2
    encoder = FeatureEvents().fit(demos)
    assert encoder.n_events == 1
    assert encoder.encode(demos[0]).sequence.tolist() == [0]
