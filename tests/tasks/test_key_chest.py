"""Key and chest: paid at the last step, if the chest was opened."""

import gymnasium as gym
import pytest

from align_rudder.tasks import KeyChestEnv


def test_key_chest_pays_at_the_last_step_if_opened():
    env = gym.make("AlignRudder/KeyChest-v0")
    plan = [0] * 4 + [1] * 8 + [0] * 20
    for actions, expected in ((plan, 1.0), ([1] * 32, 0.0), ([0] * 32, 0.0)):
        obs, _ = env.reset(seed=0)
        assert obs.tolist() == [4, 0, 0]
        rewards = [env.step(a) for a in actions]
        assert [r[1] for r in rewards[:-1]] == [0.0] * 31
        assert rewards[-1][1] == expected
        assert rewards[-1][3]
        assert not any(r[2] or r[3] for r in rewards[:-1])


def test_corridors_that_cannot_be_walked_are_refused():
    with pytest.raises(ValueError, match="length=30"):
        KeyChestEnv(length=30)
