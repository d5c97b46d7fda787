"""RUDDER (LSTM) on tables: the kernel follows `redistribute`, and learns."""

import numpy as np
import pytest

from align_rudder.baselines import Protocol, TabularMDP, learn_rudder, rollout


def test_frozen_lake_is_learned_from_demonstrations(lake_data, lake_model):
    mdp, demos = lake_data
    protocol = Protocol(max_episodes=2000)
    for seed in range(3):
        for options in ({}, {"trace": 0.9}, {"trace": 0.9, "settle": False}):
            result = learn_rudder(
                mdp, demos, seed=seed, model=lake_model, protocol=protocol, **options
            )
            assert result.solved


def test_the_learner_fits_a_model_of_its_own_and_repeats_itself(lake_data):
    mdp, demos = lake_data
    protocol = Protocol(max_episodes=500)
    a, b = (learn_rudder(mdp, demos, seed=0, protocol=protocol) for _ in range(2))
    assert a.solved
    assert a.q.tolist() == b.q.tolist()
    assert a.curve.tolist() == b.curve.tolist()


@pytest.mark.parametrize("settle", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.8])
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_the_kernel_follows_redistribute(lake_model, settle, trace, gamma):
    """One episode in a corridor with one action: the table is what the equations say."""
    n = 6
    outcomes = [[[(1.0, min(s + 1, n), float(s == n - 1), s == n - 1)]] for s in range(n + 1)]
    starts = np.eye(n + 1)[0]
    mdp = TabularMDP.from_outcomes(outcomes, starts, horizon=10)
    episode = rollout(mdp, np.zeros(n + 1, int), np.random.default_rng(0))
    result = learn_rudder(
        mdp,
        [episode],
        learning_rate=0.5,
        trace=trace,
        gamma=gamma,
        settle=settle,
        model=lake_model,
        initial_scale=0.0,
        protocol=Protocol(max_episodes=1, evaluate_every=1),
    )
    rr = lake_model.redistribute(episode)
    gains = rr.with_correction() if settle else rr.rewards
    q, g = np.zeros(n + 1), 0.0
    if trace == 0.0:
        q[:n] = 0.5 * gains  # the next state's value is still zero
    else:
        for t in range(n - 1, -1, -1):
            future = trace * g + (1 - trace) * q[t + 1] if t < n - 1 else 0.0
            g = gains[t] + gamma * future
            q[t] = 0.5 * g
    np.testing.assert_allclose(result.q[:n, 0], q[:n], rtol=0, atol=1e-6)  # float32


def test_tabular_needs_states(lake_data, mixed_model):
    mdp, demos = lake_data
    with pytest.raises(ValueError, match="single whole numbers"):
        learn_rudder(mdp, demos, model=mixed_model)
