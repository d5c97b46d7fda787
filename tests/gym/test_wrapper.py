"""The Gymnasium wrapper, judged by Gymnasium, by Stable-Baselines3 and by `redistribute`."""

import contextlib
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from settled import KINDS, StepCost, arguments, check_settled, mean_rate
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import align_rudder as ar
from align_rudder.gym.spaces import ProgressSpace, in_blocks
from align_rudder.settlement import Settlement


class Inventory(gym.Env):
    """Dict observations that the environment overwrites in place; pays at the end."""

    observation_space = gym.spaces.Dict(
        {"count": gym.spaces.Box(0, 100, (2,), np.int64), "time": gym.spaces.Discrete(100)}
    )
    action_space = gym.spaces.Discrete(3)

    def __init__(self, horizon=12, dense=False):
        self.horizon, self.dense = horizon, dense
        self.count = np.zeros(2, np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count[:] = 0
        self.t = 0
        return {"count": self.count, "time": 0}, {}

    def step(self, action):
        self.t += 1
        if action:
            self.count[action - 1] += 1
        done = self.t == self.horizon
        reward = float(self.count[0] >= 2 and self.count[1] >= 1) if done else float(self.dense)
        return {"count": self.count, "time": self.t}, reward, False, done, {"t": self.t}


def play(env, actions, seed=0):
    """Return observations, actions, rewards and infos of one episode."""
    obs, _ = env.reset(seed=seed)
    observations, rewards, infos, taken = [obs], [], [], []
    ended = None
    for action in actions:
        obs, reward, terminated, truncated, info = env.step(action)
        observations.append(obs)
        rewards.append(reward)
        infos.append(info)
        taken.append(action)
        if terminated or truncated:
            ended = (terminated, truncated)
            break
    return observations, taken, rewards, infos, ended


def random_actions(rng, n=300):
    return rng.integers(0, 4, n).tolist()


def short_lake(cost=False):
    env = gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=15)
    return StepCost(env) if cost else env


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [False, True])
def test_rewards_are_those_of_redistribute(model, rng, kind, cost):
    env = ar.RedistributeReward(short_lake(cost), model, **arguments(kind), observe_progress=False)
    outcomes, before = set(), []
    for seed in range(30):
        actions = ([1, 1, 2, 2, 1, 2], [1, 3] * 10, random_actions(rng))[seed % 3]
        observations, taken, rewards, infos, ended = play(env, actions, seed)
        original = [info["original_reward"] for info in infos]
        episode = ar.Episode(observations, taken, original, *ended)
        rr = model.redistribute(episode)
        check_settled(kind, rewards, rr, before)
        assert [info["event"] for info in infos] == rr.events.tolist()
        np.testing.assert_allclose([info["score"] for info in infos], rr.scores)
        assert infos[-1]["correction"] == pytest.approx(rr.correction, abs=1e-12)
        outcomes.add((round(original[-1]), *ended))
        before.append((rr.own, rr.rewards))
    assert outcomes >= {(0, True, False), (1, True, False), (0, False, True)}
    assert abs(mean_rate(kind, before)) > 0.01  # so that what is carried on is seen above


def test_the_mean_rate_is_carried_to_the_next_episode(lake, model):
    """After a failure that earned on its way, standing still costs from the first step on."""
    env = ar.RedistributeReward(lake, model, "even")
    _, _, first, infos, _ = play(env, [1, 1, 1, 0])
    given = infos[-1]["redistributed"]
    assert given > 0
    assert sum(first[:2]) == pytest.approx(given)  # nothing is known yet: nothing is taken back
    assert first[-1] == pytest.approx(-given)
    _, _, second, _, _ = play(env, [0] * 5)
    assert second == pytest.approx([-given / len(first)] * 5)


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_on_the_way_stay_at_their_steps(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = ar.RedistributeReward(Inventory(dense=True), _inventory_model(), kind)
        _, _, rewards, infos, _ = play(env, [0] * 12)
    assert {info["redistributed"] for info in infos} == {0.0}
    assert rewards == [1.0] * 11 + [0.0]


def test_beside_takes_nothing_back_and_last_takes_all(lake, model):
    beside = ar.RedistributeReward(lake, model, "beside")
    _, taken, rewards, infos, _ = play(beside, [1, 1, 1, 0])
    _, _, settled, _, _ = play(ar.RedistributeReward(lake, model, "last"), taken)
    assert sum(rewards) > 0  # two steps on the way, then a hole
    assert sum(settled) == pytest.approx(0.0, abs=1e-12)
    assert rewards[-1] + infos[-1]["correction"] == pytest.approx(settled[-1])


def test_subgoals_count_up_on_the_way(lake, model):
    _, _, _, infos, _ = play(ar.RedistributeReward(lake, model), [1, 1, 2, 2, 1, 2])
    subgoals = [info["subgoal"] for info in infos]
    assert subgoals == sorted(subgoals)
    assert subgoals[-1] == len(model.subgoals_) > 0


def test_standing_still_and_walking_in_circles_stop_earning(model):
    env = ar.RedistributeReward(gym.make("FrozenLake-v1", is_slippery=False), model, "beside")
    _, _, rewards, _, _ = play(env, [0] * 20)
    assert rewards == [0.0] * 20
    _, _, rewards, _, _ = play(env, [1, 3] * 40)
    assert sum(rewards[:10]) > 0
    assert rewards[20:] == [0.0] * len(rewards[20:])


@pytest.mark.parametrize("options", [{}, {"observe_progress": False}, {"settlement": "potential"}])
def test_checkers_of_gymnasium_and_stable_baselines(lake, model, options):
    env = ar.RedistributeReward(lake, model, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
        check_env_sb3(env)
    assert env.observation_space.contains(env.reset(seed=1)[0])


def test_progress_is_observed_unless_it_is_left_out(lake, model):
    n = model.scorer_.n_cells
    for env, space in (
        (ar.RedistributeReward(lake, model), gym.spaces.Discrete(16 * n)),
        (ar.RedistributeReward(lake, model, observe_progress=False), lake.observation_space),
    ):
        assert env.observation_space == space
        observations, *_ = play(env, [1, 1, 2, 2, 1, 2])
        seen = [divmod(int(o), n) if space.n > 16 else (int(o), None) for o in observations]
        assert [state for state, _ in seen] == [0, 4, 8, 9, 10, 14, 15]
        if space.n > 16:
            cells = [cell for _, cell in seen]
            assert cells == sorted(cells)
            assert cells[-1] > cells[0]


def test_checkers_with_dict_observations():
    env = ar.RedistributeReward(Inventory(), _inventory_model())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env_sb3(env)
    obs, _ = env.reset()
    assert env.observation_space.contains(obs)
    assert set(obs) == {"count", "time", "progress"}


def _inventory_episodes():
    episodes = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        plan = [1, 1, 2]
        while len(plan) < 12:
            plan.insert(int(rng.integers(0, len(plan) + 1)), 0)
        observations = [{"count": np.zeros(2, int), "time": 0}]
        for t, action in enumerate(plan, 1):
            count = observations[-1]["count"].copy()
            if action:
                count[action - 1] += 1
            observations.append({"count": count, "time": t})
        rewards = [0.0] * 11 + [1.0]
        episodes.append(ar.Episode(observations, plan, rewards, False, True))
    return episodes


def _inventory_model():
    return ar.AlignRudder(ar.DeltaEvents(keys=["count"])).fit(_inventory_episodes())


def test_observations_overwritten_in_place_do_not_hide_changes():
    model = _inventory_model()
    env = ar.RedistributeReward(Inventory(), model, "last")
    plan = [0, 1, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0]
    _, _, rewards, infos, _ = play(env, plan)
    done = model.events_.symbols_.index("done")
    assert [info["event"] for info in infos] == [-1, 0, -1, 0, -1, -1, 1, -1, -1, -1, -1, done]
    assert [t for t, r in enumerate(rewards) if r > 1e-9] == [1, 3, 6, 11]
    assert sum(rewards) == pytest.approx(1.0)


def test_progress_explains_what_the_reward_depends_on(lake, model):
    env = ar.RedistributeReward(lake, model, "beside")
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(200):
        observations, taken, rewards, _, _ = play(env, random_actions(rng), seed)
        rows += [(int(o), a, r) for o, a, r in zip(observations, taken, rewards)]

    def unexplained(key):
        groups = {}
        for row in rows:
            groups.setdefault(key(row), []).append(row[2])
        return sum(np.var(rewards) * len(rewards) for rewards in groups.values())

    n_cells = model.scorer_.n_cells
    without = unexplained(lambda row: (row[0] // n_cells, row[1]))
    with_progress = unexplained(lambda row: (row[0], row[1]))
    assert with_progress < 0.25 * without


def test_vector_observations_get_a_block_for_each_position(demos):
    class Lake(gym.ObservationWrapper):
        observation_space = gym.spaces.Box(0, 1, (16,), np.float32)

        def observation(self, obs):
            return np.eye(16, dtype=np.float32)[obs]

    one_hot = [ar.Episode(np.eye(16)[e.observations], e.actions, e.rewards) for e in demos]
    model = ar.AlignRudder(ar.FeatureEvents(n_features=16)).fit(one_hot)
    lake = Lake(gym.make("FrozenLake-v1", is_slippery=False))
    env = ar.RedistributeReward(lake, model, "mean")
    observations, _, rewards, _, _ = play(env, [1, 1, 2, 2, 1, 2])
    assert all(env.observation_space.contains(obs) for obs in observations)
    assert sum(rewards) == pytest.approx(1.0)
    n, cells = model.scorer_.n_cells, []
    for obs in observations:
        view, blocks = obs[:16], obs[16:].reshape(n, 17)
        (cell,) = np.flatnonzero(blocks.any(axis=1))
        np.testing.assert_array_equal(blocks[cell], [*view, 1])
        cells.append(int(cell))
    assert cells[-1] > cells[0]
    batch = in_blocks(np.stack([o[:16] for o in observations]), np.array(cells), n)
    np.testing.assert_array_equal(batch, observations)


def test_long_vectors_are_not_copied_into_blocks():
    space = gym.spaces.Box(0, 1, (500,), np.float32)
    assert ProgressSpace(space, 7).space.shape == (500 + 7 * 501,)
    assert ProgressSpace(space, 8).space["progress"].shape == (8,)


@pytest.mark.parametrize(
    ("space", "obs", "vector"),
    [
        (gym.spaces.MultiDiscrete([2, 3]), np.array([1, 2]), [0, 1, 0, 0, 1]),
        (gym.spaces.MultiDiscrete([2, 3], start=[0, 5]), np.array([0, 6]), [1, 0, 0, 1, 0]),
        (gym.spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
        (gym.spaces.Box(-1, 2, (2,), np.int64), np.array([-1, 2]), [1, 0, 0, 0, 0, 0, 0, 1]),
        (gym.spaces.Box(0, 2, (1,), np.int8), np.array([2], np.int8), [0, 0, 1]),
        (gym.spaces.Box(0, 1, (2,), np.uint8), np.array([1, 0], np.uint8), [1, 0]),
        (gym.spaces.Box(0, 99, (2,), np.int16), np.array([42, 0], np.int16), [42, 0]),
        (gym.spaces.Box(-9, 9, (2,), np.float32), [2.0, -3.0], [2, -3]),
    ],
)
def test_several_numbers_and_lists_are_vectors_too(space, obs, vector):
    seen = ProgressSpace(space, 2)
    there = seen.append(obs, 1)
    assert seen.space.contains(there)
    assert there.tolist() == [*vector, *[0] * (len(vector) + 1), *vector, 1]
    batch = seen.append(np.stack([obs, obs]), np.array([1, 0]))
    np.testing.assert_array_equal(batch[0], there)
    assert batch[1].tolist() == [*vector, *vector, 1, *[0] * (len(vector) + 1)]


def test_a_dict_of_vectors_and_numbers_has_blocks_as_well():
    space = gym.spaces.Dict(
        {
            "place": gym.spaces.Box(-9, 9, (2,), np.float32),
            "cell": gym.spaces.Box(0, 2, (), np.int64),
            "held": gym.spaces.Tuple([gym.spaces.Discrete(3, start=1), gym.spaces.MultiBinary(2)]),
        }
    )
    seen = ProgressSpace(space, 2)
    obs = {
        "place": np.array([4, -5], np.float32),
        "cell": np.array(2),
        "held": (np.int64(3), np.array([1, 0], np.int8)),
    }
    there = seen.append(obs, 1)
    assert seen.space.contains(there)
    held = gym.spaces.flatten(space["held"], obs["held"])
    flat = [0, 0, 1, *held, 4, -5]  # dicts are sorted
    assert there["progress"].tolist() == [*[0] * (len(flat) + 1), *flat, 1]
    batch = {
        "place": np.array([[4, -5], [1, 2]]),
        "cell": np.array([2, 0]),
        "held": (np.array([3, 1]), np.array([[1, 0], [0, 1]])),
    }
    both = seen.append(batch, np.array([1, 0]))["progress"]
    np.testing.assert_array_equal(both[0], there["progress"])
    other = {"place": np.array([1, 2]), "cell": 0, "held": (1, np.array([0, 1]))}
    np.testing.assert_array_equal(both[1], seen.append(other, 0)["progress"])
    # A picture cannot be copied into blocks: the position alone, one-hot.
    seen = ProgressSpace(gym.spaces.Dict({"eye": gym.spaces.Box(0, 255, (9, 9, 3), np.uint8)}), 3)
    told = seen.append({"eye": np.zeros((9, 9, 3), np.uint8)}, 2)
    assert told["progress"].tolist() == [0, 0, 1]


def test_rewards_are_not_redistributed_twice(lake, model):
    with pytest.raises(ValueError, match=r"with RedistributeReward already, .* wrap it once"):
        ar.RedistributeReward(ar.RedistributeReward(lake, model), model)
    with pytest.raises(ValueError, match=r"with RedistributeReward already, .* wrap it once"):
        ar.SubTaskReward(ar.RedistributeReward(lake, model), model)


def test_an_episode_that_is_left_before_it_is_settled_is_told_once(lake, model):
    env = gym.wrappers.TimeLimit(ar.RedistributeReward(lake.unwrapped, model, "even"), 2)
    play(env, [1, 1])
    with pytest.warns(ar.AlignRudderWarning, match="put TimeLimit inside"):
        env.reset()
    play(env, [1, 1])  # warnings are errors here
    lent = gym.wrappers.TimeLimit(ar.RedistributeReward(lake.unwrapped, model), 2)
    for _ in range(2):
        play(lent, [1, 1])


@pytest.mark.parametrize("progress", [True, False])
def test_spec_rebuilds_the_stack_and_survives_json(lake, model, tmp_path, rng, progress):
    path = tmp_path / "model.npz"
    model.save(path)
    env = ar.RedistributeReward(lake, path, "potential", 0.9, 0.05, observe_progress=progress)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, ar.RedistributeReward)
    assert again.settlement == Settlement("potential", gamma=0.9, fade=0.05)
    assert again.observation_space == env.observation_space
    actions = random_actions(rng)
    first, second = play(env, actions), play(again, actions)
    assert first[2] == second[2]
    assert [int(o) for o in first[0]] == [int(o) for o in second[0]]


def test_spec_rebuilds_the_stack_of_a_model_in_memory(lake, model):
    env = ar.RedistributeReward(lake, model)
    again = gym.make(env.spec)
    assert isinstance(again, ar.RedistributeReward)
    assert again.model is model
    assert again.settlement == Settlement("annealed")
    assert again.observation_space == env.observation_space != lake.observation_space


def test_updated_model_is_used_from_the_next_episode(lake, model, demos):
    env = ar.RedistributeReward(lake, model, "last", observe_progress=False)
    env.reset(seed=0)
    env.step(1)
    model.update([demos[0]] * 3)
    rest = [env.step(a)[1] for a in [1, 2, 2, 1, 2]]
    assert np.isfinite(rest).all()
    _, _, rewards, _, _ = play(env, [1, 1, 2, 2, 1, 2])
    np.testing.assert_allclose(rewards, model.redistribute(demos[0]).settled("last"))


def test_stepping_before_reset_or_after_the_end_is_an_error(lake, model):
    env = ar.RedistributeReward(lake, model)
    with pytest.raises(gym.error.ResetNeeded, match="before reset"):
        env.step(0)
    play(env, [1, 1, 2, 2, 1, 2])
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(0)


def test_model_of_another_environment_is_refused(model):
    with pytest.raises(ValueError, match=r"fitted on observations of .*shape \(4,\)"):
        ar.RedistributeReward(gym.make("CartPole-v1"), model)
    small = gym.make("FrozenLake-v1", desc=["SF", "FG"])
    with pytest.raises(ValueError, match=r"fitted on states 0 to 15.*Discrete\(4\)"):
        ar.RedistributeReward(small, model)
    with pytest.raises(ValueError, match=r"shapes count: \(2,\), .* has shape \(4,\)"):
        ar.RedistributeReward(gym.make("CartPole-v1"), _inventory_model())


def test_bad_arguments(lake, model, tmp_path):
    with pytest.raises(ValueError, match="settlement is 'first'; one of 'annealed'"):
        ar.RedistributeReward(lake, model, "first")
    with pytest.raises(ValueError, match=r"gamma is 1\.5"):
        ar.RedistributeReward(lake, model, "potential", gamma=1.5)
    with pytest.raises(ValueError, match=r"fade is -0\.1"):
        ar.RedistributeReward(lake, model, "potential", fade=-0.1)
    with pytest.raises(ValueError, match="not fitted"):
        ar.RedistributeReward(lake, ar.AlignRudder())
    with pytest.raises(ValueError, match="fitted AlignRudder or its path"):
        ar.RedistributeReward(lake, 3)
    with pytest.raises(FileNotFoundError, match="no file"):
        ar.RedistributeReward(lake, tmp_path / "none.npz")


def test_tuples_of_numbers_can_be_wrapped():
    env = gym.make("Blackjack-v1")
    episodes = []
    seed = 0
    while len(episodes) < 4:
        observations, taken, rewards, _, ended = play(env, [0], seed)
        seed += 1
        if rewards[-1] > 0:
            episodes.append(ar.Episode(observations, taken, rewards, *ended))
    model = ar.AlignRudder(ar.StateEvents(), strategies=1, min_conservation=0.0)
    with contextlib.suppress(ar.AlignRudderWarning):  # four hands may share no state
        model.fit(episodes)
    wrapped = ar.RedistributeReward(env, model, "mean")
    for seed in range(20):
        _, _, rewards, infos, _ = play(wrapped, [1, 0, 0, 0], seed)
        assert sum(rewards) == pytest.approx(sum(i["original_reward"] for i in infos), abs=1e-9)


def test_info_keys_that_are_taken_are_warned_of(lake, model):
    class Telling(gym.Wrapper):
        def step(self, action):
            *rest, info = self.env.step(action)
            return *rest, {**info, "event": "mine"}

    env = ar.RedistributeReward(Telling(lake), model)
    env.reset(seed=0)
    with pytest.warns(ar.AlignRudderWarning, match=r"info has \['event'\]"):
        env.step(1)
    env.step(1)  # once is enough


def test_what_was_paid_back_is_told_and_can_be_kept_with_a_training(lake, model):
    env = ar.RedistributeReward(lake, model, successes=4)
    way = [1, 1, 2, 2, 1, 2]
    weights = [{info["weight"] for info in play(env, way)[3]} for _ in range(3)]
    assert weights == [{1.0}, {0.75}, {0.5}]
    assert env.repaid == 3
    again = ar.RedistributeReward(lake, model, successes=4)
    again.repaid = env.repaid
    assert play(again, way)[2] == play(env, way)[2]
    assert again.repaid == 4
    with pytest.raises(ValueError, match="repaid is -1"):
        env.repaid = -1


@pytest.mark.parametrize("paid", [np.nan, np.inf])
def test_a_reward_that_is_no_number_is_refused(lake, model, paid):
    class Broken(gym.RewardWrapper):
        def reward(self, reward):
            return paid

    for env in (ar.RedistributeReward(Broken(lake), model), ar.SubTaskReward(Broken(lake), model)):
        env.reset(seed=0)
        with pytest.raises(ValueError, match=rf"the environment paid {paid}.*finite numbers"):
            env.step(0)


def test_success_is_measured_by_the_model_as_it_is_now(lake, demos):
    """After `update` with better returns, what was a success before is none any more."""
    model = ar.AlignRudder().fit(demos)
    env = ar.RedistributeReward(lake, model, successes=10)
    way = [1, 1, 2, 2, 1, 2]
    play(env, way)
    assert env.repaid == 1
    better = [ar.Episode(e.observations, e.actions, np.asarray(e.rewards) * 5) for e in demos]
    model.fit(better)
    play(env, way)
    assert env.repaid == pytest.approx(1.01)


def test_symbols_that_no_observation_is_are_refused(lake):
    logs = ar.AlignRudder().fit_events([["key", "door"], ["key", "lamp", "door"]])
    with pytest.raises(ValueError, match=r"none of the model's symbols \('door', 'key', 'lamp'\)"):
        ar.RedistributeReward(lake, logs)
    ar.RedistributeReward(lake, logs, events=lambda *step: None)
    states = ar.AlignRudder().fit_events([[4, 8, 9, 15], [4, 8, 9, 10, 15]])
    _, _, rewards, _, _ = play(ar.RedistributeReward(lake, states, "beside"), [1, 1, 2])
    assert sum(rewards) > 0


def smaller_map():
    """Return a model of the lake of 16 states."""
    way = [0, 4, 8, 9, 13, 14, 15]
    return ar.AlignRudder().fit([ar.Episode(way, [0] * 6, np.eye(6)[-1])] * 3)


def test_a_model_of_a_smaller_map_is_noticed_when_the_agent_leaves_it():
    large = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)
    env = ar.RedistributeReward(large, smaller_map())
    play(env, [2, 2, 2, 1])  # states 1 to 11, which the small one has as well
    with pytest.warns(
        ar.AlignRudderWarning, match=r"state 16 of Discrete\(64\).*0 to 15"
    ) as caught:
        play(env, [1, 1])
    assert [w.filename for w in caught] == [__file__]
    play(env, [1, 1, 1])  # once
    many = ar.vector.RedistributeReward(
        gym.vector.SyncVectorEnv([lambda: gym.make("FrozenLake-v1", map_name="8x8")] * 2),
        smaller_map(),
    )
    many.reset(seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ar.AlignRudderWarning)
        for _ in range(200):
            many.step(np.array([1, 1]))
    assert ["of Discrete(64)" in str(w.message) for w in caught] == [True]


def test_states_of_the_same_map_are_not_warned_of(rng):
    env = ar.RedistributeReward(gym.make("FrozenLake-v1"), smaller_map())
    for seed in range(20):
        play(env, random_actions(rng), seed)


class Outside(gym.Env):
    """Whole numbers in a space that does not hold all of them."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space, wrong):
        self.observation_space, self.wrong = space, wrong

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.wrong, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "wrong", "said"),
    [
        (gym.spaces.Box(0, 7, (2,), np.int64), np.array([3, 8]), r"\[1\] is 8, .* 0 to 7"),
        (gym.spaces.Box(2, 7, (2,), np.int64), np.array([1, 7]), r"\[0\] is 1, .* 2 to 7"),
        (gym.spaces.MultiDiscrete([3, 4]), np.array([-1, 0]), r"\[0\] is -1, .* 0 to 2"),
        (
            gym.spaces.Dict({"at": gym.spaces.Box(0, 4, (2,), np.int64)}),
            {"at": np.array([0, 5])},
            r"\['at'\]\[1\] is 5, .* 0 to 4",
        ),
        (
            gym.spaces.Dict({"at": gym.spaces.Discrete(3, start=1), "x": gym.spaces.Discrete(2)}),
            {"at": 0, "x": 0},
            r"\['at'\] is 0, .* 1 to 3",
        ),
        (
            gym.spaces.Dict({"at": gym.spaces.Box(0, 4, (), np.int64)}),
            {"at": np.array(9)},
            r"\['at'\] is 9, .* 0 to 4",
        ),
    ],
)
def test_numbers_out_of_bounds_are_said_and_not_clipped(space, wrong, said):
    progress = ProgressSpace(space, 3)
    inside = space.sample()
    assert progress.space.contains(progress.append(inside, 1))
    with pytest.raises(ValueError, match=said):
        progress.append(wrong, 1)


def test_the_wrapper_says_that_an_observation_is_out_of_bounds(rng):
    space = gym.spaces.Box(0, 7, (2,), np.int64)
    way = np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]])
    model = ar.AlignRudder().fit([ar.Episode(way, [0] * 4, np.eye(4)[-1])] * 3)
    env = ar.RedistributeReward(Outside(space, np.array([0, 9])), model)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\[1\] is 9, but the observation space says 0 to 7"):
        env.step(0)


class Faulty(gym.Env):
    """Counts its steps, and returns what it is told to from the second one on."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space, **wrong):
        self.observation_space, self.wrong, self.steps = space, wrong, 0

    def _obs(self):
        shape = self.observation_space.shape
        return np.full(shape, self.steps, np.float32) if shape else self.steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.wrong.get("begun", (self._obs(), self.wrong.get("first", {})))

    def step(self, action):
        self.steps += 1
        right = {"obs": self._obs(), "reward": 0.0, "info": {}}
        now = right | (self.wrong if self.steps > 1 else {})
        over = self.steps == 4
        return now.get("all", (now["obs"], now["reward"], over, False, now["info"]))


FAULTS = [
    ({"obs": np.zeros(3, np.float32)}, r"has shape \(3,\), but the observation space says \(2,\)"),
    ({"obs": np.float32(0)}, r"has shape \(\), but the observation space says \(2,\)"),
    ({"reward": None}, r"paid None, which is no number; let its step return \(obs, reward"),
    ({"info": None}, r"step returned None as info, which is no dict"),
    ({"first": None}, r"reset returned None as info, which is no dict"),
    ({"reward": "1"}, r"paid '1', which is no number; let its step return \(obs, reward"),
    ({"reward": np.ones(1)}, r"paid array\(\[1.\]\), which is no number"),
    ({"reward": np.ones(2)}, r"paid array\(\[1., 1.\]\), which is no number"),
    ({"reward": np.nan}, r"paid nan, with which no return can be counted"),
    ({"reward": 1e60}, r"paid 1e\+60; let it pay numbers below 1e\+50"),
    (
        {"begun": np.zeros(2)},
        r"reset returned array\(\[0., 0.\]\); let it return \(obs, info\), wi",
    ),
    ({"begun": (0, 0, {})}, r"reset returned 3 values; let it return \(obs, info\)"),
    (
        {"all": None},
        r"step returned None; let it return \(obs, reward, terminated, truncated, info",
    ),
    ({"all": (0, 0.0, False, {})}, r"step returned 4 values \(as in Gym before version 0.26\)"),
]


def recorded(env, model):
    """Record episodes where the others play."""
    ar.record(env, lambda obs: 0, 1, success=lambda episode, info: True)
    return env


@pytest.mark.parametrize("wrapper", [ar.RedistributeReward, ar.SubTaskReward, recorded])
@pytest.mark.parametrize(("wrong", "said"), FAULTS)
def test_faults_of_an_environment_are_named(wrapper, wrong, said):
    space = gym.spaces.Box(0, 9, (2,), np.float32)
    way = np.array([[0, 0], [1, 1], [1, 1], [2, 3], [3, 3]], np.float32)
    demos = [ar.Episode(way, [0] * 4, np.eye(4)[-1])] * 3
    model = ar.AlignRudder(ar.DeltaEvents()).fit(demos)
    with pytest.raises(ValueError, match=said):
        play(wrapper(Faulty(space, **wrong), model), [0] * 4)
    play(wrapper(Faulty(space), model), [0] * 4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"begun": 0}, "reset returned 0"),
        ({"all": None}, "step returned None"),
        ({"info": None}, "None as info"),
    ],
)
def test_faults_are_named_within_a_time_limit_too(wrong, said):
    env = ar.TerminalTimeLimit(Faulty(gym.spaces.Discrete(5), **wrong), 9)
    with pytest.raises(ValueError, match=said):
        play(env, [0] * 4)


@pytest.mark.parametrize("observed", [False, True])
def test_a_state_that_the_space_has_not_is_named(observed):
    demos = [ar.Episode(np.arange(5), [0] * 4, np.eye(4)[-1])] * 3
    model = ar.AlignRudder().fit(demos)
    for wrong, said in ((7, "0 to 4"), (None, r"Discrete\(5\)")):
        env = Faulty(gym.spaces.Discrete(5), obs=wrong)
        with pytest.raises(ValueError, match=rf"is {wrong}, but the observation space says {said}"):
            play(ar.RedistributeReward(env, model, observe_progress=observed), [0] * 4)


def test_the_wrapper_that_is_meant_is_named(lake, model):
    many = gym.make_vec("FrozenLake-v1", 2)
    with pytest.raises(ValueError, match=r"use align_rudder\.vector\.RedistributeReward\(env, mod"):
        ar.RedistributeReward(many, model)
    with pytest.raises(ValueError, match=r"SyncVectorEnv; SubTaskReward .* wrap each: SubTaskRewa"):
        ar.SubTaskReward(many, model)
    with pytest.raises(
        ValueError, match=r"single one use align_rudder\.RedistributeReward\(env, m"
    ):
        ar.vector.RedistributeReward(lake, model)
    with pytest.raises(ValueError, match="env is a str; RedistributeReward needs a Gymnasium env"):
        ar.RedistributeReward("FrozenLake-v1", model)
    many.close()
