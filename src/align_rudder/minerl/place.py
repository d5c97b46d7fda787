"""The folder of a training: agents, what is under way, recordings, crashes.

`cloned-K.npz` and `agent-K.npz` are finished sub-agents, `unfinished-….npz` what a training goes on
from, `candidate-K-EPOCH.npz` clones that are still to be judged, `replays….npz` recordings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import jax
from tqdm import tqdm

from align_rudder.hierarchy.external import TrackedEnv
from align_rudder.hierarchy.replays import Replays
from align_rudder.minerl.crashes import Crash, recovery_of
from align_rudder.runs.checkpoint import Checkpoint, advised, load_tree, notes_of, save_tree
from align_rudder.runs.interrupt import Stop
from align_rudder.runs.rows import Rows

__all__ = ["Games", "Place", "write_crashes"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """The folder of a training, and what its files belong to.

    Attributes:
        folder: The folder.
        configuration: What its files belong to; those of another one are refused.
        seed: Seed of the training.
        n: Number of sub-tasks.
        progress: Whether to show progress bars.
    """

    folder: Path
    configuration: Mapping[str, Any]
    seed: int
    n: int
    progress: bool = False

    @property
    def stop_file(self) -> Path:
        """The file that tells other processes to stop."""
        return self.folder / ".stop"

    def key(self, *path: int) -> jax.Array:
        """Return a random key of its own for something."""
        key = jax.random.key(self.seed)
        for part in path:
            key = jax.random.fold_in(key, part)
        return key

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return (self.folder / name).is_file()

    def load(self, name: str, like: Any) -> tuple[Any, dict[str, Any]]:
        """Return the agent in a file, and its notes."""
        with advised():
            return load_tree(self.folder / name, like, self.configuration)

    def save(self, name: str, agent: Any, notes: Mapping[str, Any] | None = None) -> None:
        """Save an agent."""
        save_tree(self.folder / name, agent, self.configuration, notes)

    def checkpoint(
        self, name: str, stop: Stop, beside: Callable[[], None] | None = None
    ) -> Checkpoint:
        """Return the checkpoint of the agent that will have this name."""
        path = self.folder / f"unfinished-{name}"
        return Checkpoint(path, self.configuration, stop, beside=beside)

    def check(self) -> None:
        """Raise a `ValueError` for a file that is damaged, before hours go into others."""
        for kind in ("cloned", "agent", "manager", "unfinished", "candidate"):
            for path in sorted(self.folder.glob(f"{kind}*.npz")):
                notes_of(path)
        for path in sorted(self.folder.glob("replays*.npz")):
            self.replays(path.name)

    def replays(self, name: str = "replays.npz") -> Replays:
        """Return recordings; none if there is no such file."""
        with advised():
            there = self.has(name)
            return Replays.load(self.folder / name, self.n) if there else Replays(self.n)

    def save_replays(self, replays: Replays, name: str = "replays.npz") -> None:
        """Save recordings, if there are any."""
        if any(replays.kept):
            replays.save(self.folder / name)

    def drop(self, pattern: str) -> None:
        """Delete files that are no longer needed."""
        for path in self.folder.glob(pattern):
            path.unlink()

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """Show a bar; what is given is called with how far it is and a word on how it goes."""
        with tqdm(total=total, desc=what, unit_scale=True, disable=not self.progress) as bar:

            def show(at: int, note: str) -> None:
                bar.update(at - bar.n)
                bar.set_postfix_str(note)

            yield show


class Games:
    """Environments to fine-tune in, opened where they are needed and closed afterwards.

    Args:
        open: Opens one. Where several processes train, each of them opens its own.
        n: How many play at the same time in each training.

    Example:
        ::

            games = Games(partial(open_game, model, module="scripted"), n=4)
    """

    def __init__(self, open: Callable[[], TrackedEnv], n: int = 1) -> None:
        self.open, self.n = open, n

    @contextmanager
    def playing(self, crashes: Path) -> Iterator[list[TrackedEnv]]:
        """Open the environments, for as long as this lasts.

        Args:
            crashes: The file into which each crash of a game is written when it happens.
        """
        with ExitStack() as stack:
            envs: list[TrackedEnv] = []
            for _ in range(self.n):
                envs.append(self.open())
                stack.callback(envs[-1].env.close)
            write_crashes(crashes, envs)
            yield envs


def write_crashes(path: Path, envs: Sequence[TrackedEnv]) -> None:
    """Have every crash of the game written into a file, at the moment when it happens."""
    columns = ["time", "environment", *Crash._fields]
    rows, lock = Rows(path, columns, ("time", "reason")), Lock()

    def note(i: int, crash: Crash) -> None:
        with lock:
            rows.append([datetime.now().isoformat(timespec="seconds"), i, *crash])

    for i, env in enumerate(envs):
        if (recovery := recovery_of(env.env)) is not None:
            recovery.on_crash = partial(note, i)
