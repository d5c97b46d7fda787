"""The parts of a training: main agent, advantages, pays, beginnings, networks."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import align_rudder as ar

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy import ppo as ppo_module  # noqa: E402
from align_rudder.hierarchy.agents import new_agent, new_separate_agents  # noqa: E402
from align_rudder.hierarchy.aligned import PAYS, AlignedState, AlignedTask, PlainTask  # noqa: E402
from align_rudder.hierarchy.cloning import clone_agent  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate  # noqa: E402
from align_rudder.hierarchy.manager import managed, new_manager  # noqa: E402
from align_rudder.hierarchy.ppo import PPO, advantages, new_learner, update  # noqa: E402
from align_rudder.hierarchy.resets import (  # noqa: E402
    begin_again,
    fill,
    new_starts,
    remember,
    watch,
)
from align_rudder.hierarchy.training import Training  # noqa: E402
from align_rudder.tracking_jax import TrackerState  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")
TASK = workshop.Workshop()
K, A = workshop.K, workshop.A


@pytest.fixture(scope="module")
def runs():
    return workshop.known().runs


@pytest.fixture(scope="module")
def model():
    return workshop.known().model


@pytest.fixture(scope="module")
def tables():
    return workshop.known().tables


@pytest.fixture(scope="module")
def task():
    return workshop.known().task


@pytest.fixture(scope="module")
def worlds():
    return workshop.known().worlds


@pytest.fixture(scope="module")
def shown():
    return workshop.known().shown


# The main agent


@pytest.fixture(scope="module")
def play():
    return eqx.filter_jit(evaluate)


def new_main(task):
    return new_manager(task, jax.random.key(5), (32, 32), prior=2.0)


def test_the_main_agent_begins_as_its_sub_agents(task, worlds, play):
    """Where it takes its likeliest choice, every episode is that of the sub-agents."""
    cold = jnp.float32(1e-3)
    whole = managed(task, workshop.WHOLE)
    key = jax.random.key(0)
    direct = play(task, workshop.WHOLE, worlds, key, 60, cold)
    found = play(whole, new_main(whole), worlds, key, 60, cold)
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


def test_the_main_agent_learns_to_do_without_a_broken_sub_agent(task, worlds, play, shown):
    """The first sub-agent fetches wood as well: it is run again in place of the second."""
    whole = managed(task, workshop.BROKEN)
    assert not play(
        task, workshop.BROKEN, worlds, jax.random.key(0), 60, jnp.float32(1)
    ).solved.any()
    manager = new_main(whole)
    before = play(whole, manager, worlds, jax.random.key(0), 60, jnp.float32(1)).solved.mean()
    ppo = PPO(64, 32, minibatches=4, learning_rate=3e-3, gamma=0.98, cloning=0.0, burn_in=0)
    starts = fill(new_starts(worlds, K, 16), shown.states, shown.reached)
    learner = new_learner(manager, starts, ppo, 15, jax.random.key(1))
    step = eqx.filter_jit(lambda task, learner: update(task, ppo, 15, learner))
    for _ in range(15):
        learner, _ = step(whole, learner)
    after = play(whole, learner.agent, worlds, jax.random.key(0), 60, jnp.float32(1)).solved.mean()
    assert after > before + 0.2
    assert after > 0.8
    seen = jax.vmap(TASK.observe)(worlds.state._replace(items=worlds.state.items.at[:, 0].set(1)))
    one = jnp.ones(64, int)
    logits, _ = jax.vmap(learner.agent, (None, 0, 0, 0))(whole, seen, one, one)
    odds = np.asarray(jax.nn.softmax(logits).mean(axis=0))
    assert odds[0] > 2 * odds[1]


# Advantages


@jax.jit
def advantages_of(reward, value, ended, last):
    return advantages(reward, value, ended, last, PPO(gamma=0.9, trace=0.7))


numbers = st.floats(-10, 10, width=32)


@settings(deadline=None, max_examples=50)
@given(
    arrays(np.float32, (7, 2), elements=numbers),
    arrays(np.float32, (8, 2), elements=numbers),
    arrays(bool, (7, 2)),
)
def test_advantages_are_weighted_sums_of_errors(reward, value, ended):
    """By definition: Σ_l (γλ)^l δ_{t+l}, up to the end of the episode."""
    found = advantages_of(reward, value[:-1], ended, value[-1])
    expected = np.zeros((7, 2))
    for n in range(2):
        for t in range(7):
            weight = 1.0
            for i in range(t, 7):
                following = 0.0 if ended[i, n] else value[i + 1, n]
                expected[t, n] += weight * (reward[i, n] + 0.9 * following - value[i, n])
                weight *= 0.9 * 0.7
                if ended[i, n]:
                    break
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("own", [True, False])
def test_an_agent_that_learns_its_own_subtask_alone_is_paid_for_its_subgoal_alone(
    task, worlds, own
):
    """Rules solve all worlds; something was gained out of its turn before they begin."""
    ppo = PPO(16, 64, minibatches=1, fresh=1.0, own_subtask=own)
    pool = jax.tree.map(lambda x: x[:16], worlds)
    some = pool._replace(pending=jnp.full(16, 5.0))
    learner = SimpleNamespace(agent=workshop.WHOLE, envs=some, starts=new_starts(pool, K, 2))
    learner.key, learner._replace = jax.random.key(0), lambda **new: SimpleNamespace(**new)

    @jax.jit
    def played():
        _, batch, _, metrics = ppo_module._play(task, ppo, learner)
        return batch.reward, batch.ended, batch.subtask, metrics

    reward, ended, subtask, metrics = (jax.tree.map(np.asarray, x) for x in played())
    assert (metrics.reached >= 16).all()
    at_goals = reward > 0
    assert at_goals.sum() == metrics.reached.sum()
    np.testing.assert_array_equal(ended, at_goals if own else at_goals & (subtask == K - 1))
    worth = ppo.reward_scale * np.asarray(task.tables.worth)[subtask]
    first = np.cumsum(at_goals, axis=0) * at_goals == 1
    extra = 0.0 if own else ppo.reward_scale * 5.0 * first
    np.testing.assert_allclose(reward, np.where(at_goals, worth + extra, 0.0), rtol=1e-5)


def test_what_subgoals_are_worth_is_their_share_of_the_demonstrations(model, task):
    """Here the demonstrations reach the sub-goals one after the other, and nothing else pays."""
    worth = np.asarray(task.tables.worth)
    np.testing.assert_allclose(worth, [goal.reward for goal in model.subgoals_], rtol=1e-2)


def test_agents_for_their_own_subtask_cannot_be_paid_for_something_else():
    with pytest.raises(ValueError, match=r"own_subtask .* pay='task' cannot"):
        Training(ppo=PPO(own_subtask=True), pay="task")


# Pays


@pytest.fixture(scope="module")
def replayed(tables):
    """Noisy runs, some of them in vain, as every pay sees them; and their actions."""
    runs = [workshop.play(TASK, 100 + i, noise=0.2 + 0.1 * i) for i in range(6)]
    tasks = {pay: AlignedTask(TASK, tables, pay) for pay in PAYS}
    tasks |= {f"plain {pay}": PlainTask(TASK, tables, pay) for pay in PAYS}

    @jax.jit
    def replay(state, actions):
        def step(carry, action):
            steps = {n: t.step(jax.random.key(0), carry[n], action) for n, t in tasks.items()}
            return {n: s for n, (s, _) in steps.items()}, steps

        start = {n: t.begin(jax.random.key(0))._replace(state=state) for n, t in tasks.items()}
        return jax.lax.scan(step, start, actions)[1]

    out = []
    for states, actions in runs:
        first = jax.tree.map(lambda x: x[0], states)
        padded = np.pad(actions, (0, TASK.max_steps - len(actions)))
        whole, n = replay(first, padded), len(actions)
        out.append((states, actions, jax.tree.map(lambda x, n=n: x[:n], whole)))
    assert {bool(states.items[-1, workshop.GEM]) for states, _, _ in out} == {True, False}
    return out


def test_gains_are_the_redistributed_reward(replayed, model):
    for states, actions, found in replayed:
        rewards = np.zeros(len(actions))
        rewards[-1] = states.items[-1, workshop.GEM] > 0
        observations = {n: states.items[:, i] for i, n in enumerate(workshop.FEATURES)}
        episode = ar.Episode(observations, actions, rewards, terminated=True)
        expected = model.redistribute(episode).rewards
        _, out = found["step"]
        np.testing.assert_allclose(out.gain, expected, atol=2e-3)
        np.testing.assert_array_equal(out.gain > 1e-6, expected > 1e-6)
        np.testing.assert_array_equal(out.reward, out.gain)


def test_subgoals_pay_what_was_pending(replayed):
    """At any time, what was paid and what is pending is what was given."""
    for _, _, found in replayed:
        s, out = found["subgoal"]
        paid = np.cumsum(out.reward)
        np.testing.assert_allclose(paid + s.pending, s.given, atol=1e-6)
        np.testing.assert_allclose(s.given, np.cumsum(found["step"][1].reward), atol=1e-6)
        assert not out.reward[~out.reached].any()
        assert not s.pending[out.reached].any()
        assert (out.reward[out.reached] > 0).all()


def test_the_task_pays_once_and_goals_pay_the_same(replayed):
    for states, _, found in replayed:
        solved = float(states.items[-1, workshop.GEM] > 0)
        for pay in ("task", "plain task"):
            reward = np.asarray(found[pay][1].reward)
            assert reward[-1] == solved
            assert not reward[:-1].any()
        s, out = found["goals"]
        np.testing.assert_allclose(np.cumsum(out.reward), s.subtask / K, rtol=1e-6)


def test_a_plain_task_knows_no_subgoals(replayed):
    for _, _, found in replayed:
        for pay in ("subgoal", "step", "goals"):
            s, out = found[f"plain {pay}"]
            assert not out.reward.any()
            assert not out.reached.any()
            assert not s.subtask.any()
        np.testing.assert_array_equal(found["plain dense"][1].reward, found["dense"][1].reward)
        assert found["dense"][1].reward.any()


def test_an_episode_without_progress_is_cut_off(task, worlds):
    impatient = AlignedTask(TASK, task.tables, patience=5)

    def step(s, _):
        new, out = impatient.step(jax.random.key(0), s, 0)
        return new, out.cut

    start = jax.tree.map(lambda x: x[0], worlds)
    _, cut = jax.lax.scan(step, start, None, 7)
    assert cut.tolist() == [False] * 4 + [True] * 3


# Where episodes begin


def numbered(numbers, subtask):
    """States told apart by their numbers."""
    numbers = jnp.asarray(numbers)
    n = len(numbers)
    zero, none = jnp.zeros(n), jnp.zeros(n, jnp.int32)
    subtask = jnp.broadcast_to(jnp.asarray(subtask, jnp.int32), (n,))
    position = TrackerState(jnp.zeros((n, 1, 3)), zero, none, zero, none, subtask)
    return AlignedState(numbers, position, jnp.zeros((n, 2), bool), zero, zero, none + 7, none)


def held(starts, k):
    return np.asarray(starts.states.state)[k, : int(starts.filled[k])].tolist()


def test_demonstrations_fill_the_buffers_with_where_subtasks_begin(task, shown, runs, worlds):
    starts = fill(new_starts(worlds, K, 4), shown.states, shown.reached)
    assert starts.filled.tolist() == [0, 4, 4, 4]
    items = np.asarray(starts.states.state.items)
    for k, expected in ((1, [1, 0, 0]), (2, [2, 0, 0]), (3, [0, 1, 0])):
        assert (items[k] == expected).all()
        np.testing.assert_array_equal(starts.states.begun[k], k)
        np.testing.assert_array_equal(starts.states.subtask[k], k)
        assert starts.states.reached[k].sum(axis=1).tolist() == [k] * 4
        assert not starts.states.pending[k].any()
        assert not starts.states.idle[k].any()
    # The first state of each demonstration's second sub-task, in their order.
    first = [states.time[np.flatnonzero(states.items[:, 0] == 1)[0]] for states, _ in runs]
    assert starts.states.state.time[1].tolist() == first[:4]


def test_a_buffer_takes_only_states_that_just_reached_its_subtask():
    starts = new_starts(numbered([-1, -2], 0), 3, 4)
    s = numbered(range(10), [0, 1, 2, 3, 1, 2, 1, 1, 1, 1])
    reached = jnp.array([0, 1, 1, 1, 1, 0, 1, 1, 1, 0], bool)
    full = fill(starts, s, reached)
    assert [held(full, k) for k in range(3)] == [[], [1, 4, 6, 7], [2]]
    again = fill(full, s, reached)
    assert [held(again, k) for k in range(3)] == [[], [1, 4, 6, 7], [2, 2]]


def test_a_full_buffer_forgets_at_random():
    starts = new_starts(numbered([-1], 0), 3, 4)
    store = jax.jit(remember)
    lost = set()
    for t in range(60):
        s = numbered(np.arange(6) + 100 * t, [1, 1, 1, 2, 2, 0])
        reached = jnp.array([1, 1, 0, t % 2, 0, 0], bool)
        before = held(starts, 1)
        starts = store(starts, jax.random.key(t), s, reached)
        after = held(starts, 1)
        new = set(after) - set(before)
        assert len(after) == min(t + 1, 4)
        assert len(new) == 1
        assert new < {100 * t, 100 * t + 1}
        if t >= 4:
            lost |= {before.index(x) for x in set(before) - set(after)}
        assert all(x % 100 == 3 and x // 100 % 2 for x in held(starts, 2))
    assert lost == {0, 1, 2, 3}
    assert starts.filled.tolist() == [0, 4, 4]
    assert not starts.states.idle[1].any()
    assert (starts.states.begun[2] == 2).all()


@pytest.fixture(scope="module")
def stored():
    """Buffers 1 and 3 of five have 2 and 3 states; the pool has numbers below zero."""
    starts = new_starts(numbered([-1, -2, -3], 0), 5, 4)
    s = numbered([10, 11, 30, 31, 32], [1, 1, 3, 3, 3])
    starts = fill(starts, s, jnp.ones(5, bool))
    return starts._replace(failure=jnp.array([1.0, 0.15, 1.0, 0.55, 1.0]))


def test_failing_subtasks_are_begun_more_often_and_empty_ones_never(stored):
    n = 6000
    s = numbered(np.full(n, 99), 4)
    ended = jnp.arange(n) % 3 > 0
    found = jax.jit(begin_again)(stored, jax.random.key(0), s, ended, jnp.float32(0.4))
    assert (found.state[~ended] == 99).all()
    drawn = np.asarray(found.state[ended])
    weights = {1: 0.2 / 0.8 * 0.6, 3: 0.6 / 0.8 * 0.6}
    expected = {-1: 0.4 / 3, -2: 0.4 / 3, -3: 0.4 / 3}
    expected |= {10: weights[1] / 2, 11: weights[1] / 2}
    expected |= dict.fromkeys((30, 31, 32), weights[3] / 3)
    values, counts = np.unique(drawn, return_counts=True)
    assert set(values) == set(expected)
    shares = [expected[v] * len(drawn) for v in values]
    assert scipy.stats.chisquare(counts, shares).pvalue > 1e-3


@pytest.mark.parametrize("empty", [True, False])
def test_new_worlds_alone_if_asked_for_or_nothing_is_stored(stored, empty):
    starts = new_starts(stored.pool, 5, 4) if empty else stored
    s = numbered(np.full(500, 99), 4)
    fresh = jnp.float32(0.0 if empty else 1.0)
    found = begin_again(starts, jax.random.key(0), s, jnp.ones(500, bool), fresh)
    assert set(found.state.tolist()) == {-1, -2, -3}


def test_failures_are_followed_slowly(stored):
    reached, failed = jnp.array([0, 3, 0, 0, 5]), jnp.array([0, 1, 4, 0, 0])
    found = watch(stored, reached, failed).failure
    expected = [1.0, 0.15 + 0.1 * (0.25 - 0.15), 1.0, 0.55, 0.9]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    starts = stored
    for _ in range(100):
        starts = watch(starts, reached, failed)
    np.testing.assert_allclose(starts.failure, [1, 0.25, 1, 0.55, 0], atol=1e-4)


# Networks


@pytest.mark.parametrize("main", [False, True])
def test_in_a_mirrored_world_the_mirrored_is_done(task, worlds, main):
    played = managed(task, workshop.WHOLE) if main else task
    agent = new_agent(played, jax.random.key(0), (16,), prior=1.0 if main else None)
    seen = jax.vmap(TASK.observe)(worlds.state)
    k = jnp.arange(64) % (K + 1)

    @jax.jit
    def judge(seen):
        return jax.vmap(agent, (None, 0, 0, 0))(played, seen, k, k)

    logits, values = judge(seen)
    assert np.asarray(logits).std(axis=0).min() > 1e-4
    for m, actions in enumerate(np.asarray(TASK.mirrored_actions)):
        mirrored = jax.vmap(lambda o, m=m: TASK.mirror(o, jnp.int32(m)))(seen)
        choices = [*range(K), *(K + actions)] if main else actions
        there, value = judge(mirrored)
        np.testing.assert_allclose(there[:, choices], logits, atol=1e-6)
        np.testing.assert_allclose(value, values, atol=1e-5)
    lopsided = new_agent(played, jax.random.key(0), (16,), False, prior=agent.prior)
    there, _ = jax.vmap(lopsided, (None, 0, 0, 0))(played, mirrored, k, k)
    here, _ = jax.vmap(lopsided, (None, 0, 0, 0))(played, seen, k, k)
    assert abs(there[:, choices] - here).max() > 1e-4


@pytest.fixture(scope="module")
def separate(task):
    return new_separate_agents(task, jax.random.key(0), (8,))


def test_separate_agents_are_networks_of_their_own(task, worlds, separate):
    seen = jax.tree.map(lambda x: x[0], jax.vmap(TASK.observe)(worlds.state))
    values = []
    for k in range(K + 1):
        one = jax.tree.map(lambda x, k=k: x[min(k, K - 1)], separate.agents)
        found = separate(task, seen, jnp.int32(k), jnp.int32(2))
        expected = one(task, seen, jnp.int32(k), jnp.int32(2))
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        values.append(float(found[1]))
    assert len(set(values)) == K + 1


def test_a_step_teaches_only_the_network_of_its_subtask(task, worlds, separate):
    seen = jax.tree.map(lambda x: x[0], jax.vmap(TASK.observe)(worlds.state))

    @eqx.filter_jit
    def gradient(agents, subtask):
        def loss(agents):
            logits, value = agents(task, seen, subtask, jnp.int32(0))
            return jax.nn.log_softmax(logits)[1] + value**2

        return eqx.filter_grad(loss)(agents)

    for k in range(K):
        for leaf in jax.tree.leaves(gradient(separate, jnp.int32(k))):
            touched = np.asarray(leaf).reshape(K, -1).any(axis=1)
            assert not np.delete(touched, k).any()
        out = gradient(separate, jnp.int32(k)).agents
        assert out.actor.out.weight[k].any()
        assert out.critic.out.weight[k].any()


@pytest.mark.parametrize("updates", [7, 30])
def test_cloning_makes_all_the_updates_asked_for_and_fits(task, shown, updates):
    agent = new_agent(task, jax.random.key(0), (16,), symmetric=False)
    fit = eqx.filter_jit(clone_agent)
    _, curve = fit(task, agent, shown.examples, jax.random.key(1), updates, learning_rate=1e-2)
    assert curve[-1, 0] == updates
    assert len(curve) <= 20
    assert (curve[-1, 1 : K + 1] < curve[0, 1 : K + 1]).all()
