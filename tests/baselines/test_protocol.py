"""The protocol: when a trial ends, what it begins with, and which demonstrations it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from toys import corridor

import align_rudder as ar
from align_rudder.baselines import (
    Protocol,
    Trial,
    behavioural_cloning,
    learn_align_rudder,
    learn_dqfd,
    learn_gail,
    learn_ircr,
    learn_q,
    learn_rrd,
    learn_rudder,
    learn_sqil,
    learn_unordered,
)


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


@pytest.mark.parametrize("name", ["evaluate_every", "evaluation_episodes", "target"])
def test_a_protocol_needs_sensible_numbers(name):
    with pytest.raises(ValueError, match=name):
        Protocol(**{name: -1})
    with pytest.raises(ValueError, match=name):
        Protocol(**{name: float("nan")})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: {"actions": np.full(len(d), -1)}, "actions of demonstration 0 reach from -1"),
        (lambda d: {"actions": np.full(len(d), 99)}, "another environment"),
        (lambda d: {"observations": d.observations - 10_000}, "observations of demonstration 0"),
        (lambda d: {"observations": d.observations * 1.0}, "one whole number"),
        (lambda d: {"observations": np.stack([d.observations] * 2, 1)}, "one whole number"),
        (lambda d: {"rewards": np.zeros(len(d))}, "any share of it"),
    ],
)
def test_demonstrations_of_something_else_are_refused(change, expected):
    mdp, demos = corridor(5)
    parts = {name: getattr(demos[0], name) for name in ("observations", "actions", "rewards")}
    with pytest.raises(ValueError, match=expected):
        Trial(mdp, [ar.Episode(**{**parts, **change(demos[0])})], None, 0)


@pytest.mark.parametrize(
    "learn",
    [
        learn_q,
        learn_align_rudder,
        learn_dqfd,
        learn_sqil,
        learn_gail,
        learn_rudder,
        learn_ircr,
        learn_rrd,
        learn_unordered,
    ],
)
def test_every_learner_refuses_what_is_no_trial(learn):
    mdp, demos = corridor(5)
    other, _ = corridor(3)
    with pytest.raises(ValueError, match="another environment"):
        learn(other, demos)
    with pytest.raises(ValueError, match="give a list"):
        learn(mdp, demos[0])
    with pytest.raises(ValueError, match="no demonstrations"):
        learn(mdp, [])
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"seed={seed}"):
            learn(mdp, demos, seed=seed)


@pytest.mark.parametrize("learn", [learn_q, learn_ircr, learn_rrd])
@pytest.mark.parametrize(
    "returns", [[], [np.nan], [np.inf], ["a"], "12", [[1.0]], [1.0, None], [True], 1.0, [1e300]]
)
def test_returns_that_set_no_target_are_refused(learn, returns):
    mdp, _ = corridor(5)
    with pytest.raises(ValueError, match="returns must be a list of finite numbers, at least one"):
        learn(mdp, [], returns=returns)


def test_a_target_that_every_episode_reaches_is_refused():
    mdp, _ = corridor(5)
    with pytest.raises(ValueError, match=r"target is -1.2, .* pays nothing below 0.*\[1.0\]"):
        learn_q(mdp, [], returns=[-1.0])
    lossy = replace(mdp, rewards=mdp.rewards - 1)
    assert learn_q(lossy, [], returns=[-9.0], protocol=Protocol(max_episodes=10)).episodes == 10


def test_an_environment_in_place_of_its_table_is_refused(rooms):
    env, demos = rooms
    with pytest.raises(ValueError, match="a TabularMDP is needed; give its mdp"):
        learn_q(env, demos)
    with pytest.raises(ValueError, match="no demonstrations were given"):
        learn_q(env.mdp, None)


def test_flags_are_flags():
    mdp, demos = corridor(5)
    with pytest.raises(ValueError, match="unbiased is 'x'"):
        learn_rrd(mdp, demos, unbiased="x")
    with pytest.raises(ValueError, match="absorbing is 'x'"):
        learn_ircr(mdp, demos, absorbing="x")
