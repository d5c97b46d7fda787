"""Train settings of a list, several at a time on one GPU, count them in new worlds, keep a table.

    python tools/diamond_explore.py settings.txt --jobs 4 --seconds 500

Each line of the list is a name and arguments of `align-rudder diamond train`:

    needs --steps 8e6 --seed 11 --demos first.npz --set beside=0.3 goals=checklist revisit=50

What is finished, here or in the table, is not run again; what the time stops goes on from its
checkpoint, and the table has its last evaluation. Lines of --table that are not in the list stay.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from align_rudder.files import write_text
from align_rudder.runs.processes import run_chains
from align_rudder.runs.rows import read_rows


@dataclass
class Arguments:
    """Explore."""

    settings: tyro.conf.Positional[Path]
    """The list."""
    jobs: int = 1
    """Trainings at once; they share the GPU."""
    seconds: float = float("inf")
    """Time after which what still runs is stopped, to go on later."""
    worlds: int = 1024
    """New worlds in which each is counted at its end."""
    runs: Path = Path("runs/diamond-explore")
    """Folder for the trainings."""
    table: Path = Path("results/diamond/explored.jsonl")
    """File for the table, a line for each setting."""


def settings_in(path: Path) -> dict[str, list[str]]:
    """Return the arguments of each setting by its name."""
    lines = [shlex.split(line, comments=True) for line in path.read_text("utf-8").splitlines()]
    named = {line[0]: line[1:] for line in lines if line}
    if len(named) < sum(bool(line) for line in lines):
        raise SystemExit(f"{path}: a name is there twice; each setting needs one of its own")
    return named


def row_of(name: str, arguments: list[str], folder: Path) -> dict[str, Any] | None:
    """Return what is known of a training: its curve, and its counts once it has ended."""
    if not (folder / "evaluations.csv").is_file():
        return None
    curve = read_rows(folder / "evaluations.csv", text=("phase",))
    points = [[int(row[key]) for key in ("steps", "solved", "worlds")] for row in curve]
    row = {"name": name, "arguments": arguments, "curve": points}
    if (folder / "evaluation.json").is_file():
        counts = json.loads((folder / "evaluation.json").read_text("utf-8"))
        row["counts"] = [*counts["stages"].values()][-1]
    return row


def explore(
    named: dict[str, list[str]], jobs: int, seconds: float, worlds: int, runs: Path, table: Path
) -> None:
    """Train settings by their names, count them, write the table.

    Args:
        named: Arguments of `align-rudder diamond train` for each name.
        jobs: Trainings at once.
        seconds: Time after which what still runs is stopped.
        worlds: New worlds in which each is counted at its end.
        runs: Folder for the trainings.
        table: File for the table.
    """
    there = table.read_text("utf-8").splitlines() if table.is_file() else []
    known = {row["name"]: row for row in map(json.loads, there)}
    chains = []
    for name, arguments in named.items():
        if known.get(name, {}).get("counts", {}).get("worlds") == worlds:
            continue  # its agents need not be here
        folder = runs / name
        demos = arguments.index("--demos") if "--demos" in arguments else len(arguments)
        judge = ["diamond", "evaluate", str(folder), "--last", "--worlds", str(worlds)]
        train = ["diamond", "train", *arguments, "--out", str(folder)]
        chains.append([train, [*judge, *arguments[demos : demos + 2]]])
    stopped = ""
    try:
        if failed := run_chains(chains, jobs, seconds):
            stopped = f"{failed} commands failed"
    except KeyboardInterrupt:
        stopped = "stopped; run it again to go on"
    rows = {name: row_of(name, arguments, runs / name) for name, arguments in named.items()}
    rows = {name: row for name, row in rows.items() if row is not None}
    rows = known | rows
    table.parent.mkdir(parents=True, exist_ok=True)
    write_text(table, "".join(f"{json.dumps(row)}\n" for row in rows.values()))
    for name, row in rows.items():
        if name not in named:
            continue
        counts = row.get("counts", {})
        found = f"{counts['solved']} of {counts['worlds']}" if counts else "not ended"
        steps, solved, worlds = row["curve"][-1]
        print(f"{name:20} {found:15} last evaluation: {solved} of {worlds} at {steps:,} steps")
        if counts:
            ends = ", ".join(f"{end} {n}" for end, n in counts["endings"].items() if n)
            print(f"{'':20} {ends}")
    if stopped:
        raise SystemExit(stopped)


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    explore(
        *(settings_in(given.settings), given.jobs, given.seconds),
        *(given.worlds, given.runs, given.table),
    )
