"""Encoders: what is an event, one step at a time as for whole episodes, before and after a file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    AlignRudder,
    AlignRudderWarning,
    DeltaEvents,
    Episode,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)
from align_rudder.episodes import tree_index
from align_rudder.events import Encoded, choose_encoder, encoder_from_state
from align_rudder.events.base import EventEncoder
from align_rudder.files import load_npz, save_npz

examples = settings(deadline=None, max_examples=40, derandomize=True)
NO_EVENT = -1


def _episode(observations, actions=None, **fields):
    """Make an episode of these observations that pays 1 at its end."""
    tree = observations
    while isinstance(tree, (dict, tuple)):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    steps = len(tree) - 1
    rewards = np.zeros(steps)
    rewards[-1] = 1.0
    return Episode(observations, np.zeros(steps) if actions is None else actions, rewards, **fields)


def _plain(value):
    """Return an observation as an environment might: Python numbers and strings, no NumPy."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in value)
    return value.item() if np.ndim(value) == 0 else value


def _streamed(encoder, episode, plain=False):
    """Encode an episode one step at a time, as a running environment does."""
    view = _plain if plain else (lambda value: value)
    infos = episode.infos if episode.infos is not None else [{}] * len(episode)
    last = start = encoder.start_event(view(tree_index(episode.observations, 0)))
    events = []
    for t in range(len(episode)):
        event = encoder.transition_event(
            view(tree_index(episode.observations, t)),
            view(tree_index(episode.actions, t)),
            float(episode.rewards[t]),
            view(tree_index(episode.observations, t + 1)),
            infos[t],
        )
        assert isinstance(event, int)
        if encoder.collapse_runs and event != NO_EVENT:
            if event == last:
                event = NO_EVENT
            else:
                last = event
        events.append(event)
    return start, events


def _assert_streamed_like_whole(encoder, episode):
    whole = encoder.encode(episode)
    expected = (whole.start, whole.events.tolist())
    assert _streamed(encoder, episode) == expected
    assert _streamed(encoder, episode, plain=True) == expected


def _through_file(encoder, path, **extra):
    header, arrays = encoder.state()
    save_npz(path, "test", 1, {"encoder": header}, arrays)
    header, arrays = load_npz(path, "test", 1)
    return encoder_from_state(type(encoder).__name__, {**header["encoder"], **extra}, arrays)


def _assert_same_encoder(a, b, episodes):
    assert repr(a) == repr(b)
    assert list(a.symbols_) == list(b.symbols_)
    assert a.observation_shapes() == b.observation_shapes()
    for episode in episodes:
        one, other = a.encode(episode), b.encode(episode)
        assert one.start == other.start
        np.testing.assert_array_equal(one.events, other.events)
        assert _streamed(b, episode) == (one.start, one.events.tolist())


# What every encoder does


class _Given(EventEncoder):
    """Observations that are events themselves."""

    symbols_ = range(9)

    def __init__(self, collapse):
        self.collapse_runs = collapse

    def fit(self, episodes, random_episodes=()):
        return self

    def start_event(self, obs):
        return int(obs)

    def transition_event(self, obs, action, reward, next_obs, info):
        return int(next_obs)

    def state(self):
        return {}, {}

    @classmethod
    def from_state(cls, header, arrays):
        return cls(True)


@given(st.lists(st.integers(-1, 3), min_size=2, max_size=12))
@examples
def test_runs_collapse_and_no_event_does_not_end_them(raw):
    episode = _episode(np.array(raw))
    whole = _Given(True).encode(episode)
    assert (whole.start, whole.events.tolist()) == _streamed(_Given(True), episode)
    events = [e for e in raw if e != NO_EVENT]
    entered = [e for i, e in enumerate(events) if i == 0 or e != events[i - 1]]
    assert whole.sequence.tolist() == entered
    # An event stands where it is entered.
    assert all(e in (NO_EVENT, raw[t + 1]) for t, e in enumerate(whole.events))
    untouched = _Given(False).encode(episode)
    assert untouched.sequence.tolist() == events


def test_the_sequence_of_an_episode_leaves_out_steps_without_event():
    assert Encoded(-1, np.array([-1, 3, -1, 3])).sequence.tolist() == [3, 3]
    assert Encoded(2, np.array([-1, -1])).sequence.tolist() == [2]
    assert Encoded(-1, np.array([-1])).sequence.tolist() == []


@pytest.mark.parametrize(
    "encoder",
    [StateEvents(), FeatureEvents(), DeltaEvents(), SymbolEvents(), FunctionEvents(lambda *a: 0)],
)
def test_an_encoder_must_be_fitted(encoder):
    name = type(encoder).__name__
    message = rf"{name} is not fitted; call fit"
    for call in (
        lambda: encoder.encode(_episode([0, 1])),
        lambda: encoder.n_events,
        encoder.state,
        lambda: encoder.transition_event(0, 0, 0.0, 1, {}),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("encoder", [StateEvents(), FeatureEvents(), DeltaEvents()])
def test_episodes_are_needed(encoder):
    with pytest.raises(ValueError, match=r"no (episodes|demonstrations)|at least one (ep|dem)"):
        encoder.fit([])


@pytest.mark.parametrize("encoder", [StateEvents(), FeatureEvents(), DeltaEvents()])
def test_episodes_have_observations_of_the_same_shape(encoder):
    with pytest.raises(ValueError, match=r"episode 1 .*\[3\].* episode 0 .*\[2\]"):
        encoder.fit([_episode(np.zeros((3, 2), int)), _episode(np.zeros((3, 3), int))])


@pytest.mark.parametrize(
    "encoder", [StateEvents(keys=["b"]), FeatureEvents(keys=["b"]), DeltaEvents(keys=["b"])]
)
def test_a_key_that_is_not_there_is_named(encoder):
    with pytest.raises(ValueError, match=r"no \['b'\]; it has \['a', 'c'\]"):
        encoder.fit([_episode({"a": np.arange(3), "c": np.arange(3)})])


def test_an_unknown_kind_of_events_in_a_file():
    with pytest.raises(ValueError, match=r"events is 'DreamEvents'; one of .*'StateEvents'"):
        encoder_from_state("DreamEvents", {}, {})


@pytest.mark.parametrize(
    ("observations", "kind"),
    [
        (np.arange(4), StateEvents),
        (np.array(list("abcd")), StateEvents),
        (np.zeros((4, 2), int), StateEvents),
        (np.zeros((4, 9), int), DeltaEvents),
        (np.zeros((4, 2)), DeltaEvents),
        ({"log": np.arange(4), "plank": np.arange(4)}, DeltaEvents),
    ],
)
def test_the_encoder_that_fits_the_observations(observations, kind):
    assert type(choose_encoder(None, [_episode(observations)])) is kind


def test_the_encoder_that_is_asked_for():
    given_encoder = SymbolEvents()
    assert choose_encoder(given_encoder, []) is given_encoder

    def function(obs, action, reward, next_obs, info):
        return "x"

    assert choose_encoder(function, []).function is function
    with pytest.raises(ValueError, match="events='states' is neither an encoder nor a function"):
        choose_encoder("states", [])


# StateEvents

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
    demos = [_episode(make(w)) for w in _walks(0)]
    encoder = StateEvents(max_events=6, preference=1e6).fit(demos)
    assert encoder.n_events == (2 if form == "bool" else 6)
    new = [_episode(make(w + shift)) for w in _walks(1) for shift in (0, 3)]
    for episode in [*demos, *new]:
        _assert_streamed_like_whole(encoder, episode)
    _assert_same_encoder(encoder, _through_file(encoder, tmp_path / "e.npz"), [*demos, *new])


@pytest.mark.parametrize("form", ["vector", "string", "dict", "tuple", "far apart", "grid"])
def test_the_form_of_the_states_does_not_matter(form):
    plain = StateEvents(max_events=6).fit([_episode(w) for w in _walks(0)])
    other = StateEvents(max_events=6).fit([_episode(_FORMS[form](w)) for w in _walks(0)])
    for walk in _walks(1):
        a, b = plain.encode(_episode(walk)), other.encode(_episode(_FORMS[form](walk)))
        np.testing.assert_array_equal(a.events, b.events)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=6, unique=True))
@examples
def test_states_may_be_any_whole_numbers(states):
    """Hashes of observations, for example."""
    episode = _episode(np.array(states, np.int64))
    encoder = StateEvents(preference=1e6).fit([episode, episode])
    assert encoder.n_events == len(states)
    _assert_streamed_like_whole(encoder, episode)


def test_unsigned_numbers_beyond_int64_are_refused():
    states = np.array([2**63 + 5, 2**63 + 9, 2**63 + 20], np.uint64)
    with pytest.raises(ValueError, match=r"2\^63"):
        StateEvents().fit([_episode(states)] * 2)
    fits = np.array([2**63 - 5, 2**63 - 1, 7], np.uint64)
    encoder = StateEvents(preference=1e6).fit([_episode(fits)] * 2)
    assert encoder.encode(_episode(fits)).sequence.tolist() == [0, 1, 2]
    _assert_streamed_like_whole(encoder, _episode(fits))


def test_only_the_named_entries_make_up_a_state():
    demos = [
        _episode({"at": w, "noise": np.random.default_rng(i).normal(size=len(w))})
        for i, w in enumerate(_walks(0))
    ]
    named = StateEvents(max_events=6, keys=["at"]).fit(demos)
    plain = StateEvents(max_events=6).fit([_episode(w) for w in _walks(0)])
    for walk in _walks(1):
        episode = _episode({"at": walk, "noise": np.zeros(len(walk))})
        np.testing.assert_array_equal(
            named.encode(episode).events, plain.encode(_episode(walk)).events
        )
        _assert_streamed_like_whole(named, episode)
    # Entries that are not named need not be there.
    assert named.start_event({"at": 0}) == plain.start_event(0)


@pytest.mark.parametrize("keys", [["row", "column"], ["column", "row"]])
def test_the_order_of_keys_does_not_matter_for_states(keys):
    demos = [_episode(_FORMS["dict"](w)) for w in _walks(0)]
    encoder = StateEvents(max_events=6, keys=keys).fit(demos)
    for episode in demos:
        _assert_streamed_like_whole(encoder, episode)


def test_events_are_those_of_the_states_table():
    demos = [_episode(w) for w in _walks(0)]
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
    encoder = StateEvents(preference=1e6).fit([_episode([0, 1, 2])] * 2)  # each its own event
    a, b = encoder.start_event(0), encoder.start_event(1)
    assert encoder.start_event(77) == NO_EVENT
    whole = encoder.encode(_episode([0, 77, 0, 78, 1, 79, 79, 1, 0]))
    assert whole.start == a
    assert whole.events.tolist() == [-1, -1, -1, b, -1, -1, -1, a]
    assert encoder.encode(_episode([77, 0, 0])).events.tolist() == [a, -1]


@pytest.mark.parametrize("form", ["int", "negative", "vector", "string", "far apart"])
def test_states_between_and_beyond_the_visited_ones_are_no_event(form):
    make = _FORMS[form]
    visited = np.array([3, 8, 14, 25])
    encoder = StateEvents(preference=1e6).fit([_episode(make(visited))] * 2)
    everywhere = np.arange(-12, 40)
    events = encoder.start_events(make(everywhere))
    assert everywhere[events != NO_EVENT].tolist() == visited.tolist()
    assert events[events != NO_EVENT].tolist() == [0, 1, 2, 3]
    assert [encoder.start_event(x) for x in make(everywhere)] == events.tolist()


def test_states_of_random_episodes_are_learned_from_but_no_events():
    demos = [_episode([0, 1, 2, 3])] * 2
    random = [_episode([9, 8, 1, 7])]
    encoder = StateEvents().fit(demos, random)
    assert sorted(encoder.states_[:, 0].tolist()) == [0, 1, 2, 3]
    assert encoder.start_events(np.array([9, 8, 7])).tolist() == [NO_EVENT] * 3


def test_two_rooms_are_two_events():
    # Long walks within each of two rooms, connected by a door.
    rng = np.random.default_rng(0)
    demos = []
    for _ in range(6):
        room = [rng.permutation(np.tile(np.arange(4), 15)) + 10 * k for k in (0, 1)]
        demos.append(_episode(np.concatenate(room)))
    encoder = StateEvents(max_events=2).fit(demos)
    assert encoder.n_events == 2
    for demo in demos:
        whole = encoder.encode(demo)
        assert np.flatnonzero(whole.events != NO_EVENT).tolist() == [59]


@pytest.mark.parametrize("max_events", [1, 3, 8])
def test_there_are_at_most_max_events(max_events):
    demos = [_episode(w) for w in _walks(2)]
    encoder = StateEvents(max_events, preference=1e6).fit(demos)
    assert encoder.n_events == max_events
    used = {e for d in demos for e in [encoder.encode(d).start, *encoder.encode(d).events.tolist()]}
    assert used - {NO_EVENT} == set(range(max_events))


def test_states_are_found_again_in_the_same_order():
    a, b = (StateEvents().fit([_episode(w) for w in _walks(3)]) for _ in range(2))
    _assert_same_encoder(a, b, [_episode(w) for w in _walks(4)])


def test_many_events_are_warned_of():
    demos = [_episode(np.arange(30))] * 2
    with pytest.warns(AlignRudderWarning, match=r"25 events: with more than about 20.*max_events"):
        encoder = StateEvents(25, preference=1e6).fit(demos)
    assert encoder.n_events == 25
    StateEvents(20, preference=1e6).fit(demos)  # a warning here is an error


@pytest.mark.parametrize(
    "observations", [np.linspace(0, 1, 5), {"a": np.arange(5), "b": np.ones(5)}]
)
def test_real_numbers_are_no_states(observations):
    with pytest.raises(ValueError, match=r"discrete states.*real numbers; use FeatureEvents"):
        StateEvents().fit([_episode(observations)])
    fitted = StateEvents().fit([_episode(np.arange(5))])
    with pytest.raises(ValueError, match="discrete states"):
        fitted.start_event(0.5)


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match=r"8001 different states, at most 8000 .*keys"):
        StateEvents().fit([_episode(np.arange(8001))])


# DeltaEvents

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
    return _episode(tree), truth


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
        _assert_streamed_like_whole(encoder, episode)


def test_changes_are_called_by_what_changed_in_the_order_they_occur():
    demos = [_episode({"log": [0, 0, 1, 2, 1, 1], "plank": [0, 0, 0, 0, 4, 3]})] * 2
    encoder = DeltaEvents().fit(demos)
    assert encoder.symbols_ == ["log+1", "plank+4 log-1", "plank-1"]
    whole = encoder.encode(demos[0])
    assert whole.start == NO_EVENT
    assert whole.events.tolist() == [-1, 0, 0, 1, 2]  # each time it occurs: no run is collapsed


def test_a_very_frequent_change_is_no_event():
    clock = np.arange(21)
    log = np.repeat([0, 1, 2], 7)
    demos = [_episode({"clock": clock, "log": log})] * 2
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
    encoder = DeltaEvents(max_events=2).fit([_episode({"clock": clock, "log": log})])
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


def test_parts_have_as_many_components_and_the_same_variance():
    rng = np.random.default_rng(0)
    tree = {
        "large": rng.normal(size=(80, 6)) * [9, 5, 3, 1, 1, 1],
        "one": rng.normal(size=80),
        "small": 1e-3 * rng.normal(size=(80, 2)),
    }
    projection = DeltaEvents(4).fit([_episode(tree)]).state()[1]["projection"]
    deltas = np.diff(np.column_stack([tree["large"], tree["one"], tree["small"]]), axis=0)
    blocks = [deltas[:, part] @ projection[part] for part in (slice(6), slice(6, 7), slice(7, 9))]
    assert [np.linalg.matrix_rank(block) for block in blocks] == [2, 1, 2]
    for block in blocks:
        assert (block**2).sum(axis=1).mean() == pytest.approx(1.0)
    # The two components of the large part are those that hold most of it.
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
        demos.append(_episode({"view": rng.normal(0, 100, (81, 40)).cumsum(axis=0), "bag": bag}))
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
    encoder = DeltaEvents(max_share=1.0).fit([_episode(tree)])
    _assert_streamed_like_whole(encoder, _episode(tree))


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
    encoder = DeltaEvents(5, max_share=1.0).fit([_episode(tree)])
    assert 0 < encoder.n_events <= 5
    _assert_streamed_like_whole(encoder, _episode(tree))
    other = {"a": rng.normal(size=(20, 3)), "b": rng.normal(size=20)}
    _assert_streamed_like_whole(encoder, _episode(other))


def _three_directions(seed, steps):
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(3), rng.integers(0, 3, steps - 3)]
    change = 10.0 * np.array([[-1, 0], [0, 1], [1, 0]])[truth] + rng.normal(0, 0.1, (steps, 2))
    return _episode(np.vstack([[0, 0], change.cumsum(axis=0)])), truth


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
    demos = [_episode({"log": np.zeros(5), "map": np.ones((5, 3))})] * 2
    encoder = DeltaEvents().fit(demos)
    assert encoder.n_events == 0
    assert encoder.symbols_ == []
    assert encoder.encode(demos[0]).events.tolist() == [-1] * 4
    # Even if it changes later: there is no event that it could be.
    later = _episode({"log": np.arange(5), "map": np.ones((5, 3))})
    assert encoder.encode(later).sequence.tolist() == []


def test_a_part_that_never_changed_does_not_disturb():
    episode, truth = _inventory(0, _RECIPES[:2])
    tree = dict(episode.observations)
    encoder = DeltaEvents(max_share=0.9).fit([episode])
    _assert_one_to_one(encoder.encode(episode).events, truth)
    # A table was never made in the demonstrations: that is no event.
    tree["table"] = tree["table"] + np.arange(len(truth) + 1)
    idle = truth == NO_EVENT
    assert set(encoder.encode(_episode(tree)).events[idle].tolist()) == {NO_EVENT}


def test_small_unsigned_numbers_go_down_too():
    episode = _episode({"log": np.array([0, 1, 0, 1, 0, 0, 1, 1], np.uint8)})
    assert DeltaEvents().fit([episode]).symbols_ == ["log+1", "log-1"]


def test_parts_of_a_vector_are_those_given():
    rng = np.random.default_rng(0)
    vector = rng.integers(0, 3, (60, 4)).cumsum(axis=0)
    as_dict = {"a": vector[:, :2], "b": vector[:, 2:]}
    a = DeltaEvents(6, parts={"a": (0, 2), "b": (2, 4)}).fit([_episode(vector)])
    b = DeltaEvents(6).fit([_episode(as_dict)])
    np.testing.assert_array_equal(
        a.encode(_episode(vector)).events, b.encode(_episode(as_dict)).events
    )


@pytest.mark.parametrize("parts", [{"a": (0, 2)}, {"a": (0, 3), "b": (2, 4)}, {"a": (0, 5)}])
def test_parts_must_cover_the_vector_once(parts):
    with pytest.raises(ValueError, match="must cover each of the 4 components once"):
        DeltaEvents(parts=parts).fit([_episode(np.zeros((5, 4)))])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("encoder", [DeltaEvents(), FeatureEvents()])
def test_values_that_are_no_numbers_are_refused(encoder, value):
    good = np.random.default_rng(0).normal(size=(9, 2))
    bad = good.copy()
    bad[4, 1] = value
    with pytest.raises(ValueError, match="NaN or infinite"):
        encoder.fit([_episode(bad)])
    encoder.fit([_episode(good)])
    with pytest.raises(ValueError, match="NaN or infinite"):
        encoder.encode(_episode(bad))
    with pytest.raises(ValueError, match="NaN or infinite"):
        encoder.transition_event(good[0], 0, 0.0, bad[4], {})


@pytest.mark.parametrize("encoder", [DeltaEvents(), FeatureEvents()])
def test_strings_are_no_numbers(encoder):
    with pytest.raises(ValueError, match=r"needs numbers.*<U1.*keys"):
        encoder.fit([_episode(np.array(list("abcd")))])


def test_strings_beside_the_named_entries_are_left_alone():
    episode, truth = _inventory(0)
    tree = {**episode.observations, "name": np.array(["x"] * (len(truth) + 1))}
    encoder = DeltaEvents(keys=_ITEMS).fit([_episode(tree)])
    _assert_one_to_one(encoder.encode(_episode(tree)).events, truth)
    _assert_streamed_like_whole(encoder, _episode(tree))


def test_many_changes_are_warned_of():
    demos = [_episode(np.repeat(np.arange(30) ** 2, 2))] * 2
    with pytest.warns(AlignRudderWarning, match="29 events: with more than about 20"):
        assert DeltaEvents(40).fit(demos).n_events == 29
    assert DeltaEvents().fit(demos).n_events == 20  # a warning here is an error


@pytest.mark.parametrize("max_samples", [1500, 20])
def test_changes_are_the_same_after_a_file(tmp_path, max_samples):
    rng = np.random.default_rng(0)
    smooth = [_episode(rng.normal(size=(50, 4)).cumsum(axis=0)) for _ in range(3)]
    counted = [_inventory(i)[0] for i in range(3)]
    for demos, options in [(counted, {}), (smooth, {"parts": {"a": (0, 2), "b": (2, 4)}})]:
        encoder = DeltaEvents(6, max_samples=max_samples, **options).fit(demos[:2])
        again = DeltaEvents(6, max_samples=max_samples, **options).fit(demos[:2])
        _assert_same_encoder(encoder, again, demos)
        _assert_same_encoder(encoder, _through_file(encoder, tmp_path / "e.npz"), demos)


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
    encoder = FeatureEvents(**options).fit([_episode(x) for x, _ in demos])
    corners = encoder.start_events(_CORNERS)
    assert sorted(corners.tolist()) == [0, 1, 2]
    assert encoder.n_events == 3
    for x, truth in [*demos, _path(7), _path(8)]:
        whole = encoder.encode(_episode(x))
        np.testing.assert_array_equal(encoder.start_events(x), corners[truth])
        assert whole.sequence.tolist() == corners.tolist()
        entered = np.flatnonzero(np.diff(truth)).tolist()
        assert np.flatnonzero(whole.events != NO_EVENT).tolist() == entered
        _assert_streamed_like_whole(encoder, _episode(x))
    episodes = [_episode(_path(9)[0])]
    _assert_same_encoder(encoder, _through_file(encoder, tmp_path / "e.npz"), episodes)
    again = FeatureEvents(**options).fit([_episode(x) for x, _ in demos])
    _assert_same_encoder(encoder, again, episodes)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_regions_are_found_among_many_features(gamma):
    # With as many features as states, where a state leads to is known too well: at the end of a
    # stay it may be taken for the next region already.
    demos = [_path(i) for i in range(4)]
    encoder = FeatureEvents(3, gamma=gamma).fit([_episode(x) for x, _ in demos])
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
    demos = [_episode(make(_path(i)[0] + [0, 50])) for i in range(3)]
    encoder = FeatureEvents(3, gamma=0.9, keys=keys).fit(demos)
    for episode in [*demos, _episode(make(_path(5)[0] + [0, 50]))]:
        assert len(encoder.encode(episode).sequence) == 3
        _assert_streamed_like_whole(encoder, episode)


def test_the_unit_of_a_feature_does_not_matter():
    scale = np.array([1.0, 1024.0])
    plain, scaled = (
        FeatureEvents(3, gamma=0.9).fit([_episode(_path(i)[0] * s) for i in range(3)])
        for s in (1.0, scale)
    )
    x = _path(5)[0]
    np.testing.assert_array_equal(plain.start_events(x), scaled.start_events(x * scale))


def test_a_vector_that_never_changes_is_one_region():
    demos = [_episode(np.ones((6, 2)))] * 2
    encoder = FeatureEvents().fit(demos)
    assert encoder.n_events == 1
    assert encoder.encode(demos[0]).sequence.tolist() == [0]


# SymbolEvents


def _sequences_of(symbols):
    return st.lists(st.lists(symbols, max_size=6), min_size=1, max_size=4)


_WORDS = st.one_of(
    _sequences_of(st.text("abc", min_size=1, max_size=2)),
    _sequences_of(st.tuples(st.integers(0, 3), st.booleans())),
    _sequences_of(st.one_of(st.integers(0, 3), st.text("ab", max_size=1), st.just(b"c"))),
)


@given(_WORDS)
@examples
def test_symbols_are_told_apart_and_come_back(sequences):
    encoder = SymbolEvents().fit_sequences(sequences)
    assert set(encoder.symbols_) == {s for sequence in sequences for s in sequence}
    assert encoder.n_events == len(encoder.symbols_)
    for sequence in sequences:
        ids = encoder.encode_sequence(sequence)
        assert [encoder.symbols_[i] for i in ids] == sequence


def test_unseen_symbols_and_none():
    encoder = SymbolEvents().fit_sequences([["b", "a"], ["c"]])
    assert encoder.symbols_ == ["a", "b", "c"]
    ids = encoder.encode_sequence(["c", "dragon", None, "a", ("x", 1)])
    assert ids.tolist() == [2, 3, -1, 0, 3]
    assert encoder.encode_sequence([]).tolist() == []
    assert encoder.encode_sequence(np.array(["b", "z"])).tolist() == [1, 3]


def test_none_is_no_symbol():
    encoder = SymbolEvents().fit_sequences([["a", None, "b"]])
    assert encoder.symbols_ == ["a", "b"]


def test_new_symbols_are_added_at_the_end():
    encoder = SymbolEvents("action").fit_sequences([["m", "n"]])
    longer = encoder.extended([["a", "n", "z"], ["a"]])
    assert longer.symbols_ == ["m", "n", "a", "z"]
    assert longer.source == "action"
    assert encoder.symbols_ == ["m", "n"]


def test_symbols_happen_each_time_at_the_step_that_reaches_them(tmp_path):
    observations = np.array(["start", "log", "log", "plank", "log"])
    episode = _episode(observations, actions=np.array([3, 5, 3, 3]))
    by_observation = SymbolEvents().fit([episode])
    assert by_observation.symbols_ == ["log", "plank"]  # the start is not reached
    assert by_observation.encode(episode).start == NO_EVENT
    assert by_observation.encode(episode).events.tolist() == [0, 0, 1, 0]
    by_action = SymbolEvents("action").fit([episode])
    assert by_action.symbols_ == [3, 5]
    assert by_action.encode(episode).events.tolist() == [0, 1, 0, 0]
    new = _episode(np.array(["log", "dragon", "log"]), actions=np.array([9, 3]))
    assert by_observation.encode(new).events.tolist() == [2, 0]
    assert by_action.encode(new).events.tolist() == [2, 0]
    for encoder in (by_observation, by_action):
        _assert_streamed_like_whole(encoder, episode)
        loaded = _through_file(encoder, tmp_path / "e.npz")
        _assert_same_encoder(encoder, loaded, [episode, new])


def test_vectors_of_numbers_are_symbols_too(tmp_path):
    episode = _episode(np.array([[0, 0], [0, 1], [1, 0], [0, 1]]))
    encoder = SymbolEvents().fit([episode])
    assert encoder.symbols_ == [(0, 1), (1, 0)]
    assert encoder.encode(episode).events.tolist() == [0, 1, 0]
    _assert_streamed_like_whole(encoder, episode)
    _assert_same_encoder(encoder, _through_file(encoder, tmp_path / "e.npz"), [episode])


@given(_WORDS)
@examples
def test_symbols_are_the_same_after_a_file(tmp_path_factory, sequences):
    encoder = SymbolEvents("action").fit_sequences(sequences)
    loaded = _through_file(encoder, tmp_path_factory.mktemp("symbols") / "e.npz")
    assert loaded.source == "action"
    assert loaded.symbols_ == encoder.symbols_
    for sequence in sequences:
        expected = encoder.encode_sequence(sequence)
        np.testing.assert_array_equal(loaded.encode_sequence(sequence), expected)


def test_sequences_may_be_the_rows_of_an_array():
    encoder = SymbolEvents().fit_sequences(np.array([[2, 7], [7, 9]]))
    assert encoder.symbols_ == [2, 7, 9]


@pytest.mark.parametrize("sequences", [[3, 4], [["a"], None]])
def test_a_sequence_that_is_none_is_named(sequences):
    with pytest.raises(ValueError, match=r"sequence [01] is (3|None); a sequence of hashable"):
        SymbolEvents().fit_sequences(sequences)


def test_wrong_symbols_are_explained():
    with pytest.raises(ValueError, match=r"source is 'reward'; one of 'observation'"):
        SymbolEvents("reward")
    with pytest.raises(ValueError, match=r"got one sequence.*a list of sequences is needed"):
        SymbolEvents().fit_sequences("abc")
    with pytest.raises(ValueError, match=r"sequence 1 holds \[1\] of type list.*not hashable"):
        SymbolEvents().fit_sequences([["a"], [[1]]])
    with pytest.raises(ValueError, match="the observation is a dict, not a symbol"):
        SymbolEvents().fit([_episode({"a": np.arange(3)})])
    with pytest.raises(ValueError, match=r"\[1\].*hashable"):
        SymbolEvents().fit_sequences([["a"]]).encode_sequence([[1]])


def test_many_symbols_are_warned_of():
    with pytest.warns(AlignRudderWarning, match="21 events"):
        SymbolEvents().fit_sequences([range(21)])
    encoder = SymbolEvents().fit_sequences([range(20)])
    with pytest.warns(AlignRudderWarning, match="22 events"):
        encoder.extended([[20, 21]])


# FunctionEvents


def _what_happened(obs, action, reward, next_obs, info):
    if info.get("lost"):
        return ("lost", int(action))
    if reward > 0:
        return "paid"
    return f"to {next_obs}" if next_obs > obs else None


def test_a_function_says_what_happened(tmp_path):
    infos = [{}, {"lost": True}, {}, {}]
    episode = _episode(np.array([0, 2, 1, 1, 5]), np.array([7, 8, 9, 9]), infos=infos)
    encoder = FunctionEvents(_what_happened).fit([episode])
    assert encoder.symbols_ == ["to 2", ("lost", 8), "paid"]
    assert encoder.encode(episode).start == NO_EVENT
    assert encoder.encode(episode).events.tolist() == [0, 1, -1, 2]
    new = _episode(np.array([0, 3, 2]), np.array([1, 1]), infos=[{}, {"lost": True}])
    assert encoder.encode(new).events.tolist() == [3, 3]
    for e in (episode, new):
        _assert_streamed_like_whole(encoder, e)
    loaded = _through_file(encoder, tmp_path / "e.npz", function=_what_happened)
    _assert_same_encoder(encoder, loaded, [episode, new])


def test_an_episode_without_infos_has_empty_ones():
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: len(info))
    episode = _episode([0, 1, 2])
    assert encoder.fit([episode]).symbols_ == [0]


def test_an_error_of_the_function_says_at_which_step():
    episode = Episode([0, 1, 2], [0, 0], [0.0, 1.0])
    with pytest.raises(ZeroDivisionError) as raised:
        FunctionEvents(lambda obs, *rest: 1 // int(1 - obs)).fit([episode])
    assert "at step 1 of an episode of 2" in raised.value.__notes__[0]


def test_numpy_symbols_of_a_function_are_plain_ones():
    episode = _episode(np.array([0, 1, 2, 1]))
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: next_obs).fit([episode])
    assert encoder.symbols_ == [1, 2]
    assert all(type(s) is int for s in encoder.symbols_)
    assert encoder.encode(episode).events.tolist() == [0, 1, 0]


def test_arrays_of_a_function_are_tuples():
    """As they are for SymbolEvents, and as `transition_event` takes them."""
    episode = _episode(np.array([[0, 0], [0, 1], [1, 0]]))
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: next_obs).fit([episode])
    assert encoder.symbols_ == [(0, 1), (1, 0)]


def test_a_function_is_needed_and_is_not_in_the_file(tmp_path):
    with pytest.raises(ValueError, match="'x' is not a function"):
        FunctionEvents("x")
    path = tmp_path / "m.npz"
    AlignRudder(_what_happened).fit([_episode(np.arange(3))] * 2).save(path)
    with pytest.raises(ValueError, match=r"not stored in the file; load it with .*function="):
        AlignRudder.load(path)
    with pytest.raises(ValueError, match=r"'x' is not a function"):
        AlignRudder.load(path, function="x")
