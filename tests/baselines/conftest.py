"""Shared by the tests of the learners: rooms with demonstrations, and fitted LSTMs."""

import pytest
from toys import levers, mixed, toy

from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.rudder import random_episodes_of
from align_rudder.tasks import RoomsEnv


@pytest.fixture(scope="session")
def rooms():
    env = RoomsEnv(4)
    return env, env.demonstrations(5, seed=1)


@pytest.fixture(scope="session")
def lever_model():
    pytest.importorskip("jax")
    episodes = levers(60, 0)
    return LstmRudder().fit(episodes[::2], episodes[1::2])


@pytest.fixture(scope="session")
def lake_data():
    return toy("FrozenLake-v1", is_slippery=False)


@pytest.fixture(scope="session")
def lake_model(lake_data):
    pytest.importorskip("jax")
    mdp, demos = lake_data  # of the shapes that learn_rudder has, which are compiled once
    return LstmRudder(max_steps=100).fit(demos, random_episodes_of(mdp, 20, 0))


@pytest.fixture(scope="session")
def mixed_model():
    pytest.importorskip("jax")
    return LstmRudder(updates=20).fit(mixed(8, 0), mixed(8, 1))
