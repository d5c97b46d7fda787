"""The study behind docs/own-environment.md: PPO on a sparse MiniGrid task, in five ways.

    python tools/minigrid_study.py --tune         # the same small grid for each method, other seeds
    python tools/minigrid_study.py                # five seeds of each, with the settings found
    python tools/minigrid_study.py --figure       # table and figure again from the raw results
    python tools/minigrid_study.py --live minigrid/runs    # picture of the example's own logs

Stop and go on as you like: a finished trial is a line of results/minigrid/*.jsonl and is not run
again. All pieces but the choice of methods are those of examples/minigrid_ppo.py.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import minigrid_ppo as example  # noqa: E402
import numpy as np  # noqa: E402
import tyro  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402

import align_rudder as ar  # noqa: E402
from align_rudder.files import write_figure  # noqa: E402
from align_rudder.runs.rows import JsonRows  # noqa: E402
from align_rudder.runs.workers import Workers  # noqa: E402
from align_rudder.studies import minigrid  # noqa: E402

if TYPE_CHECKING:
    Method = str
else:
    Method = tyro.extras.literal_type_from_choices(minigrid.METHODS)


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
    methods: tuple[Method, ...] = tuple(minigrid.METHODS)
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

    def curve(self, stretches: int) -> list[tuple[int, int]]:
        """Return for each stretch of steps how many episodes began and how many succeeded."""
        out = []
        for k in range(stretches):
            inside = [won for start, won in self.found if start // minigrid.STRETCH == k]
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
    complete = (args.steps - args.envs * 270) // minigrid.STRETCH
    used = args.redistribute or args.progress
    return {
        "method": method,
        "seed": args.seed,
        "curve": episodes.curve(complete),
        "final": example.success_rate(ppo, model, args),
        "subgoals": [str(goal.symbol) for goal in model.subgoals_] if used else [],
        "seconds": round(time.perf_counter() - began),
        "settings": minigrid.settings_in(args),
    }


def live_figure(logs: Path) -> Figure:
    """Return what TensorBoard shows of the example's last run: sub-goals, reward and κ."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    file = max(logs.rglob("events.out.tfevents*"), key=lambda found: found.stat().st_mtime)
    events = EventAccumulator(str(file))
    events.Reload()
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    groups = ("subgoals/", "align_rudder/")
    for ax, group in zip(figure.subplots(1, 2, sharex=True), groups, strict=True):
        tags = [tag for tag in events.Tags()["scalars"] if tag.startswith(group)]
        lines = {}
        for tag in sorted(set(tags) - {"align_rudder/subgoals"}):
            scalars = events.Scalars(tag)
            steps = np.array([scalar.step for scalar in scalars]) / 1000
            lines[tag.removeprefix(group)] = (steps, [scalar.value for scalar in scalars])
        ar.figures.curves(lines, ax=ax)
        ax.set(xlabel="thousand environment steps", title=group)
    return figure


def main(study: Study) -> None:
    """Run and draw."""
    if study.live is not None:
        return write_figure(study.image.with_name("live.svg"), live_figure(study.live))
    kept, tuned = study.out / "trials.jsonl", study.out / "tune.jsonl"
    base, workers = example.Args(demos=study.demos), Workers(study.jobs)
    if study.tune:
        wanted = minigrid.trials(base, study.methods, 0, ())
        return minigrid.run_trials(tuned, wanted, trial, workers)
    if not study.figure:
        wanted = minigrid.trials(base, study.methods, study.seeds, JsonRows(tuned).read())
        minigrid.run_trials(kept, wanted, trial, workers)
    if rows := JsonRows(kept).read():
        print(minigrid.success_table(rows).text())
        minigrid.put_table(rows, study.page)
        write_figure(study.image, minigrid.success_figure(rows))


if __name__ == "__main__":
    main(tyro.cli(Study))
