"""Playing with trained agents: the environment as they see it, who plays, how far they come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from tqdm import tqdm

from align_rudder.files import Anything, Choice, Each, Many, Text, Whole, read_json, said_of
from align_rudder.hierarchy.external import Players, TrackedEnv, play_out
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.networks import FRAMES, new_manager, new_sub_agent
from align_rudder.minerl.pipeline import check_features
from align_rudder.minerl.samples import FRAME_SKIP
from align_rudder.minerl.view import PictureFeatures, PictureView
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import load_tree

__all__ = ["evaluate", "load_players", "open_game"]

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
) -> TrackedEnv:
    """Return the game, followed along the alignment of a model; close its `env` in the end.

    Args:
        model: What `fit_events` returned.
        python: The interpreter that has minerl, as in `MineRLEnv`.
        module: What makes the environment instead of minerl, as in `MineRLEnv`.
        world: Options of the module.
        autoencoder: File of the auto-encoder, if the model was fitted with one.
        skip: Frames for which an action is held.
        frames: Number of most recent frames that the networks see.
    """
    check_features(model, autoencoder is not None)
    env: Any = MineRLEnv(python=python, module=module, module_options=world, frame_skip=skip)
    if autoencoder is not None:
        env = PictureFeatures(env, autoencoder)
    return TrackedEnv(env, model, PictureView(frames))


def load_players(
    folder: str | Path,
    stage: Literal["cloned", "agent", "manager"] = "agent",
    model: AlignRudder | None = None,
) -> tuple[Players, dict[str, Any]]:
    """Return who plays after a training, and its configuration (`goals`, `skip`, `frames`, …).

    Args:
        folder: Folder of the training.
        stage: "cloned", "agent" (fine-tuned) or "manager".
        model: The model along which they will play; one with other sub-goals is refused.
    """
    folder = Path(folder)
    Choice(("cloned", "agent", "manager")).check(stage, "stage")
    configuration = _configuration(folder / "training.json")
    goals, n = configuration["goals"], len(configuration["goals"])
    if model is not None and goals != [str(goal.symbol) for goal in model.subgoals_]:
        raise ValueError(
            f"{folder} was trained for {n} sub-goals that are not those of the model, which has "
            f"{len(model.subgoals_)}; give the model it was trained with"
        )
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
    loaded = [
        load_tree(folder / name, tree, configuration)[0]
        for name, tree in zip(files, like, strict=True)
    ]
    return Players(loaded[:n], loaded[n] if stage == "manager" else None), configuration


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
    env: TrackedEnv,
    episodes: int,
    seed: int = 1,
    max_steps: int = 18_000,
    progress: bool = True,
) -> dict[str, Any]:
    """Return how many episodes reach each sub-goal, from new starts to the end."""
    rng = np.random.default_rng(seed)
    reached, solved, steps = np.zeros(env.n_subtasks, int), 0, 0
    for _ in tqdm(range(episodes), "episodes", disable=not progress):
        _, done, length = play_out(env, players, rng, max_steps)
        reached += env.reached
        solved += done
        steps += length
    return {
        "episodes": episodes,
        "solved": solved,
        "reached": reached.tolist(),
        "episode_steps": steps,
    }
