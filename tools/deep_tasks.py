"""Tasks of `deep_study.py`: environments, models of demonstrations, what a network sees."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import align_rudder as ar
from align_rudder.baselines import TabularMDP, rollout
from align_rudder.gym.spaces import block_entries, in_blocks
from align_rudder.tasks import RecipesEnv, RoomsEnv
from align_rudder.tasks.mdp import optimal_policy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
N_DEMOS = 10


@dataclass(frozen=True)
class Task:
    """A task to be learned.

    Attributes:
        make: Returns the environment of a seed.
        fit: Returns the model of a seed, with these options.
        events: What happened in a step, where the model is one of event logs.
        function: The event function, to load the model with.
        seen: Returns the environment with observations for a network, if they need to be changed.
        steps: Steps of a trial with PPO.
        dqn: Settings of DQN, chosen on another seed, where the common ones were chosen without it.
        first: The first seed of the study, from which on nothing was chosen.
    """

    make: Callable[[int], gym.Env]
    fit: Callable[..., ar.AlignRudder]
    events: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None
    seen: Callable[[gym.Env, int], gym.Env] | None = None
    steps: int = 200_000
    dqn: Mapping[str, Any] | None = None
    first: int = 21


# Tables


class Seen(gym.ObservationWrapper):
    """A table of vectors for the states, with a block for each position on the profile."""

    def __init__(self, env: gym.Env, table: np.ndarray, n_cells: int) -> None:
        super().__init__(env)
        self.table, self.n_cells = table.astype(np.uint8), n_cells
        entries = block_entries(table.shape[1], n_cells)
        self.observation_space = spaces.Box(0, 1, (entries,), np.uint8)

    def observation(self, observation: Any) -> np.ndarray:
        """Return the vector of a state and position."""
        state, cell = divmod(int(observation), max(self.n_cells, 1))
        return in_blocks(self.table[state], cell, self.n_cells)


def rooms(n: int) -> Task:
    """Return a task in rooms; a network sees the cell and the open entry, one-hot."""

    def seen(env: gym.Env, n_cells: int) -> gym.Env:
        world: Any = env.unwrapped.map  # pyright: ignore[reportAttributeAccessIssue]
        rows, columns = world.shape
        table = np.zeros((world.n_states, rows * columns + len(world.entries)))
        for state in range(world.n_states):
            (row, column), entry = world.cell(state)
            table[state, row * columns + column] = 1
            if entry is not None:
                table[state, rows * columns + entry] = 1
        return Seen(env, table, n_cells)

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        return ar.AlignRudder(**options).fit(RoomsEnv(n).demonstrations(N_DEMOS, seed))

    return Task(lambda seed: RoomsEnv(n), fit, seen=seen)


def lake() -> Task:
    """Return a frozen lake of 8 × 8 cells without slipping; five demonstrations of 30 % noise."""

    def make(seed: int) -> gym.Env:
        env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)
        return TimeLimit(env.unwrapped, 100)

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        mdp = TabularMDP.from_gymnasium(make(seed))
        rng, policy, demos = np.random.default_rng(seed), optimal_policy(mdp), []
        while len(demos) < 5:
            episode = rollout(mdp, policy, rng, 0.3)
            demos += [episode] * (episode.ret > 0)
        return ar.AlignRudder(**options).fit(demos)

    return Task(make, fit)


def recipes(length: int) -> Task:
    """Return a recipe in a new layout, what is held hidden; ten logs of other layouts."""

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        layouts = [RecipesEnv(length, seed=[seed, j], recipe_seed=seed) for j in range(N_DEMOS)]
        return ar.AlignRudder(**options).fit_events([env.log(j) for j, env in enumerate(layouts)])

    def happened(obs: Any, action: Any, reward: float, next_obs: Any, info: Any) -> Any:
        return info["happened"] or None

    return Task(lambda seed: RecipesEnv(length, seed=seed, recipe_seed=seed), fit, happened)


# MiniGrid: every episode is another world


def minigrid(name: str, dqn: Mapping[str, Any] | None = None) -> Task:
    """Return a level of MiniGrid, with the events and the view of `examples/minigrid_ppo.py`."""
    import minigrid_ppo as example

    def expert(env: gym.Env) -> int:
        world: Any = env.unwrapped
        goals = example.things(world, "goal")
        if not goals:
            return example.next_action(world)
        locked = [c for c in example.things(world, "door") if world.grid.get(*c).is_locked]
        keys = example.things(world, "key")
        if locked and world.carrying is None:
            target, action = keys[0], example.Actions.pickup
        elif locked:
            target, action = locked[0], example.Actions.toggle
        else:
            target, action = goals[0], example.Actions.forward
        way = example.way_to(world, target)
        return way[0] if way else int(action)

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        env = example.make(name)
        first = example.demo_seed(seed)
        demos = ar.record(env, lambda obs: expert(env), N_DEMOS, seed=first, max_attempts=N_DEMOS)
        return ar.AlignRudder(example.changes, **options).fit(demos.successes)

    return Task(
        lambda seed: example.make(name),
        fit,
        function=example.changes,
        seen=lambda env, n_cells: example.OneHot(env),
        dqn=dqn,
    )


# A maze in MuJoCo


class Maze(gym.Env):
    """A ball is pushed through an S-shaped maze; reaching the far corner pays 1.

    Seen are place and velocity, both within about ±1. Five actions: no push, or one along an axis,
    for a fifth of a second; 300 of them at the most.
    """

    SCENE = """
    <mujoco>
      <option timestep="0.02" gravity="0 0 0" integrator="implicitfast"/>
      <worldbody>
        <body pos="1 1 0">
          <joint name="x" type="slide" axis="1 0 0" damping="1"/>
          <joint name="y" type="slide" axis="0 1 0" damping="1"/>
          <geom type="sphere" size="0.2" mass="1"/>
        </body>
        <geom type="box" pos="3 -0.1 0" size="3.2 0.1 0.3"/>
        <geom type="box" pos="3 6.1 0" size="3.2 0.1 0.3"/>
        <geom type="box" pos="-0.1 3 0" size="0.1 3.2 0.3"/>
        <geom type="box" pos="6.1 3 0" size="0.1 3.2 0.3"/>
        <geom type="box" pos="2.2 2 0" size="2.2 0.1 0.3"/>
        <geom type="box" pos="3.8 4 0" size="2.2 0.1 0.3"/>
      </worldbody>
      <actuator><motor joint="x"/><motor joint="y"/></actuator>
    </mujoco>"""
    PUSHES = 3.0 * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    WAY = np.array([[5.2, 1], [5.2, 3], [0.8, 3], [0.8, 5], [5.6, 5.2]])

    def __init__(self) -> None:
        os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is drawn
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_string(self.SCENE)
        self.data = mujoco.MjData(self.model)
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = spaces.Discrete(5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put the ball somewhere near the first corner."""
        super().reset(seed=seed)
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.np_random.uniform(-0.5, 0.5, 2)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Push the ball."""
        self.data.ctrl[:] = self.PUSHES[int(action)]
        self.mujoco.mj_step(self.model, self.data, 10)
        x, y = self.data.qpos + 1
        there = bool(x > 5 and y > 4.4)
        return self._observation(), float(there), there, False, {}

    def _observation(self) -> np.ndarray:
        place = (self.data.qpos - 2) / 3
        return np.concatenate([place, self.data.qvel / 2]).astype(np.float32)


def shown_way(rng: np.random.Generator) -> Callable[[Any], int]:
    """Return a policy that goes from corner to corner, and pushes anyhow one time in five."""
    corner = 0

    def act(observation: np.ndarray) -> int:
        nonlocal corner
        place, velocity = observation[:2] * 3 + 3, observation[2:] * 2
        if place[1] < 1.9 and corner > 1:
            corner = 0  # a new episode
        if np.abs(Maze.WAY[corner] - place).max() < 0.4 and corner < len(Maze.WAY) - 1:
            corner += 1
        if rng.random() < 0.2:
            return int(rng.integers(5))
        wanted = np.clip(Maze.WAY[corner] - place, -1.2, 1.2) - velocity
        axis = int(np.abs(wanted).argmax())
        return 1 + 2 * axis + int(wanted[axis] < 0)

    return act


def maze() -> Task:
    """Return the maze; the events are chosen by default, with random episodes."""

    def make(seed: int) -> gym.Env:
        return TimeLimit(Maze(), 300)

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        policy = shown_way(np.random.default_rng(seed))
        demos = ar.record(make(seed), policy, N_DEMOS, seed=1000 * seed, max_attempts=100)
        played = ar.record(
            make(seed), "random", 2 * N_DEMOS, seed=1000 * seed + 500, success=lambda *_: True
        )
        return ar.AlignRudder(**options).fit(demos.successes, played.successes)

    return Task(make, fit, steps=400_000, first=31)  # 21 to 23 showed what chance spoils


# A workshop: a hidden order, and acid


class Workshop(gym.Env):
    """Five stations must be used in an order that is not seen; acid ends the episode.

    Seen are the place, which station is there, and a click in the step in which a part snaps in.
    """

    SIZE, MOVES = 7, ((0, 1), (1, 0), (0, -1), (-1, 0))
    STATIONS = ((1, 5), (5, 5), (0, 0), (6, 1), (3, 3))
    ORDER, ACID, USE = (2, 0, 4, 1, 3), frozenset({(2, 1), (4, 4), (1, 3), (5, 2)}), 4

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1, 1, (8,), np.float32)
        self.action_space = spaces.Discrete(5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin at any free place."""
        super().reset(seed=seed)
        cells = [c for c in np.ndindex(self.SIZE, self.SIZE) if c not in self.ACID]
        free = [c for c in cells if c not in self.STATIONS]
        self.place, self.parts = free[int(self.np_random.integers(len(free)))], 0
        return self._observation(False), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, or use the station."""
        mounted = None
        if int(action) != self.USE:
            self.place = self.moved(self.place, int(action))
        elif self.place == self.STATIONS[self.ORDER[self.parts]]:
            mounted, self.parts = f"part {self.ORDER[self.parts] + 1}", self.parts + 1
        done, dead = self.parts == len(self.ORDER), self.place in self.ACID
        info = {"mounted": mounted}
        return self._observation(mounted is not None), float(done), done or dead, False, info

    def moved(self, place: tuple[int, int], action: int) -> tuple[int, int]:
        """Return where a move leads."""
        down, right = self.MOVES[action]
        there = place[0] + down, place[1] + right
        return there if min(there) >= 0 and max(there) < self.SIZE else place

    def _observation(self, click: bool) -> np.ndarray:
        seen = np.zeros(8, np.float32)
        seen[:2] = np.array(self.place) / 3 - 1
        if self.place in self.STATIONS:
            seen[2 + self.STATIONS.index(self.place)] = 1
        seen[7] = click
        return seen

    def way(self, rng: np.random.Generator) -> int:
        """Return a step of a shortest way around the acid, one in ten times another one."""
        safe = [a for a in range(4) if self.moved(self.place, a) not in self.ACID]
        if rng.random() < 0.1:
            return int(rng.choice(safe))
        goal = self.STATIONS[self.ORDER[self.parts]]
        if self.place == goal:
            return self.USE
        far, queue = {goal: 0}, [goal]
        for cell in queue:
            for there in {self.moved(cell, a) for a in range(4)} - self.ACID - far.keys():
                far[there] = far[cell] + 1
                queue.append(there)
        near = [a for a in safe if far[self.moved(self.place, a)] < far[self.place]]
        return int(rng.choice(near))


def workshop() -> Task:
    """Return the workshop; an event function names the parts, six demonstrations."""

    def mounted(obs: Any, action: Any, reward: float, next_obs: Any, info: Any) -> Any:
        return info.get("mounted")

    def make(seed: int) -> gym.Env:
        return TimeLimit(Workshop(), 120)

    def fit(seed: int, **options: Any) -> ar.AlignRudder:
        env, rng = make(seed), np.random.default_rng(seed)
        world: Any = env.unwrapped
        demos = ar.record(env, lambda obs: world.way(rng), 6, seed=1000 * seed, keep_infos=True)
        return ar.AlignRudder(mounted, **options).fit(demos.successes)

    return Task(make, fit, function=mounted, steps=400_000)


SLOWER = {"learning_rate": 1e-4, "exploration_fraction": 0.225}
"""For DQN on two levels: 45,000 of 200,000 steps explore, as with the common settings."""

TASKS: dict[str, Callable[[], Task]] = {
    "FourRooms": lambda: rooms(4),
    "EightRooms": lambda: rooms(8),
    "FrozenLake 8×8": lake,
    "Recipes, L = 8": lambda: recipes(8),
    "DoorKey": lambda: minigrid("MiniGrid-DoorKey-8x8-v0"),
    "KeyCorridor": lambda: minigrid("MiniGrid-KeyCorridorS3R3-v0", {**SLOWER, "n_steps": 10}),
    "UnlockPickup": lambda: minigrid(
        "MiniGrid-UnlockPickup-v0", {**SLOWER, "n_steps": 5, "target_update_interval": 4000}
    ),
    "MuJoCo maze": maze,
    "Workshop": workshop,
}
