"""The trainings behind the tables of the diamond.

Each training is a command of `align-rudder diamond`, so that it resumes from its own checkpoint and
several can share a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from align_rudder.files import Anything, Each, Whole, read_json
from align_rudder.runs.processes import Chain
from align_rudder.studies.diamond.methods import OURS

__all__ = ["study_chains"]


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


def _training(method: str, steps: float, seed: int, folder: Path) -> list[str]:
    options = ["--steps", f"{steps:.0f}", "--seed", str(seed), "--out", str(folder)]
    return ["diamond", "train", method, *options]


def _is_published(folder: Path, worlds: int) -> bool:
    """Return whether a folder holds the counts of a training, but not its agents."""
    path = folder / "evaluation.json"
    if not path.is_file() or (folder / "agent.npz").is_file():
        return False
    found = read_json(path, Each(Anything()), remedy="put back a copy, or delete it")
    return Whole(1).check(found.get("worlds"), f"worlds in {path}") == worlds or not worlds
