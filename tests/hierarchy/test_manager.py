"""The manager: it begins with the order of the alignment and learns to deviate from it."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy.agents import new_agent  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate  # noqa: E402
from align_rudder.hierarchy.manager import managed, new_manager  # noqa: E402
from align_rudder.hierarchy.ppo import PPO, new_runner_state, train_step  # noqa: E402
from align_rudder.hierarchy.resets import new_starts  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")
TASK = workshop.Workshop()
K, A = workshop.K, workshop.A


@pytest.fixture(scope="module")
def play():
    return eqx.filter_jit(evaluate)


def test_a_manager_begins_as_its_sub_agents(task, worlds, play):
    """Sure of the alignment, its episodes are those of the sub-agents."""
    whole = managed(task, workshop.WHOLE)
    key = jax.random.key(0)
    direct = play(task, workshop.WHOLE, worlds, key, 60)
    manager = new_manager(whole, jax.random.key(5), (32, 32), prior=1e3)
    found = play(whole, manager, worlds, key, 60)
    assert direct.solved.all()
    for a, b in zip(direct, found):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("prior", [0.0, 8.0])
def test_the_sub_agent_whose_turn_it_is_is_as_likely_as_the_prior_says(task, worlds, prior):
    whole = managed(task, workshop.WHOLE)
    manager = new_manager(whole, jax.random.key(5), (8,), prior=prior)
    seen = jax.vmap(TASK.observe)(worlds.state)
    for k in range(K + 1):
        subtask = jnp.full(64, k)
        logits, _ = jax.vmap(manager, (None, 0, 0, 0))(whole, seen, subtask, subtask * 0)
        turn = min(k, K - 1)
        odds = jax.nn.softmax(logits)
        others = np.delete(odds, turn, axis=1) / odds[:, turn, None]
        np.testing.assert_allclose(others, np.exp(-prior), rtol=0.1)


def test_a_choice_lets_that_sub_agent_act_or_is_an_action(task, worlds):
    whole = managed(task, workshop.WHOLE)
    keys = jax.random.split(jax.random.key(2), 64)
    seen = jax.vmap(TASK.observe)(worlds.state)
    step = jax.jit(jax.vmap(whole.step, (0, 0, None)))
    plain = jax.jit(jax.vmap(task.step, (0, 0, 0)))
    for choice in range(K + A):
        if choice < K:
            logits = jax.vmap(lambda o, k=choice: workshop.WHOLE(task, o, jnp.int32(k), 0)[0])(seen)
            action = logits.argmax(axis=1)
        else:
            action = jnp.full(64, choice - K)
        got, expected = step(keys, worlds, choice), plain(keys, worlds, action)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("choice", [0, 3])
def test_a_sub_agent_draws_from_its_own_distribution(task, choice):
    """In the middle of the field every move leads elsewhere, so that places tell actions."""
    agent = new_agent(task, jax.random.key(0), (8,), symmetric=False)
    agent = eqx.tree_at(lambda a: a.actor.out.weight, agent, agent.actor.out.weight * 100)
    whole = managed(task, agent)
    state = workshop.State(
        jnp.array([2, 2]), jnp.array([[0, 0], [4, 3], [5, 5]]), jnp.zeros(3, int), jnp.int32(0)
    )
    start = task.begin(jax.random.key(0))._replace(state=state)
    keys = jax.random.split(jax.random.key(3), 4000)
    new, _ = jax.jit(jax.vmap(whole.step, (0, None, None)))(keys, start, choice)
    moved = np.asarray(new.state.place) - 2
    actions = [np.flatnonzero((m == [*workshop.MOVES, (0, 0)]).all(axis=1))[0] for m in moved]
    logits, _ = agent(task, TASK.observe(state), jnp.int32(choice), start.position.cell)
    expected = 4000 * scipy.special.softmax(np.asarray(logits, float))
    other, _ = agent(task, TASK.observe(state), jnp.int32(1), start.position.cell)
    assert abs(jax.nn.softmax(other) * 4000 - expected).max() > 100
    assert scipy.stats.chisquare(np.bincount(actions, minlength=A), expected).pvalue > 1e-3


def test_a_manager_learns_to_do_without_a_broken_sub_agent(task, worlds, play, shown):
    """The first sub-agent fetches wood as well: it is run again in place of the second."""
    whole = managed(task, workshop.BROKEN)
    assert not play(task, workshop.BROKEN, worlds, jax.random.key(0), 60).solved.any()
    manager = new_manager(whole, jax.random.key(5), (32, 32), prior=2.0)
    before = play(whole, manager, worlds, jax.random.key(0), 60).solved.mean()
    ppo = PPO(64, 32, n_minibatches=4, learning_rate=3e-3, gamma=0.98, bc_coef=0.0, burn_in=0)
    starts = new_starts(worlds, K, 16, shown)
    runner = new_runner_state(manager, starts, ppo, 15, jax.random.key(1))
    step = eqx.filter_jit(lambda task, runner: train_step(task, ppo, 15, runner)[0])
    for _ in range(15):
        runner = step(whole, runner)
    learned = runner.train_state.agent
    after = play(whole, learned, worlds, jax.random.key(0), 60).solved.mean()
    assert after > before + 0.2
    assert after > 0.8
    seen = jax.vmap(TASK.observe)(worlds.state._replace(items=worlds.state.items.at[:, 0].set(1)))
    one = jnp.ones(64, int)
    logits, _ = jax.vmap(learned, (None, 0, 0, 0))(whole, seen, one, one)
    odds = np.asarray(jax.nn.softmax(logits).mean(axis=0))
    assert odds[0] > 2 * odds[1]
