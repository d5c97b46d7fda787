"""Sub-goals paid when they are reached, the next one observed: sums, checkers, and learning."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import LAKE, PATHS
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import align_rudder as ar

KEY_CHEST = "AlignRudder/KeyChest-v0"


@pytest.fixture(scope="module")
def chest():
    def changes(obs, action, reward, next_obs, info):
        return "key" if next_obs[1] > obs[1] else "chest" if next_obs[2] > obs[2] else None

    demos = gym.make(KEY_CHEST).unwrapped.demonstrations(4, exploration=0.1)
    return ar.AlignRudder(changes, strategies=1).fit(demos)


def play(env, actions, seed=0):
    """Return rewards, infos and observations of some actions."""
    obs, info = env.reset(seed=seed)
    rewards, infos, seen = [], [info], [obs]
    for action in actions:
        obs, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
        infos.append(info)
        seen.append(obs)
        if terminated or truncated:
            break
    return np.array(rewards), infos, seen


def walks(rng, n):
    """Yield ways of the demonstrations with random steps in them."""
    for _ in range(n):
        path = list(PATHS[rng.integers(len(PATHS))])
        for _ in range(rng.integers(4)):
            path.insert(int(rng.integers(len(path))), int(rng.integers(4)))
        yield path + rng.integers(0, 4, 200).tolist()


def test_a_sub_goal_is_paid_what_was_redistributed_since_the_one_before(lake, demos, rng):
    model = ar.AlignRudder(subgoal_conservation=1.0).fit(demos)  # not all columns are sub-goals
    inner = gym.make("FrozenLake-v1", **LAKE)
    env = ar.SubTaskReward(lake, model, "beside")
    plain = ar.RedistributeReward(inner, model, "beside", observe_progress=False)
    waited = 0
    for path in walks(rng, 60):
        rewards, infos, _ = play(env, path)
        shares, plain_infos, _ = play(plain, path)
        due = 0.0
        own = np.array([info["original_reward"] for info in infos[1:]])
        rewards, shares = rewards - own, shares - own  # the environment's own stays at its step
        for share, reward, info, other in zip(shares, rewards, infos[1:], plain_infos[1:]):
            due += share
            assert info["subgoal"] == other["subgoal"]
            if info["reached"]:
                assert reward == pytest.approx(due, abs=1e-12)
                due = 0.0
            else:
                assert reward == 0.0
                waited += share != 0.0
        assert rewards.sum() + due == pytest.approx(shares.sum(), abs=1e-12)
    assert waited > 10


@pytest.mark.parametrize("settlement", ["even", "last"])
def test_the_return_is_unchanged(model, rng, settlement):
    short = gym.make("FrozenLake-v1", **LAKE, max_episode_steps=12)
    env = ar.SubTaskReward(short, model, settlement)
    ends = set()
    for path in walks(rng, 60):
        rewards, infos, _ = play(env, path)
        returned = sum(info["original_reward"] for info in infos[1:])
        assert rewards.sum() == pytest.approx(returned, abs=1e-9)
        ends.add((returned, len(rewards) == 12))
    assert {(0.0, True), (0.0, False)} < ends
    assert any(returned for returned, _ in ends)


def test_several_strategies_have_places_of_their_own():
    ways = ["a b c", "a b x c", "a b c y"], ["d e f", "d z e f", "d e w f"]
    model = ar.AlignRudder(lambda o, a, r, n, i: str(n["letter"]), strategies=2)
    letters = {c: i for i, c in enumerate("abcdefxyzw")}

    class Letters(gym.Env):
        observation_space = gym.spaces.Dict({"letter": gym.spaces.Discrete(11)})
        action_space = gym.spaces.Discrete(10)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return {"letter": np.int64(10)}, {}

        def step(self, action):
            ends = action in (2, 5)
            return {"letter": np.int64(action)}, float(ends), ends, False, {}

    demos = []
    for way in (w.split() for group in ways for w in group):
        ids = [letters[c] for c in way]
        demos.append(ar.Episode({"letter": [10, *ids]}, ids, [0.0] * (len(ids) - 1) + [1.0]))
    model.fit(demos)
    counts = [len(s.subgoals) for s in model.strategies_]
    assert len(counts) == 2
    env = ar.SubTaskReward(Letters(), model)
    width = 11 + 1  # the letter, one-hot, and a 1, in the block of the place
    assert env.observation_space["subgoal"].shape == ((sum(counts) + 2) * width,)
    places = set()
    for way in ("abc", "def"):
        _, infos, seen = play(env, [letters[c] for c in way])
        here = [int(o["subgoal"][width - 1 :: width].argmax()) for o in seen]
        assert [info["subgoal"] for info in infos] == [0, 1, 2, 3]
        assert here[1:] == [here[1], here[1] + 1, here[1] + 2]
        places |= set(here[1:])
    assert len(places) == 6


@pytest.mark.parametrize("settlement", ["even", "potential", "last", "beside"])
@pytest.mark.parametrize("observe", [True, False])
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_judged_by_the_checkers(lake, model, chest, observe, settlement):
    for env, fitted in ((lake, model), (gym.make(KEY_CHEST), chest)):
        wrapped = ar.SubTaskReward(env, fitted, settlement, observe_subgoal=observe)
        check_env(wrapped, skip_render_check=True)
        sb3_check_env(wrapped)


def q_learning(env, episodes, seed, gamma=0.95, epsilon=0.2):
    """Return a table learned by Q-learning, by observation; ties are broken by chance."""
    rng, table = np.random.default_rng(seed), {}

    def values(obs):
        place = obs.get("subgoal", np.zeros(1)) if isinstance(obs, dict) else np.zeros(1)
        seen = obs["observation"] if isinstance(obs, dict) else obs
        return table.setdefault((*np.ravel(seen).tolist(), int(place.argmax())), np.zeros(2))

    solved = []
    for i in range(episodes):
        explore = epsilon if i < episodes - 20 else 0.0
        obs, info = env.reset(seed=i)
        over, returned = False, 0.0
        while not over:
            q = values(obs)
            best = rng.choice(np.flatnonzero(q == q.max()))
            action = int(rng.integers(2) if rng.random() < explore else best)
            obs, reward, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            returned += info.get("original_reward", reward)
            target = reward + gamma * (0.0 if over else values(obs).max())
            q[action] += 0.2 * (target - q[action])
        solved.append(returned > 0)
    return float(np.mean(solved[-20:]))


def test_tabular_learning_of_the_plain_reward_fails():
    """KeyChest pays on the last of 32 steps; with 13 cells plain Q-learning never gets there."""
    assert max(q_learning(gym.make(KEY_CHEST, length=13), 500, seed) for seed in range(2)) == 0.0


@pytest.mark.parametrize("settlement", ["even", "potential", "last", "beside"])
def test_tabular_learning_with_sub_goals_where_plain_reward_fails(chest, settlement):
    taught = []
    for seed in range(4):
        env = gym.make(KEY_CHEST, length=13)
        env = ar.SubTaskReward(env, chest, settlement, gamma=0.95)
        taught.append(q_learning(env, 500, seed))
    assert np.mean(taught) >= (1.0 if settlement == "potential" else 0.7)


def test_it_is_rebuilt_from_the_spec(lake, model, tmp_path):
    model.save(tmp_path / "model.npz")
    env = gym.make(ar.SubTaskReward(lake, tmp_path / "model.npz", "last").spec)
    assert env.observation_space == gym.spaces.Discrete(16 * (len(model.subgoals_) + 1))
    assert env.settlement.kind == "last"


def test_bad_use(lake, model):
    with pytest.raises(ValueError, match="model is a int"):
        ar.SubTaskReward(lake, 3)
    env = ar.SubTaskReward(lake, model)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    none = ar.AlignRudder(subgoal_threshold=1e9).fit_events([[4, 8], [4, 8]])
    with pytest.raises(ValueError, match="no sub-goals, so there is nothing to pay"):
        ar.SubTaskReward(lake, none)
