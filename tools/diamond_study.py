"""Train all methods of the diamond study, several at a time on one GPU, and evaluate them.

    python tools/diamond_study.py --steps 8e6 --jobs 4
    python tools/diamond_study.py --steps 240e6 --jobs 2

Results are in results/diamond/STEPS/METHOD-SEED. What is finished is not run again; what was
stopped goes on from its checkpoint. Agents and checkpoints stay out of the repository.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from align_rudder.cli.diamond import Method
from align_rudder.runs.processes import run_chains

ALL: tuple[Method, ...] = (
    "align-rudder",
    "equal-reward",
    "no-redistribution",
    "no-cloning",
    "separate",
    "own-subtask",
    "ppo-dense",
    "ppo-diamond",
)


@dataclass
class Arguments:
    """Run the study."""

    steps: float = 8e6
    """Environment steps of each training."""
    methods: tuple[Method, ...] = ALL
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
            folder = str(arguments.out / f"{arguments.steps / 1e6:.12g}m" / f"{method}-{seed}")
            train = ["diamond", "train", method, "--steps", f"{arguments.steps:.0f}"]
            train += ["--seed", str(seed), "--out", folder]
            judge = ["diamond", "evaluate", folder, "--worlds", str(arguments.worlds)]
            judge += [] if method == ALL[0] else ["--last"]
            if not counted(Path(folder), arguments.worlds):
                out.append([train, judge] if arguments.worlds else [train])
    return out


def counted(folder: Path, worlds: int) -> bool:
    """Return whether a folder is published with its counts, but without the agents."""
    path = folder / "evaluation.json"
    if not path.is_file() or (folder / "agent.npz").is_file():
        return False
    try:
        return json.loads(path.read_text())["worlds"] == worlds or not worlds
    except (ValueError, KeyError, TypeError):
        sys.exit(f"{path} is damaged; put back a copy, or delete it")


def run_all(chains: list[list[list[str]]], jobs: int, seconds: float) -> None:
    """Run chains of commands of `align-rudder`, so many at once, for at most so long."""
    try:
        if failed := run_chains(chains, jobs, seconds):
            sys.exit(f"{failed} commands failed")
    except KeyboardInterrupt:
        sys.exit("stopped; run it again to go on")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    if not (found := commands(given)):
        print(f"all of it is in {given.out} already; give --out for runs of your own")
    run_all(found, given.jobs, given.seconds)
