"""PPO: its maths against NumPy, rollouts, and that it learns what can be learned."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy.cloning import Examples  # noqa: E402
from align_rudder.hierarchy.ppo import (  # noqa: E402
    PPO,
    RunnerState,
    Transition,
    collect_rollout,
    current_names,
    generalized_advantage_estimation,
    new_train_state,
    ppo_loss,
    update_agent,
    without_later,
)
from align_rudder.hierarchy.resets import new_starts  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")
K = workshop.K
NUMBERS = st.floats(-10, 10, width=32)


# Advantages

T, N = 7, 2


@settings(deadline=None, max_examples=50)
@given(
    arrays(np.float32, (T, N), elements=NUMBERS),
    arrays(np.float32, (T, N), elements=st.sampled_from([0.0, 0.5, 0.9, 1.0])),
    st.sampled_from([0.0, 0.7, 1.0]),
    arrays(np.float32, (T + 1, N), elements=NUMBERS),
)
def test_advantages_are_weighted_sums_of_errors(r_t, discount_t, lambda_, values):
    """By definition: Σ_l Π_{i ≤ l} (γ_{t+i} λ) δ_{t+l}."""
    found = _gae(r_t, discount_t, lambda_, values)
    delta = r_t + discount_t * values[1:] - values[:-1]
    expected = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            weight = 1.0
            for i in range(t, T):
                expected[t, n] += weight * delta[i, n]
                weight *= discount_t[i, n] * lambda_
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


_gae = jax.jit(generalized_advantage_estimation)


def test_with_lambda_one_advantages_are_returns_minus_values():
    """With λ = 0 they are errors of one step; beyond the end of an episode nothing counts."""
    rng = np.random.default_rng(0)
    r_t, values = rng.normal(size=(6,)), rng.normal(size=(7,))
    discount_t = np.array([0.9, 0.9, 0.0, 0.9, 0.9, 0.9])  # the third step ends an episode
    returns = np.append(np.zeros(6), values[-1])
    for t in reversed(range(6)):
        returns[t] = r_t[t] + discount_t[t] * returns[t + 1]
    found = _gae(r_t, discount_t, 1.0, values)
    np.testing.assert_allclose(found, returns[:-1] - values[:-1], rtol=1e-5)
    found = _gae(r_t, discount_t, 0.0, values)
    np.testing.assert_allclose(found, r_t + discount_t * values[1:] - values[:-1], rtol=1e-5)


def test_arrays_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"r_t \(3,\), discount_t \(3,\), values \(2,\)"):
        generalized_advantage_estimation(jnp.zeros(3), jnp.zeros(3), 0.9, jnp.zeros(3))


# The loss


class Table(eqx.Module):
    """Logits and value of each observation."""

    logits: jax.Array
    value: jax.Array

    def __call__(self, task, observation, subtask, cell):
        return self.logits[observation], self.value[observation]


def minibatch(rng, n=12):
    """Return an agent, a minibatch of an agent not far from it, and examples."""
    logits, value = rng.normal(size=(n, 3)), rng.normal(size=n)
    agent = Table(jnp.asarray(logits), jnp.asarray(value))
    zero, action = jnp.zeros(n, int), rng.integers(3, size=n)
    taken = np.take_along_axis(logits, action[:, None], 1)[:, 0]
    log_prob = taken - np.log(np.exp(logits).sum(axis=1))
    old = Transition(
        jnp.arange(n),
        zero,
        zero,
        jnp.asarray(action),
        jnp.asarray(log_prob + 0.3 * rng.normal(size=n)),
        jnp.asarray(value + 0.3 * rng.normal(size=n)),
        zero,
        zero,
    )
    advantage, target = rng.normal(size=n), rng.normal(size=n)
    examples = Examples(jnp.arange(3), zero[:3], zero[:3], jnp.asarray(action[:3]))
    return agent, (old, jnp.asarray(advantage), jnp.asarray(target)), log_prob, examples


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("value_only", [False, True])
@pytest.mark.parametrize("clip_value", [False, True])
def test_the_loss_is_that_of_numpy(seed, value_only, clip_value):
    ppo = PPO(clip_eps=0.2, vf_coef=0.7, ent_coef=0.3, bc_coef=0.4, clip_value=clip_value)
    agent, batch, log_prob, examples = minibatch(np.random.default_rng(seed))
    old, advantage, target = (jax.tree.map(lambda x: np.asarray(x, float), x) for x in batch)
    loss, parts = eqx.filter_jit(ppo_loss)(agent, None, ppo, batch, examples, value_only)

    advantage = (advantage - advantage.mean()) / advantage.std()
    policy, value = [], []
    for i in range(len(advantage)):
        ratio = np.exp(log_prob[i] - old.log_prob[i])
        clipped = min(max(ratio, 0.8), 1.2)
        policy.append(-min(ratio * advantage[i], clipped * advantage[i]))
        v = float(agent.value[i])
        near = old.value[i] + min(max(v - old.value[i], -0.2), 0.2) if clip_value else v
        value.append(max((v - target[i]) ** 2, (near - target[i]) ** 2) / 2)
    p = np.exp(np.asarray(agent.logits, float))
    p /= p.sum(axis=1, keepdims=True)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    cloning = -log_prob[:3].mean()
    expected = np.mean(policy) - 0.3 * entropy if not value_only else 0.0
    np.testing.assert_allclose(loss, expected + 0.7 * np.mean(value) + 0.4 * cloning, rtol=1e-5)
    np.testing.assert_allclose(parts, [np.mean(policy), np.mean(value), entropy], rtol=1e-5)


def test_outside_of_the_clip_nothing_is_learned():
    """Where the ratio has moved too far already, in the direction that pays, the gradient is 0."""
    ppo = PPO(clip_eps=0.2, vf_coef=0.0, ent_coef=0.0)
    agent, (old, _, target), log_prob, _ = minibatch(np.random.default_rng(1))
    up, out = np.tile([True, False], 6), np.tile([True, True, False, False], 3)
    moved = np.where(up, 1, -1) * np.where(out, 0.5, 0.05)  # log of the ratio
    old = old._replace(log_prob=jnp.asarray(log_prob - moved))
    batch = (old, jnp.asarray(np.where(up, 1.0, -1.0)), target)
    gradient = jax.jit(jax.grad(lambda agent, batch: ppo_loss(agent, None, ppo, batch)[0]))
    grads = gradient(agent, batch)
    np.testing.assert_array_equal(np.abs(grads.logits).sum(axis=1) == 0, out)
    grads = gradient(agent, (old, -batch[1], target))
    assert (np.abs(grads.logits).sum(axis=1) > 0).all()


# Updates


def bandit(rng, n=64):
    """Return a rollout in which action 2 is paid, whatever is seen."""
    action = rng.integers(3, size=(n, 1))
    zero = jnp.zeros((n, 1), int)
    batch = Transition(
        zero,
        zero,
        zero,
        jnp.asarray(action),
        jnp.full((n, 1), np.log(1 / 3)),
        jnp.zeros((n, 1)),
        jnp.asarray(action == 2, jnp.float32),
        jnp.ones((n, 1), bool),
    )
    return batch


@eqx.filter_jit
def bandit_update(ppo, state, rollout):
    return update_agent(None, ppo, 20, state, rollout, jnp.zeros(1))


def test_what_is_paid_becomes_likelier_and_its_value_known():
    ppo = PPO(n_envs=1, n_steps=64, n_minibatches=4, learning_rate=0.03, burn_in=2)
    rollout, blank = bandit(np.random.default_rng(0)), Table(jnp.zeros((1, 3)), jnp.zeros(1))
    states = [new_train_state(blank, ppo, 20, jax.random.key(0))]
    for _ in range(10):
        states.append(bandit_update(ppo, states[-1], rollout)[0])
    odds = [np.asarray(jax.nn.softmax(s.agent.logits[0])) for s in states]
    np.testing.assert_array_equal(odds[2], odds[0])  # in the burn-in only the value is learned
    assert states[2].agent.value[0] > 0
    assert odds[10][2] > 0.4 > odds[0][2]
    assert odds[3][2] > odds[0][2]
    paid = float(rollout.reward.mean())
    assert abs(states[10].agent.value[0] - paid) < 0.5 * paid


def test_the_same_seed_gives_the_same_agent():
    ppo = PPO(n_envs=1, n_steps=64, n_minibatches=4, learning_rate=0.03, burn_in=0)
    rollout, blank = bandit(np.random.default_rng(0)), Table(jnp.zeros((1, 3)), jnp.zeros(1))
    first, again, other = (
        bandit_update(ppo, new_train_state(blank, ppo, 20, jax.random.key(k)), rollout)[0].agent
        for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.logits, again.logits)
    assert (first.logits != other.logits).any()


# Rollouts


@pytest.mark.parametrize("own", [True, False])
def test_an_agent_that_learns_its_own_subtask_alone_is_paid_for_its_subgoal_alone(own):
    """Rules solve all worlds; something was gained out of its turn before they begin."""
    task = workshop.known().task
    ppo = PPO(16, 64, n_minibatches=1, fresh=1.0, own_subtask=own)
    pool = jax.tree.map(lambda x: x[:16], workshop.known().worlds)
    envs = pool._replace(pending=jnp.full(16, 5.0))
    state = SimpleNamespace(agent=workshop.WHOLE)
    runner = RunnerState(state, envs, new_starts(pool, K, 2), jax.random.key(0))

    @jax.jit
    def played():
        _, batch, _, metrics = collect_rollout(task, ppo, runner)
        return batch.reward, batch.done, batch.subtask, metrics

    reward, done, subtask, metrics = (jax.tree.map(np.asarray, x) for x in played())
    assert (metrics.reached >= 16).all()
    at_goals = reward > 0
    assert at_goals.sum() == metrics.reached.sum()
    np.testing.assert_array_equal(done, at_goals if own else at_goals & (subtask == K - 1))
    worth = ppo.reward_scale * np.asarray(task.tables.worth)[subtask]
    first = np.cumsum(at_goals, axis=0) * at_goals == 1
    extra = 0.0 if own else ppo.reward_scale * 5.0 * first
    np.testing.assert_allclose(reward, np.where(at_goals, worth + extra, 0.0), rtol=1e-5)
    # Worlds are solved one after the other, each episode ends where its last sub-goal is reached.
    assert metrics.ended == metrics.solved == metrics.solved_fresh == metrics.reached[-1]
    assert not metrics.failed.any()


def test_states_are_stored_while_a_subgoal_is_searched_for():
    """The second piece of wood is never fetched: agents walk to the left, away from the tree."""
    task, pool = workshop.known().task, jax.tree.map(lambda x: x[:16], workshop.known().worlds)

    def stored(revisit):
        ppo = PPO(16, 48, n_minibatches=1, fresh=1.0, revisit=revisit)
        state = SimpleNamespace(agent=workshop.BROKEN)
        runner = RunnerState(state, pool, new_starts(pool, K, 256), jax.random.key(0))
        starts = jax.jit(lambda: collect_rollout(task, ppo, runner)[0].starts)()
        held = jax.tree.map(lambda x: np.asarray(x[1, : starts.filled[1]]), starts.states)
        at_tree = (held.state.place == held.state.things[:, workshop.TREE]).all(axis=1)
        assert starts.filled[0] == 0  # the search for the first begins in new worlds
        assert (held.begun == 1).all()
        assert not held.idle.any()
        return at_tree

    before, found = stored(0), stored(4)
    assert before.all()
    assert found.sum() >= len(before)
    assert (~found).sum() > 5


def test_what_subgoals_are_worth_is_their_share_of_the_demonstrations():
    """Here the demonstrations reach the sub-goals one after the other, and nothing else pays."""
    worth = np.asarray(workshop.known().tables.worth)
    expected = [goal.reward for goal in workshop.known().model.subgoals_]
    np.testing.assert_allclose(worth, expected, rtol=1e-2)


# Hyper-parameters


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_envs": 0}, "n_envs is 0; a whole number of at least 1"),
        ({"gamma": 1.5}, "gamma is 1.5; a number above 0 and at most 1"),
        ({"ent_coef": float("nan")}, "ent_coef is nan; a number at least 0"),
        ({"revisit": -1}, "revisit is -1; a whole number of at least 0"),
        (
            {"n_envs": 3, "n_steps": 5, "n_minibatches": 4},
            "3 × 5 steps cannot be split into 4 equal minibatches",
        ),
    ],
)
def test_hyper_parameters_that_cannot_be_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        PPO(**wrong)


def test_names_of_version_0_1_are_known():
    old = {"n_envs": 4, "trace": 0.9, "clip": 0.1, "entropy": 0.2, "max_norm": 1.0, "cloning": 0.3}
    old |= {"epochs": 2, "minibatches": 4, "value_weight": 0.6}
    found = current_names({"seed": 3, "cloning": "kept", "ppo": old})
    assert (found["seed"], found["cloning"]) == (3, "kept")
    ppo = PPO(**found["ppo"])
    assert (ppo.gae_lambda, ppo.clip_eps, ppo.ent_coef, ppo.max_grad_norm) == (0.9, 0.1, 0.2, 1.0)
    assert (ppo.bc_coef, ppo.n_epochs, ppo.n_minibatches, ppo.vf_coef) == (0.3, 2, 4, 0.6)
    assert current_names({"ppo": found["ppo"]})["ppo"] == found["ppo"]


def test_entries_that_came_later_are_written_where_they_say_something():
    before = {"seed": 3, "goals": ["wood"], "tuning": {"steps": 9, "ppo": {"gamma": 0.9}}}
    later = {"beside": False, "tuning": {"steps": 9, "ppo": {"gamma": 0.9, "revisit": 0}}}
    assert without_later({**before, **later}) == before
    said = {"beside": True, "goals": "kinds", "ppo": {"revisit": 5, "backplay": True}}
    assert without_later(said) == said
