"""Trajectories of the MineRL dataset: found on disk, checked in parallel, read when asked for.

Nothing is held in memory but names and counts; every array and every frame is read from its file
at the moment it is asked for. A trajectory that is damaged is named with the reason, left out and
counted, and the others are used.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from tqdm import tqdm

from align_rudder._warnings import warn
from align_rudder.files import Choice
from align_rudder.minerl.frames import import_av
from align_rudder.minerl.spaces import FORMATS, TASKS, task_named
from align_rudder.minerl.trajectory import Damage, DamagedTrajectoryError, Trajectory

__all__ = [
    "BAD_STREAMS",
    "Damage",
    "DamagedTrajectoryError",
    "Pool",
    "Trajectory",
    "find_trajectories",
    "load_pool",
    "parallel_map",
    "read_bad",
    "shortest_with_diamond",
]

BAD_STREAMS = ("tempting_capers_shapeshifter-14",)
"""What the loaders of minerl 0.3.7 and 0.4.4 refuse by name."""
_NAME = re.compile(r"v(\d+)_(.+)_(\d+)-(\d+)")
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass
class Pool:
    """Trajectories of one or more tasks, and what was left out.

    Attributes:
        trajectories: The usable ones, by task and name.
        damaged: Those left out, with the reason.
        strays: Files that lie among the trajectories and belong to none.
    """

    trajectories: list[Trajectory]
    damaged: list[Damage] = field(default_factory=list)
    strays: list[Path] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.trajectories)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.trajectories)

    def report(self) -> str:
        """Return what is there and what was left out, as text."""
        lines = []
        for task in TASKS:
            kept = [t for t in self.trajectories if t.task == task]
            lost = [d for d in self.damaged if d.task == task]
            if kept or lost:
                diamonds = sum(t.has_diamond for t in kept)
                lines.append(
                    f"{task}: {len(kept)} trajectories, {sum(map(len, kept))} steps, "
                    f"{diamonds} with a diamond; {len(lost)} damaged and left out"
                )
                lines += [f"  {d.name}: {d.reason}" for d in lost]
        if self.strays:
            lines.append(f"ignored: {', '.join(map(str, self.strays))}")
        return "\n".join(lines)

    def map(
        self,
        function: Callable[[Trajectory], _R],
        *,
        only: Sequence[Trajectory] | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Iterator[tuple[Trajectory, _R]]:
        """Yield each trajectory with what a function makes of it, in order, in parallel.

        At most `workers` results wait at a time. A trajectory that turns out to be damaged is
        moved to `damaged`, with a warning, and not yielded.

        Args:
            function: Called with each trajectory, in a thread.
            only: Some of the trajectories; all if None.
            workers: Number of threads; all cores if None.
            progress: Whether to show a progress bar.
        """
        todo = list(self.trajectories if only is None else only)
        for trajectory, result in _attempts(function, todo, workers, progress):
            if isinstance(result, Damage):
                self.damaged.append(result)
                self.trajectories.remove(trajectory)
                warn(f"left out, as it is damaged: {result}")
            else:
                yield trajectory, result


def _attempts(
    function: Callable[[Trajectory], _R],
    trajectories: Sequence[Trajectory],
    workers: int | None,
    progress: bool,
) -> Iterator[tuple[Trajectory, _R | Damage]]:
    """Yield each trajectory with what a function makes of it, or with the damage that it met."""

    def attempt(trajectory: Trajectory) -> _R | Damage:
        try:
            return function(trajectory)
        except DamagedTrajectoryError as error:
            return error.damage

    results = parallel_map(attempt, trajectories, workers)
    shown = tqdm(results, "trajectories", len(trajectories), disable=not progress)
    return zip(trajectories, shown)


def _listed(damaged: Sequence[Damage]) -> str:
    more = [f"… and {len(damaged) - 5} more"] if len(damaged) > 5 else []
    return "\n  ".join([*map(str, damaged[:5]), *more])


def parallel_map(
    function: Callable[[_T], _R], items: Iterable[_T], workers: int | None = None
) -> Iterator[_R]:
    """Yield `function(item)` for each item, in order, computed by threads.

    Threads are enough, as decompressing and decoding release Python's lock. At most `workers`
    items are under way or waiting to be taken, so memory is bounded by what that many need.

    Example:
        >>> list(parallel_map(str.upper, "abc", workers=2))
        ['A', 'B', 'C']
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise ValueError(f"workers={workers}; at least 1 is needed, or None for all cores")
    if workers == 1:
        yield from map(function, items)
        return
    waiting: deque[Any] = deque()
    with ThreadPoolExecutor(workers) as threads:
        try:
            for item in items:
                if len(waiting) == workers:
                    yield waiting.popleft().result()
                waiting.append(threads.submit(function, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def read_bad(path: str | os.PathLike[str]) -> frozenset[str]:
    """Return the names on a list of bad recordings.

    Args:
        path: A text file with a name on each line, or a folder whose files have the names, such as
            `minerl/data/assets/blacklist` of an installed minerl.
    """
    path = Path(path)
    try:
        lines = os.listdir(path) if path.is_dir() else path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"the list of bad recordings {path} cannot be read ({error}); give a text file with a "
            "name on each line, or the folder minerl/data/assets/blacklist of an installed minerl"
        ) from error
    names = (line.partition("#")[0].strip() for line in lines)
    return frozenset(re.sub(r"^v\d+_", "", name) for name in names if name)


def _is_bad(match: re.Match[str], bad: Collection[str]) -> bool:
    """Return whether a recording, or the stream that it is cut from, is on a list."""
    _, stream, start, stop = match.groups()
    return stream in bad or f"{stream}_{start}-{stop}" in bad


def _scan(
    root: str | os.PathLike[str], tasks: Sequence[str] | None, bad: Collection[str] = BAD_STREAMS
) -> tuple[list[Trajectory], list[Damage], list[Path]]:
    root = Path(root)
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        raise ValueError(
            f"the folder {root} {what}; give the folder of the MineRL dataset, which holds "
            f"{', '.join(TASKS)}"
        )
    if root.name in TASKS:
        raise ValueError(f"{root} is the folder of one task; give the one that it is in")
    if isinstance(tasks, str):
        tasks = [tasks]
    if tasks is not None and not tasks:
        raise ValueError(f"no task is named; name some of {', '.join(TASKS)}, or leave it out")
    names = [t for t in TASKS if (root / t).is_dir()] if tasks is None else list(tasks)
    for name in names:
        task_named(name)
        if not (root / name).is_dir():
            raise ValueError(f"{root} has no folder {name}; it has {_content(root)}")
    expected = _stated_version(root)
    found, damaged, strays = [], [], []
    for task in dict.fromkeys(names):
        for path in sorted((root / task).iterdir()):
            match = _NAME.fullmatch(path.name)
            if not path.is_dir():
                strays.append(path)
            elif match is None:
                damaged.append(Damage(task, path.name, "its name is not vN_STREAM_START-END"))
            elif _is_bad(match, bad):
                damaged.append(Damage(task, path.name, "it is on the list of bad recordings"))
            elif (version := int(match[1])) not in FORMATS or version != (expected or version):
                needed = f"{expected}, as the file VERSION says," if expected else "3 or 4"
                damaged.append(
                    Damage(task, path.name, f"it is of version {version}; {needed} is needed")
                )
            else:
                found.append(Trajectory(path, task, version))
    if not found and not damaged:
        raise ValueError(
            f"there are no trajectories in {root}, which holds {_content(root)}; needed are "
            "folders such as MineRLObtainDiamond-v0/v3_NAME_0-999. Give the folder that "
            "MINERL_DATA_ROOT points to"
        )
    return found, damaged, strays


def _content(root: Path) -> str:
    names = sorted(path.name for path in root.iterdir())
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "nothing") + more


def _stated_version(root: Path) -> int | None:
    """Return what the file VERSION says, or None without one (folder names tell it as well)."""
    try:
        text = (root / "VERSION").read_text().strip()
    except FileNotFoundError:
        return None
    if not text.isdecimal() or int(text) not in FORMATS:
        raise ValueError(
            f"{root / 'VERSION'} says {text[:20]!r}; only versions 3 and 4 of the MineRL dataset "
            "can be read"
        )
    return int(text)


def find_trajectories(
    root: str | os.PathLike[str], tasks: Sequence[str] | None = None
) -> list[Trajectory]:
    """Return the trajectories in a folder, by task and name, without opening any.

    Args:
        root: The folder of the dataset (MINERL_DATA_ROOT).
        tasks: Names of tasks; None for all that are there.
    """
    return _scan(root, tasks)[0]


def load_pool(
    root: str | os.PathLike[str],
    tasks: Sequence[str] | None = None,
    *,
    video: Literal["packets", "frames"] | None = "packets",
    workers: int | None = None,
    progress: bool = False,
    bad: str | os.PathLike[str] | None = None,
) -> Pool:
    """Check all trajectories of some tasks in parallel and return the usable ones as one pool.

    The paper aligns and clones from one pool of ObtainDiamond, ObtainIronPickaxe and Treechop.

    Args:
        root: The folder of the dataset (MINERL_DATA_ROOT).
        tasks: Names of tasks; None for all that are there.
        video: How recordings are checked (see `Trajectory.check`).
        workers: Number of threads; all cores if None. The result does not depend on it.
        progress: Whether to show a progress bar.
        bad: A list of bad recordings (see `read_bad`), beside the one that minerl's own loaders
            refuse; they are left out like damaged ones.

    Returns:
        The pool. What is damaged is in `Pool.damaged`, and a warning says how many.

    Example:
        ::

            pool = load_pool("data/minerl")
            print(pool.report())
            demonstrations = [episode_of(t) for t in shortest_with_diamond(pool, 10)]
    """
    Choice(("packets", "frames", None)).check(video, "video")
    if video is not None:
        import_av()
    listed = frozenset(BAD_STREAMS) | (read_bad(bad) if bad is not None else frozenset())
    found, damaged, strays = _scan(root, tasks, listed)
    pool, total = Pool([], damaged, strays), len(found) + len(damaged)
    for trajectory, damage in _attempts(lambda t: t.check(video), found, workers, progress):
        if damage is None:
            pool.trajectories.append(trajectory)
        else:
            damaged.append(damage)
    damaged.sort(key=lambda d: (list(TASKS).index(d.task), d.name))
    if damaged:
        message = (
            f"{len(damaged)} of {total} trajectories in {root} are damaged:\n  {_listed(damaged)}"
        )
        if not pool.trajectories:
            raise ValueError(f"{message}\nNone is left; download the dataset again")
        warn(f"{message}\nThey are left out")
    return pool


def shortest_with_diamond(trajectories: Iterable[Trajectory], n: int = 10) -> list[Trajectory]:
    """Return the n shortest trajectories in which a diamond was mined, as the paper aligns.

    Args:
        trajectories: A pool, or any trajectories.
        n: How many.

    Returns:
        The trajectories, the shortest first.
    """
    given = list(trajectories)
    found = sorted((t for t in given if t.has_diamond), key=lambda t: (len(t), t.name))
    if len(found) >= n:
        return found[:n]
    text = f"{len(found)} of {len(given)} trajectories mined a diamond (a reward of 1024); {n} are "
    if len(found) >= 2:
        text += f"needed: take fewer with n={len(found)}, or give more trajectories"
    else:
        text += "needed: give more trajectories of MineRLObtainDiamond-v0"
    damaged = trajectories.damaged if isinstance(trajectories, Pool) else []
    if damaged:
        text += f". {len(damaged)} were left out as damaged; download them again:\n  "
        text += _listed(damaged)
    raise ValueError(text)
