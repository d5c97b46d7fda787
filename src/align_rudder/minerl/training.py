"""The paper's Minecraft training: cloning by sub-task, fine-tuning by sub-task, the manager.

Without an environment only the first stage runs. Every finished agent is a file; a training that is
stopped goes on with the first that is missing, from where that one was saved last. Where episodes
do not come to a sub-task, the best of its sub-agent so far is used and marked as unfinished; the
same command takes it up again later.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from tqdm import tqdm

from align_rudder._moved import attribute_of
from align_rudder._warnings import warn
from align_rudder.files import Whole, check_values
from align_rudder.hierarchy.external import Players, Replays, TrackedEnv, UnreachedError, begin_at
from align_rudder.hierarchy.fine_tuning import (
    FineTuning,
    ManagerPractice,
    SubtaskPractice,
    fine_tune,
    success_rate,
)
from align_rudder.hierarchy.ppo import Losses, without_later
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning, clone_sub_agent
from align_rudder.minerl.crashes import Crash, recovery_of
from align_rudder.minerl.networks import FRAMES, new_manager, new_sub_agent
from align_rudder.minerl.samples import FRAME_SKIP, Samples
from align_rudder.minerl.segments import PoolSubTask
from align_rudder.runs.checkpoint import Checkpoint, advised, digest, load_tree, save_tree
from align_rudder.runs.claim import claim
from align_rudder.runs.interrupt import Stop, stop_on_signal
from align_rudder.runs.lock import only_here
from align_rudder.runs.rows import Rows

__all__ = ["MineRLTraining", "train"]

if not TYPE_CHECKING:
    __getattr__ = attribute_of(__name__)

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
        managing: Settings of PPO for the manager.
    """

    seed: int = 0
    skip: int = FRAME_SKIP
    frames: int = FRAMES
    cloning: Cloning = field(default_factory=Cloning)
    tuning: FineTuning = field(default_factory=FineTuning)
    managing: FineTuning = field(default_factory=FineTuning)

    def __post_init__(self) -> None:
        check_values(skip=(self.skip, Whole(1)), frames=(self.frames, Whole(1)))

    def configuration(self, subtasks: Sequence[PoolSubTask]) -> dict[str, Any]:
        """Return what the files of a folder must agree on."""
        parts = [
            [(t.task, t.name, start, stop) for t, start, stop in task.segments] for task in subtasks
        ]
        data = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        goals = [str(task.goal.symbol) for task in subtasks]
        settings = without_later(asdict(self))
        return json.loads(json.dumps({**settings, "goals": goals, "segments": data}))


def train(
    subtasks: Sequence[PoolSubTask],
    folder: str | Path,
    cache: ArrayCache,
    training: MineRLTraining,
    envs: Sequence[TrackedEnv] = (),
    *,
    world: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> int:
    """Train all sub-agents, and the manager if there are environments.

    Args:
        subtasks: The sub-tasks with their segments, from `pipeline.segments` or `load_segments`.
        folder: Where agents and logs are kept.
        cache: Where pictures are kept.
        training: Settings.
        envs: Environments to fine-tune in, from `playing.open_game`.
        world: What the environments are, as JSON; agents fine-tuned in another one are refused.
        progress: Whether to show progress bars.

    Returns:
        How many agents were finished; those that were there already are not counted.
    """
    folder = Path(folder)
    for task in subtasks:
        if not task.segments:
            raise ValueError(
                f"no trajectory reaches the sub-goal {str(task.goal.symbol)!r}, so there is "
                "nothing to clone; give the data that the model was fitted to"
            )
    with only_here(folder), stop_on_signal() as stop:
        configuration = training.configuration(subtasks)
        claim(folder, configuration, file="training.json", empty=not any(folder.glob("*.npz")))
        if envs and world is not None:
            claim(folder, world, file="world.json", empty=not (folder / "world.json").exists())
        if envs:
            _write_crashes(folder, envs)
        trainer = _Trainer(folder, configuration, training, subtasks, envs, progress, stop)
        agents: list[Any] = []
        for k in range(len(subtasks)):
            agents.append(trainer.clone(k, agents, cache))
        if envs:
            for k in range(len(subtasks)):
                agents[k] = trainer.tune(k, agents)
            trainer.manage(agents)
    return trainer.made


def _write_crashes(folder: Path, envs: Sequence[TrackedEnv]) -> None:
    """Have every crash of the game written into `crashes.csv`, at the moment when it happens."""
    columns = ["time", "environment", *Crash._fields]
    rows, lock = Rows(folder / "crashes.csv", columns, ("time", "reason")), Lock()

    def note(i: int, crash: Crash) -> None:
        with lock:
            rows.append([datetime.now().isoformat(timespec="seconds"), i, *crash])

    for i, env in enumerate(envs):
        if (recovery := recovery_of(env.env)) is not None:
            recovery.on_crash = partial(note, i)


@dataclass
class _Trainer:
    """Makes the agents of a folder; what is there is loaded."""

    folder: Path
    configuration: dict[str, Any]
    training: MineRLTraining
    subtasks: Sequence[PoolSubTask]
    envs: Sequence[TrackedEnv]
    progress: bool
    stop: Stop
    made: int = 0

    def __post_init__(self) -> None:
        self._recorded, n = self.folder / "replays.npz", len(self.subtasks)
        with advised():
            there = self._recorded.is_file()
            self.replays = Replays.load(self._recorded, n) if there else Replays(n)

    def clone(self, k: int, before: Sequence[Any], cache: ArrayCache) -> Any:
        """Return the clone for a sub-task, given those for the sub-tasks before."""
        training, new = self.training, new_sub_agent(self._key(0, k))

        def make(checkpoint: Checkpoint) -> tuple[Any, None]:
            segments = self.subtasks[k].segments
            samples = Samples(segments, cache, training.skip, training.frames)
            judge = self._judge(k, before) if self.envs else None
            with self._bar(f"cloning {self._number(k)}", training.cloning.epochs) as show:
                found = clone_sub_agent(
                    new,
                    samples,
                    training.cloning,
                    training.seed + k,
                    judge,
                    lambda epoch, loss: show(epoch, f"loss {loss:.3f}"),
                    checkpoint,
                )
            Rows(self.folder / f"cloning-{k}.csv", ["epoch", "loss", "score"]).write(found.curve)
            return found.agent, None

        return self._agent(f"cloned-{k}.npz", new, make)

    def _judge(self, k: int, before: Sequence[Any]) -> Callable[[Any], float] | None:
        """Return what judges a clone: successes in the environment, if the sub-task is reached."""
        env, tuning = self.envs[0], self.training.tuning
        rng = np.random.default_rng(self.training.seed)
        try:
            begin_at(env, k, self.replays, Players(before), rng, tuning.patience, tries=5)
        except UnreachedError:
            return None
        return lambda agent: success_rate(
            env, k, self.replays, Players([*before, agent]), rng, tuning
        )

    def tune(self, k: int, agents: Sequence[Any]) -> Any:
        """Return the sub-agent of a sub-task after PPO, or the best so far if it is not reached."""
        practice, tuning = SubtaskPractice(k, agents, self.replays), self.training.tuning
        make = self._tuned(practice, tuning, f"fine-tuning {self._number(k)}", k)
        return self._agent(f"agent-{k}.npz", agents[k], make)

    def manage(self, agents: Sequence[Any]) -> Any:
        """Return the manager of the sub-agents; if these learned more since, it learns on too."""
        new, of = new_manager(self._key(1), len(agents)), digest(list(agents))
        path = self.folder / "manager.npz"
        if path.is_file():
            before, notes = self._load(path, new)
            new = before if notes.get("agents", of) != of else new
        make = self._tuned(ManagerPractice(new, agents), self.training.managing, "manager")
        return self._agent("manager.npz", new, make, of)

    def _tuned(
        self,
        practice: SubtaskPractice | ManagerPractice,
        tuning: FineTuning,
        what: str,
        k: int | None = None,
    ) -> Callable[[Checkpoint], tuple[Any, str | None]]:
        """Return what makes an agent by PPO, shows how far it is, and writes down its curve.

        Args:
            practice: What it practises.
            tuning: How it is trained.
            what: What the progress bar says.
            k: Its sub-task, None for the manager.
        """
        seed, name = self.training.seed + (k or 0), "manager" if k is None else k

        def make(checkpoint: Checkpoint) -> tuple[Any, str | None]:
            with self._bar(what, tuning.steps) as show:

                def log(steps: int, losses: Losses, reward: float) -> None:
                    show(steps, f"reward {reward:.4f}")

                found = fine_tune(practice, self.envs, tuning, seed, log, checkpoint)
            Rows(self.folder / f"tuning-{name}.csv", ["steps", "rate"]).write(found.curve)
            if found.unreached is not None:
                warn(
                    f"sub-agent {name} is not finished after {found.steps:,} of {tuning.steps:,} "
                    f"steps: {found.unreached}. The best so far plays for it; the same command "
                    "takes it up again"
                )
            return found.agent, found.unreached

        return make

    def _agent(
        self,
        name: str,
        like: Any,
        make: Callable[[Checkpoint], tuple[Any, str | None]],
        of: str | None = None,
    ) -> Any:
        """Return the agent in a file, made and saved if there is none, or an unfinished one.

        Args:
            name: The file.
            like: An agent of the same kind.
            make: Returns the agent, and why it is not finished, or None.
            of: What it was made of, a digest; the agent in a file is taken up again if that is
                another one.
        """
        path = self.folder / name
        if path.is_file():
            agent, notes = self._load(path, like)
            if not notes.get("unreached") and notes.get("agents", of) == of:
                _logger.info("%s is there already", name)
                return agent
            _logger.info("%s is taken up again", name)
        if self.stop.asked:
            raise self.stop.interruption()
        under_way = self.folder / f"unfinished-{name}"
        checkpoint = Checkpoint(under_way, self.configuration, self.stop, beside=self._save_replays)
        agent, unreached = make(checkpoint)
        notes = {"unreached": unreached} if unreached else {}
        save_tree(path, agent, self.configuration, notes | ({"agents": of} if of else {}))
        self._save_replays()
        if unreached is None:
            checkpoint.remove()
            self.made += 1
            _logger.info("%s is trained", name)
        return agent

    def _load(self, path: Path, like: Any) -> tuple[Any, dict[str, Any]]:
        """Return an agent and its notes."""
        with advised():
            return load_tree(path, like, self.configuration)

    def _save_replays(self) -> None:
        if any(self.replays.kept):
            self.replays.save(self._recorded)

    def _key(self, *path: int) -> jax.Array:
        key = jax.random.key(self.training.seed)
        for part in path:
            key = jax.random.fold_in(key, part)
        return key

    def _number(self, k: int) -> str:
        return f"{k + 1} of {len(self.subtasks)}"

    @contextmanager
    def _bar(self, what: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """Show a bar; what is given is called with how far it is and a word on how it goes."""
        with tqdm(total=total, desc=what, unit_scale=True, disable=not self.progress) as bar:

            def show(at: int, note: str) -> None:
                bar.update(at - bar.n)
                bar.set_postfix_str(note)

            yield show
