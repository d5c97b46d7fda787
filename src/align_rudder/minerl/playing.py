"""Playing with trained agents: the environment as they see it, who plays, how far they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from align_rudder._warnings import warn
from align_rudder.files import (
    Anything,
    Choice,
    Each,
    Flag,
    Many,
    Table,
    Text,
    Whole,
    read_json,
    said_of,
)
from align_rudder.hierarchy.external import Players, TrackedEnv, play_out
from align_rudder.minerl.crashes import CrashRecovery, Restarts
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.networks import FRAMES, HEAD_SIZES, new_manager, new_sub_agent
from align_rudder.minerl.pipeline import check_features
from align_rudder.minerl.samples import FRAME_SKIP
from align_rudder.minerl.view import PictureFeatures, PictureView
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import digest, load_tree
from align_rudder.runs.rows import JsonRows
from align_rudder.runs.together import together

__all__ = ["episode_rows", "evaluate", "load_players", "open_game"]

_EPISODE = Table({"solved": Flag(), "steps": Whole(1), "reached": Many(Whole(0))})
_NEEDED = {"goals": Many(Text(), 1), "skip": Whole(1), "frames": Whole(1)}


def open_game(
    model: AlignRudder,
    *,
    python: str | None = None,
    module: str | None = None,
    world: Mapping[str, Any] | None = None,
    autoencoder: str | None = None,
    skip: int = FRAME_SKIP,
    frames: int = FRAMES,
    restarts: Restarts | None = None,
) -> TrackedEnv:
    """Return the game, followed along the alignment of a model; close its `env` in the end.

    When the game crashes it is started anew, see `CrashRecovery`.

    Args:
        model: What `fit_events` returned.
        python: The interpreter that has minerl, as in `MineRLEnv`.
        module: What makes the environment instead of minerl, as in `MineRLEnv`.
        world: Options of the module.
        autoencoder: File of the auto-encoder, if the model was fitted with one.
        skip: Frames for which an action is held.
        frames: Number of most recent frames that the networks see.
        restarts: How often a game that crashed is started anew.
    """
    check_features(model, autoencoder is not None)
    env: Any = MineRLEnv(python=python, module=module, module_options=world, frame_skip=skip)
    env = CrashRecovery(env, restarts)
    if autoencoder is not None:
        env = PictureFeatures(env, autoencoder)
    return TrackedEnv(env, model, PictureView(frames))


def load_players(
    folder: str | Path,
    stage: str = "agent",
    model: AlignRudder | None = None,
) -> tuple[Players, dict[str, Any]]:
    """Return who plays after a training, and its configuration (`goals`, `skip`, `frames`, …).

    Args:
        folder: Folder of the training.
        stage: "cloned", "agent" (fine-tuned), "manager", or "random" for one that acts at random.
        model: The model along which they will play; one with other sub-goals is refused.
    """
    folder = Path(folder)
    Choice(("cloned", "agent", "manager", "random")).check(stage, "stage")
    configuration = _configuration(folder / "training.json")
    goals, n = configuration["goals"], len(configuration["goals"])
    if model is not None and goals != [str(goal.symbol) for goal in model.subgoals_]:
        raise ValueError(
            f"{folder} was trained for {n} sub-goals that are not those of the model, which has "
            f"{len(model.subgoals_)}; give the model it was trained with"
        )
    if stage == "random":
        return Players([jax.tree_util.Partial(_uniform)]), configuration
    kind = "cloned" if stage == "cloned" else "agent"
    files = [f"{kind}-{k}.npz" for k in range(n)] + ["manager.npz"] * (stage == "manager")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} has no {missing[0]}, so its training did not come to the stage {stage!r}: "
            "go on with the same align-rudder minerl train (--environments 1 or more beyond "
            "cloning), or choose an earlier --stage: cloned, agent"
        )
    key = jax.random.key(0)
    like = [new_sub_agent(key)] * n + [new_manager(key, n)] * (stage == "manager")
    loaded = []
    for name, tree in zip(files, like, strict=True):
        agent, notes = load_tree(folder / name, tree, configuration)
        if unreached := notes.get("unreached"):
            warn(f"{name} is the best so far of a training that was broken off: {unreached}")
        loaded.append(agent)
    return Players(loaded[:n], loaded[n] if stage == "manager" else None), configuration


def _uniform(task: Any, seen: jax.Array, subtask: jax.Array, cell: jax.Array) -> Any:
    """Act at random: every choice of every head is as likely."""
    return {head: jnp.zeros(n) for head, n in HEAD_SIZES.items()}, jnp.zeros(())


def _configuration(path: Path) -> dict[str, Any]:
    """Return what a training was configured with."""
    if not path.is_file():
        raise ValueError(
            f"{path.parent} is not the folder of a training: it has no {path.name}. Give the --out "
            "of align-rudder minerl train"
        )
    remedy = "what the agents beside it are is not known: put it back, or give another folder"
    found = read_json(path, Each(Anything()), remedy=remedy)
    with said_of(path, remedy):
        for name, kind in _NEEDED.items():
            kind.check(found.get(name), name)
    return found


def evaluate(
    players: Players,
    envs: Sequence[TrackedEnv],
    episodes: int,
    seed: int = 1,
    max_steps: int = 18_000,
    progress: bool = True,
    rows: JsonRows | None = None,
) -> dict[str, Any]:
    """Return how many episodes reach each sub-goal, from new starts to the end.

    Each episode has random numbers of its own, so that the counts do not depend on how many
    environments play at the same time.

    Args:
        players: Who plays.
        envs: Environments, which play at the same time.
        episodes: How many episodes.
        seed: Seed of the worlds.
        max_steps: Steps of an episode.
        progress: Whether to show a progress bar.
        rows: Where each episode is written down when it ends; those that are there are not played
            again.
    """
    done = [] if rows is None else _episodes(rows)[:episodes]

    def play(env: TrackedEnv, i: int) -> dict[str, Any]:
        _, solved, length = play_out(env, players, np.random.default_rng([seed, i]), max_steps)
        return {"solved": solved, "steps": length, "reached": np.flatnonzero(env.reached).tolist()}

    with tqdm(total=episodes, initial=len(done), desc="episodes", disable=not progress) as bar:
        while len(done) < episodes:
            next_ones = range(len(done), min(len(done) + len(envs), episodes))
            for row in together([partial(play, *both) for both in zip(envs, next_ones)]):
                done.append(row)
                bar.update()
                if rows is not None:
                    rows.append(row)
    reached = [sum(k in row["reached"] for row in done) for k in range(envs[0].n_subtasks)]
    return {
        "episodes": episodes,
        "solved": sum(row["solved"] for row in done),
        "reached": reached,
        "episode_steps": sum(row["steps"] for row in done),
    }


def _episodes(rows: JsonRows) -> list[dict[str, Any]]:
    """Return the episodes in a file; an error if one is none."""
    found = rows.read()
    for number, row in enumerate(found, 1):
        with said_of(rows.path, "put back a copy, or delete it: its episodes are played again"):
            _EPISODE.check(row, f"line {number}")
    return found


def episode_rows(
    folder: str | Path, players: Players, stage: str, settings: Mapping[str, Any]
) -> JsonRows:
    """Return the file in the folder of a training that holds the episodes of an evaluation.

    It belongs to these agents and settings; others have another file.

    Args:
        folder: The folder.
        players: Who plays.
        stage: What they are called in its name.
        settings: What else the episodes depend on, as JSON.
    """
    text = json.dumps(dict(settings), sort_keys=True)
    of = hashlib.sha256(f"{digest(list(players))} {text}".encode()).hexdigest()[:16]
    return JsonRows(Path(folder) / f"evaluation-{stage}-{of}.jsonl")
