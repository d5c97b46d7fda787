"""A small world for sub-agents: fetch two pieces of wood, make a tool at the table, dig the gem."""

from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import align_rudder as ar
from align_rudder.hierarchy.aligned import AlignedTask, AlignmentTables, tables_of
from align_rudder.hierarchy.cloning import Demonstrations, aligned_demonstrations
from align_rudder.hierarchy.evaluation import new_worlds
from align_rudder.hierarchy.ppo import PPO
from align_rudder.hierarchy.settings import Training
from align_rudder.hierarchy.trainer import train
from align_rudder.presets import PAPER

SIZE = 6
TREE, TABLE, GEM = 0, 1, 2
FEATURES = ("wood", "tool", "gem")
MOVES = np.array([[0, -1], [0, 1], [-1, 0], [1, 0]])
USE = 4
K, A = 4, 5  # wood, wood, tool, gem; left, right, up, down, use


class State(NamedTuple):
    place: jax.Array
    things: jax.Array  # (3, 2)
    items: jax.Array  # (3,)
    time: jax.Array


@dataclass(frozen=True)
class Workshop:
    """Moves left, right, up, down; `use` works on the thing one stands on."""

    max_steps: int = 60
    slip: float = 0.0
    n_actions = 5

    def new_world(self, key):
        cells = jax.random.choice(key, SIZE * SIZE, (4,), replace=False)
        places = jnp.stack([cells // SIZE, cells % SIZE], axis=1)
        return State(places[0], places[1:], jnp.zeros(3, jnp.int32), jnp.int32(0))

    def step(self, key, state, action):
        action = jnp.where(jax.random.uniform(key) < self.slip, 0, action)
        move = jnp.where(action < USE, jnp.asarray(MOVES)[jnp.minimum(action, 3)], 0)
        place = jnp.clip(state.place + move, 0, SIZE - 1)
        here = (state.things == place).all(axis=1) & (action == USE)
        wood, tool, gem = state.items
        make = here[TABLE] & (wood >= 2)
        items = jnp.stack(
            [
                wood + here[TREE] - 2 * make,
                tool + make,
                gem + (here[GEM] & (tool > 0)),
            ]
        )
        return State(place, state.things, items, state.time + 1)

    def dense_reward(self, before, after):
        return (after.items - before.items).clip(0).sum().astype(jnp.float32)

    def over(self, state):
        return self.solved(state) | (state.time >= self.max_steps)

    def solved(self, state):
        return state.items[GEM] > 0

    def features(self, state):
        return state.items

    report = features
    endings = ("gem", "time")

    def ending(self, before, after):
        return jnp.where(self.solved(after), 0, 1)

    def observe(self, state):
        return {"away": state.things - state.place, "items": state.items.clip(0, 3)}

    def encode(self, observation):
        away = observation["away"].astype(jnp.float32)
        near = jnp.stack([jnp.sign(away), away / SIZE, (away == 0).astype(jnp.float32)])
        items = jax.nn.one_hot(observation["items"], 4)
        return jnp.concatenate([near.ravel(), items.ravel()])

    def mirror(self, observation, which):
        sign = jnp.stack([jnp.where(which & 2, -1, 1), jnp.where(which & 1, -1, 1)])
        return {**observation, "away": observation["away"] * sign}

    @property
    def mirrored_actions(self):
        return jnp.array([[0, 1, 2, 3, 4], [1, 0, 2, 3, 4], [0, 1, 3, 2, 4], [1, 0, 3, 2, 4]])


@partial(jax.jit, static_argnums=0)
def _advance(task, state, action):
    state = task.step(jax.random.key(0), state, action)
    return state, task.over(state)


def play(task, seed, noise=0.1):
    """Return states and actions of a run that follows the plan, with some random moves."""
    rng = np.random.default_rng(seed)
    state = task.new_world(jax.random.key(seed))
    states, actions, over = [state], [], False
    while not over:
        wood, tool, _ = np.asarray(state.items)
        thing = GEM if tool else TABLE if wood >= 2 else TREE
        dy, dx = np.asarray(state.things)[thing] - np.asarray(state.place)
        if rng.random() < noise:
            action = rng.integers(4)
        elif dy == dx == 0:
            action = USE
        elif dx:
            action = int(dx > 0)
        else:
            action = 2 + int(dy > 0)
        state, over = _advance(task, state, np.int32(action))
        states.append(state)
        actions.append(action)
    stacked = jax.tree.map(lambda *x: np.stack([np.asarray(y) for y in x]), *states)
    return stacked, np.array(actions)


def demonstrations(task, n=8, seed=0):
    """Return runs that found the gem."""
    runs = [play(task, seed + i) for i in range(2 * n)]
    return [run for run in runs if run[0].items[-1, GEM] > 0][:n]


def fitted(runs):
    """Return the model of runs."""
    episodes = []
    for states, actions in runs:
        observations = {name: states.items[:, i] for i, name in enumerate(FEATURES)}
        rewards = np.zeros(len(actions))
        rewards[-1] = 1.0
        episodes.append(ar.Episode(observations, actions, rewards, terminated=True))
    return ar.AlignRudder(ar.DeltaEvents(keys=FEATURES), strategies=1, **PAPER).fit(episodes)


class Known(NamedTuple):
    """All that is made of six demonstrations."""

    runs: list
    model: ar.AlignRudder
    tables: AlignmentTables
    task: AlignedTask
    shown: Demonstrations
    worlds: object  # 64 new ones


@cache
def known():
    runs = demonstrations(Workshop(), 6)
    model = fitted(runs)
    tables = tables_of(model)
    task = AlignedTask(Workshop(), tables)
    worlds = new_worlds(task, jax.random.key(11), 64)
    return Known(runs, model, tables, task, aligned_demonstrations(task, runs), worlds)


class Rule(eqx.Module):
    """Sub-agents that know the way; those that are broken only ever go left."""

    broken: np.ndarray

    def __call__(self, task, observation, subtask, cell):
        thing = jnp.array([TREE, TREE, TABLE, GEM])
        k = jnp.minimum(subtask, K - 1)
        dy, dx = observation["away"][thing[k]]
        aside = jnp.where(dx > 0, 1, 0)
        along = jnp.where(dy > 0, 3, 2)
        action = jnp.where(dx != 0, aside, jnp.where(dy != 0, along, USE))
        action = jnp.where(jnp.asarray(self.broken)[k], 0, action)
        return 1e4 * jax.nn.one_hot(action, A), jnp.float32(0)


WHOLE = Rule(np.zeros(K, bool))
BROKEN = Rule(np.arange(K) == 1)  # the second piece of wood is never fetched

TRAINING = Training(
    steps=40_000,
    ppo=PPO(
        n_envs=64,
        n_steps=32,
        n_minibatches=4,
        learning_rate=3e-3,
        gamma=0.98,
        ent_coef=0.01,
        burn_in=1,
        bc_coef=0.05,
    ),
    hidden=(32, 32),
    clone=60,
    pool=256,
    buffer=64,
    evaluations=3,
    worlds=64,
    horizon=60,
    manager=0.2,
    patience=40,
)


def train_in(folder, training=TRAINING, runs=None):
    """Train sub-agents and manager: seconds, once all is compiled, and that is done quickly."""
    runs = known().runs if runs is None else runs
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        train(Workshop(), known().tables, runs, training, folder, progress=False)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
