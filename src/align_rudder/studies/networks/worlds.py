"""Levels, logs, demonstrations and models of the study; all follow from setting and seed."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.gail_events import remembered_pairs
from align_rudder.episodes import Episode
from align_rudder.model import AlignRudder
from align_rudder.studies.networks.settings import VIEW, Setting
from align_rudder.tasks.minigrid_recipe import MiniGridRecipeEnv, Player

__all__ = ["demonstrations", "level", "logs_of", "model_of", "stage_pairs", "training_seed"]


def level(setting: Setting, seed: int, **options: Any) -> MiniGridRecipeEnv:
    """Return the level of a seed, which is that of its recipe."""
    options = {"max_steps": setting.pace * setting.length, **options}
    return MiniGridRecipeEnv(setting.length, view=VIEW, recipe_seed=seed, **options)


def training_seed(seed: int) -> int:
    """Return the first of the seeds with which environments begin; logs have others."""
    return 1000 * seed


def _log_seed(seed: int, log: int) -> int:
    return 1_000_000_000 + 1000 * seed + log


@lru_cache(maxsize=64)
def logs_of(setting: Setting, seed: int) -> tuple[tuple[str, ...], ...]:
    """Return the logs of a recipe, each of another room: events, nothing else."""
    env = level(setting, seed)
    return tuple(tuple(env.log(_log_seed(seed, j))) for j in range(setting.logs))


def model_of(setting: Setting, seed: int) -> AlignRudder:
    """Return the library's model of the logs."""
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        return AlignRudder().fit_events(logs_of(setting, seed))


def demonstrations(env: gym.Env[Any, Any], setting: Setting, seed: int) -> list[Episode]:
    """Return the episodes of which the logs are, with what an agent in them would have observed.

    Args:
        env: The level as the agent observes it, with a time limit that the player keeps.
        setting: The setting.
        seed: The seed of the logs.
    """
    episodes = []
    for j in range(setting.logs):
        start = _log_seed(seed, j)
        obs, _ = env.reset(seed=start)
        room: Any = env.unwrapped
        player, done = Player(room, start), False
        seen, actions, rewards = [obs], [], []
        while not done:
            actions.append(player.act())
            obs, reward, done, _, _ = env.step(actions[-1])
            seen.append(obs)
            rewards.append(float(reward))
        episodes.append(Episode(np.array(seen), np.array(actions), np.array(rewards)))
    return episodes


def stage_pairs(env: MiniGridRecipeEnv, log: tuple[str, ...]) -> np.ndarray:
    """Return each event of a log with how many items were right before it (T, 2)."""
    events, stage, rows = remembered_pairs(log, env.symbols)[:, 1].tolist(), 0, []
    for event in events:
        rows.append((stage, event))
        stage += stage < env.length and event == env.recipe[stage]
    return np.array(rows)
