"""Sub-tasks in JAX: the same events, scores and rewards as in NumPy."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations

jax = pytest.importorskip("jax")
from align_rudder.hierarchy.alignment import (  # noqa: E402
    GRID,
    advance,
    delta_event,
    next_subtask,
    start_position,
    tables_of,
)
from align_rudder.redistribution import Scorer  # noqa: E402


@pytest.fixture(scope="module")
def crafting():
    model = ar.AlignRudder(ar.DeltaEvents(), strategies=1).fit(crafting_demonstrations(8))
    return model, tables_of(model)


def features(episode):
    names = sorted(episode.observations)
    return np.stack([np.asarray(episode.observations[n]) for n in names], axis=1)


def test_events_are_those_of_the_encoder(crafting):
    model, tables = crafting
    for seed in range(3):
        (episode,) = crafting_demonstrations(1, seed + 50)
        values = features(episode)
        found = jax.vmap(lambda a, b: delta_event(tables, a, b))(values[:-1], values[1:])
        np.testing.assert_array_equal(found, model.events_.encode(episode).events)


@pytest.mark.parametrize("seed", range(5))
def test_scores_cells_and_rewards_are_those_of_numpy(crafting, seed):
    """Any order of events; the scores rounded as the tables are."""
    model, tables = crafting
    rng = np.random.default_rng(seed)
    events = rng.integers(-1, model.events_.n_events + 1, 60)
    wide, bounds, _ = model.scorer_.tables
    rounded = np.round(np.maximum(wide[:-1, 1:], -50) / GRID) * GRID
    scores, cells = Scorer([rounded]).prefix_scores(events)
    assert len(bounds) == 2

    def step(position, event):
        new, gain = advance(tables, position, event)
        return new, (new.score, new.cell, gain)

    _, (s, c, gains) = jax.lax.scan(step, start_position(tables), jax.numpy.asarray(events))
    np.testing.assert_array_equal(s, scores)
    np.testing.assert_array_equal(c, cells)
    expected = np.diff(scores, prepend=0.0) * model.scale_
    np.testing.assert_allclose(gains, expected, rtol=1e-5, atol=1e-7)


def test_a_subgoal_reached_before_its_turn_is_passed_over(crafting):
    model, tables = crafting
    goals = [goal.event for goal in model.subgoals_]
    counts = np.zeros(tables.n_events, int)
    assert next_subtask(tables, counts) == 0
    table = next(k for k, event in enumerate(goals) if goals.count(event) == 1)
    counts[goals[table]] += 1
    assert next_subtask(tables, counts) == 0
    for event in goals[:table]:
        counts[event] += 1
    assert next_subtask(tables, counts) == table + 1
    counts[:] = len(goals)
    assert next_subtask(tables, counts) == len(goals)


def test_models_that_cannot_be_used_are_refused(lake_model):
    with pytest.raises(ValueError, match="DeltaEvents"):
        tables_of(lake_model)
    gapped = ar.AlignRudder(ar.DeltaEvents(), strategies=1, gap=0.1)
    with pytest.raises(ValueError, match=r"gap=0\.1"):
        tables_of(gapped.fit(crafting_demonstrations(4)))


@pytest.fixture
def lake_model(model):
    return model
