"""The trainings behind the tables of the diamond: all methods, and a grid of settings for two.

Each training is a command of `align-rudder diamond`, so that it resumes from its own checkpoint and
several can share a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from align_rudder.files import Anything, Each, Whole, read_json
from align_rudder.runs.processes import Chain
from align_rudder.runs.rows import Rows, read_rows
from align_rudder.studies.diamond.methods import OURS
from align_rudder.studies.tables import Table

__all__ = ["study_chains", "tuning_chains", "tuning_table"]

GRID = tuple(product((OURS, "ppo-dense"), (0.99, 0.995), (0.005, 0.02)))
"""Method, discount and entropy of the settings that are tried."""
TUNING_SEED = 100  # no result uses it


def study_chains(
    out: Path, steps: float, methods: Iterable[str], seeds: Sequence[int], worlds: int
) -> list[Chain]:
    """Return for each training that is not published yet its command and that of its evaluation.

    Args:
        out: Folder of results.
        steps: Environment steps of each training.
        methods: Methods.
        seeds: Seeds.
        worlds: New worlds of the evaluation; 0 to leave it out.
    """
    chains: list[Chain] = []
    for seed, method in product(seeds, methods):
        folder = out / f"{steps / 1e6:.12g}m" / f"{method}-{seed}"
        if not _is_published(folder, worlds):
            train = _training(method, steps, seed, folder)
            judge = ["diamond", "evaluate", str(folder), "--worlds", str(worlds)]
            judge += [] if method == OURS else ["--last"]
            chains.append([train, judge] if worlds else [train])
    return chains


def tuning_chains(runs: Path, steps: float) -> list[Chain]:
    """Return the command of a training for each setting of the grid.

    Args:
        runs: Folder for the trainings.
        steps: Environment steps of each.
    """
    chains = []
    for method, gamma, entropy in GRID:
        folder = _folder(runs, method, gamma, entropy)
        options = ["--gamma", f"{gamma:g}", "--entropy", f"{entropy:g}"]
        chains.append([[*_training(method, steps, TUNING_SEED, folder), *options]])
    return chains


def tuning_table(runs: Path, out: Path) -> Table:
    """Return how far each setting of the grid came in its last evaluation; write it as CSV, too.

    Args:
        runs: Folder of the trainings.
        out: The CSV file.
    """
    header = ["method", "gamma", "entropy", "steps", "worlds", "diamonds", "subgoals_per_world"]
    rows = []
    for method, gamma, entropy in GRID:
        last = read_rows(_folder(runs, method, gamma, entropy) / "evaluations.csv")[-1]
        worlds = int(last["worlds"])
        reached = sum(int(n) for name, n in last.items() if name.startswith("reached_"))
        found = [int(last["steps"]), worlds, int(last["solved"]), reached / worlds]
        rows.append([method, gamma, entropy, *found])
    out.parent.mkdir(parents=True, exist_ok=True)
    Rows(out, header).write(rows)
    cells = [[*map(str, row[:-1]), f"{row[-1]:.2f}"] for row in rows]
    return Table("Settings, last evaluation of each training", header, cells)


def _training(method: str, steps: float, seed: int, folder: Path) -> list[str]:
    options = ["--steps", f"{steps:.0f}", "--seed", str(seed), "--out", str(folder)]
    return ["diamond", "train", method, *options]


def _folder(runs: Path, method: str, gamma: float, entropy: float) -> Path:
    return runs / f"{method}-{gamma:g}-{entropy:g}"


def _is_published(folder: Path, worlds: int) -> bool:
    """Return whether a folder holds the counts of a training, but not its agents."""
    path = folder / "evaluation.json"
    if not path.is_file() or (folder / "agent.npz").is_file():
        return False
    found = read_json(path, Each(Anything()), remedy="put back a copy, or delete it")
    return Whole(1).check(found.get("worlds"), f"worlds in {path}") == worlds or not worlds
