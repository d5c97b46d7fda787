"""`align-rudder minerl train | evaluate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from align_rudder.cli.options import check_least
from align_rudder.files import check_outputs, write_json
from align_rudder.runs.progress import bars_or_lines

if TYPE_CHECKING:
    from align_rudder.hierarchy.external import Followed
    from align_rudder.model import AlignRudder

__all__ = ["Evaluate", "Train"]


@dataclass
class Environment:
    """Where agents play."""

    python: str | None = None
    """Interpreter that has minerl; the variable ALIGN_RUDDER_MINERL_PYTHON, or this one."""
    module: str | None = None
    """Instead of Minecraft: "scripted" for the package's small world, or "file.py:function"."""
    world: tuple[str, ...] = ()
    """Options of the small world as NAME=VALUE, such as stage=iron hits=4."""

    def open(self, model: AlignRudder, autoencoder: str | None, skip: int, frames: int) -> Followed:
        """Return an environment that is followed along the model."""
        from align_rudder.hierarchy.external import Followed
        from align_rudder.minerl.environment import MineRLEnv
        from align_rudder.minerl.view import PictureView, WithFeatures

        fitted_with = getattr(model.events_, "features", None) is not None
        if fitted_with != (autoencoder is not None):
            was, give = ("with", "give it") if fitted_with else ("without", "leave it out")
            raise ValueError(
                f"the model was fitted {was} features of an auto-encoder; {give} (--autoencoder)"
            )
        env: Any = MineRLEnv(
            python=self.python,
            module=self.module,
            module_options=options_of(self.world),
            frame_skip=skip,
        )
        if autoencoder is not None:
            env = WithFeatures(env, autoencoder)
        return Followed(env, model, PictureView(frames))


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


@dataclass
class Train:
    """Clone sub-agents from the segments of the demonstrations; fine-tune them in Minecraft.

    Ctrl-C saves what is under way; the same command goes on from there.
    """

    goes_on: ClassVar[bool] = True
    data_root: tyro.conf.Positional[str]
    """Folder of the dataset (MINERL_DATA_ROOT)."""
    model: tyro.conf.Positional[str]
    """Model that `minerl events` wrote."""
    out: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "runs/minerl"
    """Folder for agents and logs."""
    environments: int = 0
    """Environments to fine-tune in; without any, agents are cloned and judged by held-out loss."""
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
    """Steps of PPO for the main agent at most; as many as for a sub-agent if left out."""
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
        from align_rudder.hierarchy.fine_tuning import FineTuning
        from align_rudder.minerl.cache import ArrayCache
        from align_rudder.minerl.cloning import Cloning
        from align_rudder.minerl.dataset import load_pool
        from align_rudder.minerl.pipeline import segments
        from align_rudder.minerl.training import MineRLTraining, train
        from align_rudder.model import AlignRudder
        from align_rudder.runs.lock import only_here

        check_least(self, environments=0, seed=0, evaluations=1)
        tuning = FineTuning(
            steps=self.steps,
            burn_in=self.burn_in,
            patience=self.patience,
            evaluate_every=self._every(self.steps),
            trials=self.trials,
            enough=self.enough,
            least_steps=self.least_steps,
            fresh=self.fresh,
            ppo=replace(FineTuning().ppo, n_steps=self.rollout),
        )
        last = self.steps if self.manager_steps is None else self.manager_steps
        managing = replace(tuning, steps=last, evaluate_every=self._every(last))
        cloning = replace(Cloning(), epochs=self.epochs, batch=self.batch)
        training = MineRLTraining(self.seed, self.skip, self.frames, cloning, tuning, managing)
        model = AlignRudder.load(self.model)
        shown = bars_or_lines()
        if Path(self.out).is_dir():
            with only_here(self.out):
                pass  # whether another run is there, before the dataset is read
        with ExitStack() as stack:
            envs = []
            for _ in range(self.environments):  # first, as they may not be there
                env = self.environment.open(model, self.autoencoder, self.skip, self.frames)
                stack.callback(env.env.close)
                envs.append(env)
            pool = load_pool(self.data_root, workers=self.workers, progress=shown)
            print(pool.report())
            features, cache = None, ArrayCache(self.cache)
            if self.autoencoder is not None:
                from align_rudder.minerl.autoencoder import AutoEncoder

                encoder = AutoEncoder.load(self.autoencoder)
                features = lambda trajectory: encoder.features(trajectory, cache)  # noqa: E731
            found = segments(pool, model, features, workers=self.workers, progress=shown)
            parts = [[(s.trajectory, s.start, s.stop) for s in task.segments] for task in found]
            goals = [str(task.goal.symbol) for task in found]
            world = {"module": self.environment.module, "world": list(self.environment.world)}
            made = train(parts, goals, self.out, cache, training, envs, shown, world)
        done = "trained" if made else "all agents were there already, nothing was trained"
        print(f"{done}; agents and logs are in {self.out}")

    def _every(self, steps: int) -> int:
        """Return the steps between two evaluations."""
        return max(steps // self.evaluations, 1)


@dataclass
class Evaluate:
    """Play whole episodes with trained agents and count how far they come."""

    folder: tyro.conf.Positional[str]
    """Folder of the training."""
    model: tyro.conf.Positional[str]
    """Model that `minerl events` wrote."""
    stage: Literal["cloned", "agent", "manager"] = "agent"
    """Who plays: clones, fine-tuned sub-agents, or these with the main agent."""
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
    json: str | None = None
    """Also write the counts as JSON to this file."""

    def run(self) -> None:
        """Play and count."""
        from align_rudder.minerl.training import evaluate, load_players
        from align_rudder.model import AlignRudder

        check_outputs(self.json)
        check_least(self, episodes=1, max_steps=1, seed=0)
        players, configuration = load_players(self.folder, self.stage)
        goals, model = configuration["goals"], AlignRudder.load(self.model)
        if goals != [str(goal.symbol) for goal in model.subgoals_]:
            raise ValueError(
                f"{self.folder} was trained for {len(goals)} sub-goals that are not those of "
                f"{self.model}, which has {len(model.subgoals_)}; give the one it had"
            )
        seen = configuration["skip"], configuration["frames"]
        env = self.environment.open(model, self.autoencoder, *seen)
        try:
            shown = sys.stderr.isatty()
            found = evaluate(players, env, self.episodes, self.seed, self.max_steps, shown)
        finally:
            env.env.close()
        print(f"{self.stage}: {found['solved']} of {found['episodes']} episodes found a diamond\n")
        print(f"{'reached':>7}  {'of all':>6}  sub-goal")
        for goal, reached in zip(goals, found["reached"], strict=True):
            print(f"{reached:>7}  {reached / found['episodes']:>6.1%}  {goal}")
        write_json(self.json, {"stage": self.stage, "goals": goals, **found})
