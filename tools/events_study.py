"""Measure what a random policy earns with the events that are chosen by default.

    python tools/events_study.py --seeds 5

makes demonstrations of tasks with vectors and pictures by scripted policies (`events_tasks.py`),
fits `AlignRudder()` with and without random episodes, and writes `results/events/TASK.json` and the
table in `docs/method.md`. Random shares are of fresh random episodes, which no model saw. Limits
and defaults were chosen on seeds below 100 and on 2000; the study begins at 3000.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from events_tasks import TASKS, episodes

import align_rudder as ar
from align_rudder.files import write_whole
from align_rudder.summary import doubts

ROOT = Path(__file__).parents[1]
FIRST, N_DEMOS, N_RANDOM, N_FRESH = 3000, 10, 20, 20
NAMED = 3  # sub-goals of a strategy that are kept by name
NAMES = {
    "mountain-car": "MountainCarContinuous",
    "acrobot": "Acrobot",
    "maze": "PointMaze, U, one start and goal",
    "maze-any-goal": "PointMaze, medium, any start and goal",
    "s-maze": "MuJoCo maze of three corridors",
    "picture-grid": "grid as pictures of 84 × 84 × 3",
}
WAYS = {
    "changes": "changes, with random episodes",
    "with random episodes": "chosen, with random episodes",
    "without": "chosen, without them",
}
_MARKS = ("<!-- events study -->", "<!-- end of events study -->")


def trial(task: str, way: str, seed: int) -> dict[str, Any]:
    """Fit to ten demonstrations, and see what fresh episodes earn."""
    demos, held = (list(episodes(task, N_DEMOS, seed + i)) for i in (0, 10_000))
    random, fresh = (
        list(episodes(task, n, seed + i, random=True))
        for i, n in ((0, N_RANDOM), (20_000, N_FRESH))
    )
    # Acrobot's returns are negative; without random episodes one must say what is worth nothing.
    baseline = min(0.0, float(np.mean([e.ret for e in random])))
    started, before = time.perf_counter(), _memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == "changes":
            model = ar.AlignRudder(ar.DeltaEvents()).fit(demos, random)
        elif way == "without":
            model = ar.AlignRudder(baseline=baseline).fit(demos)
        else:
            model = ar.AlignRudder().fit(demos, random)
    seconds, gigabytes = time.perf_counter() - started, _memory() - before
    gain = float(np.mean([e.ret for e in demos])) - model.baseline_

    def share(played: list[ar.Episode]) -> float:
        return float(np.mean([model.redistribute(e).rewards.sum() for e in played])) / gain

    return {
        "task": task,
        "way": way,
        "seed": seed,
        "found": bool(model.strategies_),
        "encoder": repr(model.events_.base),
        "random_share": share(fresh),
        "random_share_": model.random_share_,
        "held_out_share": share(held),
        "events": model.events_.n_events,
        "columns": [len(s.profile) for s in model.strategies_],
        "shares": [_shares(s) for s in model.strategies_],
        "subgoals": [
            {"n": len(s.subgoals), "first": [str(g.symbol) for g in s.subgoals[:NAMED]]}
            for s in model.strategies_
        ],
        "doubts": [what for what, _ in doubts(model)],
        "seconds": round(seconds, 2),
        "gigabytes": round(gigabytes, 2),
    }


def _shares(strategy: ar.Strategy) -> list[float] | None:
    """Return the share of each column in the reward, None where they are too many to look at."""
    rewards = strategy.column_rewards
    return (rewards / rewards.sum()).round(2).tolist() if len(rewards) <= 20 else None


def _memory() -> float:
    """Return the most memory that this process had so far, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the docs."""
    lines = [
        "| task | events | a random policy earns | held-out demonstrations earn | kinds "
        "| sub-goals | found nothing | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, name in NAMES.items():
        for way, told in WAYS.items():
            mine = [r for r in rows if r["task"] == task and r["way"] == way]
            found = [r for r in mine if r["found"]]
            if not mine:
                continue
            if not found:
                lines.append(f"| {name} | {told} | – | – | – | – | {len(mine)} of {len(mine)} | |")
                continue
            shares = [r["random_share"] for r in found]
            goals = [max(s["n"] for s in r["subgoals"]) for r in found]
            kinds = [r["events"] for r in found]
            lines.append(
                f"| {name} | {told} | {np.mean(shares):.0%} ({min(shares):.0%} to "
                f"{max(shares):.0%}) | {np.mean([r['held_out_share'] for r in found]):.0%} | "
                f"{min(kinds)} to {max(kinds)} | {min(goals)} to {max(goals)} | "
                f"{len(mine) - len(found)} of {len(mine)} | "
                f"{np.median([r['seconds'] for r in mine]):.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run the trials that are not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    given = parser.parse_args()
    folder = ROOT / "results" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    # Each trial has a process of its own, so that the memory it takes is its own.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for task in given.tasks:
            jobs = [(task, way, FIRST + k) for k in range(given.seeds) for way in WAYS]
            rows = []
            for job in jobs:
                rows.append(pool.apply(trial, job))
                print(json.dumps({k: rows[-1][k] for k in ("task", "way", "seed", "random_share")}))
            text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
            write_whole(folder / f"{task}.json", lambda file, text=text: file.write(text.encode()))
    rows = [row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text())]
    page = ROOT / "docs" / "method.md"
    text = page.read_text("utf-8")
    before, rest = text.split(_MARKS[0])
    after = rest.split(_MARKS[1])[1]
    page.write_text(f"{before}{_MARKS[0]}\n{table(rows)}\n{_MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
