"""The diamond task for Gymnasium's learners: the judges of others, what is paid, what is kept."""

import copy
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
from diamond_training import at, setup  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.env_checker import check_env as check_env_sb3  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

import align_rudder as ar  # noqa: E402
from align_rudder.tasks.diamond.environment import ACTIONS, DiamondEnv, _programs  # noqa: E402
from align_rudder.tasks.diamond.task import ACHIEVEMENTS, FEATURES, ITEMS, DiamondTask  # noqa: E402

ID = "AlignRudder/Diamond-v0"
NOOP, RIGHT, DO = (ACTIONS.index(name) for name in ("noop", "right", "do"))
task = DiamondTask()


@pytest.fixture(scope="module")
def demos():
    return setup().demos


@pytest.fixture(scope="module")
def model():
    return setup().model


@pytest.fixture
def env():
    return DiamondEnv()


def play(env, actions):
    """Return what was seen, paid and told at each step, until the end."""
    results = []
    for action in actions:
        results.append(env.step(action))
        if results[-1][2] or results[-1][3]:
            break
    return results


def some_actions(n, seed=0):
    return np.random.default_rng(seed).integers(len(ACTIONS), size=n).tolist()


def assert_same(a, b):
    leaves_a, leaves_b = jax.tree.leaves(a), jax.tree.leaves(b)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert all(np.array_equal(x, y) for x, y in zip(leaves_a, leaves_b))


@pytest.mark.parametrize("flat", [False, True])
def test_judges(flat):
    env = gym.make(ID, flat=flat, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        check_env_sb3(env.unwrapped, skip_render_check=True)


def test_pictures():
    """In one test: the first picture on a machine prepares Craftax's textures."""
    env = gym.make(ID, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=0)
    day = env.render()
    assert day.shape == (576, 576, 3)
    assert day.dtype == np.uint8
    player, left = day[192:256, 256:320].astype(int), day[192:256, 192:256].astype(int)
    assert np.abs(player - left).max() > 100  # who stands in the middle
    saved = env.unwrapped.save_state()
    night = saved.state.world.replace(light_level=np.float32(0.0))
    env.unwrapped.restore_state(saved._replace(state=saved.state._replace(world=night)))
    assert env.render()[:448].mean() < 0.85 * day[:448].mean()


def test_it_is_registered_without_jax_and_says_what_to_install():
    code = """
import sys
import gymnasium as gym, align_rudder
assert gym.spec("AlignRudder/Diamond-v0").max_episode_steps is None  # no second time limit
assert not {"jax", "craftax"} & set(sys.modules)
for missing in ("craftax", "jax"):
    sys.modules[missing] = None
    try:
        gym.make("AlignRudder/Diamond-v0")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("pip install '.[diamond]'") == 2  # for each that is missing


def test_observation_holds_what_the_documentation_says(env, demos):
    observe = jax.jit(task.observe)
    for demo, t in ((demos[0], 0), (demos[1], len(demos[1].actions) // 2), (demos[2], -2)):
        state = at(demo, t)
        obs, info = env.restore_state(state, seed=0)
        assert env.observation_space.contains(obs)
        seen = jax.tree.map(np.asarray, observe(state))
        np.testing.assert_array_equal([obs[name] for name in FEATURES], task.report(state))
        parts = env.parts(obs["vector"])
        np.testing.assert_array_equal(parts["blocks"].argmax(-1), seen.blocks)
        np.testing.assert_array_equal(parts["mobs"] @ [1, 2, 4, 8], seen.mobs)
        known = seen.nearest[:, 0] != 127
        np.testing.assert_array_equal(parts["nearest"][:, 7], known)
        np.testing.assert_array_equal(parts["nearest"][known, :2] * 16, seen.nearest[known])
        np.testing.assert_allclose(parts["around"] * 49, seen.around, atol=1e-4)
        np.testing.assert_allclose(parts["numbers"] * 10, seen.numbers, rtol=1e-6)
        np.testing.assert_array_equal(parts["has"], seen.numbers[:12] > 0)
        np.testing.assert_array_equal(parts["has_several"], seen.numbers[:12] > 1)
        assert parts["direction"].argmax() == seen.direction
        assert list(info["inventory"].values()) == [obs[name] for name in ITEMS]
        assert list(info["achievements"]) == list(ACHIEVEMENTS)
        assert [info[name] for name in ("health", "food", "drink", "energy")] == list(
            seen.numbers[12:16]
        )
        np.testing.assert_array_equal(info["position"], state.world.player_position)
        assert info["time"] == state.world.timestep
    batch = env.parts(np.stack([obs["vector"]] * 3))
    np.testing.assert_array_equal(batch["blocks"][2], parts["blocks"])


def test_same_seed_same_episode_whatever_was_played_before():
    actions = some_actions(60)

    def episode(env, seed):
        return env.reset(seed=seed), play(env, actions), env.reset()

    fresh = episode(DiamondEnv(), 3)
    used = DiamondEnv()
    used.reset(seed=9)
    play(used, some_actions(20, seed=1))
    used.reset()
    assert_same(episode(used, 3), fresh)
    other = episode(used, 4)
    assert not np.array_equal(other[0][0]["vector"], fresh[0][0]["vector"])
    # The next world is another one.
    assert not np.array_equal(fresh[2][0]["vector"], fresh[0][0]["vector"])


def test_a_restored_state_goes_on_exactly(env):
    env.reset(seed=5)
    shown = play(env, some_actions(30))[-1][0]
    saved = env.save_state()
    assert all(type(leaf) is np.ndarray for leaf in jax.tree.leaves(saved))
    kept = copy.deepcopy(saved)
    actions = some_actions(60, seed=1)
    expected = play(env, actions)
    other = DiamondEnv(max_steps=500)  # another environment, another limit
    for who in (env, other):
        obs, info = who.restore_state(pickle.loads(pickle.dumps(saved)))
        assert info["time"] == 30
        assert_same(obs, shown)
        assert_same(play(who, actions), expected)
    # What was saved is a copy, and so is what was restored.
    assert_same(saved, kept)
    env.restore_state(saved)
    saved.state.world.map[:] = 0
    assert_same(play(env, actions), expected)
    # A seed changes what happens by chance, not the state.
    again, _ = env.restore_state(kept, seed=1)
    assert_same(again, obs)
    chance = play(env, actions)
    assert not all(np.array_equal(a[0]["vector"], b[0]["vector"]) for a, b in zip(chance, expected))
    # A copy of the environment has a life of its own.
    env.restore_state(kept)
    twin = copy.deepcopy(env)
    assert_same(play(env, actions), expected)
    assert_same(play(twin, actions), expected)


def test_time_limit_truncates(demos):
    env = gym.make(ID, max_steps=5)
    for _ in range(2):
        env.reset(seed=0)
        results = play(env, [NOOP] * 5)
        assert [r[2:4] for r in results] == [(False, False)] * 4 + [(False, True)]
        assert [r[1] for r in results] == [0.0] * 5
        with pytest.raises(gym.error.ResetNeeded, match="after the episode had ended"):
            env.step(NOOP)


def test_the_diamond_is_paid_once_and_terminates(demos):
    """To take a diamond in front is no matter of chance: any seed will do."""
    for demo in demos:
        before, last = at(demo, -2), int(demo.actions[-1])
        limit = int(before.world.timestep) + 1  # the diamond at the very last step
        for env, seed in ((DiamondEnv(), 0), (DiamondEnv(), 1), (DiamondEnv(max_steps=limit), 2)):
            obs, info = env.restore_state(before, seed=seed)
            assert obs["diamond"] == 0
            assert not info["is_success"]
            obs, reward, terminated, truncated, info = env.step(last)
            assert (reward, terminated, truncated) == (1.0, True, False)
            assert obs["diamond"] == 1
            assert info["is_success"]
            with pytest.raises(gym.error.ResetNeeded, match="ended"):
                env.step(NOOP)
            env.restore_state(env.save_state())  # an end stays an end
            with pytest.raises(gym.error.ResetNeeded, match="ended"):
                env.step(NOOP)


def test_death_terminates_without_reward(env):
    env.reset(seed=0)
    saved = env.save_state()
    y, x = saved.state.world.player_position
    saved.state.world.map[y, x + 1] = 14  # lava
    for who in (env, DiamondEnv(max_steps=1)):  # also at the time limit
        who.restore_state(saved)
        _, reward, terminated, truncated, info = who.step(RIGHT)
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert not info["is_success"]


class Replay(gym.Wrapper):
    """Steps through the states of a demonstration, as the environment shows them."""

    def __init__(self, env, demo):
        super().__init__(env)
        self.demo = demo

    def reset(self, **kwargs):
        self.t = 0
        return self.env.reset(options={"state": at(self.demo, 0)})

    def step(self, action):
        assert action == self.demo.actions[self.t]
        self.t += 1
        obs, info = self.env.unwrapped.restore_state(at(self.demo, self.t), seed=0)
        done = self.t == len(self.demo.actions)
        return obs, float(info["is_success"]), done, False, info


def test_demonstrations_earn_in_the_wrapper_what_the_model_says(demos, model):
    demo = demos[0]
    env = ar.RedistributeReward(Replay(DiamondEnv(), demo), model, "last")
    env.reset()
    rewards = [r[1] for r in play(env, demo.actions.tolist())]
    expected = model.redistribute(demo.episode(task)).with_correction()
    np.testing.assert_allclose(rewards, expected, atol=1e-9)
    assert sum(rewards) == pytest.approx(1.0)
    assert np.count_nonzero(np.array(rewards) > 0.01) > 5


def test_redistribution_conserves_the_return(demos, model):
    episodes = [
        (None, some_actions(200)),
        ({"state": at(demos[0], 25)}, some_actions(200)),
        *(({"state": at(demo, -2)}, demo.actions[-1:].tolist()) for demo in demos[:3]),
    ]
    longest = max(len(demo.actions) for demo in demos)
    returns = []
    for options, actions in episodes:
        limit = 150 if len(actions) > 1 else longest
        env = ar.RedistributeReward(gym.make(ID, max_steps=limit), model, "mean")
        env = gym.wrappers.FlattenObservation(env)
        obs, _ = env.reset(seed=0, options=options)
        assert env.observation_space.contains(obs)
        results = play(env, actions)
        assert results[-1][2] or results[-1][3]
        true = sum(r[4]["original_reward"] for r in results)
        assert sum(r[1] for r in results) == pytest.approx(true, abs=1e-9)
        returns.append(true)
    assert returns == [0.0, 0.0, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="wrap the environment the model was fitted for"):
        ar.RedistributeReward(gym.make(ID, flat=True), model)


def test_vectorised(model):
    envs = gym.make_vec(ID, num_envs=2, max_steps=20)
    single = DiamondEnv(max_steps=20)
    obs, _ = envs.reset(seed=[7, 8])
    expected, _ = single.reset(seed=8)
    np.testing.assert_array_equal(obs["vector"][1], expected["vector"])
    wrapped = ar.vector.RedistributeReward(envs, model)
    wrapped.reset(seed=[7, 8])
    paid = np.zeros(2)
    for t, action in enumerate(some_actions(20)):
        obs, rewards, terminated, truncated, infos = wrapped.step(np.array([NOOP, action]))
        expected, _, over, _, info = single.step(action)
        np.testing.assert_array_equal(obs["vector"][1], expected["vector"])
        assert infos["inventory"]["wood"][1] == info["inventory"]["wood"]
        assert infos["time"].tolist() == [t + 1, t + 1]
        assert not over
        paid += rewards
    assert truncated.all()
    assert not terminated.any()
    np.testing.assert_allclose(paid, 0.0, atol=1e-9)


@pytest.mark.parametrize("flat", [True, False])
def test_ppo_runs(model, flat):
    """Plain on the vector; with redistribution on the dict."""
    env = make_vec_env(
        ID,
        n_envs=2,
        seed=0,
        env_kwargs={"flat": flat, "max_steps": 60},
        wrapper_class=None if flat else ar.RedistributeReward,
        wrapper_kwargs=None if flat else {"model": model, "observe_progress": True},
    )
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    ppo = PPO(policy, env, n_steps=64, batch_size=64, n_epochs=2, seed=0, device="cpu")
    before = [p.detach().clone() for p in ppo.policy.parameters()]
    ppo.learn(256)
    assert any((p != q).any() for p, q in zip(ppo.policy.parameters(), before))
    assert all(p.isfinite().all() for p in ppo.policy.parameters())
    assert {episode["r"] for episode in ppo.ep_info_buffer} <= {0.0, 1.0}
    assert len(ppo.ep_info_buffer) >= 4


def test_programs_are_compiled_once(demos):
    for max_steps in (100, 10_000):
        env = DiamondEnv(max_steps=max_steps)
        env.reset(seed=0)
        play(env, [DO, np.int64(1), np.array(2)])
        env.restore_state(env.save_state())
        env.step(DO)
        env.restore_state(at(demos[0], 3), seed=0)
        play(env, [DO, NOOP])
    assert [program._cache_size() for program in _programs(64)[1:]] == [1, 1, 1]


@pytest.mark.parametrize("action", [17, -1, 1.0, "do", [5], None])
def test_wrong_actions(env, action):
    with pytest.raises(gym.error.ResetNeeded, match="before reset"):
        env.step(NOOP)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"is not known; give an integer from 0 to 16.*5: 'do'"):
        env.step(action)
    env.step(DO)  # the episode goes on


def test_wrong_states(env, demos):
    with pytest.raises(gym.error.ResetNeeded, match="no state to save before reset"):
        env.save_state()
    env.reset(seed=0)
    saved = env.save_state()
    world = saved.state.world
    small = saved.state._replace(seen=saved.state.seen[:32, :32])
    floats = saved.state._replace(world=world.replace(map=world.map.astype(np.float32)))
    dark = saved.state._replace(world=world.replace(light_level=np.float32("nan")))
    there = np.array([500, -7], np.int32)
    outside = saved.state._replace(world=world.replace(player_position=there))
    much = world.replace(inventory=world.inventory.replace(wood=np.int32(77)))
    for bad, message in (
        (None, "is a NoneType; give what save_state"),
        (saved.state, r"DiamondState with seed=…"),
        (saved._replace(state=small), r"seen. has shape \(32, 32\).*map_size=64"),
        (saved._replace(state=floats), "world.map. holds numbers; whole numbers are needed"),
        (saved._replace(state=demos[0].states), "is needed: one state"),
        (saved._replace(state=world), "other parts"),
        (saved._replace(key=np.zeros(3, np.uint32)), r"key has shape \(3,\)"),
        (saved._replace(state=dark), "world.light_level. holds nan; finite"),
        (saved._replace(state=outside), "player_position. holds -7; at least 0"),
        (
            saved._replace(state=saved.state._replace(world=much)),
            "inventory.wood. holds 77; at most 9",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            env.restore_state(bad)
    assert_same(env.save_state(), saved)  # nothing was changed
    with pytest.raises(ValueError, match="cannot begin there; give an earlier one"):
        env.reset(options={"state": at(demos[0], -1)})
    with pytest.raises(ValueError, match='no option stat; "state" is the only one'):
        env.reset(options={"stat": at(demos[0], 0)})


def test_wrong_arguments(env):
    for bad, message in (
        ({"map_size": 50}, "map_size=50; a multiple of 16"),
        ({"map_size": 128}, "map_size=128; a multiple of 16 from 16 to 112"),
        ({"map_size": 64.5}, "map_size=64.5; a multiple of 16"),
        ({"max_steps": 0}, "max_steps=0; a whole number of at least 1"),
        ({"max_steps": float("nan")}, "max_steps=nan; a whole number"),
        ({"max_steps": 1.5}, "max_steps=1.5; a whole number"),
        ({"render_mode": "human"}, "HumanRendering"),
    ):
        with pytest.raises(ValueError, match=message):
            DiamondEnv(**bad)
    with pytest.raises(ValueError, match=r"shape .3,., [0-9]+ numbers are needed"):
        env.parts(np.zeros(3))
    with pytest.raises(gym.error.ResetNeeded, match="nothing to render"):
        DiamondEnv(render_mode="rgb_array").render()
