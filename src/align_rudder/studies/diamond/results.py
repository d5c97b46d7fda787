"""What a trained agent comes to in new worlds, counted."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from align_rudder.files import write_json
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask
from align_rudder.hierarchy.alignment import AlignmentTables, reached_goals
from align_rudder.hierarchy.cloning import aligned_demonstrations
from align_rudder.hierarchy.evaluation import Evaluation, new_worlds, play_all
from align_rudder.hierarchy.folder import load_agent, load_manager, steps_so_far
from align_rudder.hierarchy.training import Training
from align_rudder.tasks.diamond.demos import Demonstration
from align_rudder.tasks.diamond.task import FEATURES, DiamondTask

__all__ = [
    "CHAIN",
    "FILES",
    "STAGES",
    "count_demonstrations",
    "count_worlds",
    "counts_of",
    "evaluate_folder",
    "load_stage",
    "read_training",
]

_logger = logging.getLogger(__name__)

CHAIN = {
    "wood": "collect_wood",
    "table": "place_table",
    "wood pickaxe": "make_wood_pickaxe",
    "stone": "collect_stone",
    "stone pickaxe": "make_stone_pickaxe",
    "coal": "collect_coal",
    "furnace": "place_furnace",
    "iron": "collect_iron",
    "iron pickaxe": "make_iron_pickaxe",
    "diamond": "collect_diamond",
}
"""The tool chain, and the achievement that shows each item: only to report how deep a run came."""

FILES = (
    *("training.json", "evaluation.json", "cloning.csv", "updates.csv", "evaluations.csv"),
    *("cloned.npz", "agent.npz", "manager.npz", "checkpoint.npz"),
)
"""Files of a training."""

STAGES = ("cloned", "agent", "manager")
"""Who plays: sub-agents after cloning, the best sub-agents, the main agent with them."""


def read_training(folder: str | Path) -> tuple[str, Training]:
    """Return the method and the configuration of a training folder."""
    path = Path(folder) / "training.json"
    if not path.is_file():
        raise ValueError(f"'{folder}' is not the folder of a training: it has no training.json")
    try:
        training = Training.from_configuration(json.loads(path.read_text()))
        return training.name, training
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is damaged or of another version: {error}; put back a copy, or train again in "
            "another folder"
        ) from error


def count_worlds(
    task: AlignedTask,
    agent: Policy,
    worlds: int,
    seed: int,
    max_steps: int | None = None,
    progress: str | None = None,
) -> dict[str, Any]:
    """Return how many of that many new worlds came how far.

    Args:
        task: The task; with its sub-agents if `agent` is a main agent.
        agent: Who plays.
        worlds: Number of new worlds.
        seed: Seed of worlds and chances.
        max_steps: Limit of an episode, if it is not the task's.
        progress: What the progress bar says; no bar if None.
    """
    limit = max_steps or task.task.max_steps
    k_worlds, k_play = jax.random.split(jax.random.key(seed))
    starts = new_worlds(task, k_worlds, worlds)
    with tqdm(total=worlds, desc=progress, unit=" worlds", disable=progress is None) as bar:
        found = play_all(task, agent, starts, k_play, limit, lambda over: bar.update(over - bar.n))
    return counts_of(task.tables, found)


def counts_of(tables: AlignmentTables, found: Evaluation) -> dict[str, Any]:
    """Return how many episodes solved the task, reached each sub-goal, and how deep they came."""
    solved = np.asarray(found.solved)
    reached = np.asarray(reached_goals(tables, found.counts))
    features = np.asarray(found.features)
    made = features[:, [FEATURES.index(f"did_{name}") for name in CHAIN.values()]] > 0
    deepest = np.where(made.any(axis=1), made.shape[1] - made[:, ::-1].argmax(axis=1), 0)
    return {
        "worlds": len(solved),
        "solved": int(solved.sum()),
        "reached": reached.sum(axis=0).tolist(),
        "episode_steps": int(np.asarray(found.steps).sum()),
        "deepest": {name: int((deepest == i).sum()) for i, name in enumerate(("nothing", *CHAIN))},
    }


def load_stage(
    folder: str | Path, task: DiamondTask, tables: AlignmentTables, stage: str | None = None
) -> tuple[AlignedTask, Policy]:
    """Return who plays after a training, and the task as they play it.

    Args:
        folder: Folder of the training.
        task: The task.
        tables: Tables of the alignment.
        stage: "cloned", "agent" or "manager"; the last there is if None.
    """
    folder = Path(folder)
    training = read_training(folder)[1]
    aligned = AlignedTask(task, tables)
    if stage is None:
        stage = "manager" if (folder / "manager.npz").is_file() else "agent"
    if stage == "manager":
        return load_manager(folder, aligned, training)
    return aligned, load_agent(folder, aligned, training, f"{stage}.npz")


def count_demonstrations(task: AlignedTask, demos: Sequence[Demonstration]) -> dict[str, Any]:
    """Return how many demonstrations reach each sub-goal."""
    shown = aligned_demonstrations(task, [(demo.states, demo.actions) for demo in demos])
    last = np.cumsum([len(demo.actions) + 1 for demo in demos]) - 1
    reached = np.asarray(reached_goals(task.tables, shown.states.counts[last]))
    solved = sum(demo.solved for demo in demos)
    return {"worlds": len(demos), "solved": solved, "reached": reached.sum(axis=0).tolist()}


def evaluate_folder(
    folder: str | Path,
    task: DiamondTask,
    tables: AlignmentTables,
    goals: Sequence[str],
    demos: Sequence[Demonstration],
    worlds: int = 10_000,
    seed: int = 1,
    max_steps: int | None = None,
    progress: bool = True,
    last: bool = False,
) -> dict[str, Any]:
    """Return how far the agents of a training come in new worlds; kept in `evaluation.json`.

    What is there already for the same worlds and agents is not counted again. Where there are no
    agents, as among published results, the counts are taken as they are.

    Args:
        folder: Folder of the training.
        task: The task.
        tables: Tables of the alignment.
        goals: Names of the sub-goals.
        demos: The demonstrations.
        worlds: Number of new worlds.
        seed: Seed of the worlds; trainings use others.
        max_steps: Limit of an episode, if it is not the task's.
        progress: Whether to show a progress bar.
        last: Whether to count only who plays at the end, not the stages before.
    """
    folder = Path(folder)
    method, training = read_training(folder)
    out: dict[str, Any] = {
        "method": method,
        "steps": training.steps,
        "seed": training.seed,
        "worlds": worlds,
        "max_steps": max_steps or task.max_steps,
        "evaluation_seed": seed,
        "goals": list(goals),
    }
    path = folder / "evaluation.json"
    there = [stage for stage in STAGES if (folder / f"{stage}.npz").is_file()]
    players = {stage: _player(folder, stage) for stage in there}
    before = _counted(path, out)
    kept = {k: v for k, v in before.items() if not there or v.get("player") == players.get(k, "")}
    so_far = steps_so_far(folder, training, tables) if there else None
    if so_far is not None:
        out["steps_so_far"] = so_far
        _logger.warning(
            "%s is not trained to its end: these are its best agents after %s of %s steps",
            folder,
            f"{so_far:,}",
            f"{training.steps:,}",
        )
    aligned = AlignedTask(task, tables)
    out["demonstrations"] = count_demonstrations(aligned, demos)
    out["stages"] = kept
    for stage in there[-1:] if last else there:
        if stage in kept:
            continue
        played, agent = load_stage(folder, task, tables, stage)
        bar = f"{folder.name}, {stage}" if progress else None
        with jax.default_matmul_precision(training.precision):
            counts = count_worlds(played, agent, worlds, seed, max_steps, bar)
        kept[stage] = {"player": players[stage], **counts}
        write_json(path, out)
    if not {"agent", "manager"} & {*kept}:
        raise ValueError(
            f"{folder} has no agent.npz, nor counts of {worlds:,} worlds of seed {seed} with at "
            f"most {out['max_steps']:,} steps; train to the first evaluation, or leave it out"
        )
    if there:
        write_json(path, out)  # the same agents may have been trained further
    return out


def _player(folder: Path, stage: str) -> str:
    """Return a short name of who plays: a main agent with its sub-agents, or sub-agents alone."""
    names = ("agent", "manager") if stage == "manager" else (stage,)
    parts = [folder / f"{name}.npz" for name in names]
    data = b"".join(part.read_bytes() for part in parts if part.is_file())
    return hashlib.sha256(data).hexdigest()[:16]


def _counted(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Return the stages that a file has for this setting."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
        same = all(found.get(name) == value for name, value in setting.items())
        for stage in found["stages"].values():
            numbers = [stage["solved"], *stage["reached"], *stage["deepest"].values()]
            if not all(0 <= number <= stage["worlds"] for number in numbers):
                raise ValueError
        return dict(found["stages"]) if same else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is damaged; delete it, and the worlds are played again") from None
