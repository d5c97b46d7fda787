"""Playing only the episodes that still run comes to the same as playing all to the end."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")

import jax.numpy as jnp  # noqa: E402
from workshop import GEM, TABLE, TREE, USE, Workshop  # noqa: E402

from align_rudder.hierarchy import evaluation  # noqa: E402
from align_rudder.hierarchy.agents import new_agent  # noqa: E402
from align_rudder.hierarchy.aligned import AlignedTask  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")


class Clumsy(eqx.Module):
    """Mostly does what leads to the gem, so that episodes are of very different length."""

    def __call__(self, task, seen, subtask, cell):
        wood, tool, _ = seen["items"]
        thing = jnp.where(tool > 0, GEM, jnp.where(wood >= 2, TABLE, TREE))
        dy, dx = seen["away"][thing]
        best = jnp.where((dy == 0) & (dx == 0), USE, jnp.where(dx != 0, dx > 0, 2 + (dy > 0)))
        return jax.nn.one_hot(best, task.n_choices) * 2.5, jnp.float32(0)


@pytest.fixture(scope="module")
def played(known):
    task = AlignedTask(Workshop(max_steps=400, slip=0.2), known.tables)
    return task, evaluation.new_worlds(task, jax.random.key(1), 100)


@pytest.mark.parametrize("limit", [400, 150])
def test_leaving_out_what_is_over_changes_nothing(played, limit):
    task, worlds = played
    key, play = jax.random.key(2), eqx.filter_jit(evaluation.evaluate)
    whole = play(task, Clumsy(), worlds, key, jnp.int32(limit))
    reports = []
    parts = evaluation.play_all(
        task, Clumsy(), worlds, key, limit, reports.append, block=10, least=8
    )
    for name, a, b in zip(whole._fields, whole, parts):
        np.testing.assert_array_equal(a, b, err_msg=name)
    steps = np.asarray(whole.steps)
    assert len(np.unique(steps)) > 20
    assert reports == sorted(reports)
    assert reports[-1] == (steps < limit).sum() + np.asarray(whole.solved)[steps == limit].sum()


@pytest.mark.parametrize(("limit", "other"), [(60, "time"), (40, "given up")])
def test_each_episode_ends_in_one_way_or_is_given_up(known, played, limit, other):
    task = AlignedTask(Workshop(max_steps=60, slip=0.2), known.tables)
    play = eqx.filter_jit(evaluation.evaluate)
    found = play(task, Clumsy(), played[1], jax.random.key(2), jnp.int32(limit))
    solved = np.asarray(found.solved)
    named = np.array([*task.task.endings, "given up"])[found.ending]
    np.testing.assert_array_equal(named, np.where(solved, "gem", other))
    assert 5 < solved.sum() < 95
    np.testing.assert_array_equal(np.asarray(found.report)[:, GEM] > 0, solved)


def test_an_evaluation_stops_before_it_takes_more_steps_than_it_may(known):
    task, worlds = known.task, known.worlds
    agent = new_agent(task, jax.random.key(0), (8,), symmetric=False)
    play, key = eqx.filter_jit(evaluation.evaluate), jax.random.key(1)
    whole = play(task, agent, worlds, key, jnp.int32(60), most=jnp.int32(10**6))
    assert int(whole.steps.max()) == 60
    for most in (0, 64, 1000, 1023):
        found = play(task, agent, worlds, key, jnp.int32(60), most=jnp.int32(most))
        assert most - 64 < int(found.steps.sum()) <= most
        assert (found.steps <= whole.steps).all()
