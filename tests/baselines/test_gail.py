"""GAIL: discriminator, advantages and policy by hand and by differences."""

import numpy as np
import pytest

from align_rudder.baselines import Protocol, learn_gail
from align_rudder.baselines.gail import (
    advantages,
    discriminate,
    imitation_reward,
    policy_step,
    softmax,
)


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


def test_gail_without_the_absorbing_state_prefers_to_stay(rooms):
    """−log(1 − D) is never negative: to live on among demonstrated states pays more than to end."""
    env, demos = rooms
    protocol = Protocol(max_episodes=1000, target=2.0)
    means = [
        learn_gail(env.mdp, demos, absorbing=absorbing, protocol=protocol).curve[-20:].mean()
        for absorbing in (False, True)
    ]
    assert means[0] < 0.8 * means[1]
