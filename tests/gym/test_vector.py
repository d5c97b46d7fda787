"""The vector wrapper equals the single one, in every autoreset mode."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from settled import KINDS, StepCost, arguments, check_settled

import align_rudder as ar

N = 6


def lake_with_limit():
    return gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=15)


def lake_with_cost():
    return StepCost(lake_with_limit())


def episodes_of(env, model, mode, steps, seed=0, **options):
    """Step a wrapped vector environment; return its episodes, and how many had ended before each.

    Episodes are (observations, actions, rewards, infos, terminated, truncated, ended before).
    """
    env = ar.vector.RedistributeReward(env, model, **options)
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    running = [([o], [], [], []) for o in obs]
    finished, waiting = [], np.zeros(env.num_envs, bool)
    ended_before = np.zeros(env.num_envs, int)
    for _ in range(steps):
        actions = rng.integers(0, 4, env.num_envs)
        favoured = rng.random(env.num_envs) < 0.6
        actions = np.where(favoured, rng.integers(1, 3, env.num_envs), actions)
        obs, rewards, terminated, truncated, infos = env.step(actions)
        done = terminated | truncated
        for i in range(env.num_envs):
            if waiting[i]:
                assert rewards[i] == 0.0
                assert not infos["_event"][i]
                running[i] = ([obs[i]], [], [], [])
                continue
            last = infos["final_obs"][i] if mode == AutoresetMode.SAME_STEP and done[i] else obs[i]
            running[i][0].append(last)
            running[i][1].append(actions[i])
            running[i][2].append(rewards[i])
            running[i][3].append({k: infos[k][i] for k in ("original_reward", "event", "score")})
            if done[i]:
                ends = bool(terminated[i]), bool(truncated[i])
                finished.append((*running[i], *ends, int(ended_before[i])))
                assert infos["_correction"][i]
                running[i] = ([obs[i]], [], [], [])
        restarted = waiting if mode == AutoresetMode.NEXT_STEP else done
        ended_before[restarted] = len(finished)
        waiting = done if mode == AutoresetMode.NEXT_STEP else np.zeros_like(done)
        if mode == AutoresetMode.DISABLED and done.any():
            obs, _ = env.reset(options={"reset_mask": done})
            for i in np.flatnonzero(done):
                running[i] = ([obs[i]], [], [], [])
    return finished


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", KINDS)
def test_every_episode_gets_what_redistribute_gives_it(model, mode, kind):
    env = SyncVectorEnv([lake_with_cost] * N, autoreset_mode=mode)
    finished = episodes_of(env, model, mode, 250, **arguments(kind), observe_progress=False)
    assert len(finished) > 100
    kinds, before, known = set(), [], set()
    for observations, actions, rewards, infos, terminated, truncated, ended in finished:
        original = [info["original_reward"] for info in infos]
        episode = ar.Episode(observations, actions, original, terminated, truncated)
        rr = model.redistribute(episode)
        check_settled(kind, rewards, rr, before[:ended], returns=model.return_range_, n_envs=N)
        assert [info["event"] for info in infos] == rr.events.tolist()
        np.testing.assert_allclose([info["score"] for info in infos], rr.scores, atol=1e-12)
        kinds.add((round(original[-1]), truncated))
        known.add(ended)
        before.append((rr.own, rr.rewards))
    assert {(0, False), (0, True), (1, False)} <= kinds
    assert len(known) > 30  # what is remembered of episodes was learned again and again


def test_all_may_begin_anew_in_the_same_step(model):
    """With autoreset on the next step there is then no transition at all."""
    env = ar.vector.RedistributeReward(SyncVectorEnv([lake_with_limit]), model)
    alone = ar.RedistributeReward(lake_with_limit(), model)
    env.reset(seed=0)
    for _ in range(3):
        alone.reset()
        for action in (1, 1, 2, 2, 1, 2):
            _, (paid,), *_ = env.step(np.array([action]))
            assert paid == pytest.approx(alone.step(action)[1])
        assert env.step(np.array([0]))[1] == 0.0  # the reset


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_functions_see_the_infos_of_their_own_environment(lake, demos, mode):
    def by_info(obs, action, reward, next_obs, info):
        return f"{info['prob']:.0f}-{next_obs}" if "prob" in info else f"none-{next_obs}"

    with_infos = [
        ar.Episode(e.observations, e.actions, e.rewards, infos=[{"prob": 1.0}] * len(e))
        for e in demos
    ]
    model = ar.AlignRudder(by_info).fit(with_infos)
    env = SyncVectorEnv([lake_with_limit] * 3, autoreset_mode=mode)
    finished = episodes_of(env, model, mode, 60, settlement="last", observe_progress=False)
    assert finished
    for observations, actions, rewards, infos, terminated, truncated, _ in finished:
        original = [info["original_reward"] for info in infos]
        episode = ar.Episode(
            observations, actions, original, terminated, truncated, [{"prob": 1.0}] * len(actions)
        )
        np.testing.assert_allclose(rewards, model.redistribute(episode).settled("last"))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_progress_is_observed_as_in_the_single_wrapper(model, mode):
    env = SyncVectorEnv([lake_with_limit] * N, autoreset_mode=mode)
    finished = episodes_of(env, model, mode, 100)
    single = ar.RedistributeReward(lake_with_limit(), model)
    for observations, actions, *_ in finished[:20]:
        alone = [single.reset()[0]]
        alone += [single.step(int(a))[0] for a in actions]
        assert [int(o) for o in observations] == [int(o) for o in alone]


def test_progress_space_is_that_of_a_batch(model):
    env = ar.vector.RedistributeReward(SyncVectorEnv([lake_with_limit] * 3), model)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    assert env.single_observation_space == gym.spaces.Discrete(16 * model.scorer_.n_cells)
    bare = ar.vector.RedistributeReward(
        SyncVectorEnv([lake_with_limit] * 3), model, observe_progress=False
    )
    assert bare.reset(seed=0)[0].tolist() == [0] * 3


class Telling(gym.Env):
    """Says in words what happens; the chest is paid."""

    SAYS = ("start", "key", "door", "chest")
    observation_space = gym.spaces.Text(10)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.SAYS[0], {}

    def step(self, action):
        self.at += int(action)
        over = self.at == 3
        return self.SAYS[self.at], float(over), over, False, {}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_texts_are_told_apart_by_environment(mode):
    logs = ar.AlignRudder().fit_events([["key", "door", "chest"], ["key", "lamp", "door", "chest"]])

    def happened(obs, action, reward, next_obs, info):
        return next_obs if action else None

    envs = gym.vector.SyncVectorEnv([Telling] * 2, autoreset_mode=mode)
    env = ar.vector.RedistributeReward(envs, logs, events=happened)
    single = ar.RedistributeReward(Telling(), logs, events=happened)
    obs, _ = env.reset()
    single.reset()
    assert obs["observation"] == ("start", "start")
    for _ in range(3):
        obs, _, over, _, infos = env.step(np.array([1, 0]))
        info = single.step(1)[-1]
        assert infos["redistributed"].tolist() == [info["redistributed"], 0.0]
        assert infos["event"].tolist() == [info["event"], -1]
    assert over.tolist() == [True, False]
    assert info["redistributed"] == pytest.approx(1.0)


def test_reset_needed(model):
    env = ar.vector.RedistributeReward(
        SyncVectorEnv([lake_with_limit] * 2, autoreset_mode=AutoresetMode.DISABLED), model
    )
    with pytest.raises(gym.error.ResetNeeded, match="before reset"):
        env.step(np.zeros(2, int))
    env.reset(seed=0)
    for action in [1, 1, 2, 2, 1, 2]:
        env.step(np.array([action, 0]))
    with pytest.raises(gym.error.ResetNeeded, match=r"\[0\] have ended"):
        env.step(np.zeros(2, int))


def test_reset_mask_given_by_the_user_is_left_as_it_is(model):
    env = ar.vector.RedistributeReward(
        SyncVectorEnv([lake_with_limit] * 2, autoreset_mode=AutoresetMode.DISABLED), model
    )
    env.reset(seed=0)
    for action in [1, 1, 2, 2, 1, 2]:
        env.step(np.array([action, 0]))
    options = {"reset_mask": np.array([True, False])}
    _, infos = env.reset(options=options)
    assert options["reset_mask"].tolist() == [True, False]
    assert infos["_subgoal"].tolist() == [True, False]


def test_another_space_is_refused(model):
    with pytest.raises(ValueError, match=r"of shape \(\), .* has shape \(4,\)"):
        ar.vector.RedistributeReward(gym.make_vec("CartPole-v1", num_envs=2), model)


def test_bad_arguments(model):
    with pytest.raises(ValueError, match="settlement is 'info'; one of 'annealed'"):
        ar.vector.RedistributeReward(SyncVectorEnv([lake_with_limit]), model, "info")
