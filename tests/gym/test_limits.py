"""Time limits that end the task: no truncation, the time left observed, and what a learner sees."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env

import align_rudder as ar


class Square(gym.ObservationWrapper, gym.utils.RecordConstructorArgs):
    """Shows CartPole as a picture of two by two."""

    def __init__(self, env):
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 2), np.float32)

    def observation(self, observation):
        return observation.reshape(2, 2)


KINDS = {
    "number": lambda: gym.make("FrozenLake-v1", max_episode_steps=9),
    "vector": lambda: gym.make("CartPole-v1", max_episode_steps=9),
    "integers": lambda: gym.make("AlignRudder/KeyChest-v0"),
    "other": lambda: Square(gym.make("CartPole-v1", max_episode_steps=9)),
}


@pytest.mark.parametrize("observe_time", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*probably too", "ignore:.*unconventional shape")
def test_judged_by_the_checkers(kind, observe_time):
    env = ar.TerminalTimeLimit(KINDS[kind](), 32 if kind == "integers" else None, observe_time)
    check_env(env, skip_render_check=True)
    sb3_check_env(env)


def left(kind, obs, steps):
    if kind == "number":
        return obs % (steps + 1) / steps
    return obs[-1] if kind == "vector" else obs["time"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_runs_down_to_zero_and_the_end_is_terminal(kind):
    steps = 32 if kind == "integers" else 9
    bare, env = KINDS[kind](), ar.TerminalTimeLimit(KINDS[kind](), steps)
    action = {"number": 0, "integers": 0}.get(kind)
    for _ in range(2):
        obs, _ = env.reset(seed=1)
        seen = [left(kind, obs, steps)]
        own, _ = bare.reset(seed=1)
        over, t = False, 0
        while not over:
            chosen = t % 2 if action is None else action
            obs, reward, over, cut, info = env.step(chosen)
            own, own_reward, *_ = bare.step(chosen)
            assert reward == own_reward
            assert not cut
            assert env.observation_space.contains(obs)
            seen.append(left(kind, obs, steps))
            t += 1
            assert info["time_limit"] == over
        assert np.allclose(seen, np.arange(steps, -1, -1) / steps)
    inside = {"number": lambda: obs // (steps + 1), "vector": lambda: obs[:-1]}
    assert np.array_equal(inside.get(kind, lambda: obs["observation"])(), own)


def test_an_end_of_its_own_is_not_the_limits():
    env = ar.TerminalTimeLimit(gym.make("FrozenLake-v1", is_slippery=False))
    env.reset()
    for action in [1, 1, 2, 2, 1, 2]:
        _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["time_limit"]) == (1.0, True, False, False)


def test_a_limit_of_its_own_within_that_of_the_environment(lake):
    env = ar.TerminalTimeLimit(lake, 3, observe_time=False)
    for _ in range(2):
        env.reset()
        assert [env.step(0)[2] for _ in range(3)] == [False, False, True]
    with pytest.raises(ValueError, match=r"max_steps=101; .* at most the 100 of the environment"):
        ar.TerminalTimeLimit(lake, 101)
    with pytest.raises(ValueError, match="max_steps=0"):
        ar.TerminalTimeLimit(lake, 0)
    with pytest.raises(ValueError, match="does not say how long an episode is"):
        ar.TerminalTimeLimit(gym.make("AlignRudder/KeyChest-v0"))


def test_learners_do_not_bootstrap_at_the_limit():
    """Stable-Baselines3 adds the value of the last state where "TimeLimit.truncated" says so."""
    for wrapper, truncated in ((None, True), (ar.TerminalTimeLimit, False)):
        env = make_vec_env(
            "FrozenLake-v1", env_kwargs={"max_episode_steps": 3}, wrapper_class=wrapper
        )
        env.reset()
        for _ in range(3):
            _, _, done, infos = env.step(np.array([0]))
        assert done[0]
        assert infos[0]["TimeLimit.truncated"] is truncated


def test_it_is_rebuilt_from_the_spec(lake):
    env = gym.make(ar.TerminalTimeLimit(lake, 7).spec)
    assert env.observation_space == gym.spaces.Discrete(16 * 8)


def test_around_the_redistributed_reward(lake, model):
    env = ar.TerminalTimeLimit(ar.RedistributeReward(lake, model))
    env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = env.step(3)
        total += reward
    assert info["time_limit"]
    assert abs(total) < 1e-9
