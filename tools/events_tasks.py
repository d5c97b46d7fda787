"""Tasks with vectors and images, and scripted policies that solve them, for the study of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from deep_tasks import Maze, shown_way
from gymnasium.wrappers import TimeLimit

import align_rudder as ar

__all__ = ["TASKS", "Task", "episodes"]

Policy = Callable[[Any], Any]


@dataclass(frozen=True)
class Task:
    """An environment, and a policy that solves it.

    Attributes:
        make: Makes the environment.
        solve: Makes the policy of one episode, given the environment and random numbers.
        options: Options of `reset`.
    """

    make: Callable[[], gym.Env[Any, Any]]
    solve: Callable[[gym.Env[Any, Any], np.random.Generator], Policy]
    options: dict[str, Any] | None = None


def episodes(name: str, n: int, seed: int, *, random: bool = False) -> Iterator[ar.Episode]:
    """Play n episodes of a task, by its policy or at random; of its policy, those that succeed."""
    task, rng = TASKS[name], np.random.default_rng([seed, random])
    env = task.make()
    while n:
        start = int(rng.integers(2**31))
        env.action_space.seed(start)
        obs, _ = env.reset(seed=start, options=task.options)
        policy = (lambda _: env.action_space.sample()) if random else task.solve(env, rng)
        observations, actions, rewards, terminated, truncated = [_copy(obs)], [], [], False, False
        while not (terminated or truncated):
            action = policy(obs)
            obs, reward, terminated, truncated, _ = env.step(action)
            observations.append(_copy(obs))
            actions.append(action)
            rewards.append(float(reward))
        if random or terminated:
            n -= 1
            yield ar.Episode(
                _stacked(observations), np.array(actions), rewards,
                terminated=terminated, truncated=truncated,
            )  # fmt: skip
    env.close()


def _copy(obs: Any) -> Any:
    return {k: np.array(v) for k, v in obs.items()} if isinstance(obs, dict) else np.array(obs)


def _stacked(observations: Sequence[Any]) -> Any:
    if isinstance(observations[0], dict):
        return {k: np.stack([o[k] for o in observations]) for k in observations[0]}
    return np.stack(observations)


def _push_along(env: gym.Env[Any, Any], rng: np.random.Generator) -> Policy:
    """Push the car the way it rolls, with a force that is a little different in each episode."""
    force = rng.uniform(0.8, 1.0)
    return lambda obs: np.array([force if obs[1] >= 0 else -force], np.float32)


def _pump(env: gym.Env[Any, Any], rng: np.random.Generator) -> Policy:
    """Turn the joint of the acrobot so that energy goes into it, now and then not."""

    def act(obs: np.ndarray) -> int:
        if rng.random() < 0.02:
            return int(rng.integers(3))
        return 0 if obs[4] > 0 else 2

    return act


def _follow_cells(env: gym.Env[Any, Any], rng: np.random.Generator) -> Policy:
    """Push the ball of a maze along the shortest way of cells to its goal."""
    inner: Any = env.unwrapped
    maze = inner.maze
    grid = [[cell == 1 for cell in row] for row in maze.maze_map]
    gain = rng.uniform(8.0, 12.0)

    def act(obs: dict[str, np.ndarray]) -> np.ndarray:
        here = tuple(int(i) for i in maze.cell_xy_to_rowcol(obs["achieved_goal"]))
        goal = tuple(int(i) for i in maze.cell_xy_to_rowcol(obs["desired_goal"]))
        way = _shortest(grid, here, goal)
        target = obs["desired_goal"]
        if len(way) > 1:
            target = maze.cell_rowcol_to_xy(np.array(way[1]))
        pull = gain * (target - obs["achieved_goal"]) - 2.0 * obs["observation"][2:4]
        return np.clip(pull + rng.normal(0, 0.1, 2), -1, 1).astype(np.float32)

    return act


def _shortest(
    walls: Sequence[Sequence[bool]], start: tuple[int, ...], goal: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """Return the cells from start to goal, by breadth-first search."""
    before: dict[tuple[int, ...], tuple[int, ...] | None] = {start: None}
    queue = [start]
    for cell in queue:
        for move in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            to = (cell[0] + move[0], cell[1] + move[1])
            if to not in before and not walls[to[0]][to[1]]:
                before[to] = cell
                queue.append(to)
    way = [goal]
    while (previous := before[way[-1]]) is not None:
        way.append(previous)
    return way[::-1]


def _maze(name: str) -> gym.Env[Any, Any]:
    import gymnasium_robotics

    gym.register_envs(gymnasium_robotics)
    return gym.make(name, continuing_task=False, max_episode_steps=500)


class PictureGrid(gym.Env[np.ndarray, int]):
    """A grid of 7×7 cells with two walls, drawn as a picture of 84×84×3; the far corner pays."""

    action_space = gym.spaces.Discrete(4)
    observation_space = gym.spaces.Box(0, 255, (84, 84, 3), np.uint8)
    goal = (6, 6)

    def __init__(self) -> None:
        self.walls = np.zeros((7, 7), bool)
        self.walls[2, :6] = self.walls[4, 1:] = True
        self.at, self.steps = (0, 0), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """Begin in the upper left corner."""
        super().reset(seed=seed)
        self.at, self.steps = (0, int(self.np_random.integers(3))), 0
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Go right, down, left or up."""
        move = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        to = (self.at[0] + move[0], self.at[1] + move[1])
        if min(to) >= 0 and max(to) < 7 and not self.walls[to]:
            self.at = to
        self.steps += 1
        done = self.at == self.goal
        return self._picture(), float(done), done, self.steps >= 100, {}

    def _picture(self) -> np.ndarray:
        cells = np.zeros((7, 7, 3), np.uint8)
        cells[self.walls] = (90, 90, 90)
        cells[self.goal], cells[self.at] = (0, 200, 0), (220, 40, 40)
        picture = cells.repeat(12, axis=0).repeat(12, axis=1)
        noise = self.np_random.integers(0, 8, picture.shape, np.uint8)
        return picture + noise


def _walk(env: gym.Env[Any, Any], rng: np.random.Generator) -> Policy:
    """Walk the shortest way to the corner, with one step in ten at random."""
    grid: Any = env.unwrapped
    walls = np.pad(grid.walls, 1, constant_values=True).tolist()

    def act(_: np.ndarray) -> int:
        if rng.random() < 0.1:
            return int(rng.integers(4))
        here, goal = ((r + 1, c + 1) for r, c in (grid.at, grid.goal))
        to = _shortest(walls, here, goal)[1]
        return ((0, 1), (1, 0), (0, -1), (-1, 0)).index((to[0] - here[0], to[1] - here[1]))

    return act


TASKS = {
    "mountain-car": Task(lambda: gym.make("MountainCarContinuous-v0"), _push_along),
    "acrobot": Task(lambda: gym.make("Acrobot-v1"), _pump),
    "maze": Task(
        lambda: _maze("PointMaze_UMaze-v3"), _follow_cells,
        {"reset_cell": np.array([1, 1]), "goal_cell": np.array([3, 1])},
    ),
    "maze-any-goal": Task(lambda: _maze("PointMaze_Medium-v3"), _follow_cells),
    "s-maze": Task(lambda: TimeLimit(Maze(), 300), lambda env, rng: shown_way(rng)),
    "picture-grid": Task(PictureGrid, _walk),
}  # fmt: skip
