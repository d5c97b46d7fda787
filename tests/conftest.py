"""Shared by the tests: FrozenLake, demonstrations on it, and a model fitted to them."""

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar

try:  # scikit-bio turns on JAX's double precision when it is imported: turn it off again
    import jax
    import skbio.util  # noqa: F401
except ImportError:
    pass
else:
    jax.config.update("jax_enable_x64", False)

RIGHT, DOWN = 2, 1


def walk(env, actions):
    """Return the episode of an action sequence, extended by going right and down."""
    obs, _ = env.reset(seed=0)
    observations, taken, rewards = [obs], [], []
    terminated = truncated = False
    queue = list(actions)
    while not (terminated or truncated):
        action = queue.pop(0) if queue else (RIGHT if len(taken) % 2 else DOWN)
        obs, reward, terminated, truncated, _ = env.step(action)
        observations.append(obs)
        taken.append(action)
        rewards.append(reward)
    return ar.Episode(observations, taken, rewards, terminated, truncated)


LAKE = {"is_slippery": False, "map_name": "4x4"}
PATHS = (
    [1, 1, 2, 2, 1, 2],
    [1, 1, 0, 2, 2, 1, 2],
    [1, 1, 3, 1, 2, 2, 1, 2],
    [3, 1, 1, 2, 2, 1, 2],
    [1, 0, 1, 2, 1, 2, 2],
)


@pytest.fixture
def lake():
    return gym.make("FrozenLake-v1", **LAKE)


@pytest.fixture
def demos(lake):
    episodes = [walk(lake, path) for path in PATHS]
    assert all(e.ret == 1.0 for e in episodes)
    return episodes


@pytest.fixture
def model(demos):
    return ar.AlignRudder().fit(demos)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def compiled_quickly():
    """JAX's programs are compiled in less time and run slower."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
