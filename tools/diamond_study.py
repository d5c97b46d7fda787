"""Train all methods of the diamond study, several at a time on one GPU, and evaluate them.

    python tools/diamond_study.py --steps 8e6 --jobs 4
    python tools/diamond_study.py --steps 240e6 --jobs 2

Results are in results/diamond/STEPS/METHOD-SEED. What is finished is not run again; what was
stopped goes on from its checkpoint. Agents and checkpoints stay out of the repository.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from align_rudder.runs.processes import run_or_exit
from align_rudder.studies.diamond.methods import METHODS
from align_rudder.studies.diamond.study import study_chains

if TYPE_CHECKING:
    Method = str
else:
    Method = tyro.extras.literal_type_from_choices(METHODS)


@dataclass
class Arguments:
    """Run the study."""

    steps: float = 8e6
    """Environment steps of each training."""
    methods: tuple[Method, ...] = tuple(METHODS)
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


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    try:
        chains = study_chains(given.out, given.steps, given.methods, given.seeds, given.worlds)
    except ValueError as error:
        sys.exit(str(error))
    if not chains:
        print(f"all of it is in {given.out} already; give --out for runs of your own")
    run_or_exit(chains, given.jobs, given.seconds)
