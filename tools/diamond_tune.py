"""Tune our method and the dense baseline on the same grid of settings, with the same steps.

    python tools/diamond_tune.py --jobs 4

Each setting is trained once, with a seed that no result uses; the table is of the last evaluation,
and results/diamond/tune.csv holds its numbers. What is finished is not run again.
"""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import dataclass
from pathlib import Path

import tyro
from diamond_study import run_all

from align_rudder.files import write_whole
from align_rudder.runs.rows import read_rows
from align_rudder.studies.rooms.tables import Table

METHODS = ("align-rudder", "ppo-dense")
GAMMAS = (0.99, 0.995)
ENTROPIES = (0.005, 0.02)
SEED = 100


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


def main(arguments: Arguments) -> None:
    """Train every setting, then show how far each came."""
    settings = list(itertools.product(METHODS, GAMMAS, ENTROPIES))
    folders = [arguments.runs / f"{m}-{gamma:g}-{entropy:g}" for m, gamma, entropy in settings]
    commands = []
    for (method, gamma, entropy), folder in zip(settings, folders, strict=True):
        train = ["diamond", "train", method, "--steps", f"{arguments.steps:g}"]
        train += ["--seed", str(SEED), "--gamma", f"{gamma:g}", "--entropy", f"{entropy:g}"]
        commands.append([[*train, "--out", str(folder)]])
    run_all(commands, arguments.jobs, arguments.seconds)
    rows = []
    for setting, folder in zip(settings, folders, strict=True):
        last = read_rows(folder / "evaluations.csv")[-1]
        worlds = int(last["worlds"])
        reached = sum(int(n) for name, n in last.items() if name.startswith("reached_"))
        rows.append([*setting, last["steps"], worlds, int(last["solved"]), reached / worlds])
    header = ["method", "gamma", "entropy", "steps", "worlds", "diamonds", "subgoals_per_world"]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(arguments.out, lambda file: file.write(text.getvalue().encode()))
    cells = [[str(x) for x in row[:-1]] + [f"{row[-1]:.2f}"] for row in rows]
    print(Table("Settings, last evaluation of each training", header, cells, ()).text())


if __name__ == "__main__":
    main(tyro.cli(Arguments))
