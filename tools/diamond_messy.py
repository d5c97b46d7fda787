"""What messy demonstrations cost ours, and what they cost sub-goals that are not aligned.

    python tools/diamond_messy.py --make            # demonstrations alone, which needs no GPU
    python tools/diamond_messy.py --jobs 6          # train, count, tables

Each seed has demonstrations of its own, of worlds of its own: 2, 5, 10 or 50 successes of the
expert as they come, or ten with a share of all actions replaced by random ones. Ours and the
controls are cloned from the same runs and begin in the same states; they differ in their sub-goals
alone. What is finished is not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import tyro

from align_rudder.files import write_text
from align_rudder.runs.processes import run_or_exit
from align_rudder.studies.diamond.methods import METHODS, OURS

sys.path.insert(0, str(Path(__file__).parent))

import diamond_explore

DEMONSTRATIONS = {
    "2": ("--n", "2"),
    "5": ("--n", "5"),
    "10": ("--n", "10"),
    "50": ("--n", "50"),
    "10, 10 % of the actions random": ("--n", "10", "--noise", "0.1", "--worlds", "200"),
    "10, 20 % of the actions random": ("--n", "10", "--noise", "0.2", "--worlds", "600"),
}
RIVALS = (OURS, "one-demonstration", "kinds")
FIRST_WORLD = 300  # seeds of demonstrations: no other part of the study has these worlds


@dataclass
class Arguments:
    """Train with messy demonstrations."""

    make: bool = False
    """Make the demonstrations and no more."""
    steps: float = 8e6
    """Environment steps of each training."""
    methods: tuple[str, ...] = RIVALS
    """Methods."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds."""
    jobs: int = 1
    """Trainings at once; they share the GPU."""
    seconds: float = float("inf")
    """Time after which what still runs is stopped, to go on later."""
    worlds: int = 10_000
    """New worlds in which each is counted at its end."""
    demos: Path = Path("runs/diamond-messy/demonstrations")
    """Folder for the demonstrations."""
    runs: Path = Path("runs/diamond-messy")
    """Folder for the trainings."""
    out: Path = Path("results/diamond/messy")
    """Folder for counts and tables."""
    options: tuple[str, ...] = ()
    """Further options of each training, to try it out: --options=--envs=32 for example."""


def slug(kind: str) -> str:
    """Return the name of a kind of demonstrations as part of a file's name.

    Example:
        >>> slug("10, 20 % of the actions random")
        '10-noise-20'
    """
    n, _, noise = kind.partition(", ")
    return f"{n}-noise-{noise.split()[0]}" if noise else n


def demonstrations(given: Arguments, kind: str, seed: int) -> Path:
    """Return the file of the demonstrations of a kind for a seed."""
    return given.demos / f"{slug(kind)}-{seed}.npz"


def make(given: Arguments) -> None:
    """Let the expert play, where that was not done before."""
    given.demos.mkdir(parents=True, exist_ok=True)
    chains = []
    for (kind, options), seed in product(DEMONSTRATIONS.items(), given.seeds):
        path = demonstrations(given, kind, seed)
        world = ["--seed", str(FIRST_WORLD + seed), "-o", str(path)]
        if not path.is_file():
            chains.append([["diamond", "demos", *options, *world]])
    if chains:
        run_or_exit(chains, given.jobs, given.seconds)


def settings(given: Arguments) -> dict[str, list[str]]:
    """Return the arguments of each training by its name."""
    found = {}
    for seed, kind, method in product(given.seeds, DEMONSTRATIONS, given.methods):
        path = demonstrations(given, kind, seed)
        found[f"{method}-{slug(kind)}-{seed}"] = [
            *(method, "--steps", f"{given.steps:.0f}", "--seed", str(seed), "--demos", str(path)),
            *given.options,
        ]
    return found


def table(rows: dict[str, dict], methods: tuple[str, ...], seeds: tuple[int, ...]) -> str:
    """Return the share of new worlds with a diamond, for each kind of demonstrations and method."""
    labels = [METHODS[method].label for method in methods]
    lines = [f"| demonstrations | {' | '.join(labels)} |", "|---" + "|---:" * len(labels) + "|"]
    for kind in DEMONSTRATIONS:
        cells = []
        for method in methods:
            counts = [
                rows[name]["counts"]
                for seed in seeds
                if "counts" in rows.get(name := f"{method}-{slug(kind)}-{seed}", {})
            ]
            shares = [100 * one["solved"] / one["worlds"] for one in counts]
            spread = f" ({min(shares):.1f}–{max(shares):.1f})" if len(shares) > 1 else ""
            cells.append(f"{sum(shares) / len(shares):.1f}{spread}" if shares else "–")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(given: Arguments) -> None:
    """Make, train, count, write the table."""
    make(given)
    if given.make:
        return
    stopped: SystemExit | None = None
    counts = given.out / "counts.jsonl"
    try:
        diamond_explore.explore(
            settings(given), given.jobs, given.seconds, given.worlds, given.runs, counts
        )
    except SystemExit as error:
        stopped = error
    lines = counts.read_text("utf-8").splitlines() if counts.is_file() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    text = table(rows, given.methods, given.seeds)
    given.out.mkdir(parents=True, exist_ok=True)
    write_text(given.out / "tables.md", text)
    print(text)
    if stopped is not None:
        raise stopped


if __name__ == "__main__":
    main(tyro.cli(Arguments))
