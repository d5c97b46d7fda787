"""Baselines: the sum tree against brute force, each update by hand, and what each can learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from toys import TAXI, paid_at_the_end, toy

import align_rudder as ar
from align_rudder.baselines import Protocol, TabularMDP
from align_rudder.baselines.dqfd import descend, learn_dqfd, targets
from align_rudder.baselines.gail import (
    advantages,
    discriminate,
    imitation_reward,
    learn_gail,
    policy_step,
    softmax,
)
from align_rudder.baselines.kernels import seeded, uniform
from align_rudder.baselines.replay import find, new_tree, next_slot, put, store
from align_rudder.baselines.sqil import learn_sqil, soft_backup, soft_value
from align_rudder.tasks import RoomsEnv

LEARNERS = [learn_dqfd, learn_sqil, learn_gail]


def corridor(n, horizon=50):
    """Return a corridor of n states, paid 1 at its right end, and two walks along it."""
    outcomes = [
        [[(1.0, max(s - 1, 0), 0.0, False)], [(1.0, s + 1, float(s == n - 2), s == n - 2)]]
        for s in range(n - 1)
    ]
    outcomes.append([[(1.0, n - 1, 0.0, True)]] * 2)
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(n)[0], horizon)
    walk = ar.Episode(np.arange(n), [1] * (n - 1), np.eye(n - 1)[-1])
    return mdp, [walk] * 2


@pytest.fixture(scope="module")
def rooms():
    env = RoomsEnv(4)
    return env, env.demonstrations(5, seed=1)


priorities = st.floats(0.0, 1e6, allow_subnormal=False) | st.just(0.0)


@given(
    size=st.integers(1, 700),
    changes=st.lists(st.tuples(st.integers(0, 10**6), priorities), min_size=1, max_size=60),
    us=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_the_tree_finds_what_cumulative_sums_find(size, changes, us):
    tree, plain = new_tree(size), np.zeros(size)
    for i, p in changes:
        put(tree, i % size, p)
        plain[i % size] = p
    np.testing.assert_array_equal(tree[0][:size], plain)
    ends = np.cumsum(plain)
    np.testing.assert_allclose(tree[0][-1], ends[-1], rtol=1e-12)
    if ends[-1] == 0:
        return
    for u in us:
        u *= ends[-1]
        i = find(tree, u)
        assert plain[i] > 0
        # The two add in different orders: u may lie beyond the leaf by a rounding error.
        slack = 1e-12 * ends[-1]
        assert ends[i] - plain[i] - slack <= u <= ends[i] + slack


@given(
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=300).filter(any),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_whole_priorities_are_found_exactly(weights, data):
    """Whole numbers add up without rounding: the leaf of every u is known."""
    tree = new_tree(len(weights))
    for i, p in enumerate(weights):
        put(tree, i, float(p))
    ends = np.cumsum(weights)
    u = data.draw(st.integers(0, int(ends[-1]) - 1)) + data.draw(st.sampled_from([0.0, 0.5]))
    assert find(tree, u) == np.searchsorted(ends, u, side="right")


def test_the_end_of_the_tree_is_its_last_positive_priority():
    tree = new_tree(200)
    for i in (3, 77, 150):
        put(tree, i, 0.1)
    assert find(tree, tree[0][-1]) == find(tree, np.inf) == 150
    put(tree, 150, 0.0)
    assert find(tree, np.inf) == 77


def test_sampling_frequencies_follow_the_priorities():
    rng, tree = seeded(1), new_tree(100)
    p = np.random.default_rng(0).random(100) ** 3
    p[::7] = 0.0
    for i in range(100):
        put(tree, i, p[i])
    n = 40_000
    counts = np.bincount([find(tree, uniform(rng) * tree[0][-1]) for _ in range(n)], minlength=100)
    expected = n * p / p.sum()
    assert (counts[p == 0] == 0).all()
    positive = p > 0
    chi2 = ((counts - expected)[positive] ** 2 / expected[positive]).sum()
    assert chi2 < 130  # 85 degrees of freedom: exceeded by chance once in a thousand


def test_sums_do_not_drift():
    tree, rng = new_tree(1000), np.random.default_rng(0)
    for i in rng.integers(0, 1000, 20_000):
        put(tree, i, 10.0 ** rng.uniform(-9, 9))
    for i in range(1000):
        put(tree, i, 1e-9)
    np.testing.assert_allclose(tree[0][-1], 1e-6, rtol=1e-12)


@given(kept=st.integers(0, 5), capacity=st.integers(1, 7), n=st.integers(1, 40))
@settings(deadline=None)
def test_the_newest_are_stored_and_demonstrations_stay(kept, capacity, n):
    cursor, slots = np.zeros(1, np.int64), np.full(kept + capacity, -1)
    for step in range(n):
        slots[next_slot(cursor, kept, capacity)] = step
    assert (slots[:kept] == -1).all()
    newest = set(range(max(n - capacity, 0), n))
    assert set(slots[kept:]) - {-1} == newest


def stored(states, actions, rewards, n_step):
    """Return links and gains of a whole episode; the last state is −1 where it ended."""
    n = len(actions)
    links, gains = np.zeros((n, 4), np.int32), np.zeros((n, 2))
    returns = np.concatenate([[0.0], np.cumsum(rewards)])
    for t in range(n):
        store(links, gains, t, np.array(states), np.array(actions), returns, t, n, n_step)
    return links, gains


def test_n_step_returns_stop_at_the_end():
    links, gains = stored([5, 6, 7, 8, -1], [0, 1, 0, 1], [1.0, 2.0, 4.0, 8.0], 3)
    np.testing.assert_array_equal(
        links, [[5, 0, 6, 8], [6, 1, 7, -1], [7, 0, 8, -1], [8, 1, -1, -1]]
    )
    np.testing.assert_array_equal(gains, [[1, 7], [2, 14], [4, 12], [8, 8]])
    q = np.zeros((9, 2))
    q[6:9, 1] = [0.5, 0.25, 0.125]
    assert targets(q, links, gains, 0) == (1.5, 7.125)
    assert targets(q, links, gains, 1) == (2.25, 14.0)
    assert targets(q, links, gains, 3) == (8.0, 8.0)


def test_the_dqfd_loss_goes_down_its_slope():
    """Against the slope of the loss, written out and taken by differences."""

    def loss(q, a, one, many, weights, margin):
        bound = q[0] + margin * (np.arange(3) != a)
        errors = 0.5 * np.array([(one - q[0, a]) ** 2, (many - q[0, a]) ** 2])
        return (
            weights[0] * errors[0] + weights[1] * errors[1] + weights[2] * (bound.max() - q[0, a])
        )

    q = np.array([[0.5, 0.2, 0.6]])
    for a, margin in ((0, 0.8), (1, 0.8), (2, 0.05)):
        weights, step, h = (0.7, 0.3, 0.5), 0.01, 1e-6
        slope = np.array(
            [
                loss(q + d, a, 1.0, 2.0, weights, margin)
                - loss(q - d, a, 1.0, 2.0, weights, margin)
                for d in (h * np.eye(3))
            ]
        ) / (2 * h)
        after = q.copy()
        error = descend(after, 0, a, (1.0, 2.0), weights, margin, step)
        assert error == 1.0 - q[0, a]
        np.testing.assert_allclose(after[0], q[0] - step * slope, atol=1e-8)


def test_the_margin_by_hand():
    q = np.array([[0.5, 0.2, 0.6]])
    descend(q, 0, 0, (0.5, 0.5), (1.0, 1.0, 1.0), 0.8, 0.1)
    np.testing.assert_allclose(q, [[0.6, 0.2, 0.5]])
    # A lead of the margin is enough; without a margin there is nothing to lead by.
    for margin, values in ((0.8, [[1.5, 0.2, 0.6]]), (0.0, [[0.5, 0.2, 0.6]])):
        q = np.array(values)
        descend(q, 0, 0, (q[0, 0], q[0, 0]), (1.0, 1.0, 1.0), margin, 0.1)
        np.testing.assert_array_equal(q, values)


def test_dqfd_pretraining_reaches_the_margin():
    """With the margin alone the demonstrated action leads by it, before any episode."""
    mdp, demos = corridor(6)
    result = learn_dqfd(
        mdp,
        demos,
        margin=0.5,
        pretraining_steps=2000,
        pretraining_weights=(0.0, 0.0, 1.0),
        weights=(0.0, 0.0, 0.0),
        protocol=Protocol(max_episodes=10),
    )
    lead = result.q[:5, 1] - result.q[:5, 0]
    assert (lead >= 0.5 - 1e-9).all()
    assert (lead < 0.53).all()


def test_dqfd_finds_the_value_of_a_corridor():
    mdp, demos = corridor(5)
    for n_step in (1, 3):
        result = learn_dqfd(
            mdp,
            demos,
            learning_rate=0.1,
            n_step=n_step,
            weights=(1.0, 1.0, 0.0),
            protocol=Protocol(max_episodes=300, target=2.0),
        )
        np.testing.assert_allclose(result.q[:4, 1], 1.0, atol=0.02)


def soft_iteration(r, p, gamma, temperature, ends, end_value):
    """Return the fixed point of the soft Bellman equation by plain iteration."""
    q = np.zeros(r.shape)
    for _ in range(3000):
        v = temperature * logsumexp(q / temperature, axis=1)
        q = r + gamma * np.where(ends, end_value, v[p])
    return q


def test_soft_backups_have_the_fixed_point_of_soft_value_iteration():
    gamma, temperature, end_values = 0.9, 0.5, np.array([0.0, 0.0, 0.0, 3.0])
    following = np.array([[0, 1], [0, 2], [1, 3], [3, 3]])
    ends = np.array([[0, 0], [0, 0], [0, 1], [1, 1]], bool)
    rewards = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    expected = soft_iteration(rewards, following, gamma, temperature, ends, 3.0)
    q = np.zeros((4, 2))
    rule = (0.5, gamma, temperature, end_values)
    after = np.where(ends, -1 - following, following)
    links = [[s, a, after[s, a]] for s in range(4) for a in range(2)]
    for _ in range(600):
        for i, (s, a, _) in enumerate(links):
            soft_backup(q, np.array(links, np.int32), i, rewards[s, a], rule)
    np.testing.assert_allclose(q, expected, rtol=1e-9)


def test_soft_values_are_finite_and_between_max_and_max_plus_entropy():
    q = np.array([[1000.0, 1000.0, -1000.0, 0.0]])
    np.testing.assert_allclose(soft_value(q, 0, 1.0), 1000.0 + np.log(2.0))
    np.testing.assert_allclose(soft_value(q / 1000, 0, 1e-6), 1.0, atol=1e-5)


def test_sqil_finds_the_soft_values_of_a_corridor_it_shares_with_its_demonstrations():
    """At s, right is paid 1 where demonstrated, 0 where done by the agent: between the two."""
    mdp, demos = corridor(5)
    result = learn_sqil(
        mdp,
        demos,
        gamma=0.9,
        learning_rate=0.05,
        protocol=Protocol(max_episodes=300, target=2.0),
    )
    right = result.q[:4, 1]
    assert (right > result.q[:4, 0]).all()
    assert (right > 0.5).all()
    assert (right < 10.01).all()


def test_the_discriminator_learns_the_share_of_the_demonstrations():
    scores, rng = np.zeros((1, 1)), np.random.default_rng(0)
    late = []
    for label in rng.random(20_000) < 0.8:
        discriminate(scores, 0, 0, float(label), 0.05)
        late.append(scores[0, 0])
    np.testing.assert_allclose(np.mean(late[2000:]), np.log(0.8 / 0.2), atol=0.15)


@pytest.mark.parametrize("logit", [-800.0, -2.0, 0.0, 3.0, 800.0])
def test_imitation_rewards(logit):
    positive, negative, difference = (imitation_reward(logit, kind) for kind in range(3))
    np.testing.assert_allclose(positive, np.logaddexp(0.0, logit))
    np.testing.assert_allclose(negative, -np.logaddexp(0.0, -logit))
    np.testing.assert_allclose(difference, positive + negative)


def test_softmax_sums_to_one_for_large_logits():
    logits, out = np.array([[900.0, 900.0 + np.log(3.0), -900.0]]), np.empty(3)
    softmax(logits, 0, out)
    np.testing.assert_allclose(out, [0.25, 0.75, 0.0], atol=1e-12)


def test_advantages_by_hand():
    out, values = np.empty(3), np.array([1.0, 2.0, 4.0])
    advantages(np.array([1.0, 0.0, 3.0]), values, 10.0, 0.5, 0.5, out)
    np.testing.assert_allclose(out, [1.0 + 0.25 * 1.0, 0.0 + 0.25 * 4.0, 4.0])
    # With λ = 1 an advantage is the discounted return less the value, whatever lies between.
    advantages(np.array([1.0, 0.0, 3.0]), values, 10.0, 0.5, 1.0, out)
    assert out[0] == 1.0 + 0.25 * 3.0 + 0.125 * 10.0 - 1.0


@pytest.mark.parametrize("a", [0, 1, 2])
def test_the_policy_goes_up_its_slope(a):
    """Against weight · log b(a) + entropy · H(π), its slope taken by differences."""
    weight, epsilon, entropy, step, h = -1.7, 0.2, 0.3, 0.01, 1e-6
    logits = np.array([[0.3, -1.0, 0.8]])

    def aim(x):
        p = np.exp(x) / np.exp(x).sum()
        acting = (1 - epsilon) * p[a] + epsilon / 3
        return weight * np.log(acting) - entropy * (p * np.log(p)).sum()

    slope = [(aim(logits[0] + d) - aim(logits[0] - d)) / (2 * h) for d in h * np.eye(3)]
    after, chances = logits.copy(), np.empty(3)
    softmax(logits, 0, chances)
    policy_step(after, 0, a, chances, weight, epsilon, entropy, step)
    np.testing.assert_allclose((after - logits)[0], step * np.array(slope), atol=1e-9)


@pytest.mark.parametrize("learn", LEARNERS)
def test_frozen_lake_is_learned(learn):
    mdp, demos = toy("FrozenLake-v1", is_slippery=False)
    for seed in range(3):
        assert learn(mdp, demos, seed=seed, protocol=Protocol(max_episodes=2000)).solved


@pytest.mark.parametrize("learn", LEARNERS)
def test_cliff_walking_is_learned_with_the_reward_at_the_end(learn):
    mdp, demos = paid_at_the_end(*toy("CliffWalking-v1"))
    protocol = Protocol(max_episodes=3000, epsilon=0.1)
    assert learn(mdp, demos, seed=1, protocol=protocol).solved


@pytest.mark.parametrize("learn", LEARNERS)
def test_taxi_is_learned_with_the_reward_at_the_end(learn):
    """500 states, of which demonstrations show a part: cloning alone is not enough."""
    mdp, demos = paid_at_the_end(*toy(TAXI, n=20))
    result = learn(mdp, demos, seed=0, protocol=Protocol(max_episodes=3000))
    assert result.curve[0] < 0.75
    assert result.solved


@pytest.mark.parametrize("learn", LEARNERS)
def test_a_corridor_is_learned_against_a_wrong_start(learn):
    """Cloned values of the wrong sign: what the table began with must be unlearned."""
    mdp, demos = corridor(8)
    protocol = Protocol(max_episodes=1000, target=2.0)
    result = learn(mdp, demos, seed=0, initial_scale=-0.3, protocol=protocol)
    assert result.curve[-10:].mean() > 0.95
    assert (result.q[:7].argmax(axis=1) == 1).all()


@pytest.mark.parametrize("learn", LEARNERS)
def test_an_end_that_was_not_shown_does_not_attract(learn):
    """From the middle of a corridor that ends on both sides, demonstrated to the right only."""
    n, start = 9, 4
    outcomes = [
        [
            [(1.0, max(s - 1, 0), 0.0, s <= 1)],
            [(1.0, min(s + 1, n - 1), float(s == n - 2), s >= n - 2)],
        ]
        for s in range(n)
    ]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(n)[start], 50)
    walk = ar.Episode(np.arange(start, n), [1] * (n - 1 - start), np.eye(n - 1 - start)[-1])
    protocol = Protocol(max_episodes=1000, target=2.0)
    result = learn(mdp, [walk], seed=0, initial_scale=-0.3, protocol=protocol)
    assert result.curve[-10:].mean() > 0.95
    assert (result.q[start:-1].argmax(axis=1) == 1).all()


@pytest.mark.parametrize("learn", LEARNERS)
def test_rooms_are_learned_from_five_demonstrations(rooms, learn):
    env, demos = rooms
    assert learn(env.mdp, demos, seed=0, protocol=Protocol(max_episodes=2500)).solved


@pytest.mark.parametrize("learn", LEARNERS)
def test_same_seed_same_trial(rooms, learn):
    env, demos = rooms
    protocol = Protocol(max_episodes=50, target=2.0)
    first, second = (learn(env.mdp, demos, seed=3, protocol=protocol) for _ in range(2))
    np.testing.assert_array_equal(first.curve, second.curve)
    np.testing.assert_array_equal(first.q, second.q)
    assert first.steps == second.steps
    assert (learn(env.mdp, demos, seed=4, protocol=protocol).q != first.q).any()


def test_gail_without_the_absorbing_state_prefers_to_stay(rooms):
    """−log(1 − D) is never negative: to live on among demonstrated states pays more than to end."""
    env, demos = rooms
    protocol = Protocol(max_episodes=1000, target=2.0)
    means = [
        learn_gail(env.mdp, demos, absorbing=absorbing, protocol=protocol).curve[-20:].mean()
        for absorbing in (False, True)
    ]
    assert means[0] < 0.8 * means[1]


@pytest.mark.parametrize(
    ("learn", "wrong", "message"),
    [
        (learn_dqfd, {"learning_rate": 0.0}, "learning_rate=0.0"),
        (learn_dqfd, {"learning_rate": 0.6}, "learning_rate=0.6"),
        (learn_dqfd, {"n_step": 0}, "n_step=0"),
        (learn_dqfd, {"batch": 0}, "batch=0"),
        (learn_dqfd, {"capacity": 0}, "capacity=0"),
        (learn_dqfd, {"pretraining_steps": -1}, "pretraining_steps=-1"),
        (learn_dqfd, {"margin": -0.1}, r"margin=-0\.1"),
        (learn_dqfd, {"alpha": 1.5}, r"alpha=1\.5"),
        (learn_dqfd, {"beta": -1.0}, r"beta=-1\.0"),
        (learn_dqfd, {"agent_bonus": 0.0}, r"agent_bonus=0\.0"),
        (learn_dqfd, {"weights": (1.0, 1.0)}, r"weights=\(1\.0, 1\.0\)"),
        (learn_dqfd, {"pretraining_weights": (1.0, -1.0, 0.0)}, "pretraining_weights"),
        (learn_sqil, {"learning_rate": 1.5}, r"learning_rate=1\.5"),
        (learn_sqil, {"gamma": 1.0}, r"gamma=1\.0"),
        (learn_sqil, {"temperature": 0.0}, r"temperature=0\.0"),
        (learn_sqil, {"batch": 5}, "batch=5"),
        (learn_sqil, {"capacity": 0}, "capacity=0"),
        (learn_gail, {"policy_rate": 0.0}, r"policy_rate=0\.0"),
        (learn_gail, {"discriminator_rate": -1.0}, r"discriminator_rate=-1\.0"),
        (learn_gail, {"value_rate": 2.0}, r"value_rate=2\.0"),
        (learn_gail, {"gamma": 1.0}, r"gamma=1\.0"),
        (learn_gail, {"trace": 1.1}, r"trace=1\.1"),
        (learn_gail, {"entropy": -0.1}, r"entropy=-0\.1"),
        (learn_gail, {"reward": "airl"}, "reward='airl'"),
    ],
)
def test_bad_arguments(learn, wrong, message):
    mdp, demos = corridor(4)
    with pytest.raises(ValueError, match=message):
        learn(mdp, demos, **wrong)
