"""Small tasks and episodes, for the tests of the learners."""

from dataclasses import replace

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
    flags = [[0.0] * (len(e) - 1) + [1.0] for e in demos]
    return replace(mdp, rewards=rewards), [
        ar.Episode(e.observations, e.actions, r) for e, r in zip(demos, flags)
    ]


def corridor(n, horizon=50):
    """Return a corridor of n states, paid 1 at its right end, and two walks along it."""
    outcomes = [
        [[(1.0, max(s - 1, 0), 0.0, False)], [(1.0, s + 1, float(s == n - 2), s == n - 2)]]
        for s in range(n - 1)
    ]
    outcomes.append([[(1.0, n - 1, 0.0, True)]] * 2)
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(n)[0], horizon)
    walk = ar.Episode(np.arange(n), [1] * (n - 1), np.eye(n - 1)[-1])
    return mdp, [walk] * 2


def mixed(n, seed):
    """Return episodes with dict observations of whole numbers and floats, and float actions."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        steps = int(rng.integers(3, 20))
        observations = {
            "kind": rng.integers(-3, 3, (steps + 1, 2)),
            "place": rng.normal(5.0, 3.0, (steps + 1, 3)),
        }
        out.append(ar.Episode(observations, rng.normal(size=(steps, 2)), rng.normal(size=steps)))
    return out


LEVER, HORIZON = 5, 12


def levers(n, seed):
    """Return episodes of noise states that pay 1 at the end if the lever state was met."""
    rng = np.random.default_rng(seed)
    episodes = []
    for i in range(n):
        states = rng.integers(0, LEVER, HORIZON + 1)
        at = int(rng.integers(0, 6)) if i % 2 == 0 else None
        if at is not None:
            states[at] = LEVER
        rewards = [0.0] * (HORIZON - 1) + [float(at is not None)]
        episodes.append(ar.Episode(states, rng.integers(0, 2, HORIZON), rewards))
    return episodes


def random_memory(rng, episodes, steps, n_states, n_actions):
    """Return a memory of random episodes of up to so many steps."""
    states = rng.integers(0, n_states, (episodes, steps + 1)).astype(np.int32)
    actions = rng.integers(0, n_actions, (episodes, steps)).astype(np.int32)
    lengths = rng.integers(1, steps + 1, episodes)
    ends = np.ones(episodes, np.bool_)
    return states, actions, lengths, rng.normal(size=episodes), ends, np.zeros(1, np.int64)
