"""Minari datasets collected from small environments, for the tests of reading and writing them."""

import contextlib
import importlib.util
import sys
import types
import warnings

import gymnasium as gym
import numpy as np
import pytest

from align_rudder import AlignRudder, SymbolEvents
from align_rudder.episodes import tree_index

minari = pytest.importorskip("minari")

LEFT, DOWN, RIGHT, UP = range(4)
TO_GOAL = [DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT]
LAKE_RUNS = [
    TO_GOAL,
    [LEFT, *TO_GOAL],
    [*TO_GOAL[:2], LEFT, *TO_GOAL[2:]],
    [DOWN, UP, *TO_GOAL],
    [DOWN, DOWN, RIGHT, UP],  # into a hole
    [LEFT, LEFT],  # cut off
]


class Rooms(gym.Env):
    """Go through rooms 0 to 4; observations and actions of every kind that Minari stores."""

    NAMES = ("hall", "cellar", "crypt", "", "tömb")

    def __init__(self, kind="dict", reward_type=float):
        box = gym.spaces.Box(-9, 9, (2,), np.float32)
        text = gym.spaces.Text(8, min_length=0, charset="abcdehlmnprtyö")
        parts = {"place": box, "room": gym.spaces.Discrete(5), "name": text}
        self.kind, self.reward_type = kind, reward_type
        self.observation_space = {
            "dict": gym.spaces.Dict({**parts, "pair": gym.spaces.Tuple((text, box))}),
            "tuple": gym.spaces.Tuple((text, gym.spaces.Dict(parts), box)),
            "text": text,
            "image": gym.spaces.Box(0, 255, (32, 32, 3), np.uint8),
        }[kind]
        self.action_space = gym.spaces.Dict(
            {"go": gym.spaces.Discrete(2), "how": gym.spaces.MultiBinary(3)}
        )

    def _observe(self):
        name = self.NAMES[self.room]
        place = np.array([self.room, -self.steps / 3], np.float32)
        parts = {"place": place, "room": np.int64(self.room), "name": name}
        return {
            "dict": {**parts, "pair": (name, place)},
            "tuple": (name, parts, place),
            "text": name,
            "image": np.random.default_rng(self.steps).integers(0, 256, (32, 32, 3), np.uint8),
        }[self.kind]

    def _info(self):
        return {
            "step": self.steps,
            "name": self.NAMES[self.room],
            "where": {"room": self.room, "deep": {"xy": np.array([self.room, self.steps / 7])}},
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room = self.steps = 0
        return self._observe(), self._info()

    def step(self, action):
        self.steps += 1
        self.room += int(action["go"])
        done = self.room == 4
        reward = self.reward_type(0.3 if done else 0.1 if action["go"] else -0.7 / 3)
        return self._observe(), reward, done, False, self._info()


ROOM_RUNS = [[1, 1, 1, 1], [1, 0, 1, 1, 1], [0, 1, 1, 0, 1, 1], [1, 1, 0]]


def room_actions(run):
    how = [np.array([go, 1, t % 2], np.int8) for t, go in enumerate(run)]
    return [{"go": np.int64(go), "how": h} for go, h in zip(run, how, strict=True)]


def _tree_map(function, tree, *rest):
    if isinstance(tree, dict):
        return {k: _tree_map(function, tree[k], *(r[k] for r in rest)) for k in tree}
    if isinstance(tree, tuple):
        return tuple(_tree_map(function, *parts) for parts in zip(tree, *rest, strict=True))
    return function(tree, *rest)


@contextlib.contextmanager
def collecting():
    """Minari's collector takes one function from jax; let it run where jax is not installed."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari on authors and links that are not given
        if importlib.util.find_spec("jax") is None:
            jax, tree_util = types.ModuleType("jax"), types.ModuleType("jax.tree_util")
            jax.tree_util, tree_util.tree_map = tree_util, _tree_map
            patch.setitem(sys.modules, "jax", jax)
            patch.setitem(sys.modules, "jax.tree_util", tree_util)
        yield


def collect(env, runs, dataset_id, *, record_infos=True, data_format=None, about=None):
    """Collect a dataset; return, for each run, what the environment itself gave."""
    seen = []
    with collecting():
        env = minari.DataCollector(env, record_infos=record_infos, data_format=data_format)
        for seed, actions in enumerate(runs):
            obs, _ = env.reset(seed=seed)
            run = {"obs": [obs], "actions": actions, "rewards": [], "infos": [], "end": None}
            for action in actions:
                obs, reward, terminated, truncated, info = env.step(action)
                run["obs"].append(obs)
                run["rewards"].append(float(reward))
                run["infos"].append(info)
                run["end"] = (terminated, truncated or not terminated)
            seen.append(run)
        env.create_dataset(dataset_id, **(about or {}))
        env.close()
    return seen


def lake():
    return gym.make("FrozenLake-v1", map_name="4x4", is_slippery=False)


def model_for(episodes):
    return AlignRudder(SymbolEvents()).fit(episodes)


def assert_is(episode, run):
    """The episode is what the environment gave, step by step and bit by bit."""
    steps = len(run["rewards"])
    assert len(episode) == steps
    for t in range(steps + 1):
        np.testing.assert_equal(tree_index(episode.observations, t), run["obs"][t])
    for t in range(steps):
        np.testing.assert_equal(tree_index(episode.actions, t), run["actions"][t])
    np.testing.assert_array_equal(episode.rewards, run["rewards"])
    assert (episode.terminated, episode.truncated) == run["end"]


def assert_same(new, old):
    """All but rewards and infos is equal."""
    np.testing.assert_equal(new.observations, old.observations)
    np.testing.assert_equal(new.actions, old.actions)
    assert (new.terminated, new.truncated) == (old.terminated, old.truncated)
