"""What settled rewards must be, by equations for whole episodes instead of step by step."""

import gymnasium as gym
import numpy as np

import align_rudder as ar
from align_rudder.settlement import SETTLEMENTS, Settlement

KINDS = SETTLEMENTS
GAMMA, FADE, SUCCESSES = 0.9, 0.05, 3.0  # other than the defaults
COST = 0.01


class StepCost(gym.RewardWrapper):
    """Every step costs a little."""

    def reward(self, reward):
        return float(reward) - COST


def settlement(kind):
    return Settlement(kind, GAMMA, FADE, SUCCESSES)


def arguments(kind):
    return {"settlement": kind, "gamma": GAMMA, "fade": FADE, "successes": SUCCESSES}


def mean_rate(kind, before):
    """Return what is taken back per step after these episodes, (rewards, shares) of each."""
    weights = 0.99 ** np.arange(len(before))[::-1]
    surplus = [shares.sum() - (own[-1] if kind == "even" else 0.0) for own, shares in before]
    steps = [len(own) for own, _ in before]
    return float(weights @ surplus / (weights @ steps)) if before else 0.0


def paid_share(before, returns, n=1):
    """Return what "annealed" pays of a share after these episodes of n environments."""
    low, high = returns
    parts = np.array([(own.sum() - low) / (high - low) for own, _ in before])
    repaid = np.minimum(parts[parts >= 0.8], 1).sum() + 0.01 * (parts < 0.8).sum()
    return max(0.0, 1 - repaid / (n * SUCCESSES))


def online(kind, own, shares, terminated, before=(), returns=(0.0, 1.0), n_envs=1):
    """Return the rewards of an episode paid while it ran, after the episodes `before`."""
    own, shares = np.asarray(own, float), np.asarray(shares, float)
    paid, n = own + shares, len(own)
    if kind == "annealed":
        return own + paid_share(before, returns, n_envs) * shares
    if kind == "potential":
        t, s = np.mgrid[:n, :n]
        phi = np.where(s <= t, (1 - FADE) ** np.maximum(t - s, 0), 0.0) @ shares
        if terminated:
            phi[-1] = 0.0
        return own + GAMMA * phi - np.append(0.0, phi[:-1])
    if kind in ("even", "mean"):
        rate = mean_rate(kind, list(before))
        paid -= rate
        paid[-1] += n * rate
    if kind != "beside":
        paid[-1] -= shares.sum()
    return paid


def check_settled(kind, rewards, rr, before=(), atol=1e-12, returns=(0.0, 1.0), n_envs=1):
    """Assert that rewards paid online are those of the equations, and what they promise."""
    wanted = online(kind, rr.own, rr.rewards, rr.terminated, before, returns, n_envs)
    np.testing.assert_allclose(rewards, wanted, rtol=0, atol=atol)
    whole = rr.settled(settlement(kind))
    if kind in ("even", "mean"):
        np.testing.assert_allclose(whole.sum(), rr.ret, rtol=0, atol=1e-9)
    elif kind != "annealed":
        np.testing.assert_allclose(rewards, whole, rtol=0, atol=atol)
    if kind in ("even", "mean", "last"):
        np.testing.assert_allclose(np.sum(rewards), rr.ret, rtol=0, atol=max(atol, 1e-9))


def transitions(episode: ar.Episode):
    """Yield what a replay buffer is given for each step of an episode with array observations."""
    for t in range(len(episode)):
        last = t == len(episode) - 1
        cut = last and episode.truncated and not episode.terminated
        obs, after = episode.observations[t], episode.observations[t + 1]
        yield obs, after, episode.actions[t], episode.rewards[t], last, {"TimeLimit.truncated": cut}
