"""Encoders together: which event counts, whole and one at a time, files, spaces, JAX."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from encoders import assert_same_encoder, assert_streamed_like_whole, episode_of, through_file
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder.events import encoder_from_state
from align_rudder.events.spaces import check_space


def trip(seed):
    """Return an episode of somebody who takes a key on the way from room to room."""
    rng = np.random.default_rng(seed)
    room = np.repeat([0, 1, 2], rng.integers(2, 6, 3))
    key = (np.arange(len(room)) >= rng.integers(1, 4)).astype(int)
    return episode_of({"at": room + rng.normal(0, 0.02, len(room)), "key": key, "room": room})


def together():
    return ar.DeltaEvents(keys=["key"]) + ar.StateEvents(keys=["room"])


def by_hand(parts, episode):
    """Return start and events of encoders together, step by step, as their docstring says."""
    first, out = 0, []
    n = sum(part.n_events for part in parts)
    steps = [[] for _ in range(len(episode) + 1)]
    for part in parts:
        raw = part.start_events(episode.observations)
        for t in range(len(episode) + 1):
            event = int(raw[t])
            if not part.collapse_runs:
                event = -1 if t == 0 else int(part.encode(episode).events[t - 1])
            elif t and event == raw[t - 1]:
                event = -1
            steps[t].append(-1 if event < 0 else n if event >= part.n_events else event + first)
        first += part.n_events
    for found in steps:
        known = [event for event in found if 0 <= event < n]
        out.append(known[0] if known else max(found))
    return out[0], out[1:]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_events_together_are_those_of_each_the_first_one_first(seed):
    encoder = together().fit([trip(seed), trip(seed + 1)])
    for episode in (trip(seed), trip(seed + 7)):
        found = encoder.encode(episode)
        assert (found.start, found.events.tolist()) == by_hand(encoder.parts, episode)
        assert_streamed_like_whole(encoder, episode)


def test_the_order_of_a_sum_decides_what_counts():
    demo = episode_of({"key": [0, 1, 1], "room": [0, 1, 1]})
    changes, states = ar.DeltaEvents(keys=["key"]), ar.StateEvents(keys=["room"])
    first = (changes + states).fit([demo, demo])
    assert [first.symbols_[e] for e in first.encode(demo).sequence] == [0, "key+1"]
    other = (states + changes).fit([demo, demo])
    assert [other.symbols_[e] for e in other.encode(demo).sequence] == [0, 1]


def test_more_than_two_are_one_sum_and_the_encoders_given_stay_as_they_are(tmp_path):
    demos = [trip(i) for i in range(4)]
    regions = ar.FeatureEvents(3, keys=["at"])
    encoder = together() + regions
    assert len(encoder.parts) == 3
    encoder.fit(demos)
    with pytest.raises(ValueError, match="not fitted"):
        regions.encode(demos[0])
    assert encoder.n_events == sum(part.n_events for part in encoder.parts)
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), demos)


def test_symbols_of_the_same_name_are_set_apart():
    demo = episode_of({"a": [0, 1, 2], "b": [0, 1, 2]})
    encoder = (ar.StateEvents(keys=["a"]) + ar.StateEvents(keys=["b"])).fit([demo, demo])
    assert encoder.symbols_ == ["0", "1", "2", "0 (2)", "1 (2)", "2 (2)"]


@pytest.mark.parametrize("part", [ar.FunctionEvents(lambda *step: None), "states"])
def test_what_cannot_be_stored_cannot_be_combined(part):
    with pytest.raises(ValueError, match="cannot be combined; combine encoders of states"):
        ar.StateEvents() + part
    with pytest.raises(ValueError, match="at least two"):
        ar.CombinedEvents([ar.StateEvents()])


def test_files_that_cannot_be_are_refused():
    header, arrays = together().fit([trip(0), trip(1)]).state()
    with pytest.raises(ValueError, match="arrays of more than the 2 encoders"):
        encoder_from_state("CombinedEvents", header, {**arrays, "7/x": np.zeros(2)})
    inside = {"kind": "CombinedEvents", **header}
    with pytest.raises(ValueError, match="encoder 0 is of CombinedEvents"):
        encoder_from_state("CombinedEvents", {"parts": [inside, inside]}, {})
    with pytest.raises(ValueError, match="events"):
        encoder_from_state("CombinedEvents", {"parts": header["parts"][:1]}, arrays)


def test_episodes_and_spaces_of_another_kind_are_refused():
    encoder = together().fit([trip(0), trip(1)])
    entries = {"key": gym.spaces.Discrete(2), "room": gym.spaces.Discrete(3)}
    check_space(encoder, gym.spaces.Dict(entries))
    with pytest.raises(ValueError, match="other shapes in"):
        check_space(encoder, gym.spaces.Dict({"key": entries["key"], "room": gym.spaces.Box(0, 1)}))
    with pytest.raises(ValueError, match=r"no \['room'\]"):
        encoder.encode(episode_of({"key": [0, 1]}))


def test_in_jax_as_in_numpy():
    jax = pytest.importorskip("jax")
    from align_rudder.episodes import tree_index
    from align_rudder.events.encoders_jax import in_jax

    demos = [trip(i) for i in range(4)]
    encoder = (together() + ar.FeatureEvents(3, keys=["at"])).fit(demos)
    events = in_jax(encoder)
    step = jax.jit(lambda obs, after: events.transition_event(obs, 0, 0.0, after, {}))
    for episode in (trip(20), trip(21)):
        rows = [
            {k: np.float32(v) if k == "at" else v for k, v in obs.items()}
            for obs in (tree_index(episode.observations, t) for t in range(len(episode) + 1))
        ]
        assert int(events.start_event(rows[0])) == encoder.start_event(rows[0])
        for obs, after in pairwise(rows):
            assert int(step(obs, after)) == encoder.transition_event(obs, 0, 0.0, after, {})
