"""The MineRL pipeline end to end in the package's small world: what cloning, PPO and manager give.

    python tools/minerl_study.py                    # an hour on two cores
    python tools/minerl_study.py --preset paper     # the paper's networks and steps; needs a GPU

Records demonstrations, finds sub-goals, trains sub-agents and the manager with the commands of
`align-rudder minerl`, for three seeds, and plays new worlds. Stopped, it goes on where it was.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from align_rudder.files import write_json, write_text
from align_rudder.minerl.results import draw_results
from align_rudder.model import AlignRudder
from align_rudder.runs.processes import run_or_exit
from align_rudder.studies.minerl import (
    data_chain,
    folder_of,
    results,
    results_table,
    sub_agents_table,
    training_chain,
)


@dataclass
class Arguments:
    """The MineRL pipeline in the small world."""

    work: Path = Path("runs/minerl-study")
    """Folder for data and agents."""
    out: Path = Path("results/minerl")
    """Folder for the results."""
    figures: Path = Path("docs/images/minerl")
    """Folder for the figures, of the first seed."""
    preset: Literal["small", "paper"] = "small"
    """How large a training is."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the trainings."""
    episodes: int = 200
    """New worlds for each player of each seed."""
    jobs: int = 2
    """Sub-agents that are trained at the same time."""


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    run_or_exit([data_chain(given.work)], jobs=1)
    for seed in given.seeds:
        run_or_exit([training_chain(given.work, given.preset, seed, given.jobs)], jobs=1)
    asked = given.preset, given.seeds, given.episodes
    found = results(given.work, *asked, sys.stderr.isatty())
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(given.out / f"{given.preset}.json", found)
    first, model = folder_of(given.work, given.preset, given.seeds[0]), given.work / "model.npz"
    stages, goals = found["runs"][0]["played"], found["training"]["goals"]
    draw_results(first, AlignRudder.load(model), goals, stages, given.figures)
    tables = results_table(found), sub_agents_table(found)
    text = "\n\n".join(table.markdown() for table in tables)
    write_text(given.out / f"{given.preset}.md", f"{text}\n")
    print("\n\n".join(table.text() for table in tables))
