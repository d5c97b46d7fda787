"""Train all methods of the diamond study, several at a time on one GPU, and evaluate them.

    python tools/diamond_study.py --steps 8e6 --jobs 4
    python tools/diamond_study.py --steps 240e6 --jobs 2

Results are in results/diamond/STEPS/METHOD-SEED. What is finished is not run again; what was
stopped goes on from its checkpoint. Agents and checkpoints stay out of the repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

ALL = (
    "align-rudder",
    "equal-reward",
    "no-redistribution",
    "no-cloning",
    "separate",
    "ppo-dense",
    "ppo-diamond",
)


@dataclass
class Arguments:
    """Run the study."""

    steps: float = 8e6
    """Environment steps of each training."""
    methods: tuple[str, ...] = ALL
    """Methods."""
    seeds: tuple[int, ...] = (0,)
    """Seeds."""
    jobs: int = 1
    """Processes at once; they share the GPU."""
    worlds: int = 10_000
    """New worlds of the evaluation; 0 to leave it out."""
    seconds: float = float("inf")
    """Time after which what still runs is stopped, to go on later."""
    out: Path = Path("results/diamond")
    """Folder for results."""


def commands(arguments: Arguments) -> list[list[str]]:
    """Return the commands of all trainings, each followed by its evaluation."""
    out = []
    for seed in arguments.seeds:
        for method in arguments.methods:
            folder = str(arguments.out / f"{arguments.steps / 1e6:g}m" / f"{method}-{seed}")
            train = ["diamond", "train", method, "--steps", f"{arguments.steps:g}"]
            train += ["--seed", str(seed), "--out", folder]
            judge = ["diamond", "evaluate", folder, "--worlds", str(arguments.worlds)]
            judge += [] if method == ALL[0] else ["--last"]
            out.append([train, judge] if arguments.worlds else [train])
    return out


def run_all(waiting: list[list[list[str]]], jobs: int, seconds: float) -> None:
    """Run chains of commands of `align-rudder`, so many at once, for at most so long."""
    program = [sys.executable, "-m", "align_rudder"]
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    waiting, running, begun = list(waiting), [], time.monotonic()
    failed = 0
    while waiting or running:
        while waiting and len(running) < jobs:
            first, *rest = waiting.pop(0)
            print(f"{time.monotonic() - begun:6.0f} s  {' '.join(first)}", flush=True)
            running.append((subprocess.Popen([*program, *first], env=env), rest))
        time.sleep(0.5)
        if time.monotonic() - begun > seconds:
            for process, _ in running:
                process.terminate()
            for process, _ in running:
                process.wait()
            sys.exit("stopped; run it again to go on")
        for entry in [entry for entry in running if entry[0].poll() is not None]:
            running.remove(entry)
            process, rest = entry
            failed += process.returncode != 0
            if rest and process.returncode == 0:
                waiting.insert(0, rest)
    if failed:
        sys.exit(f"{failed} commands failed")


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    run_all(commands(given), given.jobs, given.seconds)
