"""Segments: the steps with which trajectories reach each sub-goal, and the file that keeps them.

The file lies beside the model it belongs to. It names every trajectory with a digest of its arrays,
so that it is used only for the model and the data from which the segments were cut.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from align_rudder.files import Anything, Format, Ints, Many, Text, shown
from align_rudder.minerl.spaces import FORMATS, TASKS
from align_rudder.minerl.trajectory import Trajectory
from align_rudder.model import AlignRudder
from align_rudder.subtasks import SubGoal

__all__ = [
    "PoolSegment",
    "PoolSubTask",
    "beside_model",
    "by_subtask",
    "cut",
    "load_segments",
    "save_segments",
]

_AGAIN = "run align-rudder minerl events again, or delete the file: the segments are then cut anew"
_SEGMENTS = Format(
    "align-rudder-minerl-segments",
    1,
    header={
        "model": Text(),
        "goals": Many(Text()),
        "trajectories": Many(Many(Anything(), 4, 4)),  # task, name, version, digest
    },
    arrays={"segments": Ints("segments", 4)},  # sub-task, trajectory, start, stop
    remedy=_AGAIN,
)


class PoolSegment(NamedTuple):
    """Steps of a trajectory that reach a sub-goal with their last one.

    Attributes:
        trajectory: The trajectory.
        start: The first step.
        stop: The step after the last; step `stop - 1` reaches the sub-goal.
    """

    trajectory: Trajectory
    start: int
    stop: int


@dataclass(frozen=True)
class PoolSubTask:
    """A sub-task with what the whole pool shows of it.

    Attributes:
        index: Index of the sub-goal.
        goal: The sub-goal.
        segments: The segments, in the order of the pool.
    """

    index: int
    goal: SubGoal
    segments: tuple[PoolSegment, ...]

    def count(self, task: str) -> int:
        """Return how many segments come from a task."""
        return sum(segment.trajectory.task == task for segment in self.segments)


def cut(
    events: np.ndarray, columns: np.ndarray, goals: Sequence[SubGoal], extras: bool
) -> list[tuple[int, int, int]]:
    """Return sub-task, first step and step after the last of each segment of a trajectory.

    Args:
        events: The event of each step (T,), -1 for none.
        columns: The profile column to which each step is aligned (T,), -1 for none.
        goals: The sub-goals.
        extras: Whether steps that show the event of a sub-goal but are not aligned to it end a
            segment too; see `pipeline.segments`.
    """
    goal_at = {goal.column: k for k, goal in enumerate(goals)}
    latest: dict[int, int] = {}
    for k, goal in reversed(list(enumerate(goals))):
        latest[goal.event] = k
    out, start, since = [], 0, 0
    for t in np.flatnonzero(events >= 0).tolist():
        k = goal_at.get(int(columns[t]))
        if k is not None:
            latest[int(events[t])] = k
            out.append((k, start, t + 1))
            start = since = t + 1
        elif extras and int(events[t]) in latest:
            # It shows its own sub-task; it may also be a part of what the next sub-goal takes.
            out.append((latest[int(events[t])], since, t + 1))
            since = t + 1
    return out


def by_subtask(
    goals: Sequence[SubGoal], segments: Iterable[tuple[int, PoolSegment]]
) -> list[PoolSubTask]:
    """Return every sub-task with its segments, given each with the index of its sub-goal."""
    found: list[list[PoolSegment]] = [[] for _ in goals]
    for k, segment in segments:
        found[k].append(segment)
    return [PoolSubTask(k, goal, tuple(found[k])) for k, goal in enumerate(goals)]


def beside_model(model: str | os.PathLike[str], what: str) -> Path:
    """Return the file that lies beside a model: MODEL-segments.npz, MODEL-autoencoder.npz.

    Example:
        >>> beside_model("runs/model.npz", "segments").as_posix()
        'runs/model-segments.npz'
    """
    path = Path(model)
    return path.with_name(f"{path.with_suffix('').name}-{what}.npz")


def save_segments(
    path: str | os.PathLike[str],
    model: str | os.PathLike[str],
    subtasks: Sequence[PoolSubTask],
) -> None:
    """Save the segments that were cut with a model.

    Args:
        path: The file.
        model: The file of the model.
        subtasks: What `pipeline.segments` returned.
    """
    numbers: dict[Trajectory, int] = {}
    rows = [
        (task.index, numbers.setdefault(trajectory, len(numbers)), start, stop)
        for task in subtasks
        for trajectory, start, stop in task.segments
    ]
    header = {
        "model": _digest(Path(model)),
        "goals": [str(task.goal.symbol) for task in subtasks],
        "trajectories": [[t.task, t.name, t.version, _data_digest(t)] for t in numbers],
    }
    arrays = {"segments": np.array(rows, np.int64).reshape(-1, 4)}
    _SEGMENTS.save(path, header, arrays)


def load_segments(
    path: str | os.PathLike[str],
    model: str | os.PathLike[str],
    root: str | os.PathLike[str],
) -> list[PoolSubTask]:
    """Return the sub-tasks with the segments that `save_segments` wrote.

    Args:
        path: The file.
        model: The file of the model with which they were cut.
        root: The folder of the dataset from which they were cut.

    Raises:
        ValueError: If the file is damaged, or belongs to another model or other data.
    """
    goals = AlignRudder.load(model).subgoals_
    with _SEGMENTS.open(path) as contents:
        header, rows = contents.header, contents.arrays["segments"]
        if header["model"] != _digest(Path(model)):
            raise ValueError(f"{path} belongs to another model than {model}; {_AGAIN}")
        if header["goals"] != [str(goal.symbol) for goal in goals]:
            raise ValueError("its sub-goals are not those of the model")
        trajectories = [_trajectory(Path(root), *about) for about in header["trajectories"]]
        k, i, start, stop = rows.T
        if ((k >= len(goals)) | (i >= len(trajectories)) | (start >= stop)).any():
            raise ValueError("a segment is of no sub-goal or trajectory, or has no steps")
        for trajectory, (*_, digest) in zip(trajectories, header["trajectories"], strict=True):
            if not trajectory.path.is_dir():
                raise ValueError(
                    f"{path} has segments of {trajectory.task}/{trajectory.name}, which is not in "
                    f"{root}; give the dataset from which they were cut; {_AGAIN}"
                )
            if _data_digest(trajectory) != digest:
                raise ValueError(
                    f"{trajectory.task}/{trajectory.name} has changed since the segments in {path} "
                    f"were cut; {_AGAIN}"
                )
        if any(stop > len(trajectories[i]) for _, i, _, stop in rows.tolist()):
            raise ValueError("a segment ends behind its trajectory")
    segments = [(k, PoolSegment(trajectories[i], *steps)) for k, i, *steps in rows.tolist()]
    return by_subtask(goals, segments)


def _trajectory(root: Path, task: Any, name: Any, version: Any, digest: Any) -> Trajectory:
    known = isinstance(task, str) and task in TASKS and type(version) is int and version in FORMATS
    if not known or not isinstance(name, str) or Path(name).name != name or not name:
        raise ValueError(f"{shown([task, name, version])} is no trajectory")
    return Trajectory(root / task / name, task, version)


def _data_digest(trajectory: Trajectory) -> str:
    """Return what tells the arrays of a trajectory from all others."""
    return _digest(trajectory.path / "metadata.json", trajectory.path / "rendered.npz")


def _digest(*paths: Path) -> str:
    out = hashlib.sha256()
    for path in paths:
        try:
            out.update(path.read_bytes())
        except FileNotFoundError:
            raise ValueError(f"there is no file {path}") from None
    return out.hexdigest()[:16]
