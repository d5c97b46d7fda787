"""Sub-goals in any order: of an alignment, or each kind of event once."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
import workshop  # noqa: E402

from align_rudder.hierarchy.cloning import aligned_demonstrations  # noqa: E402
from align_rudder.hierarchy.manager import managed  # noqa: E402
from align_rudder.hierarchy.unordered import (  # noqa: E402
    UnorderedTask,
    checklist_of,
    kinds_of,
)

WOOD, TOOL, GEM = [1, 0, 0], [-2, 1, 0], [0, 0, 1]


@pytest.fixture(scope="module")
def unordered(known):
    tables, symbols = kinds_of(known.model)
    return UnorderedTask(workshop.Workshop(), tables), symbols


@pytest.mark.parametrize(
    ("changes", "paid"),
    [
        ([WOOD, WOOD, TOOL, GEM], [1, 0, 1, 1]),  # the second piece of wood is no new kind
        ([WOOD, GEM, WOOD, TOOL], [1, 1, 0, 1]),  # out of order is as good
        ([WOOD, [0, 0, 0], WOOD], [1, 0, 0]),
    ],
)
def test_each_kind_is_paid_once_in_any_order(unordered, changes, paid):
    task, symbols = unordered
    assert sorted(symbols) == ["gem+1", "tool+1 wood-2", "wood+1"]
    s, features = task.start(None), np.cumsum([[0, 0, 0], *changes], axis=0)
    for t, expected in enumerate(paid):
        s, out = task.follow(s, features[t], features[t + 1])
        assert float(out.reward) == pytest.approx(expected / 3)
        assert bool(out.reached) == bool(expected)
        assert int(s.subtask) == int(s.position.cell) == sum(paid[: t + 1])
        assert int(s.idle) == (0 if expected else int(s.idle))
    assert int(s.reached.sum()) == sum(paid)


@pytest.mark.parametrize(
    ("changes", "ticked", "following"),
    [
        ([WOOD, WOOD, TOOL, GEM], [0, 1, 2, 3], [1, 2, 3, 4]),
        ([WOOD, WOOD, WOOD, TOOL], [0, 1, -1, 2], [1, 2, 2, 3]),  # a third piece is nothing new
        ([GEM, WOOD, TOOL, WOOD], [3, 0, 2, 1], [0, 1, 1, 4]),  # out of order: all are paid
    ],
)
def test_a_checklist_is_ticked_off_in_any_order_and_tells_what_is_open(
    known, changes, ticked, following
):
    task = UnorderedTask(workshop.Workshop(), checklist_of(known.model))
    worth = [goal.reward for goal in known.model.subgoals_]
    assert len(worth) == workshop.K
    s, features = task.start(None), np.cumsum([[0, 0, 0], *changes], axis=0)
    for t, (goal, subtask) in enumerate(zip(ticked, following)):
        before = int(s.subtask)
        s, out = task.follow(s, features[t], features[t + 1])
        assert (int(out.goal), int(s.subtask)) == (goal, subtask)
        assert float(out.reward) == pytest.approx(worth[goal] if goal >= 0 else 0.0)
        assert bool(out.reached) == (subtask > before)
        assert int(s.position.cell) == int(s.reached.sum()) == sum(g >= 0 for g in ticked[: t + 1])
    assert float(s.given) == pytest.approx(sum(worth[goal] for goal in ticked if goal >= 0))


def test_a_manager_follows_kinds_as_its_agents_do(unordered):
    task, _ = unordered
    whole, state = managed(task, workshop.WHOLE), workshop.known().worlds.state
    assert whole.n_choices == task.n_subtasks + workshop.A
    step = jax.jit(jax.vmap(whole.step, (0, 0, None)))
    s = jax.vmap(whole.start)(state)
    keys = jax.random.split(jax.random.key(0), 64)
    for _ in range(2 * workshop.SIZE):  # agent 0 fetches wood
        s, _ = step(keys, s, 0)
    assert (np.asarray(s.state.items)[:, 0] > 1).any()
    assert np.asarray(s.given) == pytest.approx(1 / 3)
    assert set(np.asarray(s.subtask).tolist()) == {1}


def test_demonstrations_fill_its_positions(unordered, known):
    task, _ = unordered
    shown = aligned_demonstrations(task, known.runs)
    ends = np.cumsum([len(actions) + 1 for _, actions in known.runs]) - 1
    np.testing.assert_array_equal(shown.states.subtask[ends], 3)
    assert np.bincount(shown.states.subtask[np.asarray(shown.reached)]).tolist() == [0, 6, 6, 6]


def test_kinds_that_few_demonstrations_hold_are_not_paid(known):
    with pytest.raises(ValueError, match="is in 110% of the demonstrations; give a smaller"):
        kinds_of(known.model, 1.1)


def test_models_of_other_events_have_no_kinds(model):
    with pytest.raises(ValueError, match="DeltaEvents, not StateEvents"):
        kinds_of(model)
