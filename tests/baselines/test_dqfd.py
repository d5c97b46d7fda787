"""DQfD: its targets, its loss by hand and by differences, and the values it finds."""

import numpy as np
from toys import corridor

from align_rudder.baselines import Protocol, learn_dqfd
from align_rudder.baselines.dqfd import descend, targets
from align_rudder.baselines.replay import store


def stored(states, actions, rewards, n_step, gamma=1.0):
    """Return links and gains of a whole episode; the last state is −1 where it ended."""
    n = len(actions)
    links, gains = np.zeros((n, 4), np.int32), np.zeros((n, 2))
    path, taken, paid = np.array(states), np.array(actions), np.array(rewards)
    for t in range(n):
        store(links, gains, t, path, taken, paid, t, n, n_step, gamma)
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


def test_a_discount_by_hand():
    links, gains = stored([5, 6, 7, 8, -1], [0, 1, 0, 1], [1.0, 2.0, 4.0, 8.0], 3, 0.5)
    np.testing.assert_array_equal(gains, [[1, 3], [2, 6], [4, 8], [8, 8]])
    q = np.zeros((9, 2))
    q[6:9, 1] = [0.5, 0.25, 0.125]
    assert targets(q, links, gains, 0, 0.5, 0.125) == (1.25, 3.015625)
    assert targets(q, links, gains, 3, 0.5, 0.125) == (8.0, 8.0)


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


def test_dqfd_discounts_the_value_of_a_corridor():
    mdp, demos = corridor(5)
    result = learn_dqfd(
        mdp,
        demos,
        learning_rate=0.1,
        gamma=0.5,
        n_step=1,  # longer ones hold steps of exploration
        weights=(1.0, 1.0, 0.0),
        protocol=Protocol(max_episodes=300, target=2.0),
    )
    np.testing.assert_allclose(result.q[:4, 1], [0.125, 0.25, 0.5, 1.0], atol=0.02)
