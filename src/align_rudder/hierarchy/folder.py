"""The folder of a training: its logs, its agents, and the checkpoint that it goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax

from align_rudder.files import Choice, Table, kind_like
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask, AlignmentTables
from align_rudder.hierarchy.devices import Devices
from align_rudder.hierarchy.manager import ManagedTask, managed, new_manager
from align_rudder.hierarchy.ppo import current_names
from align_rudder.runs.checkpoint import Checkpoint, advised, load_tree, save_tree
from align_rudder.runs.claim import claim
from align_rudder.runs.interrupt import Stop
from align_rudder.runs.rows import Rows

if TYPE_CHECKING:
    from align_rudder.hierarchy.settings import Training
    from align_rudder.hierarchy.unordered import Checklist

__all__ = ["Progress", "TrainingFolder", "load_agent", "load_manager", "steps_so_far"]

_PHASES = ("agents", "manager", "done")
_SAVE_EVERY = 120.0  # seconds


@dataclass
class Progress:
    """How far a training has come; stored with every checkpoint.

    Attributes:
        phase: "agents", "manager" or "done".
        steps: Environment steps so far, of all kinds.
        begun: Steps before this phase.
        updates: Updates of this phase.
        total: Updates that this phase will have.
        evaluated: Evaluations of this phase.
        reserve: Steps kept for the last evaluation: somewhat more than the one before took.
        best: Most worlds solved in an evaluation of this phase.
        demonstrations: Digest of the demonstrations.
    """

    phase: str = "agents"
    steps: int = 0
    begun: int = 0
    updates: int = 0
    total: int = 0
    evaluated: int = 0
    reserve: int = 0
    best: int = -1
    demonstrations: str = ""

    def next_phase(self, phase: str) -> Progress:
        """Return the progress at the begin of another phase."""
        return Progress(phase, self.steps, self.steps, demonstrations=self.demonstrations)


class TrainingFolder:
    """The files of a training; where several processes train, the first one writes.

    Args:
        path: The folder, which the first process holds with `only_here`.
        configuration: What the training depends on; a folder of another one is refused.
        n_subtasks: Number of sub-tasks K.
        devices: Devices of the training.
        stop: Whether the training was asked to stop.
    """

    def __init__(
        self,
        path: str | Path,
        configuration: Mapping[str, Any],
        n_subtasks: int,
        devices: Devices,
        stop: Stop,
    ) -> None:
        self.path, self.configuration = Path(path), configuration
        self.devices, self.stop = devices, stop
        checkpoint = self.path / "checkpoint.npz"
        self.checkpoint = Checkpoint(checkpoint, configuration, stop, every=_SAVE_EVERY)

        def by_subtask(*names: str) -> list[str]:
            return [f"{name}_{k}" for name in names for k in range(n_subtasks)]

        head = ["phase", "updates", "steps"]
        episodes = ["ended", "solved", "ended_fresh", "solved_fresh"]
        losses = ["policy_loss", "value_loss", "entropy"]
        worlds = ["worlds", "solved", "episode_steps"]
        self.cloning = Rows(self.path / "cloning.csv", ["updates", *by_subtask("loss", "accuracy")])
        self.updates = Rows(
            self.path / "updates.csv",
            [*head, *episodes, *losses, *by_subtask("reached", "failed")],
        )
        self.evaluations = Rows(
            self.path / "evaluations.csv", [*head, *worlds, *by_subtask("reached")]
        )

    def open(self, demonstrations: str) -> Progress:
        """Return how far the training has come; what was logged after that is cut off.

        Args:
            demonstrations: Digest of the demonstrations; those of the checkpoint must be the same.
        """
        progress = Progress(demonstrations=demonstrations)
        saved = self.checkpoint.path.exists()
        if saved:
            with advised("Put back a copy, or begin anew in another folder (--out)"):
                notes = load_tree(self.checkpoint.path, (), self.configuration)[1]
                progress = _progress(notes, self.checkpoint.path, demonstrations)
        elif self.updates.read():
            raise ValueError(
                f"{self.path} has the logs of a training but no checkpoint.npz to go on from; "
                "give another folder (--out), or delete this one to begin anew"
            )
        if progress.demonstrations != demonstrations:
            raise ValueError(
                f"{self.path} belongs to a training with other demonstrations; give those again "
                "(--demos), or another folder"
            )
        if self.devices.first:
            claim(self.path, self.configuration, file="training.json", empty=not saved)
            here = (_PHASES.index(progress.phase), progress.updates)
            for rows in (self.updates, self.evaluations):
                if progress.updates and not rows.path.exists():
                    raise ValueError(
                        f"{rows.path} is lost; put back a copy, or begin anew in another folder "
                        "(--out)"
                    )
                rows.keep(
                    lambda row: saved and (_PHASES.index(row["phase"]), int(row["updates"])) <= here
                )
        self.devices.wait("open")
        if not (self.path / "training.json").exists():
            raise ValueError(f"{self.path} is not the first process's: all need the same folder")
        return progress

    def save(self, name: str, tree: Any, progress: Progress) -> None:
        """Save a tree with how far the training has come; all processes call it."""
        tree = self.devices.gather(tree)
        if self.devices.first:
            save_tree(self.path / name, tree, self.configuration, asdict(progress))
        self.devices.wait(name)

    def load(self, name: str, like: Any) -> Any:
        """Return the tree in a file, given one like it."""
        return load_tree(self.path / name, like, self.configuration)[0]

    def save_checkpoint(self, tree: Any, progress: Progress, must: bool = True) -> None:
        """Save what the training goes on from, if it must be or is due; leave if that was asked."""
        due = self.checkpoint.due if self.devices.first else self.stop.asked
        if not must and not self.devices.any(due):
            return
        tree = self.devices.gather(tree)
        if self.devices.first:
            self.checkpoint.save(tree, asdict(progress))
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        """Leave with `KeyboardInterrupt` if any process was asked to."""
        if self.devices.any(self.stop.asked):
            raise self.stop.interruption()


def steps_so_far(
    folder: str | Path, training: Training, tables: AlignmentTables | Checklist
) -> int | None:
    """Return how many steps a training has made that is not finished; None if it is, or unknown."""
    path = Path(folder) / "checkpoint.npz"
    if not path.is_file():
        return None
    progress = _progress(_load(path, (), training, tables)[1], path)
    return None if progress.phase == "done" else progress.steps


def _progress(notes: Mapping[str, Any], path: Path, demonstrations: str = "") -> Progress:
    """Return the progress that a checkpoint notes; those of version 0.1 name no demonstrations."""
    kinds = {name: kind_like(value) for name, value in asdict(Progress()).items()}
    kinds["phase"] = Choice(_PHASES)
    optional = [name for name in kinds if name not in ("phase", "steps")]
    Table(kinds, optional).check(notes, f"the progress in {path}")
    return Progress(**{"demonstrations": demonstrations, **notes})


def load_agent(
    folder: str | Path, task: AlignedTask, training: Training, name: str = "agent.npz"
) -> Policy:
    """Return the best sub-agents of a training, or those after cloning (`cloned.npz`)."""
    like = eqx.filter_eval_shape(training.new_agent, task, jax.random.key(0))
    return _load(Path(folder) / name, like, training, task.tables)[0]


def load_manager(
    folder: str | Path, task: AlignedTask, training: Training
) -> tuple[ManagedTask, Policy]:
    """Return the task with its sub-agents, and the best manager of a training."""
    whole = managed(task, load_agent(folder, task, training))
    hidden, symmetric = training.hidden, training.symmetric
    like = eqx.filter_eval_shape(new_manager, whole, jax.random.key(0), hidden, symmetric)
    return whole, _load(Path(folder) / "manager.npz", like, training, task.tables)[0]


def _load(path: Path, like: Any, training: Training, tables: AlignmentTables | Checklist) -> Any:
    """Return a tree and its notes; files of version 0.1 have other names for hyper-parameters."""
    configuration = training.configuration(tables)
    return load_tree(path, like, configuration, upgrade=current_names)
