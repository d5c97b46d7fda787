"""The tracker in JAX says what the tracker in NumPy says."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tracking import KINDS, GivenEvents, fitted, of_symbols

from align_rudder import AlignRudder
from align_rudder.data.crafting import crafting_demonstrations
from align_rudder.episodes import tree_index
from align_rudder.events import Encoded
from align_rudder.redistribution import Scorer
from align_rudder.tracking import TrackerTables, track

jax = pytest.importorskip("jax")
from align_rudder import tracking_jax as twin  # noqa: E402

N, STEPS = 3, 14  # few shapes, as each is compiled
follow = jax.jit(twin.track)


@st.composite
def tracked(draw):
    """Draw tables of one to three strategies, a gap cost, and the events of an episode."""
    lengths = draw(st.sampled_from([(5,), (5, 3), (2, 5), (0, 5, 1)]))
    values = st.one_of(st.floats(-3, 3), st.integers(-3, 3), st.just(-np.inf))
    pssms, goals = [], []
    for length in lengths:
        cells = draw(st.lists(values, min_size=N * length, max_size=N * length))
        pssms.append(np.array(cells, float).reshape(N, length))
        chosen = draw(st.sets(st.integers(0, 4), max_size=length))
        goals.append(sorted(chosen & set(range(length))))
    gap = draw(st.sampled_from([0.0, 0.0, 0.01, 0.5, 2.0]))
    tables = TrackerTables.of(GivenEvents(N), Scorer(pssms, gap), draw(st.floats(0, 2)), goals)
    ids = st.one_of(st.integers(-1, N), st.sampled_from([-7, N + 1, 2**30]))
    events = draw(st.lists(ids, min_size=STEPS, max_size=STEPS))
    return tables, draw(st.integers(-1, N)), np.array(events)


def assert_same(found, expected):
    """Events, scores, cells, columns and sub-goals are equal, rewards up to single precision."""
    for name in ("event", "cell", "column", "subgoal"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_allclose(found.score, expected.score, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.reward, expected.reward, rtol=1e-5, atol=1e-6)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(tracked())
def test_events_lead_to_the_same_places(drawn):
    tables, start, events = drawn
    found = follow(twin.TrackerTables.of(tables), events, start)
    assert_same(found, track(twin.on_grid(tables), Encoded(start, events)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(tracked())
def test_the_grid_is_fine_and_its_sums_are_exact(drawn):
    tables, _, _ = drawn
    rounded = twin.on_grid(tables).scorer.tables[0]
    wide = tables.scorer.tables[0]
    finite = np.isfinite(rounded) & np.isfinite(wide)
    np.testing.assert_allclose(rounded[finite], wide[finite], atol=1e-5)
    np.testing.assert_array_equal(rounded.astype(np.float32), rounded)


@cache
def crafting():
    return AlignRudder(strategies=1).fit(crafting_demonstrations(8))


@pytest.mark.parametrize(
    "make", [crafting, lambda: of_symbols(0.0), lambda: of_symbols(0.1), lambda: fitted("states")]
)
def test_rounding_changes_no_reward_of_a_fitted_model(make):
    """It may decide ties, which in double precision fall by the order of additions."""
    model = make()
    tables, rng = twin.TrackerTables.of(model.tables_), np.random.default_rng(0)
    for _ in range(20):
        events = Encoded(-1, rng.integers(-1, model.events_.n_events + 1, 60))
        found, exact = follow(tables, events.events), track(model.tables_, events)
        assert_same(found, track(twin.on_grid(model.tables_), events))
        np.testing.assert_allclose(found.score, exact.score, atol=1e-4)
        np.testing.assert_allclose(found.reward, exact.reward, rtol=1e-4, atol=1e-5)


def test_a_long_episode_of_costs_keeps_its_place():
    """The cost of 100,000 events is beyond what single precision adds up exactly."""
    scorer = Scorer([np.array([[1.0, 0.75]])], 0.3)
    tables = TrackerTables.of(GivenEvents(1), scorer, 1.0, [[0, 1]])
    events = np.ones(100_000, int)
    events[[10, -1]] = 0
    found = follow(twin.TrackerTables.of(tables), events)
    expected = track(twin.on_grid(tables), Encoded(-1, events))
    np.testing.assert_array_equal(found.cell, expected.cell)
    np.testing.assert_allclose(found.reward, expected.reward, atol=1e-6)


def episode_in_jax(stream, episode):
    """Return the last state and the steps of an episode, one transition after the other."""
    step = jax.jit(stream.step)
    state, steps = stream.reset(tree_index(episode.observations, 0)), []
    infos = episode.infos if episode.infos is not None else [{}] * len(episode)
    for t in range(len(episode)):
        state, out = step(
            state,
            tree_index(episode.observations, t),
            tree_index(episode.actions, t),
            episode.rewards[t],
            tree_index(episode.observations, t + 1),
            infos[t],
        )
        steps.append(out)
    return state, jax.tree.map(lambda *x: np.stack(x), *steps)


@pytest.mark.parametrize("gap", [0.0, 0.02])
@pytest.mark.parametrize(
    "kind", ["states", "deltas", "features", "combined", "observations", "actions"]
)
def test_a_stream_follows_transitions_with_every_encoder(kind, gap):
    model = fitted(kind, gap)
    stream = twin.Stream(model)
    rounded = twin.on_grid(model.tables_)
    for episode in [*KINDS[kind][1](2), *KINDS[kind][1](2, seed=5)]:
        state, found = episode_in_jax(stream, episode)
        assert_same(found, track(rounded, model.encode(episode)))
        rr = model.redistribute(episode)
        np.testing.assert_allclose(found.reward, rr.rewards, atol=1e-4)
        np.testing.assert_allclose(state.ret, rr.ret, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(state.correction, rr.correction, rtol=1e-4, atol=1e-4)


def test_many_episodes_are_followed_at_once():
    model = fitted("states")
    stream = twin.Stream(model)
    episodes = KINDS["states"][1](4, seed=5)
    longest = max(len(e) for e in episodes)
    seen = np.stack([np.pad(e.observations, (0, longest - len(e)), "edge") for e in episodes])

    @jax.jit
    @jax.vmap
    def rewards(observations):
        def step(state, pair):
            state, out = stream.step(state, pair[0], 0, 0.0, pair[1], {})
            return state, out.reward

        pairs = (observations[:-1], observations[1:])
        return jax.lax.scan(step, stream.reset(observations[0]), pairs)[1]

    for found, episode in zip(rewards(seen), episodes, strict=True):
        expected = model.redistribute(episode).rewards
        np.testing.assert_allclose(found[: len(episode)], expected, atol=1e-4)
        assert not found[len(episode) :].any()
