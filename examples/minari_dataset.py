"""A Minari dataset in, the same dataset with redistributed rewards out: for offline learners.

    pip install ".[minari]"                # in a clone of the repository
    python examples/minari_dataset.py
    python examples/minari_dataset.py --dataset my/dataset-v0 --new-id my/redistributed-v0 --top 10

Without --dataset a small one is recorded first: FrozenLake, some episodes that reach the goal among
many that do not. The best ones are the demonstrations; all of them get the redistributed reward.
Every return stays what it was.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro

LEFT, DOWN, RIGHT, UP = range(4)
WAYS = (
    [DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
    [DOWN, DOWN, LEFT, RIGHT, RIGHT, DOWN, RIGHT],
    [UP, DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
    [DOWN, LEFT, DOWN, RIGHT, RIGHT, DOWN, RIGHT],
)


@dataclass
class Arguments:
    """Redistribute the rewards of a Minari dataset."""

    dataset: str | None = None
    """Id or folder of a local dataset; default: record one."""
    new_id: str = "lake/redistributed-v0"
    """Id of the new dataset; there must be none of that id."""
    top: int = 4
    """Demonstrations: this many episodes with the highest return, the shorter among equals."""
    root: str | None = None
    """Folder of the datasets; default: Minari's own, or ./minari where one is recorded."""
    smoke: bool = False
    """Nothing to shorten here: the whole example takes seconds."""


def record(dataset_id: str) -> None:
    """Record the ways to the goal and twenty random episodes, as Minari does it."""
    import minari

    env = minari.DataCollector(gym.make("FrozenLake-v1", is_slippery=False))
    rng = np.random.default_rng(0)
    for way in [*WAYS, *([None] * 20)]:
        env.reset(seed=int(rng.integers(2**31)))
        actions, over = iter(way or []), False
        while not over:
            _, _, terminated, truncated, _ = env.step(next(actions, int(rng.integers(4))))
            over = terminated or truncated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of metadata that a throw-away set lacks
        env.create_dataset(dataset_id)
    env.close()


def forget(*ids: str) -> None:
    """Delete what this example wrote the last time; Minari overwrites nothing."""
    import minari

    for dataset_id in set(ids) & minari.list_local_datasets().keys():
        minari.delete_dataset(dataset_id)


def main(args: Arguments) -> None:
    """Record if need be, fit to the best, write all with the new rewards."""
    if args.root is not None or args.dataset is None:
        os.environ["MINARI_DATASETS_PATH"] = str(Path(args.root or "minari").resolve())
    import align_rudder as ar  # Minari reads the folder when it is imported
    from align_rudder.data.minari import load_minari, write_minari

    if args.dataset is None:
        args.dataset = "lake/walks-v0"
        forget(args.dataset, args.new_id)
        record(args.dataset)

    episodes = load_minari(args.dataset)
    model = ar.AlignRudder(top_n=args.top).fit(episodes)
    print(model.summary())

    write_minari(args.dataset, model, args.new_id)
    redistributed = load_minari(args.new_id)
    print(f"\n{len(episodes)} episodes written to {args.new_id}")
    for name, pool in (("before", episodes), ("after", redistributed)):
        paid = sum(int(np.count_nonzero(e.rewards)) for e in pool)
        mean = np.mean([e.ret for e in pool])
        print(f"  {name:6}  mean return {mean:.4f}, {paid} steps with a reward")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
