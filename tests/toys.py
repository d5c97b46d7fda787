"""Gymnasium's toy-text environments as tables, for the tests of the learners."""

import gymnasium as gym
import numpy as np

import align_rudder as ar
from align_rudder.baselines import TabularMDP, optimal_policy, rollout

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"


def toy(name, n=5, **options):
    """Return a toy-text environment as tables, with demonstrations that reach its end."""
    mdp = TabularMDP.from_gymnasium(gym.make(name, **options), horizon=100)
    policy, rng = optimal_policy(mdp), np.random.default_rng(0)
    demos = []
    while len(demos) < n:
        episode = rollout(mdp, policy, rng, 0.05)
        if episode.terminated:
            demos.append(episode)
    return mdp, demos


def paid_at_the_end(mdp, demos):
    """Return the same task with its return paid for reaching the end alone: 1, else 0."""
    rewards = mdp.terminal.astype(float) * (mdp.rewards == mdp.rewards.max())
    sparse = TabularMDP(
        mdp.next_states,
        mdp.cumulative,
        rewards,
        mdp.terminal,
        mdp.starts,
        mdp.horizon,
        mdp.time_factor,
    )
    flags = [[0.0] * (len(e) - 1) + [1.0] for e in demos]
    return sparse, [ar.Episode(e.observations, e.actions, r) for e, r in zip(demos, flags)]
