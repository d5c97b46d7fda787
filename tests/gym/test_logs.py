"""Models of event logs: one function serves the single wrapper, the vector one and buffers."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import align_rudder as ar
from align_rudder.gym.logs import with_events
from align_rudder.settlement import Settlement
from align_rudder.tasks import RecipesEnv

N, LENGTH = 3, 4


def happened(obs, action, reward, next_obs, info):
    """Return what a step of a recipe does."""
    return info["happened"] or None


def recipe(seed):
    return gym.wrappers.TimeLimit(RecipesEnv(LENGTH, seed=seed, hidden=False), 40)


@pytest.fixture(scope="module")
def logs():
    return ar.AlignRudder().fit_events([RecipesEnv(LENGTH, seed=j).log(j) for j in range(1, 11)])


def likely_actions(env, rng):
    """Return the best action most of the time, so that episodes come to an end."""
    env = env.unwrapped
    return int(env.optimal_policy()[env._state]) if rng.random() < 0.7 else int(rng.integers(4))


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", ["beside", "last", "potential"])
def test_the_vector_wrapper_equals_the_single_one_step_for_step(logs, mode, kind):
    make = [lambda s=s: recipe(s) for s in range(20, 20 + N)]
    many = ar.vector.RedistributeReward(
        SyncVectorEnv(make, autoreset_mode=mode), logs, kind, events=happened
    )
    single = [ar.RedistributeReward(env(), logs, kind, events=happened) for env in make]
    rng = np.random.default_rng(0)
    seen, _ = many.reset(seed=[0] * N)
    for env in single:
        env.reset(seed=0)
    waiting, paid, ended = np.zeros(N, bool), 0.0, 0
    for _ in range(150):
        actions = np.array([likely_actions(env, rng) for env in single])
        seen, rewards, terminated, truncated, infos = many.step(actions)
        done = terminated | truncated
        for i, env in enumerate(single):
            if waiting[i]:  # the step on which the vector environment resets it
                obs, _ = env.reset()
                np.testing.assert_array_equal(seen[i], obs)
                continue
            obs, reward, *ends, info = env.step(actions[i])
            assert rewards[i] == pytest.approx(reward, abs=1e-12)
            assert [terminated[i], truncated[i]] == ends
            assert infos["event"][i] == info["event"]
            assert infos["redistributed"][i] == pytest.approx(info["redistributed"], abs=1e-12)
            paid, ended = paid + abs(reward), ended + done[i]
            if mode == AutoresetMode.SAME_STEP and done[i]:
                np.testing.assert_array_equal(infos["final_obs"][i], obs)
                obs, _ = env.reset()
            np.testing.assert_array_equal(seen[i], obs)
        waiting = done if mode == AutoresetMode.NEXT_STEP else np.zeros(N, bool)
        if mode == AutoresetMode.DISABLED and done.any():
            many.reset(options={"reset_mask": done})
            for i in np.flatnonzero(done):
                single[i].reset()
    assert paid > 1.0
    assert ended > 3


def played(seed):
    """Return an episode of a recipe, and what happened in it."""
    env, rng = recipe(seed), np.random.default_rng(seed)
    observations, actions, rewards, infos, ends = [env.reset(seed=0)[0]], [], [], [], [False]
    while not any(ends):
        actions.append(likely_actions(env, rng))
        obs, reward, *ends, info = env.step(actions[-1])
        observations.append(obs)
        rewards.append(reward)
        infos.append(info)
    return ar.Episode(observations, actions, rewards, *ends, infos=infos)


@pytest.mark.parametrize("kind", ["beside", "last", "even"])
def test_buffers_hold_what_the_log_is_worth(logs, kind):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.buffers import ReplayBuffer

    from align_rudder.gym.sb3 import RedistributedReplayBuffer, fill_replay_buffer

    episodes = [played(seed) for seed in (30, 31)]
    env = recipe(30)
    spaces = env.observation_space, env.action_space
    collected = RedistributedReplayBuffer(
        500, *spaces, model=logs, settlement=kind, events=happened, handle_timeout_termination=False
    )
    for e in episodes:
        for t in range(len(e)):
            step = e.observations[t], e.observations[t + 1], e.actions[t], e.rewards[t]
            done = t == len(e) - 1
            collected.add(*(np.array([v]) for v in (*step, done)), [e.infos[t]])
    expected = []
    for e in episodes:
        symbols = [happened(None, None, None, None, info) for info in e.infos]
        shares = logs.redistribute_events(symbols, e.ret).rewards
        assert abs(shares).sum() > 0.5
        expected += Settlement(kind).rewards(e.rewards, shares).tolist()
    stored = collected.rewards[: len(expected), 0]
    np.testing.assert_allclose(stored, expected, atol=1e-6)
    # Demonstrations are put in with the buffer's own function, or with one that is given.
    filled = RedistributedReplayBuffer(500, *spaces, model=logs, settlement=kind, events=happened)
    fill_replay_buffer(filled, episodes)
    other = ReplayBuffer(500, *spaces)
    fill_replay_buffer(other, episodes, logs, kind, events=happened)
    for buffer in (filled, other):
        np.testing.assert_allclose(buffer.rewards[: len(expected), 0], expected, atol=1e-6)


def test_a_model_aligned_again_is_used_from_the_next_episode_on():
    model = ar.AlignRudder(min_conservation=0.5, strategies=1).fit_events(["ab", "ab"], [1, 1])
    stream = with_events(model, lambda symbol, *_: symbol).stream()
    model.update_events(["abc"] * 5, [1] * 5)
    stream.reset()
    shares = [stream.step(symbol, 0, 0.0, None, {}) for symbol in "abc"]
    new = model.redistribute_events("abc", 0.0).rewards
    np.testing.assert_allclose(shares, new)
    assert shares[2] > 0


def test_models_of_episodes_are_refused():
    demos = [ar.Episode([0, 1, 2], [0, 0], [0.0, 1.0]) for _ in range(3)]
    model = ar.AlignRudder(ar.StateEvents()).fit(demos)
    with pytest.raises(ValueError, match="fit_events"):
        ar.RedistributeReward(recipe(20), model, events=happened)
    with pytest.raises(ValueError, match="fit_events"):
        ar.vector.RedistributeReward(SyncVectorEnv([lambda: recipe(20)]), model, events=happened)
