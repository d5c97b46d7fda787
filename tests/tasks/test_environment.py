"""Environments on tables: the judges of others, seeds and demonstrations."""

import os
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import align_rudder as ar
from align_rudder.tasks import RoomsEnv

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows without a screen

IDS = ["FourRooms-v0", "EightRooms-v0", "Rooms-v0", "KeyChest-v0"]


@pytest.mark.parametrize("name", IDS)
def test_judges(name):
    env = gym.make(f"AlignRudder/{name}", render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped)
        check_env_sb3(env.unwrapped)
    env.reset(seed=0)
    assert np.ptp(env.render()) > 100  # a picture with contrast
    with gym.make(f"AlignRudder/{name}", render_mode="human") as window:
        window.reset(seed=0)
        window.step(0)
        shown = window.unwrapped._window
        assert shown.get_size() == env.render().shape[1::-1]


@pytest.mark.parametrize("name", IDS)
def test_same_seed_same_episode(name):
    def episode(seed):
        env = gym.make(f"AlignRudder/{name}", slip=0.3)
        rng = np.random.default_rng(0)
        obs, _ = env.reset(seed=seed)
        seen = [np.array(obs).tolist()]
        for _ in range(40):
            obs, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
            seen.append((np.array(obs).tolist(), reward))
            if terminated or truncated:
                break
        return seen

    assert episode(3) == episode(3)
    assert episode(3) != episode(4)


def test_demonstrations_succeed_and_are_alignable():
    env = RoomsEnv(4)
    demos = env.demonstrations(6, seed=5)
    assert all(e.ret > 0 for e in demos)
    assert [e.actions.tolist() for e in demos] == [
        e.actions.tolist() for e in env.demonstrations(6, seed=5)
    ]
    model = ar.AlignRudder(ar.StateEvents(max_events=15), strategies=1).fit(demos)
    target = env.map.state(env.map.target, 0)
    rr = model.redistribute(demos[0])
    entered = [env.map.room_of(env.map.cell(s)[0]) for s in demos[0].observations[1:]]
    crossing = [t for t in range(1, len(entered)) if entered[t] > entered[t - 1]]
    assert demos[0].observations[-1] == target
    # Most of the reward is not at the end any more, and more than one room has its share.
    assert rr.rewards[-1] + rr.correction < 0.5 * rr.ret
    parts = np.split(rr.rewards[:-1], crossing)
    assert sum(part.sum() > 0.1 * rr.ret for part in parts) >= 2


def test_chosen_starts_and_bad_arguments():
    env = RoomsEnv(4)
    starts = np.flatnonzero(env.mdp.starts)
    demos = env.demonstrations(4, starts=starts[:2])
    assert [e.observations[0] for e in demos] == [*starts[:2], *starts[:2]]
    assert env.reset(options={"start": starts[3]})[0] == starts[3]
    with pytest.raises(ValueError, match="no start state"):
        env.reset(options={"start": 800})
    for bad, message in (
        ({"rooms": 5}, "even number"),
        ({"slip": 1.5}, "probability"),
        ({"render_mode": "text"}, "render_mode='text'"),
    ):
        with pytest.raises(ValueError, match=message):
            RoomsEnv(**bad)
    with pytest.raises(gym.error.ResetNeeded, match="before reset"):
        RoomsEnv(4).step(0)
