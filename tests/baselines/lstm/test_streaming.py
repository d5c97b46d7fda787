"""Streams of the LSTM, and the wrappers that use them, pay what `redistribute` says."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from settled import KINDS, arguments, check_settled, paid_share, settlement
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from toys import mixed

import align_rudder as ar
from align_rudder.baselines.lstm import LstmRudder


@settings(max_examples=60, deadline=None)
@given(
    states=st.lists(st.integers(-5, 20), min_size=2, max_size=60),
    rewards=st.lists(st.floats(-1e6, 1e6), min_size=60, max_size=60),
)
def test_return_equivalence_and_streams_for_any_episode(lever_model, states, rewards):
    steps = len(states) - 1
    actions = [abs(s) % 3 for s in states[1:]]  # action 2 was never seen
    episode = ar.Episode(states, actions, rewards[:steps])
    rr = lever_model.redistribute(episode)
    tolerance = 1e-12 * max(1.0, np.abs(episode.rewards).sum())
    assert rr.rewards.sum() + rr.correction == pytest.approx(episode.ret, rel=0, abs=tolerance)
    for kind in ("even", "last"):
        assert rr.settled(kind).sum() == pytest.approx(episode.ret, rel=0, abs=10 * tolerance)
    np.testing.assert_allclose(rr.kappa, episode.ret - np.cumsum(rr.rewards))
    np.testing.assert_allclose(
        rr.scores, np.diff(lever_model.predict(episode)).cumsum(), rtol=0, atol=1e-6
    )
    assert (rr.events == -1).all()
    stream = lever_model.stream()
    stream.reset(states[0])
    shares = [
        stream.step(states[t], actions[t], rewards[t], states[t + 1], {}) for t in range(steps)
    ]
    assert shares == rr.rewards.tolist()
    assert stream.correction == pytest.approx(rr.correction, rel=0, abs=tolerance)


def test_vector_stream_equals_streams_with_dicts_floats_and_masks(mixed_model):
    model = mixed_model
    episodes = mixed(5, 2)
    n = len(episodes)
    vector = model.vector_stream(n)
    at = [{k: v[0] for k, v in e.observations.items()} for e in episodes]
    stacked = {k: np.stack([o[k] for o in at]) for k in at[0]}
    vector.reset(stacked)
    got = [[] for _ in range(n)]
    for t in range(max(len(e) for e in episodes)):
        running = np.array([t < len(e) for e in episodes])
        rows = [min(t, len(e) - 1) for e in episodes]
        obs = {k: np.stack([e.observations[k][r] for e, r in zip(episodes, rows)]) for k in stacked}
        actions = np.stack([e.actions[r] for e, r in zip(episodes, rows)])
        rewards = np.array([e.rewards[r] for e, r in zip(episodes, rows)])
        share = vector.step(obs, actions, rewards, obs, [{}] * n, running)
        assert (share[~running] == 0).all()
        for i in np.flatnonzero(running):
            got[i].append(share[i])
    for i, episode in enumerate(episodes):
        rr = model.redistribute(episode)
        assert got[i] == rr.rewards.tolist()
        assert vector.corrections[i] == pytest.approx(rr.correction, abs=1e-12)
        assert np.abs(rr.rewards).max() > 0
    vector.reset(stacked, np.arange(n) == 2)
    assert vector.given[2] == vector.scores[2] == 0.0
    assert vector.given[1] == pytest.approx(sum(got[1]))


def play(env, actions, seed=0):
    obs, _ = env.reset(seed=seed)
    observations, rewards, infos = [obs], [], []
    for action in actions:
        obs, reward, terminated, truncated, info = env.step(action)
        observations.append(obs)
        rewards.append(reward)
        infos.append(info)
        if terminated or truncated:
            break
    original = [info["original_reward"] for info in infos]
    return ar.Episode(observations, actions[: len(rewards)], original), rewards, infos


@pytest.mark.parametrize("kind", KINDS)
def test_wrapper_pays_what_redistribute_says(lake, lake_model, kind):
    env = ar.RedistributeReward(lake, lake_model, **arguments(kind))
    outcomes, before = set(), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        actions = [1, 1, 2, 2, 1, 2] if seed % 3 == 0 else rng.integers(0, 4, 200).tolist()
        episode, rewards, infos = play(env, actions, seed)
        rr = lake_model.redistribute(episode)
        check_settled(kind, rewards, rr, before, returns=lake_model.return_range_)
        before.append((rr.own, rr.rewards))
        np.testing.assert_array_equal([info["score"] for info in infos], rr.scores)
        assert {info["event"] for info in infos} == {-1}
        assert {info["subgoal"] for info in infos} == {0}
        outcomes.add(episode.ret)
    assert outcomes == {0.0, 1.0}


def test_checkers_of_gymnasium_and_stable_baselines(lake, lake_model):
    env = ar.RedistributeReward(lake, lake_model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
        check_env_sb3(env)
    assert env.observation_space == lake.observation_space


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", ["potential", "last", "beside"])
def test_vector_wrapper_pays_the_same(lake_model, mode, kind):
    def make():
        return gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=15)

    env = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    env = ar.vector.RedistributeReward(env, lake_model, **arguments(kind))
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    single = ar.RedistributeReward(make(), lake_model, **arguments(kind))
    running, waiting, compared = [[] for _ in range(3)], np.zeros(3, bool), 0
    for _ in range(120):
        actions = rng.integers(0, 4, 3)
        _, rewards, terminated, truncated, _ = env.step(actions)
        done = terminated | truncated
        for i in np.flatnonzero(~waiting):
            running[i].append((int(actions[i]), rewards[i]))
            if done[i]:
                _, alone, _ = play(single, [a for a, _ in running[i]])
                np.testing.assert_allclose([r for _, r in running[i]], alone, atol=1e-12)
                running[i], compared = [], compared + 1
        waiting = done if mode == AutoresetMode.NEXT_STEP else np.zeros(3, bool)
        if mode == AutoresetMode.DISABLED and done.any():
            env.reset(options={"reset_mask": done})
    assert compared > 15


@pytest.mark.parametrize("kind", KINDS)
def test_replay_buffer_holds_the_redistributed_rewards(lake_data, lake_model, kind):
    from align_rudder.gym.sb3 import RedistributedReplayBuffer, fill_replay_buffer

    space = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    options = {"model": lake_model, "settlement": settlement(kind)}
    buffer = RedistributedReplayBuffer(200, *space, **options)
    _, demos = lake_data
    n = fill_replay_buffer(buffer, demos)
    expected = [lake_model.redistribute(e).settled(settlement(kind)) for e in demos]
    np.testing.assert_allclose(buffer.rewards[:n, 0], np.concatenate(expected), atol=1e-6)
    filled = RedistributedReplayBuffer(200, *space, **options)
    for episode in demos:
        for t in range(len(episode)):
            states = np.asarray(episode.observations)[t : t + 2]
            done = np.array([t == len(episode) - 1])
            action, reward = np.array([episode.actions[t]]), np.array([episode.rewards[t]])
            filled.add(states[:1], states[1:], action, reward, done, [{}])
    if kind == "annealed":  # less is paid with each of them
        rr = [lake_model.redistribute(e) for e in demos]
        before = [(one.own, one.rewards) for one in rr]
        left = [paid_share(before[:i], lake_model.return_range_) for i in range(len(rr))]
        expected = [one.own + share * one.rewards for one, share in zip(rr, left)]
        assert left[-1] < left[0]
    np.testing.assert_allclose(filled.rewards[:n, 0], np.concatenate(expected), atol=1e-6)


def test_spec_rebuilds_the_stack_from_the_path(lake, lake_model, tmp_path):
    path = tmp_path / "lstm.npz"
    lake_model.save(path)
    env = ar.RedistributeReward(lake, path)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    actions = [1, 1, 2, 2, 1, 2]
    assert play(env, actions)[1] == play(again, actions)[1]
    assert isinstance(again.model, LstmRudder)


def test_there_is_no_progress_to_observe(lake, lake_model):
    env = ar.RedistributeReward(lake, lake_model, observe_progress=True)
    assert env.observation_space == lake.observation_space
    episode, *_ = play(env, [1, 1, 2, 2, 1, 2])
    assert episode.observations.tolist() == [0, 4, 8, 9, 10, 14, 15]
    many = SyncVectorEnv([lambda: lake])
    env = ar.vector.RedistributeReward(many, lake_model)
    assert env.single_observation_space == lake.observation_space
    assert env.reset(seed=0)[0].tolist() == [0]


def test_wrappers_refuse_what_does_not_fit(lake, lake_model):
    with pytest.raises(ValueError, match=r"of shape \(\), .* has shape \(4,\)"):
        ar.RedistributeReward(gym.make("CartPole-v1"), lake_model)
    small = gym.make("FrozenLake-v1", desc=["SF", "FG"])
    with pytest.raises(ValueError, match=r"fitted on states 0 to \d+.*Discrete\(4\)"):
        ar.RedistributeReward(small, lake_model)
    with pytest.raises(ValueError, match="not fitted"):
        ar.RedistributeReward(lake, LstmRudder())
