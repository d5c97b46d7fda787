"""Cloning makes a policy do what was shown; burn-in trains the values and nothing else."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import align_rudder as ar
from align_rudder.gym.sb3 import ValueBurnIn, clone


def follows(learner, demo, observations=None):
    """Return whether the policy's best actions are those of a demonstration."""
    seen = demo.observations if observations is None else observations
    chosen, _ = learner.predict(seen[:-1], deterministic=True)
    return np.array_equal(chosen, demo.actions)


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_a_cloned_policy_does_what_was_shown(lake, demos, algorithm):
    learner = algorithm("MlpPolicy", lake, seed=0, device="cpu")
    assert not follows(learner, demos[0])
    values = learner.policy.value_net.weight.clone()
    losses = clone(learner, demos[:1], epochs=60, learning_rate=3e-3)
    assert follows(learner, demos[0])
    assert losses[-1] < 0.1 < losses[0]
    assert torch.equal(learner.policy.value_net.weight, values)
    assert (
        ar.record(lake, lambda obs: learner.predict(obs, deterministic=True)[0], 1).failures == []
    )


def test_the_same_seed_clones_the_same(lake, demos):
    weights = []
    for seed in (0, 0, 1):
        learner = PPO("MlpPolicy", lake, seed=0, device="cpu")
        clone(learner, demos, epochs=3, batch_size=8, seed=seed)
        weights.append(learner.policy.action_net.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_demonstrations_are_played_again_for_what_the_learner_sees(lake, model, demos):
    """A demonstration that stands in a cell twice can be done only by who sees the time."""
    env = ar.TerminalTimeLimit(
        ar.SubTaskReward(gym.make("FrozenLake-v1", is_slippery=False), model)
    )
    for around, twice, done in (
        (lake, demos[1:2], False),
        (env, ar.replay(env, demos[1:2]), True),
    ):
        learner = PPO("MlpPolicy", around, seed=0, device="cpu")
        clone(learner, twice, epochs=60, learning_rate=3e-3)
        assert follows(learner, twice[0]) == done
    chest = ar.TerminalTimeLimit(gym.make("AlignRudder/KeyChest-v0"), 32)
    bare = gym.make("AlignRudder/KeyChest-v0").unwrapped.demonstrations(1, exploration=0.0)
    learner = PPO("MultiInputPolicy", chest, seed=0, device="cpu")
    with pytest.raises(
        ValueError, match=r"\['observation'\], the demonstrations have none alike.*replay"
    ):
        clone(learner, bare)
    again = ar.replay(chest, bare)
    clone(learner, again, epochs=60, learning_rate=1e-2)
    chosen, _ = learner.predict(
        {key: part[:-1] for key, part in again[0].observations.items()}, deterministic=True
    )
    assert (chosen == bare[0].actions).mean() > 0.9


def test_continuous_actions_and_normalised_observations():
    env = VecNormalize(make_vec_env("MountainCarContinuous-v0", seed=0))
    env.reset()
    for _ in range(50):
        env.step(np.array([[1.0]]))
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(-1.2, 0.6, 201), rng.uniform(-0.07, 0.07, 201)])
    places = places.astype(np.float32)
    demo = ar.Episode(places, np.sign(places[:-1, 1:]) * 0.7, [0.0] * 199 + [1.0])
    learner = PPO("MlpPolicy", env, seed=0, device="cpu")
    clone(learner, [demo], epochs=100, learning_rate=3e-3)
    chosen, _ = learner.predict(env.normalize_obs(places[:-1]), deterministic=True)
    assert np.mean(np.sign(chosen) == np.sign(demo.actions)) > 0.95
    wrong, _ = learner.predict(places[:-1], deterministic=True)  # not what it will see
    assert np.abs(chosen - demo.actions).mean() < np.abs(wrong - demo.actions).mean()


class Pictures(gym.ObservationWrapper):
    """Shows the lake as a picture, for a network whose features actor and values share."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)

    def observation(self, observation):
        picture = np.zeros((36, 36, 3), np.uint8)
        y, x = divmod(int(observation), 4)
        picture[9 * y : 9 * y + 9, 9 * x : 9 * x + 9] = 255
        return picture


def likelihoods(learner):
    """Return the logits of all actions in some states: bit by bit what the actor does."""
    n = learner.observation_space
    seen = (
        np.arange(16) if hasattr(n, "n") else np.random.default_rng(0).uniform(size=(8, *n.shape))
    )
    if seen.ndim == 4:
        seen = (255 * seen).astype(np.uint8)
    tensors, _ = learner.policy.obs_to_tensor(seen)
    with torch.no_grad():
        found = learner.policy.get_distribution(tensors).distribution
        values = learner.policy.predict_values(tensors)
    return getattr(found, "logits", getattr(found, "loc", None)), values


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: gym.make("FrozenLake-v1"), {}),
        (lambda: gym.make("MountainCarContinuous-v0"), {}),
        (lambda: Pictures(gym.make("FrozenLake-v1")), {"policy": "CnnPolicy"}),
        (
            lambda: Pictures(gym.make("FrozenLake-v1")),
            {"policy": "CnnPolicy", "policy_kwargs": {"share_features_extractor": False}},
        ),
    ],
    ids=["numbers", "continuous", "shared features", "separate features"],
)
def test_burn_in_leaves_the_actor_as_it_is_and_trains_the_values(make, options):
    options = {"policy": "MlpPolicy", **options}
    kwargs = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "ent_coef": 0.1}
    learner = PPO(env=make(), seed=0, device="cpu", **kwargs, **options)
    spread = getattr(learner.policy, "log_std", torch.zeros(1)).detach().clone()
    actor, values = likelihoods(learner)
    learner.learn(64, callback=ValueBurnIn(64))
    burned, learned = likelihoods(learner)
    assert torch.equal(actor, burned)
    assert torch.equal(spread, getattr(learner.policy, "log_std", torch.zeros(1)).detach())
    assert not torch.allclose(values, learned)
    assert all(p.requires_grad for p in learner.policy.parameters())  # not left frozen
    learner.learn(96, callback=ValueBurnIn(64))
    assert not torch.equal(likelihoods(learner)[0], burned)


def test_a_cloned_policy_is_kept_through_burn_in_and_spoiled_without(lake, demos):
    """Values that know nothing: half of an update's advantages are noise."""
    for callback, kept in ((ValueBurnIn(1000), True), (None, False)):
        learner = PPO("MlpPolicy", lake, n_steps=128, seed=0, device="cpu")
        clone(learner, demos[:1], epochs=60, learning_rate=3e-3)
        before = likelihoods(learner)[0]
        learner.learn(256, callback=callback)
        assert torch.equal(likelihoods(learner)[0], before) == kept


def test_bad_use(lake, demos):
    dqn = DQN("MlpPolicy", lake, device="cpu", buffer_size=10)
    with pytest.raises(ValueError, match=r"policy of DQN is a DQNPolicy.*fill_replay_buffer"):
        clone(dqn, demos)
    with pytest.raises(ValueError, match="policy of DQN"):
        dqn.learn(1, callback=ValueBurnIn(10))
    learner = PPO("MlpPolicy", lake, device="cpu")
    with pytest.raises(ValueError, match="got 0 demonstrations"):
        clone(learner, [])
    with pytest.raises(ValueError, match="steps=-1"):
        ValueBurnIn(-1)
    beyond = ar.Episode([16, 0], [0], [1.0])
    with pytest.raises(ValueError, match=r"observes Discrete\(16\)"):
        clone(learner, [beyond])
