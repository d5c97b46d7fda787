"""A sparse MiniGrid task learned by PPO from a few demonstrations and the redistributed reward.

    pip install ".[sb3]" "minigrid<3.1"           # in a clone of the repository
    python examples/minigrid_ppo.py               # some minutes; writes minigrid/report.html
    python examples/minigrid_ppo.py --smoke       # everything once, in half a minute
    tensorboard --logdir minigrid/runs            # the sub-goals being learned

Top to bottom: environment, demonstrations, events, fit, report, wrap, PPO, evaluation. What each
part is for, and how it compares with PPO alone and with cloning: docs/own-environment.md.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  (registers the environments)
import numpy as np
import torch
import tyro
from minigrid.core.actions import Actions
from minigrid.core.constants import DIR_TO_VEC, IDX_TO_OBJECT
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

import align_rudder as ar
from align_rudder.gym.sb3 import LiveCallback, ValueBurnIn, clone
from align_rudder.gym.spaces import block_entries, in_blocks
from align_rudder.show.report import write_report


@dataclass
class Args:
    """Learn a sparse MiniGrid task from a few demonstrations."""

    env: str = "MiniGrid-KeyCorridorS3R3-v0"
    """A MiniGrid task: unlock a door, take what is behind it."""
    demos: int = 2
    """Number of demonstrations."""
    redistribute: bool = True
    """Pay the redistributed reward; without it, PPO gets the reward at the end alone."""
    clone: bool = True
    """Let PPO begin with a policy cloned from the demonstrations."""
    progress: bool = True
    """Let the agent observe how far along the demonstrations' profile it is."""
    settlement: str = "annealed"
    """What becomes of the shares: "annealed", "even", "potential", "last" or "beside"."""
    steps: int = 240_000
    """Environment steps to learn."""
    envs: int = 16
    """Environments stepped together."""
    n_steps: int = 64
    """Steps of each environment between two updates."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    ent_coef: float = 0.03
    """Weight of the entropy."""
    gamma: float = 0.99
    """Discount."""
    epochs: int = 100
    """Passes over the demonstrations when cloning."""
    value_first: int = 10_000
    """After cloning: steps in which only the value function learns."""
    worlds: int = 100
    """Fresh worlds of the final evaluation."""
    seed: int = 0
    """Seed of the demonstrations, of learning and of the evaluation."""
    out: Path = Path("minigrid")
    """Folder for report and TensorBoard logs."""
    smoke: bool = False
    """Run everything once, short."""


# 1. The environment. It pays at the end alone, and every episode is another world. Demonstrations,
#    training and evaluation have seeds of their own.

DEMO_SEEDS, EVALUATION_SEEDS = 1_000_000, 2_000_000
VIEW = 7  # the agent sees 7 × 7 cells and stands in the middle of the last row


def make(name: str) -> gym.Env:
    """Return the task."""
    return RememberViews(gym.make(name, disable_env_checker=True))


class RememberViews(gym.Wrapper):
    """Computes the view from a place only once while the world stays as it is.

    Nothing but speed: MiniGrid takes most of its time for the view, and an agent that has not
    learned yet comes to the same places again and again.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.world: Any = env.unwrapped
        self.compute, self.views, self.grid = self.world.gen_obs, {}, None
        self.world.gen_obs = self.view

    def view(self) -> dict[str, Any]:
        """Return the observation that MiniGrid would."""
        world = self.world
        if world.grid is not self.grid:  # a new episode
            self.grid, self.views = world.grid, {}
            self.doors = [c for c in world.grid.grid if c is not None and c.type == "door"]
        key = (
            *world.agent_pos,
            world.agent_dir,
            id(world.carrying),
            *map(id, world.grid.grid),
            *(door.is_open for door in self.doors),
            *(door.is_locked for door in self.doors),
        )
        if key not in self.views:
            self.views[key] = self.compute()
        return dict(self.views[key])


class OneHot(gym.ObservationWrapper):
    """The view as zeros and ones (kinds and states; no colours) and the direction.

    Where the progress is observed, a block for each position follows, and that of the agent's holds
    the view again and a 1: less of what is learned at one position leaks into the next.
    """

    kinds, states, directions = (np.eye(n, dtype=np.uint8) for n in (11, 3, 4))

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        parts: Any = env.observation_space
        self.cells = parts["progress"].shape[0] if "progress" in parts.spaces else 0
        size = block_entries(VIEW * VIEW * (11 + 3) + 4, self.cells)
        self.observation_space = gym.spaces.Box(0, 1, (size,), np.uint8)

    def observation(self, observation: dict[str, Any]) -> np.ndarray:
        """Return the vector of an observation."""
        image = observation["image"].reshape(-1, 3)
        parts = [self.kinds[image[:, 0]].ravel(), self.states[image[:, 2]].ravel()]
        parts.append(self.directions[observation["direction"]])
        cell = int(observation["progress"].argmax()) if self.cells else 0
        return in_blocks(np.concatenate(parts), cell, self.cells)


# 2. Demonstrations. Here they are made by a script that sees the whole grid and goes the shortest
#    way (breadth first) from one thing to the next. Anything that succeeds would do, a person at
#    the keyboard too.


def way_to(env: Any, target: tuple[int, int]) -> list[int]:
    """Return the actions after which the agent faces a cell; closed doors are opened."""
    start = (*(int(x) for x in env.agent_pos), int(env.agent_dir))
    came: dict[tuple[int, ...], tuple[Any, list[int]]] = {start: (None, [])}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        x, y, d = here
        ahead = (x + int(DIR_TO_VEC[d][0]), y + int(DIR_TO_VEC[d][1]))
        if ahead == target:
            path: list[int] = []
            while came[here][0] is not None:
                here, actions = came[here]
                path = actions + path
            return path
        steps = [((x, y, (d - 1) % 4), [Actions.left]), ((x, y, (d + 1) % 4), [Actions.right])]
        cell = env.grid.get(*ahead)
        if cell is None or cell.can_overlap():
            steps.append(((*ahead, d), [Actions.forward]))
        elif cell.type == "door" and not cell.is_locked:
            steps.append(((*ahead, d), [Actions.toggle, Actions.forward]))
        for state, actions in steps:
            if state not in came:
                came[state] = (here, [int(a) for a in actions])
                queue.append(state)
    raise ValueError(f"there is no way to {target}")


def things(env: Any, kind: str) -> list[tuple[int, int]]:
    """Return the cells that hold a kind of object."""
    cells = ((x, y) for x in range(env.width) for y in range(env.height))
    return [c for c in cells if (thing := env.grid.get(*c)) is not None and thing.type == kind]


def free_cell(env: Any) -> tuple[int, int]:
    """Return the nearest empty cell where nothing dropped would bar a door."""
    doors, ways = things(env, "door"), []
    for x in range(1, env.width - 1):
        for y in range(1, env.height - 1):
            clear = all(abs(x - u) + abs(y - v) > 1 for u, v in doors)
            if env.grid.get(x, y) is None and clear and (x, y) != tuple(env.agent_pos):
                try:
                    ways.append((len(way_to(env, (x, y))), (x, y)))
                except ValueError:
                    continue  # behind the locked door
    return min(ways)[1]


def next_action(env: Any) -> int:
    """Return what the expert does next, from the whole state of the world."""
    locked = [c for c in things(env, "door") if env.grid.get(*c).is_locked]
    keys, balls = things(env, "key"), things(env, "ball")
    others = [b for b in balls if env.grid.get(*b) is not env.obj]
    barring = [b for b in others if locked and sum(abs(np.subtract(b, locked[0]))) == 1]
    if env.carrying is not None and env.carrying.type == "key" and locked:
        target, action = locked[0], Actions.toggle
    elif env.carrying is not None:
        target, action = free_cell(env), Actions.drop
    elif not locked:
        target, action = tuple(int(x) for x in env.obj.cur_pos), Actions.pickup
    elif barring:
        target, action = barring[0], Actions.pickup
    elif keys:
        target, action = keys[0], Actions.pickup
    else:  # the key is in a box
        target, action = things(env, "box")[0], Actions.toggle
    way = way_to(env, target)
    return way[0] if way else int(action)


def demonstrate(name: str, n: int, seed: int) -> list[ar.Episode]:
    """Return n demonstrations in worlds of their own."""
    env, first = make(name), demo_seed(seed)
    return ar.record(
        env, lambda obs: next_action(env.unwrapped), n, seed=first, max_attempts=n
    ).successes


def demo_seed(seed: int, i: int = 0) -> int:
    """Return the seed of the world of the i-th demonstration."""
    return DEMO_SEEDS + 1_000 * seed + i


# 3. Events. What may matter in such a world is that the agent takes or opens something. Which of it
#    matters, and in which order, is not said here: the alignment finds it. Dropping is no event: it
#    would be paid anywhere, and the learner would drop the key before it came to the door.


def changes(
    obs: dict[str, Any], action: Any, reward: float, next_obs: dict[str, Any], info: Any
) -> str | None:
    """Return what the agent took or opened, as it sees it itself; None for nothing."""
    hand, front = (VIEW // 2, VIEW - 1), (VIEW // 2, VIEW - 2)
    held, holds = (IDX_TO_OBJECT[int(o["image"][hand][0])] for o in (obs, next_obs))
    if held != holds:
        return f"take {holds}" if held == "empty" else None
    before, after = obs["image"][front], next_obs["image"][front]
    if action == Actions.toggle and (before != after).any():
        kind, state = IDX_TO_OBJECT[int(before[0])], int(before[2])
        did = (None, "open", "unlock")[state] if kind == "door" else "open"
        return did and f"{did} {kind}"
    return None


# 4. The wrapper goes around the environment, and the vector for the network around both.


def wrapped(env: gym.Env, model: ar.AlignRudder, args: Args) -> gym.Env:
    """Return the environment as the learner sees it."""
    if args.redistribute or args.progress:
        env = ar.RedistributeReward(
            env, model, args.settlement, args.gamma, observe_progress=args.progress
        )
        if not args.redistribute:
            env = TrueReward(env)
    return OneHot(env)


class TrueReward(gym.Wrapper):
    """Pays the environment's own reward again: to see what observing the progress does alone."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step with the original reward."""
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, info["original_reward"], terminated, truncated, info


def vec_env(model: ar.AlignRudder, args: Args, seed: int, n: int) -> VecEnv:
    """Return n environments; the Monitor that `make_vec_env` puts inside keeps the true return."""
    return make_vec_env(
        lambda: make(args.env), n, seed=seed, wrapper_class=lambda env: wrapped(env, model, args)
    )


# 5. Learning: clone the demonstrations, played again so that the policy sees what it will see, its
#    progress too; then PPO, at first for the value function alone, which is not cloned.


def train(
    args: Args,
    demos: list[ar.Episode],
    model: ar.AlignRudder,
    callbacks: list[BaseCallback],
    logs: str | None = None,
) -> PPO:
    """Return the trained learner."""
    torch.set_num_threads(1)
    ppo = PPO(
        "MlpPolicy",
        vec_env(model, args, 10_000 * args.seed, args.envs),
        n_steps=args.n_steps,
        batch_size=256,
        n_epochs=8,
        learning_rate=args.learning_rate,
        ent_coef=args.ent_coef,
        gamma=args.gamma,
        policy_kwargs={"net_arch": [64, 64]},
        tensorboard_log=logs,
        device="cpu",
        seed=args.seed,
    )
    if args.clone:
        seeds = [demo_seed(args.seed, i) for i in range(len(demos))]
        seen = ar.replay(wrapped(make(args.env), model, args), demos, seeds)
        clone(ppo, seen, epochs=args.epochs, seed=args.seed)
        callbacks = [*callbacks, ValueBurnIn(args.value_first)]
    return ppo.learn(args.steps, callback=callbacks)


# 6. Evaluation in fresh worlds, by the environment's own reward.


def success_rate(ppo: PPO, model: ar.AlignRudder, args: Args) -> float:
    """Return the share of fresh worlds that the policy solves."""
    env = vec_env(model, args, EVALUATION_SEEDS + 1_000 * args.seed, min(args.worlds, 50))
    returns, _ = evaluate_policy(
        ppo, env, args.worlds, deterministic=False, return_episode_rewards=True
    )
    return float(np.mean(np.array(returns) > 0))


def main(args: Args) -> None:
    """Do all of it."""
    if args.smoke:
        args.steps, args.worlds, args.envs, args.value_first = 6_000, 4, 4, 1_000
    args.out.mkdir(parents=True, exist_ok=True)
    demos = demonstrate(args.env, args.demos, args.seed)
    print(f"{len(demos)} demonstrations of {[len(demo) for demo in demos]} steps")
    model = ar.AlignRudder(changes).fit(demos)
    print(model.summary())
    write_report(model, demos, args.out / "report.html", title=args.env)
    print(f"look at {args.out / 'report.html'} before you train\n")
    live = LiveCallback(model)
    watched = args.redistribute or args.progress
    ppo = train(args, demos, model, [live] if watched else [], logs=str(args.out / "runs"))
    for name, value in live.tracker.numbers().items():
        print(f"{name:32} {value:.3f}")
    rate = success_rate(ppo, model, args)
    print(f"success after {ppo.num_timesteps} steps: {rate:.2f} of {args.worlds} fresh worlds")


if __name__ == "__main__":
    main(tyro.cli(Args))
