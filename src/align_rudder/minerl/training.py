"""The paper's Minecraft training: cloning by sub-task, fine-tuning by sub-task, the main agent.

Without an environment only the first stage runs. Every finished agent is a file; a training that is
stopped goes on with the first that is missing, from where that one was saved last.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from align_rudder._warnings import warn
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
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning, clone_sub_agent
from align_rudder.minerl.networks import FRAMES, new_manager, new_sub_agent
from align_rudder.minerl.samples import FRAME_SKIP, Samples
from align_rudder.minerl.trajectory import Trajectory
from align_rudder.runs.checkpoint import Checkpoint, advised, load_tree, save_tree
from align_rudder.runs.claim import claim
from align_rudder.runs.interrupt import Stop, stop_on_signal
from align_rudder.runs.lock import only_here
from align_rudder.runs.rows import Rows

__all__ = ["MineRLTraining", "evaluate", "load_players", "train"]

Segments = Sequence[Sequence[tuple[Trajectory, int, int]]]
"""For each sub-task its segments: trajectory, first step, the step after the last."""
_REPLAYS = "replays.npz"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MineRLTraining:
    """All that the result of a training depends on, beside the data.

    Attributes:
        seed: Seed.
        skip: Frames for which an action is held.
        frames: Number of most recent frames that the networks see.
        cloning: Settings of behavioural cloning.
        tuning: Settings of PPO for the sub-agents.
        managing: Settings of PPO for the main agent.
    """

    seed: int = 0
    skip: int = FRAME_SKIP
    frames: int = FRAMES
    cloning: Cloning = field(default_factory=Cloning)
    tuning: FineTuning = field(default_factory=FineTuning)
    managing: FineTuning = field(default_factory=FineTuning)

    def __post_init__(self) -> None:
        if self.skip < 1 or self.frames < 1:
            raise ValueError(f"skip={self.skip}, frames={self.frames}; at least 1 is needed")

    def configuration(self, goals: Sequence[str], segments: Segments) -> dict[str, Any]:
        """Return what the files of a folder must agree on."""
        parts = [[(t.task, t.name, start, stop) for t, start, stop in part] for part in segments]
        data = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        return json.loads(json.dumps({**asdict(self), "goals": list(goals), "segments": data}))


def train(
    segments: Segments,
    goals: Sequence[str],
    folder: str | Path,
    cache: ArrayCache,
    training: MineRLTraining,
    envs: Sequence[Followed] = (),
    progress: bool = True,
    world: Mapping[str, Any] | None = None,
) -> int:
    """Train all sub-agents, and the main agent if there are environments.

    Args:
        segments: For each sub-task its segments of the demonstrations.
        goals: Names of the sub-goals.
        folder: Where agents and logs are kept.
        cache: Where pictures are kept.
        training: Settings.
        envs: Environments to fine-tune in.
        progress: Whether to show progress bars.
        world: What the environments are, as JSON; agents fine-tuned in another one are refused.

    Returns:
        How many agents were made; those that were there already are not counted.
    """
    folder = Path(folder)
    for goal, found in zip(goals, segments, strict=True):
        if not found:
            raise ValueError(
                f"no trajectory reaches the sub-goal {goal!r}, so there is nothing to clone; give "
                "the data that the model was fitted to"
            )
    with only_here(folder), stop_on_signal() as stop:
        configuration = training.configuration(goals, segments)
        _claim(folder, "training.json", configuration)
        if envs and world is not None:
            _claim(folder, "world.json", world)
        trainer = _Trainer(folder, configuration, training, len(goals), progress, stop)
        agents = trainer.clone(segments, cache, envs)
        if envs:
            agents = trainer.tune(agents, envs)
            trainer.manage(agents, envs)
    return trainer.made


def _claim(folder: Path, file: str, configuration: Mapping[str, Any]) -> None:
    """Write the configuration, or refuse a folder that has another."""
    claim(folder, configuration, file=file, empty=not (folder / file).exists())


def _read(path: Path, needed: Iterable[str]) -> dict[str, Any]:
    """Return what a file of the folder says about the training; some entries must be there."""
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict):
            raise ValueError(f"it holds a {type(found).__name__}")
        if missing := [name for name in needed if name not in found]:
            raise ValueError(f"it has no {', '.join(missing)}")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); agents beside it cannot be trusted: give another "
            "folder, or delete this one"
        ) from error
    return found


class _Trainer:
    def __init__(
        self,
        folder: Path,
        configuration: dict[str, Any],
        training: MineRLTraining,
        n_subtasks: int,
        progress: bool,
        stop: Stop,
    ) -> None:
        self.folder, self.configuration, self.training = folder, configuration, training
        self.n, self.progress, self.stop = n_subtasks, progress, stop
        self.made = 0
        kept = folder / _REPLAYS
        with advised():
            self.replays = Replays.load(kept, n_subtasks) if kept.is_file() else Replays(n_subtasks)

    def _kept(self, name: str, new: Callable[[], Any], make: Callable[[Checkpoint], Any]) -> Any:
        """Return the agent in a file, made and saved if there is none."""
        path = self.folder / name
        if not path.is_file():
            if self.stop.asked:
                raise KeyboardInterrupt
            under_way = self.folder / f"unfinished-{name}"
            unfinished = Checkpoint(
                under_way, self.configuration, self.stop, beside=self._save_replays
            )
            save_tree(path, make(unfinished), self.configuration)
            self._save_replays()
            unfinished.remove()
            self.made += 1
            _logger.info("%s is trained", path.name)
        else:
            _logger.info("%s is there already", path.name)
        with advised():
            return load_tree(path, new(), self.configuration)[0]

    def _save_replays(self) -> None:
        if any(self.replays.kept):
            self.replays.save(self.folder / _REPLAYS)

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

            def make(unfinished: Checkpoint, k: int = k) -> Any:
                samples = Samples(segments[k], cache, training.skip, training.frames)
                log = Rows(self.folder / f"cloning-{k}.csv", ["epoch", "loss", "score"])
                with tqdm(
                    total=training.cloning.epochs,
                    desc=f"cloning {k + 1} of {self.n}",
                    disable=not self.progress,
                ) as bar:

                    def show(epoch: int, loss: float) -> None:
                        bar.update(epoch - bar.n)
                        bar.set_postfix_str(f"loss {loss:.3f}")

                    found = clone_sub_agent(
                        new(),
                        samples,
                        training.cloning,
                        training.seed + k,
                        self._judge(k, agents, envs),
                        show,
                        unfinished,
                    )
                log.write(found.curve)
                return found.agent

            agents.append(self._kept(f"cloned-{k}.npz", new, make))
        return agents

    def _judge(
        self, k: int, agents: Sequence[Any], envs: Sequence[Followed]
    ) -> Callable[[Any], float] | None:
        """Return what judges a clone: successes in the environment, if the sub-task is reached."""
        if not envs:
            return None
        rng, tuning = np.random.default_rng(self.training.seed), self.training.tuning
        try:
            begin_at(envs[0], k, self.replays, Players(agents), rng, tuning.patience, tries=5)
        except UnreachedError:
            return None

        def judge(agent: Any) -> float:
            players = Players([*agents, agent])
            return success_rate(envs[0], k, self.replays, players, rng, tuning)

        return judge

    def tune(self, agents: list[Any], envs: Sequence[Followed]) -> list[Any]:
        """Return fine-tuned sub-agents."""
        tuning = self.training.tuning
        for k in range(self.n):

            def make(unfinished: Checkpoint, k: int = k) -> Any:
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
                            unfinished=unfinished,
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

        def make(unfinished: Checkpoint) -> Any:
            tuning = self.training.managing
            with self._bar(tuning, "main agent") as bar:
                found = fine_tune_manager(
                    new(),
                    agents,
                    envs,
                    tuning,
                    self.training.seed,
                    log=_shown(bar),
                    unfinished=unfinished,
                )
            self._write_curve("tuning-manager.csv", found.curve)
            return found.agent

        return self._kept("manager.npz", new, make)

    def _bar(self, tuning: FineTuning, what: str) -> tqdm:
        return tqdm(
            total=tuning.steps, desc=what, unit=" steps", unit_scale=True, disable=not self.progress
        )

    def _write_curve(self, name: str, curve: Sequence[tuple[int, float]]) -> None:
        Rows(self.folder / name, ["steps", "rate"]).write(curve)


def _shown(bar: tqdm) -> Callable[[int, np.ndarray, float], None]:
    def log(steps: int, losses: np.ndarray, reward: float) -> None:
        bar.update(steps - bar.n)
        bar.set_postfix_str(f"reward {reward:.4f}")

    return log


def load_players(folder: str | Path, stage: str = "agent") -> tuple[Players, dict[str, Any]]:
    """Return who plays after a training, and its configuration (`goals`, `skip`, `frames`, …).

    Args:
        folder: Folder of the training.
        stage: "cloned", "agent" (fine-tuned) or "manager".
    """
    folder = Path(folder)
    if stage not in ("cloned", "agent", "manager"):
        raise ValueError(f'stage={stage!r} is not known; use "cloned", "agent" or "manager"')
    path = folder / "training.json"
    if not path.is_file():
        raise ValueError(
            f"{folder} is not the folder of a training: it has no training.json. Give the --out of "
            "align-rudder minerl train"
        )
    configuration = _read(path, ("goals", "skip", "frames"))
    n = len(configuration["goals"])
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
