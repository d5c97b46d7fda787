"""The study behind docs/own-environment.md: PPO on a sparse MiniGrid task, in five ways.

    python tools/minigrid_study.py --tune         # the same small grid for each method, other seeds
    python tools/minigrid_study.py                # five seeds of each, with the settings found
    python tools/minigrid_study.py --figure       # table and figure again from the raw results
    python tools/minigrid_study.py --live minigrid/runs    # picture of the example's own logs

Stop and go on as you like: a finished trial is a line of results/minigrid/*.jsonl and is not run
again. All pieces but the choice of methods are those of examples/minigrid_ppo.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import matplotlib.pyplot as plt  # noqa: E402
import minigrid_ppo as example  # noqa: E402
import numpy as np  # noqa: E402
import tyro  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402

import align_rudder as ar  # noqa: E402
from align_rudder.files import write_whole  # noqa: E402

# What each method is: options of the example.
METHODS: dict[str, dict[str, Any]] = {
    "bc+redistributed": {"clone": True, "redistribute": True, "progress": True},
    "bc": {"clone": True, "redistribute": False, "progress": False},
    "redistributed": {"clone": False, "redistribute": True, "progress": True},
    "ppo": {"clone": False, "redistribute": False, "progress": False},
    "bc+progress": {"clone": True, "redistribute": False, "progress": True},  # the control
}
LABELS = {
    "bc+redistributed": "cloned, redistributed",
    "redistributed": "redistributed",
    "bc": "cloned",
    "bc+progress": "cloned, progress seen",
    "ppo": "PPO",
}
GRID = [  # tried for each method
    {"n_steps": 64, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 128, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 256, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 256, "learning_rate": 5e-4, "ent_coef": 0.02},
]
MARKS = ("<!-- minigrid: table -->", "<!-- minigrid: end -->")
BIN = 10_000  # steps of one point of a curve
TUNING_SEED = 50


@dataclass
class Study:
    """Run the trials that are missing, then write table and figure."""

    tune: bool = False
    """Run the grid instead."""
    figure: bool = False
    """Run nothing; draw what is there."""
    seeds: int = 5
    """Trials of each method."""
    demos: int = 2
    """Demonstrations, others for each seed."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Which methods."""
    jobs: int = 2
    """Processes."""
    out: Path = ROOT / "results" / "minigrid"
    """Folder of the raw results."""
    image: Path = ROOT / "docs" / "images" / "minigrid.svg"
    """File of the figure."""
    page: Path = ROOT / "docs" / "own-environment.md"
    """Page that holds the table, between two marks."""
    live: Path | None = None
    """TensorBoard logs of the example: draw them into live.svg beside the figure, nothing else."""


class Episodes(BaseCallback):
    """Notes of every training episode at which step it began and whether it succeeded.

    Every episode is a new world and the policy acts as it would in an evaluation, so these are
    success rates in fresh worlds. Counted by their beginning, since of the episodes that *end* in a
    stretch of time more are short ones, which are the successes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, bool]] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:  # by the Monitor, so with the true return
                length = info["episode"]["l"] * self.training_env.num_envs
                self.found.append((self.num_timesteps - length, info["episode"]["r"] > 0))
        return True

    def curve(self, bins: int) -> list[tuple[int, int]]:
        """Return for each stretch of steps how many episodes began and how many succeeded."""
        out = []
        for k in range(bins):
            inside = [won for start, won in self.found if start // BIN == k]
            out.append((len(inside), sum(inside)))
        return out


def trial(method: str, args: example.Args) -> dict[str, Any]:
    """Run one method with one seed; return what goes into the results."""
    began = time.perf_counter()
    demos = example.demonstrate(args.env, args.demos, args.seed)
    model = ar.AlignRudder(example.changes).fit(demos)
    episodes = Episodes()
    ppo = example.train(args, demos, model, [episodes])
    # Episodes that begin in the last stretch may not have ended.
    complete = (args.steps - args.envs * 270) // BIN
    settings = {k: v for k, v in asdict(args).items() if k not in ("out", "smoke", "seed")}
    used = args.redistribute or args.progress
    return {
        "method": method,
        "seed": args.seed,
        "curve": episodes.curve(complete),
        "final": example.success_rate(ppo, model, args),
        "subgoals": [str(goal.symbol) for goal in model.subgoals_] if used else [],
        "seconds": round(time.perf_counter() - began),
        "settings": settings,
    }


def settings_of(study: Study, method: str) -> dict[str, Any]:
    """Return the best settings of the grid: the highest success over the whole of training."""
    rows = [row for row in read(study.out / "tune.jsonl") if row["method"] == method]
    if len(rows) < len(GRID):
        raise ValueError(f"{method} is not tuned yet; run with --tune first")
    rows.sort(key=lambda row: GRID.index(chosen(row["settings"])))
    best = max(rows, key=area)  # of equals the first
    return chosen(best["settings"])


def chosen(settings: dict[str, Any]) -> dict[str, Any]:
    """Return those of the settings that were tuned."""
    return {key: settings[key] for key in GRID[0]}


def area(row: dict[str, Any]) -> float:
    """Return the mean success over a trial's training."""
    return float(np.mean([won / began for began, won in row["curve"]]))


def planned(study: Study) -> Iterator[tuple[str, example.Args]]:
    """Yield the trials, seed by seed, so that a study cut short still compares like with like."""
    base = example.Args(demos=study.demos)
    if study.tune:
        for values in GRID:
            for method in study.methods:
                yield method, replace(base, seed=TUNING_SEED, **METHODS[method], **values)
    else:
        for seed in range(study.seeds):
            for method in study.methods:
                options = {**METHODS[method], **settings_of(study, method)}
                yield method, replace(base, seed=seed, **options)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the finished trials of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def identity(method: str, args: example.Args) -> str:
    """Return what tells a trial from others."""
    settings = {k: v for k, v in asdict(args).items() if k not in ("out", "smoke", "seed")}
    return json.dumps([method, args.seed, settings], sort_keys=True)


def run(study: Study) -> None:
    """Run what is missing, and add each trial to the file as it ends."""
    path = study.out / ("tune.jsonl" if study.tune else "trials.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = read(path)
    there = {json.dumps([r["method"], r["seed"], r["settings"]], sort_keys=True) for r in rows}
    missing = [(m, a) for m, a in planned(study) if identity(m, a) not in there]
    print(f"{len(missing)} trials to run, {len(there)} there already", flush=True)
    with ProcessPoolExecutor(
        study.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for n, future in enumerate(as_completed([pool.submit(trial, *t) for t in missing]), 1):
            rows.append(row := future.result())
            text = "".join(json.dumps(row) + "\n" for row in rows)
            write_whole(path, lambda file, text=text: file.write(text.encode()))
            name, seconds = f"{row['method']:18} seed {row['seed']:2}", row["seconds"]
            found = f"mean {area(row):.2f}, final {row['final']:.2f}"
            print(f"{n}/{len(missing)} {name} {chosen(row['settings'])}: {found} ({seconds} s)")
            sys.stdout.flush()


def points(row: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Return the curve of a trial: steps, and the success rate around them; the last is final."""
    steps = [(k + 0.5) * BIN for k in range(len(row["curve"]))]
    rates = [won / began for began, won in row["curve"]]
    return [*steps, row["settings"]["steps"]], [*rates, row["final"]]


def table(rows: list[dict[str, Any]]) -> str:
    """Return success rates in percent, mean and standard error over the seeds, as Markdown."""
    steps = rows[0]["settings"]["steps"]
    shown = (0, steps // (4 * BIN), steps // (2 * BIN), 3 * steps // (4 * BIN), -1)
    around = " | ".join(f"around {(k + 0.5) * BIN:,.0f}" for k in shown[1:-1])
    lines = [f"| | first {BIN:,} steps | {around} | at {steps:,} | each seed |"]
    lines.append("|---|---:|---:|---:|---:|---:|---|")
    for method, label in LABELS.items():
        curves = [points(row)[1] for row in rows if row["method"] == method]
        if not curves:
            continue
        y = 100 * np.array(curves)
        cells = [f"{y[:, k].mean():.0f}" for k in shown]
        if len(y) > 1:  # one seed has no standard error
            errors = y.std(axis=0, ddof=1) / np.sqrt(len(y))
            cells = [f"{c} ± {errors[k]:.0f}" for c, k in zip(cells, shown, strict=True)]
        ends = ", ".join(f"{rate:.0f}" for rate in y[:, -1])
        lines.append(f"| {label} | {' | '.join(cells)} | {ends} |")
    return "\n".join(lines)


def put_table(rows: list[dict[str, Any]], page: Path) -> None:
    """Replace the table of a page, which stands between two marks."""
    before, rest = page.read_text("utf-8").split(MARKS[0])
    text = f"{before}{MARKS[0]}\n{table(rows)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"
    write_whole(page, lambda file: file.write(text.encode()))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the figure."""
    lines = {}
    for method, label in LABELS.items():
        mine = [points(row) for row in rows if row["method"] == method]
        if mine:
            lines[label] = (np.array(mine[0][0]) / 1000, [rates for _, rates in mine])
    _, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
    ar.plot.curves(lines, ax=ax)
    ax.set(xlabel="thousand environment steps", ylabel="success rate in new worlds", ylim=(0, 1))
    write_whole(path, lambda file: ax.figure.savefig(file, format=path.suffix[1:], dpi=150))


def draw_live(logs: Path, path: Path) -> None:
    """Draw what TensorBoard shows of the example's last run: sub-goals, reward and κ."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    file = max(logs.rglob("events.out.tfevents*"), key=lambda found: found.stat().st_mtime)
    events = EventAccumulator(str(file))
    events.Reload()
    _, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharex=True)
    for ax, group in zip(axes, ("subgoals/", "align_rudder/"), strict=True):
        tags = [tag for tag in events.Tags()["scalars"] if tag.startswith(group)]
        lines = {}
        for tag in sorted(set(tags) - {"align_rudder/subgoals"}):
            scalars = events.Scalars(tag)
            steps = np.array([scalar.step for scalar in scalars]) / 1000
            lines[tag.removeprefix(group)] = (steps, [scalar.value for scalar in scalars])
        ar.plot.curves(lines, ax=ax)
        ax.set(xlabel="thousand environment steps", title=group)
    write_whole(path, lambda file: axes[0].figure.savefig(file, format="svg"))


def main(study: Study) -> None:
    """Run and draw."""
    if study.live is not None:
        return draw_live(study.live, study.image.with_name("live.svg"))
    if not study.figure:
        run(study)
    rows = read(study.out / "trials.jsonl")
    if rows and not study.tune:
        print(table(rows))
        put_table(rows, study.page)
        draw(rows, study.image)


if __name__ == "__main__":
    main(tyro.cli(Study))
