"""Events without aligning: each kind of event is paid once, in any order."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
import workshop  # noqa: E402

from align_rudder.hierarchy.cloning import aligned_demonstrations  # noqa: E402
from align_rudder.hierarchy.manager import managed  # noqa: E402
from align_rudder.hierarchy.unordered import UnorderedTask, kinds_of  # noqa: E402

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
