"""Evaluation of trained agents in new worlds, and the files of a training."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from align_rudder.files import (
    Anything,
    Each,
    Many,
    Table,
    Text,
    Whole,
    read_json,
    said_of,
    write_json,
)
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask
from align_rudder.hierarchy.cloning import aligned_demonstrations
from align_rudder.hierarchy.evaluation import Evaluation, new_worlds, play_all
from align_rudder.hierarchy.folder import load_agent, load_manager, steps_so_far
from align_rudder.hierarchy.settings import Training
from align_rudder.hierarchy.unordered import tracked_task
from align_rudder.studies.diamond.goals import subgoals_of
from align_rudder.tasks.diamond.demos import Setup
from align_rudder.tasks.diamond.names import DID
from align_rudder.tasks.diamond.task import ENDINGS, FEATURES

__all__ = [
    "CHAIN",
    "FILES",
    "STAGES",
    "aligned_task",
    "count_demonstrations",
    "count_worlds",
    "counts_of",
    "evaluate_folder",
    "load_stage",
    "read_evaluation",
    "read_training",
    "stages_in",
]

_logger = logging.getLogger(__name__)
_STAGE = {
    "player": Text(),
    "worlds": Whole(1),
    "solved": Whole(),
    "reached": Many(Whole()),
    "episode_steps": Whole(0, 2**62),
    "deepest": Each(Whole()),
    "endings": Each(Whole()),
}
_EVALUATION = {
    "worlds": Whole(1),
    "goals": Many(Text()),
    "stages": Each(Table(_STAGE, optional=("player", "endings"))),
}

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
"""Agents of a training: sub-agents after cloning, the best sub-agents, the manager with them."""


def aligned_task(setup: Setup, goals: str = "alignment") -> AlignedTask:
    """Return the task with the sub-goals of its demonstrations inside; see `subgoals_of`."""
    found = subgoals_of(setup, goals)
    return tracked_task(found.task, found.tables)


def read_training(folder: str | Path) -> tuple[Training, str]:
    """Return the configuration of a training, and the digest of its alignment."""
    path = Path(folder) / "training.json"
    if not path.is_file():
        raise ValueError(f"'{folder}' is not the folder of a training: it has no training.json")
    remedy = "put back a copy, or train again in another folder"
    found = read_json(path, Each(Anything()), remedy=remedy)
    with said_of(path, remedy):
        return Training.from_configuration(found), found["alignment"]


def stages_in(folder: str | Path) -> list[str]:
    """Return which stages of a training have agents in its folder."""
    return [stage for stage in STAGES if (Path(folder) / f"{stage}.npz").is_file()]


def load_stage(
    folder: str | Path, setup: Setup, stage: str | None = None
) -> tuple[AlignedTask, Policy]:
    """Load the agents of a training, and the task that they act in.

    Args:
        folder: Folder of the training.
        setup: Task, demonstrations and model.
        stage: One of `STAGES`; the last there is if None.
    """
    training, _ = read_training(folder)
    task = aligned_task(setup, training.goals)
    stage = stage or ("manager" if "manager" in stages_in(folder) else "agent")
    if stage == "manager":
        return load_manager(folder, task, training)
    return task, load_agent(folder, task, training, f"{stage}.npz")


# Counts


def count_worlds(
    task: AlignedTask,
    agent: Policy,
    worlds: int,
    seed: int,
    max_steps: int | None = None,
    progress: str | None = None,
) -> dict[str, Any]:
    """Evaluate an agent in new worlds: what it reaches, how deep it comes, how episodes end.

    Args:
        task: The task; with its sub-agents if `agent` is a manager.
        agent: The sub-agents or the manager.
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
    return counts_of(found)


def counts_of(found: Evaluation) -> dict[str, Any]:
    """Return how many episodes solved the task, reached each sub-goal, how deep, how they ended."""
    solved, ending = np.asarray(found.solved), np.asarray(found.ending)
    features = np.asarray(found.report)
    made = features[:, [FEATURES.index(DID + name) for name in CHAIN.values()]] > 0
    deepest = np.where(made.any(axis=1), made.shape[1] - made[:, ::-1].argmax(axis=1), 0)
    return {
        "worlds": len(solved),
        "solved": int(solved.sum()),
        "reached": np.sum(found.reached, axis=0).tolist(),
        "episode_steps": int(np.asarray(found.steps).sum()),
        "deepest": {name: int((deepest == i).sum()) for i, name in enumerate(("nothing", *CHAIN))},
        "endings": {name: int((ending == i).sum()) for i, name in enumerate(ENDINGS)},
    }


def count_demonstrations(setup: Setup, goals: str = "alignment") -> dict[str, Any]:
    """Return how many demonstrations reach each sub-goal."""
    task = aligned_task(setup, goals)
    shown = aligned_demonstrations(task, setup.runs)
    last = np.cumsum([len(demo.actions) + 1 for demo in setup.demos]) - 1
    reached = np.asarray(shown.states.reached)[last]
    solved = sum(demo.solved for demo in setup.demos)
    return {"worlds": len(setup.demos), "solved": solved, "reached": reached.sum(axis=0).tolist()}


def evaluate_folder(
    folder: str | Path,
    setup: Setup,
    worlds: int = 10_000,
    seed: int = 1,
    max_steps: int | None = None,
    last: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Evaluate the agents of a training in new worlds; the counts are kept in `evaluation.json`.

    What is there already for the same worlds and agents is not counted again. Where there are no
    agents, as among published results, the counts are taken as they are.

    Args:
        folder: Folder of the training.
        setup: Task, demonstrations and model, as `prepare` returns them.
        worlds: Number of new worlds.
        seed: Seed of the worlds; trainings use others.
        max_steps: Limit of an episode, if it is not the task's.
        last: Whether to evaluate the last stage alone, not those before it.
        progress: Whether to show a progress bar.
    """
    folder = Path(folder)
    training, _ = read_training(folder)
    goals = subgoals_of(setup, training.goals)
    out: dict[str, Any] = {
        "method": training.name,
        "steps": training.steps,
        "seed": training.seed,
        "worlds": worlds,
        "max_steps": max_steps or setup.task.max_steps,
        "evaluation_seed": seed,
        "goals": goals.symbols,
    }
    path = folder / "evaluation.json"
    players = {stage: _player(folder, stage) for stage in stages_in(folder)}
    stages = {
        stage: counts
        for stage, counts in _counted(path, out).items()
        if not players or counts.get("player") == players.get(stage, "")
    }
    so_far = steps_so_far(folder, training, goals.tables) if players else None
    if so_far is not None:
        out["steps_so_far"] = so_far
        _logger.warning(
            "%s is not trained to its end: these are its best agents after %s of %s steps",
            folder,
            f"{so_far:,}",
            f"{training.steps:,}",
        )
    out |= {"demonstrations": count_demonstrations(setup, training.goals), "stages": stages}
    for stage in [*players][-1:] if last else players:
        if stage in stages:
            continue
        task, agent = load_stage(folder, setup, stage)
        bar = f"{folder.name}, {stage}" if progress else None
        with jax.default_matmul_precision(training.precision):
            counts = count_worlds(task, agent, worlds, seed, max_steps, bar)
        stages[stage] = {"player": players[stage], **counts}
        write_json(path, out)
    if not {"agent", "manager"} & {*stages}:
        raise ValueError(
            f"{folder} has no agent.npz, nor counts of {worlds:,} worlds of seed {seed} with at "
            f"most {out['max_steps']:,} steps; train to the first evaluation, or leave it out"
        )
    if players:
        write_json(path, out)  # the same agents may have been trained further
    return out


def _player(folder: Path, stage: str) -> str:
    """Return a digest of the agents' files: a manager with its sub-agents, or sub-agents alone."""
    names = ("agent", "manager") if stage == "manager" else (stage,)
    parts = [folder / f"{name}.npz" for name in names]
    data = b"".join(part.read_bytes() for part in parts if part.is_file())
    return hashlib.sha256(data).hexdigest()[:16]


def _counted(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Return the stages that were evaluated before in the same setting."""
    if not path.is_file():
        return {}
    found = read_evaluation(path)
    same = all(found.get(name) == value for name, value in setting.items())
    return dict(found["stages"]) if same else {}


def read_evaluation(path: str | Path) -> dict[str, Any]:
    """Return the counts of a training, as `evaluation.json` holds them."""
    remedy = "delete it, and the worlds are played again"
    found = read_json(path, Each(Anything()), remedy=remedy)
    with said_of(path, remedy):
        for name, kind in _EVALUATION.items():
            kind.check(found.get(name), name)
        for name, stage in found["stages"].items():
            numbers = [stage["solved"], *stage["reached"], *stage["deepest"].values()]
            numbers.append(sum(stage.get("endings", {}).values()))
            if max(numbers) > stage["worlds"]:
                raise ValueError(f"{name} reached more than its {stage['worlds']} worlds")
    return found
