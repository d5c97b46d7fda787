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


def renamed(obs, action, reward, next_obs, info):
    """Return the same as `happened`, in other words than those of the logs."""
    return f"item {info['happened']}" if info["happened"] else None


def play_some(env, episodes):
    rng = np.random.default_rng(0)
    for _ in range(episodes):
        env.reset(seed=0)
        over = False
        while not over:
            _, _, *ends, _ = env.step(likely_actions(env, rng))
            over = any(ends)


def test_symbols_that_the_model_never_knows_are_warned_of_once(logs):
    env = ar.RedistributeReward(recipe(20), logs, events=renamed)
    play_some(env, 4)  # few episodes show nothing
    with pytest.warns(ar.AlignRudderWarning, match="no symbol of the event function") as caught:
        play_some(env, 1)
    (said,) = [str(w.message) for w in caught]
    known = logs.events_.base.symbols_
    seen, names = said.split("it named ")[1].split("the model knows ")
    assert any(f"'item {symbol}'" in seen for symbol in known)
    assert not any(repr(symbol) in seen for symbol in known)
    assert any(repr(symbol) in names for symbol in known)
    assert caught[0].filename == __file__  # where the environment was stepped
    play_some(env, 10)  # a second warning would be an error


def test_symbols_of_which_one_is_known_are_not_warned_of(logs):
    one = logs.subgoals_[0].symbol

    def mostly_renamed(obs, action, reward, next_obs, info):
        return one if info["happened"] == one else renamed(obs, action, reward, next_obs, info)

    play_some(ar.RedistributeReward(recipe(20), logs, events=mostly_renamed), 10)
    play_some(ar.RedistributeReward(recipe(20), logs, events=lambda *_: None), 10)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_wrapper_warns_of_them_too(logs, mode):
    env = SyncVectorEnv([lambda s=s: recipe(s) for s in (20, 21)], autoreset_mode=mode)

    def run(function, steps):
        many = ar.vector.RedistributeReward(env, logs, events=function)
        rng = np.random.default_rng(0)
        many.reset(seed=0)
        for _ in range(steps):
            *_, terminated, truncated, _ = many.step(
                np.array([likely_actions(e, rng) for e in env.envs])
            )
            if mode == AutoresetMode.DISABLED and (terminated | truncated).any():
                many.reset(options={"reset_mask": terminated | truncated})

    run(happened, 400)
    with pytest.warns(ar.AlignRudderWarning, match="no symbol of the event function") as caught:
        run(renamed, 400)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.fixture(scope="module")
def of_function(tmp_path_factory):
    """Return a model of an event function, and the path of its file."""
    model = ar.AlignRudder(happened).fit([played(seed) for seed in range(30, 36)])
    path = tmp_path_factory.mktemp("models") / "function.npz"
    model.save(path)
    return model, path


def test_the_path_of_a_model_of_a_function_is_loaded_with_the_function(of_function):
    model, path = of_function
    paid = []
    for env in (
        ar.RedistributeReward(recipe(20), model, "beside"),
        ar.RedistributeReward(recipe(20), model, "beside", events=happened),
        ar.RedistributeReward(recipe(20), str(path), "beside", events=happened),
    ):
        rng = np.random.default_rng(0)
        env.reset(seed=0)
        paid.append([env.step(likely_actions(env, rng))[1] for _ in range(10)])
    assert paid[0] == paid[1] == paid[2]
    assert sum(paid[0]) > 0
    many = ar.vector.RedistributeReward(
        SyncVectorEnv([lambda: recipe(20)]), path, "beside", events=happened
    )
    rng = np.random.default_rng(0)
    many.reset(seed=0)
    inside = many.env.envs[0]
    steps = [many.step(np.array([likely_actions(inside, rng)]))[1][0] for _ in range(10)]
    assert steps == pytest.approx(paid[0])


def test_logs_from_a_path_take_the_function_as_before(logs, tmp_path):
    logs.save(tmp_path / "logs.npz")
    env = ar.RedistributeReward(recipe(20), tmp_path / "logs.npz", events=happened)
    play_some(env, 1)
    assert env.model.events_.base.symbols_ == logs.events_.base.symbols_


def test_what_to_write_is_said_where_functions_do_not_go_together(of_function):
    model, path = of_function
    with pytest.raises(ValueError, match="events=your_function"):
        ar.RedistributeReward(recipe(20), path)
    with pytest.raises(ValueError, match=r"events=renamed was given.*of its own, happened; leave"):
        ar.RedistributeReward(recipe(20), model, events=renamed)


def along_the_way(env):
    """Return the rewards of an episode that does what is best, and its last info."""
    rewards, ends = [], [False]
    env.reset(seed=0)
    own = env.unwrapped
    while not any(ends):
        _, reward, *ends, info = env.step(int(own.optimal_policy()[own._state]))
        rewards.append(reward)
    return rewards, info


def test_sub_tasks_of_a_log_are_paid_as_the_plain_wrapper_pays(logs):
    env = ar.SubTaskReward(recipe(20), logs, "beside", events=happened)
    rewards, info = along_the_way(env)
    shares, _ = along_the_way(ar.RedistributeReward(recipe(20), logs, "beside", events=happened))
    assert info["subgoal"] == len(logs.subgoals_)
    assert sum(rewards) == pytest.approx(sum(shares))
    assert sum(rewards) > 1.5  # the return, and as much in shares
    paid = [reward for reward in rewards if reward > 0]
    assert len(paid) == len(logs.subgoals_)


def test_sub_tasks_of_the_path_of_a_model_with_a_function(tmp_path):
    episodes = [played(seed) for seed in range(30, 36)]
    model = ar.AlignRudder(happened).fit([e for e in episodes if e.ret > 0])
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="events=your_function"):
        ar.SubTaskReward(recipe(20), tmp_path / "model.npz")
    env = ar.SubTaskReward(recipe(20), tmp_path / "model.npz", "beside", events=happened)
    rewards, _ = along_the_way(env)
    expected, _ = along_the_way(ar.SubTaskReward(recipe(20), model, "beside"))
    assert rewards == pytest.approx(expected)
    assert sum(rewards) > 1.5
