"""`align-rudder minerl train | evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from align_rudder.cli.options import check_least, make_folder
from align_rudder.files import check_outputs, write_json
from align_rudder.runs.processes import shared_compilation
from align_rudder.runs.progress import bars_or_lines

if TYPE_CHECKING:
    from align_rudder.hierarchy.external import TrackedEnv
    from align_rudder.minerl.autoencoder import AutoEncoder
    from align_rudder.minerl.segments import PoolSubTask
    from align_rudder.minerl.training import MineRLTraining
    from align_rudder.model import AlignRudder

__all__ = ["Environment", "Evaluate", "Train", "features_of", "load_encoder", "options_of"]


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """Return options of the small world from NAME=VALUE; values are JSON, or else words.

    Example:
        >>> options_of(["stage=iron", "hits=4"])
        {'stage': 'iron', 'hits': 4}
    """
    options = {}
    for part in given:
        name, equals, value = part.partition("=")
        if not (name and equals):
            raise ValueError(f"{part!r} is no option of the small world; write NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def load_encoder(path: str | None) -> AutoEncoder | None:
    """Return the auto-encoder in a file, if one is given."""
    if path is None:
        return None
    from align_rudder.minerl.autoencoder import AutoEncoder

    return AutoEncoder.load(path)


def features_of(encoder: AutoEncoder | None, cache: str | None) -> Any:
    """Return what gives the features of a trajectory's pictures, kept in a folder if given."""
    if encoder is None:
        return None
    from align_rudder.minerl.cache import ArrayCache

    kept = None if cache is None else ArrayCache(cache)
    return lambda trajectory: encoder.features(trajectory, kept)


@dataclass
class Environment:
    """Where agents play."""

    python: str | None = None
    """Interpreter that has minerl; the variable ALIGN_RUDDER_MINERL_PYTHON, or this one."""
    module: str | None = None
    """Instead of Minecraft: "scripted" for the package's small world, or "file.py:function"."""
    world: tuple[str, ...] = ()
    """Options of the small world as NAME=VALUE, such as stage=iron hits=4."""

    def game(
        self, model: AlignRudder, autoencoder: str | None, skip: int, frames: int
    ) -> Callable[[], TrackedEnv]:
        """Return what opens the game, followed along the model."""
        from align_rudder.minerl.playing import open_game

        return partial(
            open_game,
            model,
            python=self.python,
            module=self.module,
            world=options_of(self.world),
            autoencoder=autoencoder,
            skip=skip,
            frames=frames,
        )


@dataclass
class Train:
    """Clone sub-agents from the segments of the demonstrations; fine-tune them in Minecraft.

    Ctrl-C saves what is under way; the same command goes on from there.
    """

    goes_on: ClassVar[bool] = True
    data_root: tyro.conf.Positional[str]
    """Folder of the dataset (MINERL_DATA_ROOT)."""
    model: tyro.conf.Positional[str]
    """Model that `minerl events` wrote; its segments, beside it, are used if they are there."""
    segments: str | None = None
    """Segments that `minerl events` saved, if they do not lie beside the model."""
    out: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "runs/minerl"
    """Folder for agents and logs."""
    environments: int = 0
    """Environments to fine-tune in, which play at the same time; without any, agents are cloned and
    judged by held-out loss."""
    jobs: int = 1
    """Sub-agents trained at the same time, each with so many environments of its own; -1 for one on
    each core."""
    backend: Literal["loky", "ray"] = "loky"
    """Processes on this machine, or a Ray cluster, all machines of which see the same folders."""
    address: str | None = None
    """Address of a running Ray cluster; one on this machine alone if left out."""
    environment: Environment = field(default_factory=Environment)
    """Where agents play."""
    autoencoder: str | None = None
    """Auto-encoder that the model was fitted with, if it was."""
    cache: str = "cache/minerl"
    """Folder for prepared pictures: 7 kB for each frame of the segments' trajectories."""
    skip: int = 4
    """Frames for which an action is held."""
    frames: int = 32
    """Frames that the networks see; fewer are quicker."""
    epochs: int = 300
    """Epochs of cloning; every tenth agent is judged, the best kept."""
    batch: int = 256
    """Samples of an update of cloning."""
    steps: int = 500_000
    """Steps of PPO for each sub-agent at most."""
    least_steps: int = 50_000
    """Steps after which a sub-agent that succeeds often enough is done."""
    enough: float = 1.0
    """Share of the trials that is often enough."""
    manager_steps: int | None = None
    """Steps of PPO for the manager at most; as many as for a sub-agent if left out."""
    burn_in: int = 50_000
    """Steps at first in which only the value is learned."""
    rollout: int = 256
    """Steps in each environment between two updates of PPO."""
    patience: int = 1000
    """Steps without a sub-goal after which an episode is cut off."""
    fresh: float = 0.5
    """Share of the tries to come to a sub-task that earlier agents play; others are recordings."""
    trials: int = 12
    """Episodes of an evaluation."""
    evaluations: int = 10
    """Evaluations in the course of PPO; the best agent is kept."""
    seed: int = 0
    """Seed."""
    workers: int | None = None
    """Threads that read; all cores if left out."""

    def run(self) -> None:
        """Train."""
        from align_rudder.minerl.cache import ArrayCache
        from align_rudder.minerl.training import Games, frames_of, frames_text, train
        from align_rudder.model import AlignRudder
        from align_rudder.runs.lock import only_here
        from align_rudder.runs.workers import Workers

        check_least(self, environments=0, seed=0, evaluations=1)
        workers = Workers(self.jobs, self.backend, self.address)
        batch, least = self.environments * self.rollout, min(self.steps, self._last())
        if least < batch:
            raise ValueError(
                f"{least:,} steps of PPO are fewer than one batch of --environments "
                f"{self.environments} × --rollout {self.rollout} steps; give at least {batch:,}, "
                "or a smaller --rollout"
            )
        training, model = self._training(), AlignRudder.load(self.model)
        shown = bars_or_lines()
        if Path(self.out).is_dir():
            with only_here(self.out):
                pass  # whether another run is there, before the dataset is read
        games = None
        if self.environments:
            play = self.environment.game(model, self.autoencoder, self.skip, self.frames)
            games = Games(play, self.environments)
            games.check()
        with shared_compilation():
            found = train(
                self._subtasks(model, shown),
                self.out,
                ArrayCache(self.cache),
                training,
                games,
                workers,
                world={"module": self.environment.module, "world": list(self.environment.world)},
                progress=shown,
            )
        if found.crashes.crashes:
            print(found.crashes)
        done = "trained" if found.made else "all agents were there already, nothing was trained"
        if found.unfinished:
            them = ", ".join(f"agent-{k}.npz" for k in found.unfinished)
            done = f"not finished: {them}; the same command goes on with them"
        print(f"{done}; agents and logs are in {self.out}")
        print(frames_text(frames_of(self.out, self.skip)))

    def _training(self) -> MineRLTraining:
        """Return the settings."""
        from align_rudder.hierarchy.fine_tuning import FineTuning
        from align_rudder.minerl.cloning import Cloning
        from align_rudder.minerl.training import MineRLTraining

        same = vars(self).keys() & FineTuning.__dataclass_fields__.keys()
        tuning = FineTuning(
            **{name: getattr(self, name) for name in same},
            evaluate_every=self._every(self.steps),
            ppo=replace(FineTuning().ppo, n_steps=self.rollout),
        )
        last = self._last()
        managing = replace(tuning, steps=last, evaluate_every=self._every(last))
        cloning = replace(Cloning(), epochs=self.epochs, batch=self.batch)
        return MineRLTraining(self.seed, self.skip, self.frames, cloning, tuning, managing)

    def _last(self) -> int:
        """Return the steps of the manager."""
        return self.steps if self.manager_steps is None else self.manager_steps

    def _every(self, steps: int) -> int:
        """Return the steps between two evaluations."""
        return max(steps // self.evaluations, 1)

    def _subtasks(self, model: AlignRudder, shown: bool) -> list[PoolSubTask]:
        """Return the segments that `minerl events` saved; without them, cut them anew."""
        from align_rudder.minerl.dataset import load_pool
        from align_rudder.minerl.pipeline import segments
        from align_rudder.minerl.segments import beside_model, load_segments

        kept = beside_model(self.model, "segments") if self.segments is None else self.segments
        if self.segments is not None or Path(kept).is_file():
            return load_segments(kept, self.model, self.data_root)
        pool = load_pool(self.data_root, workers=self.workers, progress=shown)
        print(pool.report())
        features = features_of(load_encoder(self.autoencoder), self.cache)
        return segments(pool, model, features, workers=self.workers, progress=shown)


@dataclass
class Evaluate:
    """Play whole episodes with trained agents and count how far they come.

    Every episode is in the folder of the training when it ends; the same command goes on there.
    """

    goes_on: ClassVar[bool] = True

    folder: tyro.conf.Positional[str]
    """Folder of the training."""
    model: tyro.conf.Positional[str]
    """Model that `minerl events` wrote."""
    stage: Literal["all", "random", "cloned", "agent", "manager"] = "all"
    """Who plays: all there are, one that acts at random, clones, fine-tuned sub-agents, or these
    with their manager."""
    environments: int = 1
    """Environments that play at the same time."""
    environment: Environment = field(default_factory=Environment)
    """Where agents play."""
    autoencoder: str | None = None
    """Auto-encoder that the model was fitted with, if it was."""
    episodes: int = 100
    """Episodes."""
    max_steps: int = 4500
    """Steps of an episode; 18,000 frames of four."""
    seed: int = 1
    """Seed of the worlds."""
    figures: str | None = None
    """Also draw how far each comes, and how each sub-agent learned, into this folder."""
    json: str | None = None
    """Also write the counts as JSON to this file."""

    def run(self) -> None:
        """Play and count."""
        from align_rudder.minerl.crashes import CrashCounts
        from align_rudder.minerl.place import Games
        from align_rudder.minerl.playing import episode_rows, evaluate, load_players
        from align_rudder.minerl.results import draw_results, results_text, stages_there
        from align_rudder.model import AlignRudder

        check_outputs(self.json)
        make_folder(self.figures, "--figures")
        check_least(self, episodes=1, max_steps=1, seed=0, environments=1)
        model = AlignRudder.load(self.model)
        first = "cloned" if self.stage == "all" else self.stage
        configuration = load_players(self.folder, first, model)[1]
        goals = configuration["goals"]
        seen = configuration["skip"], configuration["frames"]
        world = [self.environment.module, *self.environment.world]
        settings = {"seed": self.seed, "max_steps": self.max_steps, "world": world}
        games = Games(self.environment.game(model, self.autoencoder, *seen), self.environments)
        stages = stages_there(self.folder, len(goals)) if self.stage == "all" else [self.stage]
        found: dict[str, Any] = {}
        with games.playing(Path(self.folder) / "crashes-evaluation.csv") as envs:
            try:
                for stage in stages:
                    players = load_players(self.folder, stage, model)[0]
                    rows = episode_rows(self.folder, players, stage, settings)
                    given = self.episodes, self.seed, self.max_steps, sys.stderr.isatty()
                    found[stage] = evaluate(players, envs, *given, rows)
            finally:
                if (crashes := CrashCounts.of(env.env for env in envs)).crashes:
                    print(crashes)
        print(f"{self.episodes:,} new worlds\n\n{results_text(goals, found)}")
        if self.figures is not None:
            draw_results(self.folder, model, goals, found, self.figures)
        write_json(self.json, {"goals": goals, "stages": found})
