"""Successor representation and features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.events import successor_features, successor_representation

examples = settings(deadline=None, max_examples=60, derandomize=True)


def _empirical_sr(trajectories, n, gamma):
    """(I − γP)⁻¹ of the chain that was seen; an episode's end is no transition but counts."""
    counts, visits = np.zeros((n, n)), np.zeros(n)
    for trajectory in trajectories:
        np.add.at(counts, (trajectory[:-1], trajectory[1:]), 1.0)
        np.add.at(visits, trajectory, 1.0)
    transition = counts / np.maximum(visits, 1.0)[:, None]
    return np.linalg.inv(np.eye(n) - gamma * transition), visits > 0


@given(st.permutations(range(6)), st.integers(2, 6), st.floats(0.0, 0.99), st.floats(0.2, 1.0))
@examples
def test_representation_of_a_chain(order, length, gamma, learning_rate):
    chain = np.array(order[:length])
    m = successor_representation([chain], 6, learning_rate, gamma, sweeps=400)
    exact, seen = _empirical_sr([chain], 6, gamma)
    np.testing.assert_allclose(m[seen], exact[seen], atol=1e-9)
    assert (m[~seen] == 0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_representation_of_a_loop(n):
    # The loop is left once, at the very end, and that is forgotten by the time a sweep is over:
    # each round takes 1 − lr (1 − γ) off the error.
    loop = np.tile(np.arange(n), 3000)
    p = np.roll(np.eye(n), 1, axis=1)
    m = successor_representation([loop], n, learning_rate=0.1, gamma=0.9, sweeps=2)
    np.testing.assert_allclose(m, np.linalg.inv(np.eye(n) - 0.9 * p), atol=1e-6)


def test_representation_of_a_random_walk():
    rng = np.random.default_rng(0)
    walks = [np.abs(np.cumsum(np.r_[0, rng.choice([-1, 1], 60)])) % 6 for _ in range(40)]
    exact, _ = _empirical_sr(walks, 6, 0.8)
    m = successor_representation(walks, 6, learning_rate=0.002, gamma=0.8, sweeps=200)
    np.testing.assert_allclose(m, exact, atol=0.05)


def test_representation_does_not_run_from_one_episode_into_the_next():
    m = successor_representation([np.array([0, 1]), np.array([2, 3])], 4, gamma=0.9, sweeps=300)
    exact = np.eye(4)
    exact[0, 1] = exact[2, 3] = 0.9
    np.testing.assert_allclose(m, exact, atol=1e-9)


# Successor features


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=8), min_size=1, max_size=5),
    st.floats(0.0, 0.95),
)
@examples
def test_features_of_single_states_are_the_representation(trajectories, gamma):
    weights = successor_features([np.eye(5)[t] for t in trajectories], gamma, ridge=1e-12)
    exact, seen = _empirical_sr([np.array(t) for t in trajectories], 5, gamma)
    np.testing.assert_allclose(weights[seen], exact[seen], atol=1e-6)


def test_features_do_not_depend_on_the_order_of_episodes():
    rng = np.random.default_rng(1)
    phis = [rng.random((n, 3)) for n in (4, 7, 5)]
    np.testing.assert_allclose(successor_features(phis), successor_features(phis[::-1]), rtol=1e-9)


def test_features_are_the_discounted_sums_where_features_are_linear_in_time():
    # One episode of as many features as states: least squares is exact.
    phi = np.random.default_rng(2).random((5, 5))
    psi = phi @ successor_features([phi], gamma=0.7, ridge=1e-13)
    sums = [sum(0.7**k * phi[t + k] for k in range(5 - t)) for t in range(5)]
    np.testing.assert_allclose(psi, sums, atol=1e-6)
