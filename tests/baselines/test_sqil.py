"""SQIL: soft values and their fixed point."""

import numpy as np
from scipy.special import logsumexp
from toys import corridor

from align_rudder.baselines import Protocol, learn_sqil
from align_rudder.baselines.sqil import soft_backup, soft_value


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
