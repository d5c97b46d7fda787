"""Event encoders in JAX: what cannot be expressed is refused; numbers of every kind are taken."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.events import NoEvents

jax = pytest.importorskip("jax")
from align_rudder.events.encoders_jax import Function, in_jax  # noqa: E402


def test_a_function_gives_the_events_of_a_model_of_symbols():
    encoder = ar.SymbolEvents().fit_sequences([["key", "door"]])
    with pytest.raises(ValueError, match=r"symbols are not numbers .* give function="):
        in_jax(encoder)
    events = in_jax(encoder, lambda obs, action, reward, next_obs, info: next_obs + action)
    assert isinstance(events, Function)
    assert int(events.transition_event(0, 3, 0.0, 4, {})) == 7
    assert int(events.start_event(0)) == -1


@pytest.mark.parametrize(
    "event", ["door", None, ("took", 1), 0.0, np.float32(1), np.zeros(2, int), jax.numpy.zeros(2)]
)
def test_a_function_of_jax_returns_an_index_and_no_symbol(event):
    encoder = ar.SymbolEvents().fit_sequences([["key", "door"]])
    events = in_jax(encoder, lambda *step: event)
    with pytest.raises(ValueError, match=r"returned .* the index of the event in model.events_.sy"):
        jax.jit(events.transition_event)(0, 3, 0.0, 4, {})


@pytest.mark.parametrize("event", [1, np.int64(1), np.uint8(1), jax.numpy.int32(1)])
def test_an_index_may_be_of_every_whole_type(event):
    encoder = ar.SymbolEvents().fit_sequences([["key", "door"]])
    found = jax.jit(in_jax(encoder, lambda *step: event).transition_event)(0, 3, 0.0, 4, {})
    assert (int(found), found.dtype) == (1, np.int32)


def test_functions_of_python_are_refused_with_what_to_do():
    demos = [ar.Episode([0, 1, 2], [0, 0], [0, 1.0])] * 2
    encoder = ar.FunctionEvents(lambda o, a, r, n, i: f"to {n}").fit(demos)
    with pytest.raises(ValueError, match=r"FunctionEvents cannot .* \('to 1', 'to 2', …\)"):
        in_jax(encoder)


def test_a_function_cannot_stand_for_states():
    encoder = ar.StateEvents().fit([ar.Episode([0, 1, 2], [0, 0], [0, 1.0])] * 2)
    with pytest.raises(ValueError, match="StateEvents take states as events"):
        in_jax(encoder, lambda *step: 0)


def test_states_of_text_and_numbers_beyond_jax_are_refused():
    texts = ar.StateEvents().fit([ar.Episode(["a", "b", "c"], [0, 0], [0, 1.0])] * 2)
    with pytest.raises(ValueError, match="states are not numbers"):
        in_jax(texts)
    large = ar.StateEvents().fit([ar.Episode([0, 2**40, 2], [0, 0], [0, 1.0])] * 2)
    with pytest.raises(ValueError, match="do not fit into int32"):
        in_jax(large)


def test_an_environment_of_another_kind_is_refused():
    demos = [ar.Episode([[0, 1], [1, 1], [2, 0]], [0, 0], [0, 1])] * 2
    for encoder in (ar.StateEvents(), ar.SymbolEvents(), ar.DeltaEvents(), ar.FeatureEvents()):
        events, three = in_jax(encoder.fit(demos)), np.array([0, 1, 2])
        with pytest.raises(ValueError, match="fitted on 2 numbers, the environment gives 3"):
            events.transition_event(three, 0, 0.0, three, {})
    events = in_jax(ar.StateEvents().fit(demos))
    with pytest.raises(ValueError, match="discrete states, the observation is float32"):
        events.start_event(np.array([0, 1], np.float32))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool, np.float32])
def test_changes_downwards_are_seen_in_every_type(dtype):
    bag = np.array([0, 1, 1, 0, 0]).astype(dtype)
    demos = [ar.Episode({"bag": bag, "other": np.arange(5) // 4}, [0] * 4, [0, 0, 0, 1.0])] * 2
    encoder = ar.DeltaEvents(keys=["bag"]).fit(demos)
    events = in_jax(encoder)
    for t in range(4):
        step = ({"bag": bag[t]}, 0, 0.0, {"bag": bag[t + 1]}, {})
        assert int(events.transition_event(*step)) == encoder.transition_event(*step)


def test_a_change_far_from_all_known_ones_is_unknown_as_in_numpy():
    log, plank = [0, 1, 2, 1, 1], [0, 0, 0, 4, 4]
    demos = [ar.Episode({"log": log, "plank": plank}, [0] * 4, [0, 0, 0, 1.0])] * 2
    for encoder in (ar.DeltaEvents().fit(demos), ar.DeltaEvents(radius=None).fit(demos)):
        events, found = in_jax(encoder), set()
        compiled = jax.jit(lambda *step, events=events: events.transition_event(*step))
        for planks in range(-9, 40):
            step = (
                {"log": np.int32(1), "plank": np.int32(0)},
                0,
                0.0,
                {"log": np.int32(0), "plank": np.int32(planks)},
                {},
            )
            event = encoder.transition_event(*step)
            assert int(compiled(*step)) == event
            found.add(event)
        assert (encoder.n_events in found) == (encoder.radius is not None)
        assert encoder.symbols_.index("plank+4 log-1") in found


@pytest.mark.parametrize("goal", [None, "difference", "distance"])
def test_regions_radius_and_goals_as_in_numpy(goal):
    rng = np.random.default_rng(0)

    def trip():
        at = np.linspace(4, 0, 30)[:, None] + rng.normal(0, 0.05, (30, 2))
        return ar.Episode(
            {"achieved_goal": at, "desired_goal": np.zeros((30, 2))}, [0] * 29, np.eye(29)[-1]
        )

    encoder = ar.FeatureEvents(4, goal=goal, gamma=0.9, n_features=8)
    encoder.fit([trip() for _ in range(4)])
    events, found = in_jax(encoder), []
    compiled = jax.jit(lambda obs: events.start_event(obs))
    for at in rng.uniform(-2, 6, (300, 1)) + rng.normal(0, 0.2, (300, 2)):
        at = at.astype(np.float32)
        obs = {"achieved_goal": at, "desired_goal": np.zeros(2, np.float32)}
        found.append((int(compiled(obs)), encoder.start_event(obs)))
    same = np.mean([a == b for a, b in found])
    assert same > 0.98  # single precision decides at edges
    assert encoder.n_events in {b for _, b in found}
    assert len({b for _, b in found}) >= 3 - (goal is None)


def test_pictures_as_in_numpy():
    pictures = np.random.default_rng(0).integers(0, 5, (12, 20, 20, 1), np.uint8)
    for t in range(12):
        pictures[t, : 5 * (1 + t // 4)] += 100
    demos = [ar.Episode(pictures, [0] * 11, np.eye(11)[-1])] * 2
    encoder = ar.FeatureEvents(3, gamma=0.9).fit(demos)
    assert "basis" in encoder.arrays_
    events = in_jax(encoder)
    for picture in pictures:
        assert int(events.start_event(picture)) == encoder.start_event(picture)
    assert int(events.start_event(pictures[0] * 0 + 255)) == encoder.n_events


def test_no_events_in_jax():
    events = in_jax(NoEvents())
    assert int(jax.jit(events.transition_event)(0, 0, 1.0, 1, {})) == -1
    assert int(events.start_event(0)) == -1
