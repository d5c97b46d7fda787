"""A dataset recorded in the small world of `scripted.py`: one who knows the tool chain is filmed.

It has the format of MineRL's, so that everything from events to the manager can be tried without
the real dataset and without Minecraft.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from align_rudder.files import Whole, check_values
from align_rudder.minerl.crashes import CrashRecovery
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.spaces import BUTTONS, DO_NOTHING, ENUMS, HEADS, HELD, ITEMS, format_of
from align_rudder.minerl.testing.scripted import scripted_action
from align_rudder.minerl.testing.synthetic import claim_folder, rendered, write_trajectory
from align_rudder.minerl.testing.videos import write_video
from align_rudder.runs.claim import claim
from align_rudder.runs.lock import only_here

__all__ = ["play", "record_dataset"]

_TASK = "MineRLObtainDiamond-v0"
_DETOURS = ("dirt", "log", *["look"] * 8)
_PATIENCE = 100  # steps after which a detour is given up


def record_dataset(
    root: str | os.PathLike[str],
    n: int,
    version: int = 3,
    seed: int = 0,
    *,
    noise: float = 0.05,
    world: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> list[Path]:
    """Write a dataset of ObtainDiamond in which every trajectory finds the diamond.

    A trajectory is written whole or not at all. The same call goes on where one was stopped.

    Args:
        root: The folder of the dataset; it is made.
        n: Number of trajectories.
        version: Version of the format, 3 or 4.
        seed: The world of trajectory i is that of seed + i.
        noise: How often, at a step, something is begun that leads nowhere: a look around or, less
            often, dirt or a log that nobody needs.
        world: Options of `ScriptedEnv`, such as `{"hits": 4}`.
        progress: Whether to show a progress bar.

    Returns:
        The folders of the trajectories.
    """
    check_values(n=(n, Whole(1)), seed=(seed, Whole()))
    if not 0 <= noise <= 0.5:
        raise ValueError(f"noise={noise}; 0 to 0.5 is needed, or the diamond is never reached")
    options = {**(world or {}), "version": version}
    settings = {"seed": seed, "noise": noise, "world": options}
    folders: list[Path] = []
    game = MineRLEnv(module="scripted", module_options=options)
    with CrashRecovery(game) as env, only_here(root):
        folder = _claim(Path(root), version, settings)
        for i in tqdm(range(n), "recording", disable=not progress):
            start = f"v{version}_scripted_player-{i}_0-"
            there = sorted(folder.glob(f"{start}*"))
            if not there:
                rng = np.random.default_rng([seed, i])
                arrays, pictures = play(env, seed + i, rng, noise, version)
                name = f"{start}{len(pictures) - 1}"
                with tempfile.TemporaryDirectory(dir=root, prefix=".recording-") as temporary:
                    write_trajectory(Path(temporary) / name, arrays, version, len(pictures))
                    write_video(Path(temporary) / name / "recording.mp4", pictures)
                    there = [(Path(temporary) / name).rename(folder / name)]
            folders += there
    return folders


def _claim(root: Path, version: int, settings: dict[str, Any]) -> Path:
    """Return the folder of the trajectories, new or with those of the same settings."""
    folder = root / _TASK
    there = folder.is_dir() and (root / "recording.json").is_file()
    if not there:
        claim_folder(root, _TASK, version)
    claim(root, settings, file="recording.json", empty=not there)
    folder.mkdir(exist_ok=True)
    return folder


def play(
    env: gym.Env[Any, Any], seed: int, rng: np.random.Generator, noise: float, version: int
) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Play to the diamond; return the arrays of `rendered.npz` and the pictures (T+1).

    Args:
        env: The environment.
        seed: Seed of the world.
        rng: Source of what leads nowhere.
        noise: How often that is done.
        version: Version of the format.
    """
    seen, actions, rewards = [env.reset(seed=seed)[0]], [], []
    goal, patience, over = "diamond", 0, False
    while not over:
        if goal == "diamond" and rng.random() < noise:
            goal, patience = str(rng.choice(_DETOURS)), _PATIENCE
        action = scripted_action(seen[-1], "diamond" if goal == "look" else goal)
        if goal == "look":
            turn = np.array([0, rng.choice([-30, -15, 15, 30])], np.float32)
            action = dict.fromkeys(BUTTONS, 0) | DO_NOTHING | {"camera": turn}
            goal = "diamond"
        obs, _, terminated, truncated, info = env.step(action)
        if info.get("lost"):
            raise ValueError(f"world {seed} cannot be recorded: {info['lost']}")
        over = terminated or truncated
        if goal != "diamond":
            at, patience = ITEMS.index(goal), patience - 1
            if obs["inventory"][at] > seen[-1]["inventory"][at] or not patience:
                goal = "diamond"
        seen.append(obs)
        actions.append(action)
        rewards.append(info["game_reward"])
    return _stored(seen, actions, rewards, version), [obs["pov"] for obs in seen]


def _stored(
    seen: list[dict[str, Any]], actions: list[dict[str, Any]], rewards: list[float], version: int
) -> dict[str, np.ndarray]:
    """Return an episode as the arrays of `rendered.npz`."""
    empty = format_of(version).empty_hand
    names = [empty if held == "air" else held for held in HELD]
    observed = {key: np.array([obs[key] for obs in seen]) for key in seen[0] if key != "pov"}
    hand = {
        "damage": observed["damage"],
        "maxDamage": observed["max_damage"],
        "type": np.array(names)[observed["equipped"]],
    }
    done = {head: np.array([action[head] for action in actions]) for head in HEADS}
    done |= {head: np.array(values)[done[head]] for head, values in ENUMS.items()}
    return rendered(_TASK, version, np.array(rewards), observed["inventory"], hand, done)
