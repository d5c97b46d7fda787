"""Steps per second of training with redistribution inside the step, beside plain PPO.

    python benchmarks/diamond.py --json results/diamond/throughput.json

Both have the same networks and the same PPO; their updates are timed in turn in one run. Meant for
a GPU; `--envs 64 --hidden 64 64 --pool 64` runs on a CPU.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import tyro

from align_rudder.files import write_json
from align_rudder.hierarchy.cloning import aligned_demonstrations
from align_rudder.hierarchy.evaluation import new_worlds
from align_rudder.hierarchy.ppo import new_runner_state, train_step
from align_rudder.hierarchy.resets import new_starts
from align_rudder.studies.diamond.methods import training_of
from align_rudder.studies.diamond.results import aligned_task
from align_rudder.tasks.diamond.demos import prepare

_LABELS = {
    "ppo-diamond": "plain PPO",
    "no-cloning": "redistribution, sub-tasks and state buffers",
    "align-rudder": "… and the cloning loss",
}


@dataclass
class Arguments:
    """Compare the speed of training."""

    steps: float = 240e6
    """Take the settings for a training of that many steps."""
    envs: int | None = None
    """Environments at once."""
    hidden: tuple[int, ...] = (512, 512)
    """Layers of the networks."""
    pool: int = 2048
    """New worlds to begin in."""
    repeats: int = 10
    """Updates of each."""
    json: Path | None = None
    """File for the numbers."""


def main(arguments: Arguments) -> None:
    setup = prepare()
    tables = aligned_task(setup).tables
    learners: dict[str, Any] = {}
    for method in _LABELS:
        training = training_of(method, int(arguments.steps))
        ppo = replace(training.ppo, n_envs=arguments.envs or training.ppo.n_envs)
        task = training.aligned(setup.task, tables)
        agent = replace(training, hidden=arguments.hidden).new_agent(task, jax.random.key(0))
        shown = None if training.plain else aligned_demonstrations(task, setup.runs)
        pool = new_worlds(task, jax.random.key(1), arguments.pool)
        starts = new_starts(pool, task.n_subtasks, training.buffer if shown else 1, shown)
        examples = shown.examples if shown and ppo.bc_coef > 0 else None
        runner = new_runner_state(agent, starts, ppo, 1000, jax.random.key(2))

        def step(runner: Any, task: Any = task, ppo: Any = ppo, examples: Any = examples) -> Any:
            return train_step(task, ppo, 1000, runner, examples)[0]

        with jax.default_matmul_precision(training.precision):
            compiled = eqx.filter_jit(step, donate="all").lower(runner).compile()
        learners[method] = [compiled, jax.block_until_ready(compiled(runner)), [], ppo.batch_size]
    for _ in range(arguments.repeats):
        for entry in learners.values():
            begun = time.perf_counter()
            entry[1] = jax.block_until_ready(entry[0](entry[1]))
            entry[2].append(time.perf_counter() - begun)
    speeds = {name: batch / np.median(times) for name, (_, _, times, batch) in learners.items()}
    device = jax.devices()[0].device_kind
    batch = next(iter(learners.values()))[3]
    print(f"{device}, updates of {batch:,} steps, median of {arguments.repeats} each, in turn")
    for name, speed in speeds.items():
        print(f"{_LABELS[name]:<44} {speed:>10,.0f} steps/s {speed / speeds['ppo-diamond']:>6.2f}")
    write_json(
        arguments.json,
        {
            "device": device,
            "steps_per_update": batch,
            "seconds": {name: entry[2] for name, entry in learners.items()},
            "steps_per_second": speeds,
            "ratio": {name: speed / speeds["ppo-diamond"] for name, speed in speeds.items()},
        },
    )


if __name__ == "__main__":
    main(tyro.cli(Arguments))
