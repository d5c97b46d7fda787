"""Frames per second of 1, 2 and 4 games that play at the same time, in the small world.

    python benchmarks/games.py --json results/minerl/games.json

A sub-agent with the paper's network practises. Once the world is as quick as it is, so that little
but our own work is measured; once a frame takes ten milliseconds, as it may in Minecraft, so that
waiting for the game is what there is to gain.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
import tyro

from align_rudder.files import write_json
from align_rudder.hierarchy.fine_tuning import FineTuning
from align_rudder.hierarchy.practice import SubtaskPractice, begin_all, play_batch
from align_rudder.hierarchy.replays import Replays
from align_rudder.minerl.dataset import load_pool
from align_rudder.minerl.networks import new_sub_agent
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.playing import open_game
from align_rudder.minerl.testing.recording import record_dataset
from align_rudder.minerl.training import Games
from align_rudder.model import AlignRudder

__all__ = ["measure"]

GAMES, SKIP, STEPS, REPEATS = (1, 2, 4), 4, 64, 5
WORLDS = {"quick": {}, "10 ms a frame": {"delay": 0.01}}


def measure(frames: int = 1) -> dict[str, Any]:
    """Return frames per second by world and number of games: the median of some batches."""
    with TemporaryDirectory() as scratch:
        record_dataset(Path(scratch, "data"), 10)
        model = fit_events(load_pool(Path(scratch, "data"), video=None), 10)
        found = {name: _speeds(model, world, frames) for name, world in WORLDS.items()}
    return {"cores": os.cpu_count(), "frames_seen": frames, "frames_per_second": found}


def _speeds(model: AlignRudder, world: dict[str, float], frames: int) -> dict[int, float]:
    agent, tuning = new_sub_agent(jax.random.key(0)), FineTuning()
    ppo = replace(tuning.ppo, n_steps=STEPS)
    speeds: dict[int, list[float]] = {n: [] for n in GAMES}
    open_one = partial(open_game, model, module="scripted", world=world, skip=SKIP, frames=frames)
    with TemporaryDirectory() as scratch:
        playing = {n: Games(open_one, n).playing(Path(scratch, f"{n}.csv")) for n in GAMES}
        opened = {n: games.__enter__() for n, games in playing.items()}
        n_subtasks = opened[1][0].n_subtasks
        practice = SubtaskPractice(0, [agent] * n_subtasks, Replays(n_subtasks))
        for repeat in range(REPEATS + 1):
            for n, envs in opened.items():  # in turn, so that all meet the same machine
                rng = np.random.default_rng(repeat)
                begin_all(practice, envs, tuning, rng)
                begun = time.perf_counter()
                play_batch(practice, agent, envs, tuning, ppo, rng)
                if repeat:  # the first compiles
                    speeds[n].append(SKIP * STEPS * n / (time.perf_counter() - begun))
        for games in playing.values():
            games.__exit__(None, None, None)
    return {n: float(np.median(found)) for n, found in speeds.items()}


def show(found: dict[str, Any]) -> None:
    print(f"{found['cores']} cores, the network sees {found['frames_seen']} frames")
    print(f"  {'':<15}" + "".join(f"{n:>8} games" for n in GAMES) + "   ratio 4 : 1")
    for name, speeds in found["frames_per_second"].items():
        row = "".join(f"{speed:>14,.0f}" for speed in speeds.values())
        print(f"  {name:<15}{row}{speeds[4] / speeds[1]:>14.2f}")


@dataclass
class Arguments:
    """Measure games that play at the same time."""

    frames: int = 1
    """Frames that the network sees; the paper's sees 32."""
    json: Path | None = None
    """File for the numbers."""


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    result = measure(given.frames)
    show(result)
    write_json(given.json, result)
