"""The folder of a training: agents, what is under way, recordings, crashes.

`cloned-K.npz` and `agent-K.npz` are finished sub-agents, `unfinished-….npz` what a training goes on
from, `candidate-K-EPOCH.npz` clones that are still to be judged, `replays….npz` recordings.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
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
from align_rudder.minerl.crashes import Crash, Restarts, recovery_of
from align_rudder.minerl.process import MineRLServerError
from align_rudder.runs.checkpoint import Checkpoint, advised, load_tree, notes_of, save_tree
from align_rudder.runs.interrupt import Stop
from align_rudder.runs.rows import Rows

__all__ = ["Games", "Place", "crash_notes"]

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

    The first game that is opened must start: if it does not, it may not be installed. Of later
    ones a crash while they start is a pause, as any other.

    Args:
        open: Opens one. Where several processes train, each of them opens its own.
        n: How many play at the same time in each training.
        restarts: How often a start that failed is tried again.

    Attributes:
        started: Whether a game has started.

    Example:
        ::

            games = Games(partial(open_game, model, module="scripted"), n=4)
    """

    def __init__(
        self, open: Callable[[], TrackedEnv], n: int = 1, restarts: Restarts | None = None
    ) -> None:
        self.open, self.n, self.restarts = open, n, restarts or Restarts()
        self.started = False

    def check(self) -> None:
        """Start a game and close it, before any work is done: it may not be there."""
        self.open().env.close()
        self.started = True

    @contextmanager
    def playing(self, crashes: Path) -> Iterator[list[TrackedEnv]]:
        """Open the environments, for as long as this lasts.

        Args:
            crashes: The file into which each crash of a game is written when it happens.
        """
        note = crash_notes(crashes)
        with ExitStack() as stack:
            envs: list[TrackedEnv] = []
            for i in range(self.n):
                envs.append(self._opened(partial(note, i)))
                stack.callback(envs[-1].env.close)
            yield envs

    def _opened(self, note: Callable[[Crash], None]) -> TrackedEnv:
        """Return a game, started as often as needed."""
        failed = 0
        while True:
            try:
                env = self.open()
                break
            except MineRLServerError as error:
                failed += 1
                if not self.started or failed >= self.restarts.in_a_row:
                    raise
                line = str(error).splitlines()[0]
                note(Crash(failed, failed, -1, 0, line))
                pause = self.restarts.pause(failed)
                _logger.warning("a game crashed while it started; again in %g s: %s", pause, line)
                time.sleep(pause)
        self.started = True
        if (recovery := recovery_of(env.env)) is not None:
            recovery.crashes, recovery.on_crash = failed, note
        return env


def crash_notes(path: Path) -> Callable[[int, Crash], None]:
    """Return what writes a crash of the game of an environment into a file, when it happens."""
    columns = ["time", "environment", *Crash._fields]
    rows, lock = Rows(path, columns, ("time", "reason")), Lock()

    def note(i: int, crash: Crash) -> None:
        with lock:
            rows.append([datetime.now().isoformat(timespec="seconds"), i, *crash])

    return note
