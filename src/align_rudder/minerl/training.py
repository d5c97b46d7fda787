"""The paper's Minecraft training: cloning by sub-task, fine-tuning by sub-task, the main agent.

Without an environment only the first stage runs. Every finished agent is a file; a training that is
stopped goes on with the first that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from tqdm import tqdm

from align_rudder._files import write_whole
from align_rudder._warnings import warn
from align_rudder.hierarchy.checkpoints import differences, load_tree, save_tree
from align_rudder.hierarchy.external import (
    Followed,
    Players,
    Replays,
    UnreachedError,
    begin_at,
    play_out,
)
from align_rudder.hierarchy.fine_tuning import (
    FineTuned,
    FineTuning,
    fine_tune,
    fine_tune_manager,
    success_rate,
)
from align_rudder.hierarchy.logs import Log
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning, clone_sub_agent
from align_rudder.minerl.networks import new_manager, new_sub_agent
from align_rudder.minerl.samples import FRAME_SKIP, Samples
from align_rudder.minerl.trajectory import Trajectory

__all__ = ["MineRLTraining", "evaluate", "load_players", "train"]

Segments = Sequence[Sequence[tuple[Trajectory, int, int]]]
"""For each sub-task its segments: trajectory, first step, the step after the last."""


@dataclass(frozen=True)
class MineRLTraining:
    """All that the result of a training depends on, beside the data.

    Attributes:
        seed: Seed.
        skip: Frames for which an action is held.
        cloning: Settings of behavioural cloning.
        tuning: Settings of PPO for the sub-agents.
        managing: Settings of PPO for the main agent.
    """

    seed: int = 0
    skip: int = FRAME_SKIP
    cloning: Cloning = field(default_factory=Cloning)
    tuning: FineTuning = field(default_factory=FineTuning)
    managing: FineTuning = field(default_factory=FineTuning)

    def configuration(self, goals: Sequence[str]) -> dict[str, Any]:
        """Return what the files of a folder must agree on."""
        return json.loads(json.dumps({**asdict(self), "goals": list(goals)}))


def train(
    segments: Segments,
    goals: Sequence[str],
    folder: str | Path,
    cache: ArrayCache,
    training: MineRLTraining,
    envs: Sequence[Followed] = (),
    progress: bool = True,
) -> None:
    """Train all sub-agents, and the main agent if there are environments.

    Args:
        segments: For each sub-task its segments of the demonstrations.
        goals: Names of the sub-goals.
        folder: Where agents and logs are kept.
        cache: Where pictures are kept.
        training: Settings.
        envs: Environments to fine-tune in.
        progress: Whether to show progress bars.
    """
    folder = Path(folder)
    configuration = training.configuration(goals)
    _claim(folder, configuration)
    trainer = _Trainer(folder, configuration, training, len(goals), progress)
    agents = trainer.clone(segments, cache, envs)
    if envs:
        agents = trainer.tune(agents, envs)
        trainer.manage(agents, envs)


def _claim(folder: Path, configuration: dict[str, Any]) -> None:
    """Write the configuration, or refuse a folder that has another."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "training.json"
    if path.is_file():
        other = differences(json.loads(path.read_text()), configuration)
        if other:
            raise ValueError(
                f"{folder} belongs to another configuration: {'; '.join(other)}; use that one "
                "again, or another folder"
            )
    text = json.dumps(configuration, indent=1) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


class _Trainer:
    def __init__(
        self,
        folder: Path,
        configuration: dict[str, Any],
        training: MineRLTraining,
        n_subtasks: int,
        progress: bool,
    ) -> None:
        self.folder, self.configuration, self.training = folder, configuration, training
        self.n, self.progress = n_subtasks, progress
        self.replays = Replays(n_subtasks)

    def _kept(self, name: str, new: Callable[[], Any], make: Callable[[], Any]) -> Any:
        """Return the agent in a file, made and saved if there is none."""
        path = self.folder / name
        if not path.is_file():
            save_tree(path, make(), self.configuration)
        return load_tree(path, eqx.filter_eval_shape(new), self.configuration)[0]

    def _key(self, *path: int) -> jax.Array:
        key = jax.random.key(self.training.seed)
        for part in path:
            key = jax.random.fold_in(key, part)
        return key

    def clone(self, segments: Segments, cache: ArrayCache, envs: Sequence[Followed]) -> list[Any]:
        """Return cloned sub-agents."""
        training, agents = self.training, []
        for k in range(self.n):

            def new(k: int = k) -> Any:
                return new_sub_agent(self._key(0, k))

            def make(k: int = k) -> Any:
                samples = Samples(segments[k], cache, training.skip)
                log = Log(self.folder / f"cloning-{k}.csv", ["epoch", "loss", "score"])
                log.cut(lambda row: False)
                with tqdm(
                    total=training.cloning.epochs,
                    desc=f"cloning {k + 1} of {self.n}",
                    disable=not self.progress,
                ) as bar:

                    def show(epoch: int, loss: float) -> None:
                        bar.update()
                        bar.set_postfix_str(f"loss {loss:.3f}")

                    found = clone_sub_agent(
                        new(),
                        samples,
                        training.cloning,
                        training.seed + k,
                        self._judge(k, agents, envs),
                        show,
                    )
                for row in found.curve:
                    log.write(row)
                return found.agent

            agents.append(self._kept(f"cloned-{k}.npz", new, make))
        return agents

    def _judge(
        self, k: int, agents: Sequence[Any], envs: Sequence[Followed]
    ) -> Callable[[Any], float] | None:
        """Return what judges a clone: successes in the environment, if the sub-task is reached."""
        if not envs:
            return None
        rng, patience = np.random.default_rng(self.training.seed), self.training.tuning.patience
        try:
            begin_at(envs[0], k, self.replays, Players(agents), rng, patience, tries=5)
        except UnreachedError:
            return None

        def judge(agent: Any) -> float:
            players = Players([*agents, agent])
            trials = self.training.tuning.trials
            return success_rate(envs[0], k, self.replays, players, rng, patience, trials)

        return judge

    def tune(self, agents: list[Any], envs: Sequence[Followed]) -> list[Any]:
        """Return fine-tuned sub-agents."""
        tuning = self.training.tuning
        for k in range(self.n):

            def make(k: int = k) -> Any:
                with self._bar(tuning, f"fine-tuning {k + 1} of {self.n}") as bar:
                    try:
                        found = fine_tune(
                            k,
                            agents,
                            envs,
                            self.replays,
                            tuning,
                            self.training.seed + k,
                            log=_shown(bar),
                        )
                    except UnreachedError as error:
                        warn(f"sub-agent {k} stays as it was cloned: {error}")
                        found = FineTuned(agents[k], [])
                self._write_curve(f"tuning-{k}.csv", found.curve)
                return found.agent

            agents[k] = self._kept(
                f"agent-{k}.npz", lambda k=k: new_sub_agent(self._key(0, k)), make
            )
        return agents

    def manage(self, agents: Sequence[Any], envs: Sequence[Followed]) -> Any:
        """Return the main agent."""

        def new() -> Any:
            return new_manager(self._key(1), self.n)

        def make() -> Any:
            tuning = self.training.managing
            with self._bar(tuning, "main agent") as bar:
                found = fine_tune_manager(
                    new(), agents, envs, tuning, self.training.seed, log=_shown(bar)
                )
            self._write_curve("tuning-manager.csv", found.curve)
            return found.agent

        return self._kept("manager.npz", new, make)

    def _bar(self, tuning: FineTuning, what: str) -> tqdm:
        return tqdm(
            total=tuning.steps, desc=what, unit=" steps", unit_scale=True, disable=not self.progress
        )

    def _write_curve(self, name: str, curve: Sequence[tuple[int, float]]) -> None:
        log = Log(self.folder / name, ["steps", "rate"])
        log.cut(lambda row: False)
        for row in curve:
            log.write(row)


def _shown(bar: tqdm) -> Callable[[int, np.ndarray, float], None]:
    def log(steps: int, losses: np.ndarray, reward: float) -> None:
        bar.update(steps - bar.n)
        bar.set_postfix_str(f"reward {reward:.4f}")

    return log


def load_players(folder: str | Path, stage: str = "agent") -> tuple[Players, list[str]]:
    """Return who plays after a training, and the names of the sub-goals.

    Args:
        folder: Folder of the training.
        stage: "cloned", "agent" (fine-tuned) or "manager".
    """
    folder = Path(folder)
    path = folder / "training.json"
    if not path.is_file():
        raise ValueError(f"{folder} is not the folder of a training: it has no training.json")
    configuration = json.loads(path.read_text())
    n = len(configuration["goals"])

    def load(name: str, new: Callable[[], Any]) -> Any:
        return load_tree(folder / name, eqx.filter_eval_shape(new), configuration)[0]

    kind = "cloned" if stage == "cloned" else "agent"
    key = jax.random.key(0)
    agents = [load(f"{kind}-{k}.npz", lambda: new_sub_agent(key)) for k in range(n)]
    manager = load("manager.npz", lambda: new_manager(key, n)) if stage == "manager" else None
    return Players(agents, manager), configuration["goals"]


def evaluate(
    players: Players,
    env: Followed,
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
        reached += env.counts[env.goals] >= env.needed
        solved += done
        steps += length
    return {
        "episodes": episodes,
        "solved": solved,
        "reached": reached.tolist(),
        "episode_steps": steps,
    }
