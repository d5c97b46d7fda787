"""Tune our method and the dense baseline on the same grid of settings, with the same steps.

    python tools/diamond_tune.py --jobs 4

Each setting is trained once, with a seed that no result uses; the table is of the last evaluation,
and results/diamond/tune.csv holds its numbers. What is finished is not run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from align_rudder.runs.processes import run_or_exit
from align_rudder.studies.diamond.study import tuning_chains, tuning_table


@dataclass
class Arguments:
    """Tune."""

    steps: float = 8e6
    """Environment steps of each training."""
    jobs: int = 1
    """Processes at once; they share the GPU."""
    seconds: float = float("inf")
    """Time after which what still runs is stopped, to go on later."""
    runs: Path = Path("runs/diamond-tune")
    """Folder for the trainings."""
    out: Path = Path("results/diamond/tune.csv")
    """File for the numbers."""


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    run_or_exit(tuning_chains(given.runs, given.steps), given.jobs, given.seconds)
    print(tuning_table(given.runs, given.out).text())
