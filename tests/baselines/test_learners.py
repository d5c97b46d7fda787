"""Tabular learners: they learn what is easy, repeat themselves, and follow their equations."""

import warnings
from functools import partial

import numpy as np
import pytest
from small_recipes import GREEDY, small_recipe
from toys import TAXI, corridor, paid_at_the_end, toy

import align_rudder as ar
from align_rudder.baselines import (
    Protocol,
    TabularMDP,
    learn_align_rudder,
    learn_dqfd,
    learn_gail,
    learn_ircr,
    learn_q,
    learn_rrd,
    learn_sqil,
    learn_unordered,
    rollout,
)
from align_rudder.settlement import Settlement
from align_rudder.tasks import RoomsEnv

AS_IN_THE_PAPER = {"bootstrap": False, "gamma": 1.0, "settlement": None, "progress": False}
IMITATORS = {"dqfd": learn_dqfd, "sqil": learn_sqil, "gail": learn_gail}
REDISTRIBUTORS = {"ircr": learn_ircr, "rrd": learn_rrd}
TRACED = {
    "q(λ)": partial(learn_q, trace=0.9),
    "align-rudder": learn_align_rudder,
    "unordered": learn_unordered,
    **IMITATORS,
    **REDISTRIBUTORS,
}
LEARNERS = {"q": learn_q, **TRACED}


def each(learners):
    return pytest.mark.parametrize("learn", learners.values(), ids=learners.keys())


# What they learn


@each(LEARNERS)
def test_frozen_lake_is_learned(learn):
    mdp, demos = toy("FrozenLake-v1", is_slippery=False)
    for seed in range(3):
        assert learn(mdp, demos, seed=seed, protocol=Protocol(max_episodes=2000)).solved


@each(TRACED)
def test_cliff_walking_is_learned_with_the_reward_at_the_end(learn):
    mdp, demos = paid_at_the_end(*toy("CliffWalking-v1"))
    protocol = Protocol(max_episodes=3000, epsilon=0.1)
    assert learn(mdp, demos, seed=1, protocol=protocol).solved


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


@each({**IMITATORS, **REDISTRIBUTORS})
def test_taxi_is_learned_with_the_reward_at_the_end(learn):
    """500 states, of which demonstrations show a part: cloning alone is not enough."""
    mdp, demos = paid_at_the_end(*toy(TAXI, n=20))
    result = learn(mdp, demos, seed=0, protocol=Protocol(max_episodes=3000))
    assert result.curve[0] < 0.75
    assert result.solved


@each({**TRACED, "kappa": partial(learn_align_rudder, method="kappa", settlement="even")})
def test_rooms_are_learned_from_five_demonstrations(rooms, learn):
    env, demos = rooms
    result = learn(env.mdp, demos, seed=0, protocol=Protocol(max_episodes=2500))
    wanted = np.mean([d.ret for d in demos])
    assert result.solved
    assert result.curve[-1] >= 0.8 * wanted
    # The learned table solves the task when it is played by someone else.
    q = result.q if result.q.ndim == 2 else result.q.max(axis=0)
    rng, policy = np.random.default_rng(0), q.argmax(axis=1)
    starts = np.flatnonzero(env.mdp.starts)
    returns = [rollout(env.mdp, policy, rng, 0.1, s).ret for s in starts for _ in range(10)]
    assert np.mean(returns) > 0.6 * wanted


@each({**IMITATORS, **REDISTRIBUTORS})
def test_a_corridor_is_learned_against_a_wrong_start(learn):
    """Cloned values of the wrong sign: what the table began with must be unlearned."""
    mdp, demos = corridor(8)
    protocol = Protocol(max_episodes=1000, target=2.0)
    result = learn(mdp, demos, seed=0, initial_scale=-0.3, protocol=protocol)
    assert result.curve[-10:].mean() > 0.95
    assert (result.q[:7].argmax(axis=1) == 1).all()


@each({**IMITATORS, **REDISTRIBUTORS})
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


@each(REDISTRIBUTORS)
def test_what_decided_a_delayed_reward_is_found(learn):
    """A lever at the start decides what is paid ten steps later; cloning pulls the wrong one."""
    n = 10
    outcomes = [[[(1.0, 1, 0.0, False)], [(1.0, 1 + n, 0.0, False)]]]
    for way in range(2):
        for s in range(1 + way * n, 1 + (way + 1) * n):
            last = s == (way + 1) * n
            outcomes.append([[(1.0, s + (not last), float(last and way == 1), last)]] * 2)
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(2 * n + 1)[0], n + 1)
    states = np.r_[0, 1 + n : 2 * n + 1, 2 * n]
    walk = ar.Episode(states, [1] * (n + 1), np.eye(n + 1)[-1])
    protocol = Protocol(max_episodes=300, target=2.0)
    result = learn(mdp, [walk], seed=0, initial_scale=-0.3, protocol=protocol)
    assert result.q[0, 1] > result.q[0, 0]
    assert result.curve[-10:].mean() > 0.85


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


@each(LEARNERS)
def test_same_seed_same_trial(rooms, learn):
    env, demos = rooms
    protocol = Protocol(max_episodes=50, target=2.0)
    first, second = (learn(env.mdp, demos, seed=3, protocol=protocol) for _ in range(2))
    np.testing.assert_array_equal(first.curve, second.curve)
    np.testing.assert_array_equal(first.q, second.q)
    assert first.steps == second.steps
    assert (learn(env.mdp, demos, seed=4, protocol=protocol).q != first.q).any()


# Align-RUDDER and Q-learning


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
        **AS_IN_THE_PAPER,
    )
    np.testing.assert_allclose(result.q[:4, 0], 0.25 * np.array(expected), rtol=1e-6)


def test_q_learning_and_its_trace_find_the_value_of_the_chain():
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    protocol = Protocol(max_episodes=500, target=2.0)
    for trace in (0.0, 0.5, 0.95):
        result = learn_q(mdp, demos, trace=trace, learning_rate=0.2, protocol=protocol)
        np.testing.assert_allclose(result.q[:4, 0], 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("settlement", "expected"),
    [
        (None, [0.5, 0.5, 0.5, 0.5]),
        ("last", [0.5, 0.5, 0.5, 0.5 - 1.0]),
        ("even", [0.25, 0.25, 0.25, 0.25]),
        ("mean", [0.0, 0.0, 0.0, 1.0]),
        ("beside", [0.5, 0.5, 0.5, 1.5]),
        (Settlement("potential", gamma=0.5, fade=0.0), [0.25, 0.0, -0.25, 1.0 - 1.5]),
    ],
    ids=str,
)
def test_the_learner_is_paid_what_is_settled(settlement, expected):
    """Four steps with shares of 0.5, paid 1 at the end; each action alone has its own reward."""
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, r]) for r in (1.0, 3.0)]
    model = ar.AlignRudder(ar.StateEvents()).fit(demos)
    options = {**AS_IN_THE_PAPER, "settlement": settlement}
    protocol = Protocol(max_episodes=500, target=2.0)
    result = learn_align_rudder(
        mdp, demos, model=model, method="direct", learning_rate=0.2, protocol=protocol, **options
    )
    np.testing.assert_allclose(result.q[:4, 0], expected, rtol=1e-6, atol=1e-9)


def test_the_value_is_discounted():
    mdp = chain(5)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    protocol = Protocol(max_episodes=2000, target=2.0)
    for trace in (0.0, 0.5):
        result = learn_q(mdp, demos, trace=trace, gamma=0.5, learning_rate=0.2, protocol=protocol)
        np.testing.assert_allclose(result.q[:4, 0], [0.125, 0.25, 0.5, 1.0], rtol=1e-6)


def test_align_rudder_needs_a_model_of_states(rooms):
    env, demos = rooms
    with pytest.raises(ValueError, match="not fitted"):
        learn_align_rudder(env.mdp, demos, model=ar.AlignRudder())
    other = ar.AlignRudder(ar.SymbolEvents("action"), strategies=1).fit(demos)
    with pytest.raises(ValueError, match="StateEvents"):
        learn_align_rudder(env.mdp, demos, model=other)
    small, _ = corridor(4)
    fitted = ar.AlignRudder(ar.StateEvents(), strategies=1).fit(demos)
    with pytest.raises(ValueError, match="another environment"):
        learn_align_rudder(small, corridor(4)[1], model=fitted)


# Arguments


@pytest.mark.parametrize(
    ("learn", "wrong", "message"),
    [
        (learn_q, {"learning_rate": -1}, "learning_rate is -1"),
        (learn_q, {"trace": 2}, "trace is 2"),
        (learn_q, {"initial_scale": float("nan")}, "initial_scale is nan"),
        (learn_align_rudder, {"learning_rate": float("nan")}, "learning_rate is nan"),
        (learn_align_rudder, {"trace": 2}, "trace is 2"),
        (learn_align_rudder, {"window": 0}, "window is 0"),
        (learn_align_rudder, {"method": "sarsa"}, "method='sarsa'"),
        (learn_align_rudder, {"method": "kappa", "subtasks": True}, "reach over the end"),
        (learn_dqfd, {"learning_rate": 0.0}, "learning_rate is 0.0"),
        (learn_dqfd, {"learning_rate": 0.6}, "learning_rate is 0.6"),
        (learn_dqfd, {"n_step": 0}, "n_step is 0"),
        (learn_dqfd, {"batch": 0}, "batch is 0"),
        (learn_dqfd, {"capacity": 0}, "capacity is 0"),
        (learn_dqfd, {"pretraining_steps": -1}, "pretraining_steps is -1"),
        (learn_dqfd, {"margin": -0.1}, r"margin is -0\.1"),
        (learn_dqfd, {"alpha": 1.5}, r"alpha is 1\.5"),
        (learn_dqfd, {"beta": -1.0}, r"beta is -1\.0"),
        (learn_dqfd, {"agent_bonus": 0.0}, r"agent_bonus is 0\.0"),
        (learn_dqfd, {"weights": (1.0, 1.0)}, r"weights=\(1\.0, 1\.0\)"),
        (learn_dqfd, {"pretraining_weights": (1.0, -1.0, 0.0)}, "pretraining_weights"),
        (learn_sqil, {"learning_rate": 1.5}, r"learning_rate is 1\.5"),
        (learn_sqil, {"gamma": 1.0}, r"gamma is 1\.0"),
        (learn_sqil, {"temperature": 0.0}, r"temperature is 0\.0"),
        (learn_sqil, {"batch": 5}, "batch=5"),
        (learn_sqil, {"capacity": 0}, "capacity is 0"),
        (learn_gail, {"policy_rate": 0.0}, r"policy_rate is 0\.0"),
        (learn_gail, {"discriminator_rate": -1.0}, r"discriminator_rate is -1\.0"),
        (learn_gail, {"value_rate": 2.0}, r"value_rate is 2\.0"),
        (learn_gail, {"gamma": 1.0}, r"gamma is 1\.0"),
        (learn_gail, {"trace": 1.1}, r"trace is 1\.1"),
        (learn_gail, {"entropy": -0.1}, r"entropy is -0\.1"),
        (learn_gail, {"reward": "airl"}, "reward='airl'"),
        (learn_ircr, {"learning_rate": 0.0}, r"learning_rate is 0\.0"),
        (learn_ircr, {"trace": 1.1}, r"trace is 1\.1"),
        (learn_ircr, {"gamma": 1.0}, r"gamma is 1\.0"),
        (learn_ircr, {"gamma": 1.1, "absorbing": False}, r"gamma is 1\.1"),
        (learn_ircr, {"replays": -1}, "replays is -1"),
        (learn_ircr, {"capacity": 0}, "capacity is 0"),
        (learn_rrd, {"learning_rate": 1.5}, r"learning_rate is 1\.5"),
        (learn_rrd, {"trace": -0.1}, r"trace is -0\.1"),
        (learn_rrd, {"gamma": 1.1}, r"gamma is 1\.1"),
        (learn_rrd, {"reward_rate": 2.0}, r"reward_rate is 2\.0"),
        (learn_rrd, {"length": 0}, "length is 0"),
        (learn_rrd, {"updates": 0}, "updates is 0"),
        (learn_rrd, {"replays": -1}, "replays is -1"),
        (learn_rrd, {"capacity": 0}, "capacity is 0"),
    ],
)
def test_bad_arguments(learn, wrong, message):
    mdp, demos = corridor(4)
    with pytest.raises(ValueError, match=message):
        learn(mdp, demos, **wrong)


@pytest.mark.parametrize("seed", range(3))
def test_poor_demonstrations_teach_and_more_of_them_more(seed):
    """Seven of ten actions were random: demonstrations earn a fifth of what can be earned."""
    env = RoomsEnv(8, slip=0.1)
    needed = []
    for n in (2, 10):
        demos = env.demonstrations(n, seed, exploration=0.7)
        target = 0.65 / float(np.mean([demo.ret for demo in demos]))
        protocol = Protocol(target=target, max_episodes=1500, evaluation_epsilon=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ar.AlignRudderWarning)
            result = learn_align_rudder(env.mdp, demos, seed=seed, protocol=protocol)
        needed.append(result.episodes)
    assert needed[1] < 600
    assert needed[1] <= needed[0]


def test_a_model_that_shares_no_symbol_with_the_table_is_refused():
    """It would pay nothing, in silence."""
    env, logs = small_recipe()
    other = ar.AlignRudder().fit_events([["key", "door", "chest"]] * 4)
    with pytest.raises(ValueError, match=r"knows 'chest'.*names 'A'.*share no symbol"):
        learn_align_rudder(env.mdp, [], model=other, protocol=GREEDY)
    with warnings.catch_warnings(action="ignore", category=ar.AlignRudderWarning):
        known = ar.AlignRudder().fit_events([*logs, ["key", *logs[0]]])
    learn_align_rudder(env.mdp, [], model=known, protocol=GREEDY)
