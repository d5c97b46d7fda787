"""From MineRL trajectories to events, alignment, sub-goals, and the segments of every sub-task.

The demonstrations that are aligned are the shortest ones with a diamond; the segments come from all
trajectories of all tasks, however far they went. Treechop's logs count like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from align_rudder import summary
from align_rudder.episodes import Episode
from align_rudder.files import Number
from align_rudder.minerl.convert import episode_of
from align_rudder.minerl.dataset import Pool, Trajectory, shortest_with_diamond
from align_rudder.minerl.events import InventoryEvents
from align_rudder.minerl.segments import PoolSegment, PoolSubTask, by_subtask, cut
from align_rudder.minerl.spaces import TASKS
from align_rudder.model import AlignRudder
from align_rudder.presets import PAPER

__all__ = [
    "Features",
    "as_data",
    "as_text",
    "check_features",
    "demonstrations",
    "event_episode",
    "fit_events",
    "segments",
]

Features: TypeAlias = Callable[[Trajectory], np.ndarray]
"""Gives the features (T+1, k) of a trajectory's pictures, such as `AutoEncoder.features`."""

_ENTRY = "features"


def event_episode(trajectory: Trajectory, features: Features | None = None) -> Episode:
    """Return a trajectory as the episode that `InventoryEvents` takes; only the diamond pays.

    Args:
        trajectory: The trajectory.
        features: Gives the features of its pictures, which become the entry `features`.
    """
    episode = episode_of(trajectory, rewards="diamond")
    if features is None:
        return episode
    found = np.asarray(features(trajectory))
    if found.ndim != 2 or len(found) != len(trajectory) + 1:
        raise ValueError(
            f"the features of {trajectory.name} have shape {found.shape}; "
            f"({len(trajectory) + 1}, k) is needed, a row for each observation"
        )
    assert isinstance(episode.observations, dict)
    observations = {**episode.observations, _ENTRY: found}
    return Episode(observations, episode.actions, episode.rewards, terminated=True)


def demonstrations(
    pool: Pool,
    n: int = 10,
    features: Features | None = None,
    *,
    workers: int | None = None,
    progress: bool = False,
) -> list[tuple[Trajectory, Episode]]:
    """Return the n shortest trajectories with a diamond, the shortest first, with their episodes.

    A trajectory that turns out to be damaged while its pictures are read moves to `Pool.damaged`,
    and the next one takes its place.
    """
    if n < 2:
        raise ValueError(f"n={n}; at least 2 are needed, as an alignment shows what is common")
    ready: dict[Trajectory, Episode] = {}
    while True:
        chosen = shortest_with_diamond(pool, n)
        todo = [trajectory for trajectory in chosen if trajectory not in ready]
        if not todo:
            return [(trajectory, ready[trajectory]) for trajectory in chosen]
        ready.update(
            pool.map(
                lambda t: event_episode(t, features), only=todo, workers=workers, progress=progress
            )
        )


def fit_events(
    pool: Pool,
    n: int = 10,
    features: Features | None = None,
    *,
    max_events: int = 20,
    subgoal_share: float = 1.0,
    subgoal_threshold: float | None = None,
    workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> AlignRudder:
    """Return the model of the n shortest trajectories with a diamond, in that order.

    Args:
        pool: The trajectories.
        n: How many to align.
        features: Gives the features of pictures; None for events of the inventory alone.
        max_events: The most events.
        subgoal_share: Sub-goals are the columns that this share of the demonstrations holds.
            What is collected often (logs, cobblestone) has little reward in each column, less than
            dirt that most people happen to pick up; a share tells them apart, a reward does not.
        subgoal_threshold: Instead, the redistributed reward above which a column is a sub-goal.
        workers: Number of threads that read; all cores if None.
        progress: Whether to show progress bars.
        **options: Further ones of `AlignRudder`.

    Example:
        ::

            pool = load_pool("data/minerl")
            model = fit_events(pool)
            for task in segments(pool, model):
                print(task.goal.symbol, len(task.segments))
    """
    _check_pool(pool)
    Number(above=0, high=1).check(subgoal_share, "subgoal_share")
    demos = demonstrations(pool, n, features, workers=workers, progress=progress)
    encoder = InventoryEvents(max_events, features=None if features is None else _ENTRY)
    model = AlignRudder(
        encoder,
        **{
            "strategies": 1,
            **PAPER,
            "subgoal_threshold": subgoal_threshold,
            "subgoal_conservation": subgoal_share if subgoal_threshold is None else None,
            "progress": progress,
            **options,
        },
    )
    return model.fit([episode for _, episode in demos])


def _check_pool(pool: Any) -> None:
    if not isinstance(pool, Pool):
        raise ValueError(f"{type(pool).__name__} is no pool; give what load_pool returned")


def check_features(model: AlignRudder, given: bool) -> None:
    """Refuse features of pictures for a model fitted without, and none for one fitted with them."""
    fitted = getattr(model.events_, "features", None) is not None
    if fitted != given:
        was, give = ("with", "give") if fitted else ("without", "leave out")
        raise ValueError(
            f"the model was fitted {was} features of pictures; {give} features=… (--autoencoder) "
            "here as well"
        )


def segments(
    pool: Pool,
    model: AlignRudder,
    features: Features | None = None,
    *,
    extras: bool = True,
    workers: int | None = None,
    progress: bool = False,
) -> list[PoolSubTask]:
    """Return every sub-task with the segments of all trajectories that reach its sub-goal.

    A trajectory is aligned to the profile. A step aligned to the column of a sub-goal ends a
    segment of that sub-task; the segment begins after the one before it.

    Args:
        pool: The trajectories, of any tasks.
        model: What `fit_events` returned.
        features: Gives the features of pictures, if the model was fitted with them.
        extras: Whether a step that is the event of a sub-goal but not aligned to it (a seventh
            log, most logs of Treechop) ends a segment too: of the last such sub-task that was
            reached, or else the first. Its steps stay in the segment of the next sub-goal as well,
            which may need it. Without, segments are those of `AlignRudder.subtasks`.
        workers: Number of threads; all cores if None. The result does not depend on it.
        progress: Whether to show a progress bar.
    """
    _check_pool(pool)
    encoder = getattr(model, "events_", None)
    if encoder is None:
        raise ValueError("the model is not fitted; give one that fit_events returned")
    if not isinstance(encoder, InventoryEvents):
        raise ValueError(
            f"the model has events of the kind {type(encoder).__name__}; give one that fit_events "
            "returned"
        )
    check_features(model, features is not None)
    goals = model.subgoals_
    if not goals:
        raise ValueError(
            "the model has no sub-goals; lower subgoal_threshold, or without one subgoal_share, "
            "when it is fitted"
        )

    def cuts_of(trajectory: Trajectory) -> list[tuple[int, int, int]]:
        encoded = model.encode(event_episode(trajectory, features))
        return cut(encoded.events, model.matched_columns(encoded), goals, extras)

    found = pool.map(cuts_of, workers=workers, progress=progress)
    return by_subtask(
        goals,
        ((k, PoolSegment(trajectory, *steps)) for trajectory, cuts in found for k, *steps in cuts),
    )


def as_text(
    model: AlignRudder, chosen: Sequence[Trajectory], subtasks: Sequence[PoolSubTask]
) -> str:
    """Return demonstrations, alignment, sub-goals, and segments of each sub-task as text."""
    lines = [f"aligned, the {len(chosen)} shortest with a diamond:"]
    lines += [f"{i:>3}  {len(t):>6} steps  {t.task}/{t.name}" for i, t in enumerate(chosen)]
    lines += ["", summary.as_text(model), ""]
    there = {s.trajectory.task for task in subtasks for s in task.segments}
    tasks = [task for task in TASKS if task in there]
    heads = [task.removeprefix("MineRL").removesuffix("-v0") for task in tasks]
    head = f"{'sub-goal':>8}  {'segments':>8}  {'steps':>8}  {'median':>6}  "
    lines.append(head + "".join(f"{name:>{len(name)}}  " for name in heads) + "event")
    for task in subtasks:
        lengths = [s.stop - s.start for s in task.segments]
        row = f"{task.index + 1:>8}  {len(lengths):>8}  {sum(lengths):>8}  "
        row += f"{int(np.median(lengths)) if lengths else 0:>6}  "
        row += "".join(
            f"{task.count(name):>{len(head)}}  " for name, head in zip(tasks, heads, strict=True)
        )
        lines.append(row + str(task.goal.symbol))
    return "\n".join(lines)


def as_data(
    model: AlignRudder, chosen: Sequence[Trajectory], subtasks: Sequence[PoolSubTask]
) -> dict[str, Any]:
    """Return the same as plain data for JSON."""
    return {
        "demonstrations": [
            {"task": t.task, "name": t.name, "steps": len(t), "version": t.version} for t in chosen
        ],
        "model": summary.as_data(model),
        "subtasks": [
            {
                "index": task.index,
                "event": str(task.goal.symbol),
                "segments": [
                    {
                        "task": s.trajectory.task,
                        "trajectory": s.trajectory.name,
                        "start": s.start,
                        "stop": s.stop,
                    }
                    for s in task.segments
                ],
            }
            for task in subtasks
        ],
    }
