"""Stable-Baselines3: it logs the true return, learns, and its buffers hold our rewards."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import align_rudder as ar
from align_rudder.gym.sb3 import (
    RedistributedDictReplayBuffer,
    RedistributedReplayBuffer,
    fill_replay_buffer,
)

LAKE = {"is_slippery": False, "max_episode_steps": 15}


def test_ppo_through_make_vec_env_learns_and_logs_the_true_return(model, tmp_path):
    torch.set_num_threads(1)
    path = tmp_path / "model.npz"
    model.save(path)
    env = make_vec_env(
        "FrozenLake-v1",
        n_envs=8,
        seed=0,
        env_kwargs=LAKE,
        wrapper_class=ar.RedistributeReward,
        wrapper_kwargs={"model": str(path)},
    )
    ppo = PPO("MlpPolicy", env, n_steps=64, batch_size=256, gamma=1.0, seed=0, ent_coef=0.01)
    ppo.learn(12_000)
    logged = [episode["r"] for episode in ppo.ep_info_buffer]
    assert set(logged) <= {0.0, 1.0}  # the environment's returns, not parts of them
    mean, _ = evaluate_policy(ppo, make_vec_env("FrozenLake-v1", env_kwargs=LAKE), 20)
    assert mean == 1.0


def test_dqn_buffer_holds_the_redistributed_reward_of_whole_episodes(model):
    env = make_vec_env("FrozenLake-v1", n_envs=3, seed=1, env_kwargs=LAKE)
    dqn = DQN(
        "MlpPolicy",
        env,
        seed=1,
        learning_starts=10_000,
        buffer_size=3000,
        replay_buffer_class=RedistributedReplayBuffer,
        replay_buffer_kwargs={"model": model},
    )
    dqn.learn(900)
    buffer = dqn.replay_buffer
    checked = 0
    for i in range(3):
        start = 0
        for t in range(buffer.pos):
            if buffer.dones[t, i]:
                steps = slice(start, t + 1)
                observations = np.append(
                    buffer.observations[steps, i].ravel(), buffer.next_observations[t, i].ravel()
                )
                reached = observations[-1] == 15
                rewards = [0.0] * (t - start) + [float(reached)]
                episode = ar.Episode(observations, buffer.actions[steps, i].ravel(), rewards)
                expected = model.redistribute(episode).with_correction()
                np.testing.assert_allclose(buffer.rewards[steps, i], expected, atol=1e-6)
                checked += 1
                start = t + 1
    assert checked > 50


@pytest.mark.parametrize("n_envs", [1, 4])
def test_demonstrations_fill_a_buffer(model, demos, n_envs):
    spaces = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    buffer = ReplayBuffer(400, *spaces, n_envs=n_envs, device="cpu")
    added = fill_replay_buffer(buffer, demos, model)
    steps = sum(len(e) for e in demos)
    assert added == buffer.pos * n_envs >= steps > added - n_envs
    rewards = np.concatenate([model.redistribute(e).with_correction() for e in demos])
    np.testing.assert_allclose(buffer.rewards[: buffer.pos].ravel()[:steps], rewards, atol=1e-6)
    assert buffer.dones[: buffer.pos].ravel()[:steps].sum() == len(demos)
    next_states = np.concatenate([e.observations[1:] for e in demos])
    stored = buffer.next_observations[: buffer.pos].ravel()[:steps]
    assert stored.tolist() == next_states.tolist()


def test_a_redistributed_buffer_knows_its_model_and_goes_on_collecting(model, demos):
    spaces = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    buffer = RedistributedReplayBuffer(200, *spaces, n_envs=1, device="cpu", model=model)
    episode = demos[0]
    transition = [
        (
            episode.observations[t],
            episode.observations[t + 1],
            episode.actions[t],
            episode.rewards[t],
        )
        for t in range(len(episode))
    ]
    for k, (obs, next_obs, action, reward) in enumerate(transition):
        if k == 3:
            fill_replay_buffer(buffer, demos[1:])
        done = k == len(transition) - 1
        args = (np.array([x]) for x in (obs, next_obs, action, reward, done))
        buffer.add(*args, [{}])
    mine = np.r_[
        buffer.rewards[:3, 0], buffer.rewards[buffer.pos - len(episode) + 3 : buffer.pos, 0]
    ]
    np.testing.assert_allclose(mine, model.redistribute(episode).with_correction(), atol=1e-6)


def test_dict_observations():
    plans = [[1, 0, 2], [0, 1, 2], [1, 2, 0]]
    episodes = []
    for plan in plans:
        items = np.array([[plan[:t].count(1), plan[:t].count(2)] for t in range(4)])
        episodes.append(ar.Episode({"items": items, "t": np.arange(4)}, plan, [0, 0, 1]))
    model = ar.AlignRudder(ar.DeltaEvents(keys=["items"])).fit(episodes)
    space = gym.spaces.Dict(
        {"items": gym.spaces.Box(0, 9, (2,), np.int64), "t": gym.spaces.Discrete(9)}
    )
    actions = gym.spaces.Discrete(3)
    buffer = RedistributedDictReplayBuffer(20, space, actions, n_envs=1, device="cpu", model=model)
    assert isinstance(buffer, DictReplayBuffer)
    assert fill_replay_buffer(buffer, episodes) == 9
    expected = np.concatenate([model.redistribute(e).with_correction() for e in episodes])
    np.testing.assert_allclose(buffer.rewards[:9, 0], expected, atol=1e-6)


def test_bad_use(model, demos):
    spaces = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    with pytest.raises(ValueError, match="no model of its own"):
        fill_replay_buffer(ReplayBuffer(100, *spaces, device="cpu"), demos)
    with pytest.raises(ValueError, match="do not fit into a buffer of 10"):
        fill_replay_buffer(ReplayBuffer(10, *spaces, device="cpu"), demos, model)


def test_a_reset_in_the_middle_of_an_episode_is_noticed(model, demos):
    """As when `learn` is called again: the environment is reset without a last step."""
    spaces = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    buffer = RedistributedReplayBuffer(200, *spaces, n_envs=1, device="cpu", model=model)

    def add(episode, steps):
        for t in range(steps):
            done = t == len(episode) - 1
            values = (
                episode.observations[t],
                episode.observations[t + 1],
                episode.actions[t],
                episode.rewards[t],
                done,
            )
            buffer.add(*(np.array([v]) for v in values), [{}])

    add(demos[0], 3)
    add(demos[1], len(demos[1]))
    stored = buffer.rewards[3 : 3 + len(demos[1]), 0]
    np.testing.assert_allclose(stored, model.redistribute(demos[1]).with_correction(), atol=1e-6)
    add(demos[0], 2)
    buffer.restart()
    add(demos[2], len(demos[2]))
    stored = buffer.rewards[buffer.pos - len(demos[2]) : buffer.pos, 0]
    np.testing.assert_allclose(stored, model.redistribute(demos[2]).with_correction(), atol=1e-6)


def test_observations_that_are_not_numbers_do_not_break_an_episode_in_two():
    """A sensor that says NaN is still the same sensor: the parts of the return sum to it."""
    seen = np.array([[0, 0], [1, np.nan], [1, np.nan], [2, 0], [3, np.nan]], np.float32)

    def count(obs, action, reward, next_obs, info):
        return f"at {next_obs[0]:.0f}" if next_obs[0] > obs[0] else None

    episode = ar.Episode(seen, [0] * 4, [0.0, 0.0, 0.0, 1.0])
    model = ar.AlignRudder(count, strategies=1).fit([episode] * 3)
    space = gym.spaces.Box(-9, 9, (2,), np.float32)
    plain = RedistributedReplayBuffer(9, space, gym.spaces.Discrete(2), device="cpu", model=model)
    both = gym.spaces.Dict({"a": space})
    named = ar.AlignRudder(
        lambda o, *rest: count(o["a"], *rest[:2], rest[2]["a"], {}), strategies=1
    )
    named.fit([ar.Episode({"a": seen}, [0] * 4, episode.rewards)] * 3)
    parts = RedistributedDictReplayBuffer(
        9, both, gym.spaces.Discrete(2), device="cpu", model=named
    )
    for t in range(4):
        step = (np.array([x]) for x in (0, episode.rewards[t], t == 3))
        plain.add(seen[[t]].copy(), seen[[t + 1]].copy(), *step, [{}])
        step = (np.array([x]) for x in (0, episode.rewards[t], t == 3))
        parts.add({"a": seen[[t]].copy()}, {"a": seen[[t + 1]].copy()}, *step, [{}])
    expected = model.redistribute(episode).with_correction()
    for buffer in (plain, parts):
        np.testing.assert_allclose(buffer.rewards[:4, 0], expected, atol=1e-6)
        assert buffer.rewards[:4, 0].sum() == pytest.approx(1.0)


def test_an_event_that_an_encoder_should_not_return_earns_nothing(lake, demos):
    """Ids above the known ones, far above too: unknown, in one stream, many, and buffers."""

    class Hostile(ar.StateEvents):
        def transition_event(self, *step):
            return 10**6 + int(step[3])

        def transition_events(self, obs, actions, rewards, next_obs, infos):
            return 10**6 + np.asarray(next_obs, np.int64).ravel()

    hostile = ar.AlignRudder().fit(demos)
    hostile.events_.__class__ = Hostile
    unknown = hostile.events_.n_events
    env = ar.RedistributeReward(lake, hostile, "info")
    vector = ar.vector.RedistributeReward(
        gym.make_vec("FrozenLake-v1", 2, is_slippery=False), hostile, "info"
    )
    env.reset()
    vector.reset()
    buffer = RedistributedReplayBuffer(
        99, lake.observation_space, lake.action_space, device="cpu", model=hostile
    )
    for t, action in enumerate(demos[0].actions):
        _, reward, *_, info = env.step(action)
        _, rewards, *_, infos = vector.step([action] * 2)
        assert (reward, info["event"]) == (0.0, unknown)
        assert (rewards.tolist(), infos["event"].tolist()) == ([0.0] * 2, [unknown] * 2)
        place = demos[0].observations
        last = t == len(demos[0]) - 1
        step = (np.array([x]) for x in (place[t], place[t + 1], action, float(last), last))
        buffer.add(*step, [{}])
    assert buffer.rewards[: len(demos[0]), 0].tolist() == [0.0] * (len(demos[0]) - 1) + [1.0]
    assert hostile.redistribute(demos[0]).rewards.tolist() == [0.0] * len(demos[0])
