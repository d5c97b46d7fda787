"""Fit a model to a few good episodes, look at it, wrap the environment with its reward.

    python examples/quick_start.py
    python examples/quick_start.py --out lake

FrozenLake pays 1 at the goal and nothing before. Five episodes that reach it by different ways are
enough to see the way they share, and every step along it gets its part of the 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import tyro

import align_rudder as ar
from align_rudder.show.report import write_report

LEFT, DOWN, RIGHT, UP = range(4)
WAYS = (
    [DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
    [DOWN, DOWN, LEFT, RIGHT, RIGHT, DOWN, RIGHT],
    [DOWN, DOWN, UP, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
    [UP, DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
    [DOWN, LEFT, DOWN, RIGHT, DOWN, RIGHT, RIGHT],
)


@dataclass
class Arguments:
    """Redistribute the reward of FrozenLake."""

    out: str = "quick-start"
    """Folder for the demonstrations, the model and the report."""
    smoke: bool = False
    """Nothing to shorten here: the whole example takes seconds."""


def main(args: Arguments) -> None:
    """Fit, show, save, wrap."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    env = gym.make("FrozenLake-v1", is_slippery=False)

    steps = iter([action for way in WAYS for action in way])  # any policy or person will do
    demos, _ = ar.record(env, lambda obs: next(steps), len(WAYS), path=out / "demos.npz")

    model = ar.AlignRudder().fit(demos)
    print(model.summary())
    model.save(out / "model.npz")

    # One page with all of it; the map is drawn because FrozenLake is a grid.
    write_report(model, demos, out / "report.html", env=env)

    # For any learner: the same environment, paid along the way. The sum is the true return.
    env = ar.RedistributeReward(env, out / "model.npz")
    env.reset(seed=0)
    rewards = [float(env.step(action)[1]) for action in WAYS[0]]
    print("\nrewards of the shortest way:", " ".join(f"{r:.3f}" for r in rewards))
    print(f"their sum: {sum(rewards):.3f}")
    print(f"\nopen {out / 'report.html'} in a browser")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
