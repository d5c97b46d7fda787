"""The default reward teaches networks what the plain one does not: a default is a claim."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import align_rudder as ar
from align_rudder.tasks import RecipesEnv

LENGTH, LAYOUT = 6, 3
LEARNERS: dict[str, Any] = {
    "ppo": lambda env: PPO(
        "MlpPolicy", env, n_steps=128, batch_size=256, n_epochs=4, learning_rate=1e-3, seed=0
    ),
    "dqn": lambda env: DQN(
        "MlpPolicy",
        env,
        learning_rate=3e-4,
        learning_starts=1000,
        batch_size=64,
        gradient_steps=2,
        train_freq=1,
        n_steps=5,
        target_update_interval=500,
        exploration_fraction=0.3,
        seed=0,
    ),
}


class Successes(BaseCallback):
    """Which episodes were successes."""

    def __init__(self):
        super().__init__()
        self.won = []

    def _on_step(self):
        for over, info in zip(self.locals["dones"], self.locals["infos"]):
            if over:
                self.won.append(info["original_reward"] > 0)
        return len(self.won) < 100 or np.mean(self.won[-100:]) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("learner", list(LEARNERS))
def test_networks_learn_a_recipe_in_a_layout_that_no_log_shows(learner):
    layouts = [RecipesEnv(LENGTH, seed=[LAYOUT, j], recipe_seed=LAYOUT) for j in range(10)]
    model = ar.AlignRudder().fit_events([env.log(j) for j, env in enumerate(layouts)])

    def happened(obs, action, reward, next_obs, info):
        return info["happened"] or None

    def wrapped():
        return ar.RedistributeReward(
            RecipesEnv(LENGTH, seed=LAYOUT, recipe_seed=LAYOUT), model, events=happened
        )

    class Plain(gym.Wrapper):
        def step(self, action):
            obs, _, *rest, info = self.env.step(action)
            return obs, info["original_reward"], *rest, info

    torch.set_num_threads(1)
    rates = {}
    for name, make in (("default", wrapped), ("plain", lambda: Plain(wrapped()))):
        watch = Successes()
        env = DummyVecEnv([make] * 8)
        env.seed(0)
        LEARNERS[learner](env).learn(60_000, callback=watch)
        rates[name] = np.mean(watch.won[-100:])
    assert rates["default"] >= 0.9
    assert rates["plain"] < 0.1
