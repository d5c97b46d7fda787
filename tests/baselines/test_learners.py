"""Tabular learners: they learn what is easy, repeat themselves, and follow their equations."""

import numpy as np
import pytest
from toys import TAXI, paid_at_the_end, toy

import align_rudder as ar
from align_rudder.baselines import (
    Protocol,
    TabularMDP,
    behavioural_cloning,
    learn_align_rudder,
    learn_dqfd,
    learn_gail,
    learn_q,
    learn_sqil,
    rollout,
)
from align_rudder.tasks import RoomsEnv


@pytest.fixture(scope="module")
def rooms():
    env = RoomsEnv(4)
    return env, env.demonstrations(5, seed=1)


def test_frozen_lake_is_learned_by_all():
    mdp, demos = toy("FrozenLake-v1", is_slippery=False)
    protocol = Protocol(max_episodes=2000)
    for seed in range(3):
        assert learn_q(mdp, demos, seed=seed, protocol=protocol).solved
        assert learn_q(mdp, demos, seed=seed, trace=0.9, protocol=protocol).solved
        assert learn_align_rudder(mdp, demos, seed=seed, protocol=protocol).solved


def test_cliff_walking_is_learned_with_the_reward_at_the_end():
    mdp, demos = paid_at_the_end(*toy("CliffWalking-v1"))
    protocol = Protocol(max_episodes=3000, epsilon=0.1)
    assert learn_align_rudder(mdp, demos, seed=1, protocol=protocol).solved
    assert learn_q(mdp, demos, seed=1, trace=0.9, protocol=protocol).solved


def test_taxi_is_learned_by_q_learning():
    """500 states and a reward at each step: the return must rise far above cloning's."""
    mdp, demos = toy(TAXI, n=10)
    demos = [d for d in demos if d.ret > 0]
    result = learn_q(
        mdp,
        demos,
        seed=0,
        learning_rate=0.3,
        protocol=Protocol(max_episodes=6000, target=2.0, evaluate_every=100),
    )
    assert result.curve[0] < -100
    assert result.curve[-5:].mean() > -10


@pytest.mark.parametrize("method", ["trace", "kappa"])
def test_rooms_are_learned_from_five_demonstrations(rooms, method):
    env, demos = rooms
    result = learn_align_rudder(
        env.mdp, demos, seed=0, method=method, protocol=Protocol(max_episodes=2000)
    )
    assert result.solved
    assert result.curve[-1] >= 0.8 * np.mean([d.ret for d in demos])
    # The learned table solves the task when it is played by someone else.
    rng, policy = np.random.default_rng(0), result.q.argmax(axis=1)
    starts = np.flatnonzero(env.mdp.starts)
    returns = [rollout(env.mdp, policy, rng, 0.1, s).ret for s in starts for _ in range(10)]
    assert np.mean(returns) > 0.6 * np.mean([d.ret for d in demos])


def test_same_seed_same_trial(rooms):
    env, demos = rooms
    protocol = Protocol(max_episodes=300)
    for learn in (learn_q, learn_align_rudder):
        first, second = (learn(env.mdp, demos, seed=3, protocol=protocol) for _ in range(2))
        np.testing.assert_array_equal(first.curve, second.curve)
        np.testing.assert_array_equal(first.q, second.q)
        assert first.steps == second.steps
        assert (learn(env.mdp, demos, seed=4, protocol=protocol).q != first.q).any()


def test_the_cap_counts_as_the_cap(rooms):
    env, demos = rooms
    result = learn_q(env.mdp, demos, protocol=Protocol(max_episodes=20, target=2.0))
    assert not result.solved
    assert result.episodes == 20
    assert len(result.curve) == 2


def test_cloning_prefers_what_was_shown(rooms):
    env, demos = rooms
    q = behavioural_cloning(env.mdp, demos, seed=0, scale=0.5)
    counts = np.zeros_like(q)
    for demo in demos:
        for s, a in zip(demo.observations[:-1], demo.actions):
            counts[s, a] += 1
    seen = counts.sum(axis=1) > 0
    np.testing.assert_allclose(q[seen].sum(axis=1), 0.5)
    assert (counts[seen, q[seen].argmax(axis=1)] == counts[seen].max(axis=1)).all()
    assert np.abs(q[~seen]).max() < 0.1


def chain(n):
    """Return a corridor of n states with one action, paid 1 at its end."""
    outcomes = [[[(1.0, s + 1, float(s == n - 2), s == n - 2)]] for s in range(n - 1)]
    outcomes.append([[(1.0, n - 1, 0.0, True)]])
    return TabularMDP.from_outcomes(outcomes, np.eye(n)[0], 50)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("direct", [1, 1, 1, 1]),
        ("kappa", [2, 2, 2, 1]),
        ("trace", [1.875, 1.75, 1.5, 1.0]),
        ("q-learning", [4, 3, 2, 1]),
    ],
)
def test_methods_follow_their_equations_on_a_chain(method, expected):
    """Five states, each an event worth the same: after many episodes Q is known in closed form."""
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    model = ar.AlignRudder(ar.StateEvents()).fit(demos)
    gain = model.redistribute(demos[0]).rewards
    np.testing.assert_allclose(gain, 0.25)
    result = learn_align_rudder(
        mdp,
        demos,
        model=model,
        method=method,
        trace=0.5,
        window=2,
        learning_rate=0.2,
        protocol=Protocol(max_episodes=500, target=2.0),
    )
    np.testing.assert_allclose(result.q[:4, 0], 0.25 * np.array(expected), rtol=1e-6)


def test_q_learning_and_its_trace_find_the_value_of_the_chain():
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    protocol = Protocol(max_episodes=500, target=2.0)
    for trace in (0.0, 0.5, 0.95):
        result = learn_q(mdp, demos, trace=trace, learning_rate=0.2, protocol=protocol)
        np.testing.assert_allclose(result.q[:4, 0], 1.0, rtol=1e-6)


def test_settling_adds_the_correction_to_the_last_step():
    """Two demonstrations of different return: C is their mean, the rest is settled at the end."""
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, r]) for r in (1.0, 3.0)]
    model = ar.AlignRudder(ar.StateEvents()).fit(demos)
    protocol = Protocol(max_episodes=500, target=2.0)
    result = learn_align_rudder(
        mdp, demos, model=model, method="direct", settle=True, learning_rate=0.2, protocol=protocol
    )
    np.testing.assert_allclose(result.q[:4, 0], [0.5, 0.5, 0.5, 0.5 - 1.0], rtol=1e-6)


def test_a_negative_return_is_reached_from_below():
    """A fifth short of −13 is −15.6, not −10.4."""
    mdp, demos = toy("CliffWalking-v1")
    demos = [d for d in demos if d.ret > -20]
    mean = np.mean([d.ret for d in demos])
    result = learn_q(
        mdp, demos, learning_rate=0.3, protocol=Protocol(max_episodes=3000, evaluation_epsilon=0.0)
    )
    assert mean < 0
    assert result.solved
    assert result.curve[-1] >= 1.2 * mean


def wrong(demo, observations=None, actions=None):
    return ar.Episode(
        demo.observations if observations is None else observations,
        demo.actions if actions is None else actions,
        demo.rewards,
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: {"actions": np.full(len(d), -1)}, "actions of demonstration 0 reach from -1"),
        (lambda d: {"actions": np.full(len(d), 99)}, "another environment"),
        (lambda d: {"observations": d.observations - 10_000}, "observations of demonstration 0"),
        (lambda d: {"observations": d.observations * 1.0}, "one whole number"),
        (lambda d: {"observations": np.stack([d.observations] * 2, 1)}, "one whole number"),
    ],
)
@pytest.mark.parametrize("learn", [learn_q, learn_align_rudder, learn_dqfd, learn_sqil, learn_gail])
def test_demonstrations_of_something_else_are_refused(rooms, learn, change, expected):
    env, demos = rooms
    with pytest.raises(ValueError, match=expected):
        learn(env.mdp, [wrong(demos[0], **change(demos[0]))])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"learning_rate": -1}, "learning_rate=-1"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"trace": 2}, "trace=2"),
        ({"initial_scale": float("nan")}, "initial_scale=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**64}, "seed="),
    ],
)
@pytest.mark.parametrize("learn", [learn_q, learn_align_rudder])
def test_numbers_out_of_range_are_named(rooms, learn, options, expected):
    env, demos = rooms
    with pytest.raises(ValueError, match=expected):
        learn(env.mdp, demos, **options)


@pytest.mark.parametrize("name", ["evaluate_every", "evaluation_episodes", "target"])
def test_a_protocol_needs_sensible_numbers(name):
    with pytest.raises(ValueError, match=name):
        Protocol(**{name: -1})
    with pytest.raises(ValueError, match=name):
        Protocol(**{name: float("nan")})


def test_bad_arguments(rooms):
    env, demos = rooms
    with pytest.raises(ValueError, match="give a list"):
        learn_q(env.mdp, demos[0])
    with pytest.raises(ValueError, match="not fitted"):
        learn_align_rudder(env.mdp, demos, model=ar.AlignRudder())
    with pytest.raises(ValueError, match="method='sarsa'"):
        learn_align_rudder(env.mdp, demos, method="sarsa")
    other = ar.AlignRudder(ar.SymbolEvents("action"), strategies=1).fit(demos)
    with pytest.raises(ValueError, match="StateEvents"):
        learn_align_rudder(env.mdp, demos, model=other)
