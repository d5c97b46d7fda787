"""The MineRL pipeline end to end in the package's small world: what cloning, PPO and manager give.

Demonstrations are recorded and sub-goals found once; for each seed sub-agents are cloned and
fine-tuned and a manager trained on top of them; then new worlds are played by one that acts at
random, the clones, the fine-tuned sub-agents, and these with the manager. The view drifts, so that
clones come to states that no demonstration has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from align_rudder.events.names import goal_names
from align_rudder.minerl.playing import episode_rows, evaluate, load_players, open_game
from align_rudder.minerl.results import STAGES
from align_rudder.minerl.training import Games, frames_of
from align_rudder.model import AlignRudder
from align_rudder.runs.processes import Chain
from align_rudder.runs.rows import read_rows
from align_rudder.studies.statistics import wilson_interval
from align_rudder.studies.tables import Table

__all__ = [
    "PRESETS",
    "Preset",
    "data_chain",
    "results",
    "results_table",
    "sub_agents_table",
    "training_chain",
]

WORLD = {"hits": 4, "distance": 2, "drift": 1}
DEMOS = ["--n", "40", "--noise", "0.05", "--seed", "0"]
EVENTS = ["--subgoal-threshold", "43"]
SEED = 1_000_000  # of the worlds that are played; demonstrations have 0 to 39
MAX_STEPS = 400


class Preset(NamedTuple):
    """How large a training is.

    Attributes:
        environments: Environments of each sub-agent.
        options: Options of `align-rudder minerl train`; those left out are the paper's.
    """

    environments: int
    options: dict[str, Any]


PRESETS = {
    "small": Preset(
        2,
        {
            "frames": 1,
            "batch": 16,
            "epochs": 30,
            "steps": 6144,
            "rollout": 64,
            "burn-in": 512,
            "least-steps": 0,
            "enough": 0.95,
            "evaluations": 6,
            "manager-steps": 6144,
            "patience": 120,
        },
    ),
    "paper": Preset(4, {"manager-steps": 50_000}),
}
"""`small` is for a CPU: one frame, as the recorded player looks at no more; `paper` as printed."""


def data_chain(work: Path) -> Chain:
    """Return the commands that record demonstrations and find sub-goals; what is there is kept.

    Args:
        work: Folder for data and agents.
    """
    data, model = str(work / "data"), str(work / "model.npz")
    chain: list[list[str]] = []
    if not Path(model).is_file():
        chain.append(["minerl", "events", data, "-o", model, *EVENTS])
    if not Path(data).is_dir():
        chain.insert(0, ["minerl", "demos", data, *DEMOS, "--world", *_world()])
    return chain


def training_chain(work: Path, name: str, seed: int, jobs: int) -> Chain:
    """Return the command that goes from sub-goals to trained agents.

    Args:
        work: Folder for data and agents.
        name: Name of the preset.
        seed: Seed of the training.
        jobs: Sub-agents trained at the same time.
    """
    preset = PRESETS[name]
    train = ["minerl", "train", str(work / "data"), str(work / "model.npz")]
    train += ["-o", str(folder_of(work, name, seed)), "--cache", str(work / "cache")]
    train += [part for k, v in preset.options.items() for part in (f"--{k}", str(v))]
    train += ["--seed", str(seed), "--jobs", str(jobs)]
    played = ["--environments", str(preset.environments), "--environment.module", "scripted"]
    return [[*train, *played, "--environment.world", *_world()]]


def folder_of(work: Path, name: str, seed: int) -> Path:
    """Return the folder of a training."""
    return work / f"{name}-{seed}"


def _world() -> list[str]:
    return [f"{name}={value}" for name, value in WORLD.items()]


def results(
    work: Path, name: str, seeds: Sequence[int], episodes: int, progress: bool = True
) -> dict[str, Any]:
    """Return how far each player of each seed comes in new worlds.

    Args:
        work: Folder of data and agents; what was played before is kept there.
        name: Name of the preset.
        seeds: Seeds of the trainings.
        episodes: New worlds for each player; those of each seed are others.
        progress: Whether to show progress bars.
    """
    model, runs = AlignRudder.load(work / "model.npz"), []
    configuration: dict[str, Any] = {}
    for seed in seeds:
        folder = folder_of(work, name, seed)
        configuration = load_players(folder, "cloned", model)[1]
        seen = {key: configuration[key] for key in ("skip", "frames")}
        games = Games(partial(open_game, model, module="scripted", world=WORLD, **seen), 2)
        worlds, played = SEED + seed, {}
        settings = {"seed": worlds, "max_steps": MAX_STEPS, "world": WORLD}
        with games.playing(folder / "crashes-evaluation.csv") as envs:
            for stage in STAGES:
                players = load_players(folder, stage, model)[0]
                rows = episode_rows(folder, players, stage, settings)
                found = evaluate(players, envs, episodes, worlds, MAX_STEPS, progress, rows)
                played[stage] = found
                solved = f"{found['solved']} of {episodes} with a diamond"
                print(f"seed {seed}, {stage}: {solved}", flush=True)
        goals, skip = configuration["goals"], configuration["skip"]
        runs.append(
            {
                "seed": seed,
                "played": played,
                "subtasks": [success_rates(folder, k) for k in range(len(goals))],
                "frames": frames_of(folder, skip),
            }
        )
    shared = {"world": WORLD, "demonstrations": DEMOS, "events": EVENTS, "max_steps": MAX_STEPS}
    training = {key: value for key, value in configuration.items() if key != "seed"}
    return {"preset": name, **shared, "training": training, "runs": runs}


def success_rates(folder: Path, k: int) -> dict[str, float]:
    """Return how often a sub-goal is reached from where its sub-task begins."""
    rows = read_rows(folder / f"tuning-{k}.csv")
    if not rows:
        return {"steps": 0}
    rates = [float(row["rate"]) for row in rows]
    return {"steps": int(rows[-1]["steps"]), "cloned": rates[0], "tuned": max(rates)}


def results_table(found: Mapping[str, Any]) -> Table:
    """Return the results as a table, a row for each sub-goal: all seeds, and the range of them."""
    runs, goals = found["runs"], goal_names(found["training"]["goals"])
    header = ["sub-goal", *(name for name, _ in STAGES.values())]
    rows = [
        [goal, *(_cell([run["played"][s] for run in runs], k) for s in STAGES)]
        for k, goal in enumerate(goals)
    ]
    n = sum(run["played"]["cloned"]["episodes"] for run in runs)
    notes = [f"new worlds that reach it, of {n:,} in all; range: least and most of the seeds."]
    for one, other in (("cloned", "agent"), ("agent", "manager")):
        notes.append(_compared(runs, one, other))
    return Table("New worlds that reach each sub-goal", header, rows, tuple(notes))


def sub_agents_table(found: Mapping[str, Any]) -> Table:
    """Return how often each sub-agent reaches its sub-goal, before PPO and at its best after it."""
    runs, goals = found["runs"], goal_names(found["training"]["goals"])
    rows = []
    for k, goal in enumerate(goals):
        some = [run["subtasks"][k] for run in runs if "cloned" in run["subtasks"][k]]
        before, after = ([one[key] for one in some] for key in ("cloned", "tuned"))
        rows.append([goal, _range(before), _range(after)])
    trials = found["training"]["tuning"]["trials"]
    note = (
        f"share of {trials} trials, from where the sub-task begins; tuned: the best of all "
        "evaluations, which is somewhat too good."
    )
    return Table("Sub-agents by themselves", ["sub-goal", "cloned", "fine-tuned"], rows, (note,))


def _cell(played: Sequence[Mapping[str, Any]], k: int) -> str:
    return _range([who["reached"][k] / who["episodes"] for who in played])


def _range(shares: Sequence[float]) -> str:
    """Return the mean of shares, and the least and the most of several.

    Example:
        >>> _range([0.5]), _range([0.0, 0.5, 1.0]), _range([])
        ('50%', '50% (0%–100%)', '–')
    """
    if not shares:
        return "–"
    spread = f" ({min(shares):.0%}–{max(shares):.0%})" if len(shares) > 1 else ""
    return f"{np.mean(shares):.0%}{spread}"


def _compared(runs: Sequence[Mapping[str, Any]], one: str, other: str) -> str:
    """Return how two players differ in the diamonds that they find, with an interval."""
    sums = {
        who: [sum(run["played"][who][key] for run in runs) for key in ("solved", "episodes")]
        for who in (one, other)
    }
    words = []
    for who, (solved, episodes) in sums.items():
        low, high = wilson_interval(solved, episodes)
        words.append(f"{STAGES[who][0]} {solved / episodes:.1%} ({low:.1%}–{high:.1%})")
    return f"Diamonds: {', '.join(words)}."
