"""A corridor outside of JAX: fetch wood, make a tool of it at the other end, dig the gem there."""

from functools import cache

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import align_rudder as ar
from align_rudder.hierarchy.external import TrackedEnv

LENGTH = 5
LEFT, RIGHT, USE = range(3)


class Corridor(gym.Env):
    """Wood at the left end; a tool is made of it at the right end, where a gem can then be dug."""

    observation_space = gym.spaces.Dict(
        {name: gym.spaces.Box(0, 99, (), np.int64) for name in ("wood", "tool", "gem", "place")}
    )
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = {"wood": 0, "tool": 0, "gem": 0, "place": int(self.np_random.integers(LENGTH))}
        self.time = 0
        return self._obs(), {}

    def _obs(self):
        return {name: np.array(value) for name, value in self.state.items()}

    def step(self, action):
        s = self.state
        self.time += 1
        if action == LEFT:
            s["place"] = max(s["place"] - 1, 0)
        elif action == RIGHT:
            s["place"] = min(s["place"] + 1, LENGTH - 1)
        elif s["place"] == 0:
            s["wood"] += 1
        elif s["place"] == LENGTH - 1 and s["tool"]:
            s["gem"] += 1
        elif s["place"] == LENGTH - 1 and s["wood"]:
            s["wood"], s["tool"] = s["wood"] - 1, 1
        solved = s["gem"] > 0
        return self._obs(), float(solved), solved, self.time >= 60, {}


class Sight:
    def begin(self):
        pass

    def see(self, obs):
        return np.eye(LENGTH, dtype=np.float32)[obs["place"]]

    def do(self, choice):
        return choice["move"]


class Net(eqx.Module):
    """A table: logits and value by place."""

    move: jax.Array
    value: jax.Array
    who: jax.Array | None

    def __call__(self, task, observation, subtask, cell):
        logits = {"move": observation @ self.move}
        if self.who is not None:
            n = self.who.shape[0] - 1
            prior = 4.0 * jax.nn.one_hot(jnp.minimum(subtask, n - 1), n + 1)
            logits["who"] = self.who + prior
        return logits, observation @ self.value


def net(who=None):
    return Net(jnp.zeros((LENGTH, 3)), jnp.zeros(LENGTH), None if who is None else jnp.zeros(who))


def constant(action):
    return Net(jnp.zeros((LENGTH, 3)).at[:, action].set(20.0), jnp.zeros(LENGTH), None)


def fetch():
    """Return an agent that fetches wood."""
    moves = jnp.zeros((LENGTH, 3)).at[1:, LEFT].set(20).at[0, USE].set(20)
    return Net(moves, jnp.zeros(LENGTH), None)


@cache
def fitted(paid=1.0):
    """Return a model of four demonstrations that were paid so much."""
    episodes = []
    for seed in range(4):
        env = Corridor()
        obs, _ = env.reset(seed=seed)
        rows, actions, rewards, over = [obs], [], [], False
        while not over:
            s = env.state
            to = 0 if not (s["wood"] or s["tool"]) else LENGTH - 1
            action = USE if s["place"] == to else LEFT if s["place"] > to else RIGHT
            obs, reward, over, _, _ = env.step(action)
            rows.append(obs)
            actions.append(action)
            rewards.append(paid * reward)
        observations = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        episodes.append(ar.Episode(observations, actions, rewards, terminated=True))
    keys = ("wood", "tool", "gem")
    return ar.AlignRudder(ar.DeltaEvents(keys=keys), strategies=1).fit(episodes)


def followed(paid=1.0):
    """Return the corridor, tracked along the model of demonstrations that were paid so much."""
    return TrackedEnv(Corridor(), fitted(paid), Sight())
