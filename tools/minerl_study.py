"""The MineRL pipeline end to end in the package's small world: what cloning, PPO and manager give.

    python tools/minerl_study.py --work runs/minerl-study --out results/minerl

Records demonstrations, finds sub-goals, trains sub-agents and the manager with the commands of
`align-rudder minerl`, and plays new worlds. Stopped, it goes on where it was.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from align_rudder.files import write_json
from align_rudder.runs.processes import run_or_exit
from align_rudder.studies.minerl import results, results_table, training_chain


@dataclass
class Arguments:
    """The MineRL pipeline in the small world."""

    work: Path = Path("runs/minerl-study")
    """Folder for data and agents."""
    out: Path = Path("results/minerl")
    """Folder for the results."""
    episodes: int = 40
    """New worlds for each player."""


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    run_or_exit([training_chain(given.work)], jobs=1)
    found = results(given.work, given.episodes, sys.stderr.isatty())
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(given.out / "scripted.json", found)
    print(results_table(found).text())
