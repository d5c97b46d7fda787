"""Finished trials of a study: each is on disk as soon as it is finished, and counted once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from align_rudder.files import Anything, Kind, Many, Maybe, Number, Whole, read_json, write_json
from align_rudder.runs.claim import claim
from align_rudder.runs.lock import only_here
from align_rudder.runs.progress import tracked
from align_rudder.runs.rows import Rows
from align_rudder.runs.workers import Job, Workers

__all__ = [
    "FORMAT",
    "TRIALS",
    "Record",
    "Scope",
    "Trials",
    "episodes_fault",
    "open_trials",
    "values_in",
]

FORMAT = 1
"""Raised when learners change, so that old and new trials are not mixed."""

TRIALS = Whole(1, 100_000)
"""How many trials a setting may have."""

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Scope:
    """How much of a study is run, and where.

    Attributes:
        trials: Trials of each setting; None for as many as the study has.
        methods: Methods; all of the study if empty.
        demos: Numbers of demonstrations; those of the study if empty.
        workers: Where trials run.
        progress: Whether to show progress bars; if not, lines.
    """

    trials: int | None = None
    methods: Sequence[str] = ()
    demos: Sequence[int] = ()
    workers: Workers = field(default_factory=Workers)
    progress: bool = True

    def __post_init__(self) -> None:
        Maybe(TRIALS).check(self.trials, "trials")


class Record(Protocol):
    """A finished trial as a row of a table.

    Attributes:
        COLUMNS: Names of its values, and what each may be.
    """

    COLUMNS: ClassVar[Mapping[str, Kind]]

    @property
    def key(self) -> Key:
        """What tells it from every other trial; it is also the order of the file."""
        ...

    def row(self) -> list[str]:
        """Return its values as text."""
        ...

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the record of a row."""
        ...

    def fault(self, config: Mapping[str, Any]) -> str:
        """Return why no trial of a configuration ends like this; "" if one may."""
        ...


def episodes_fault(
    episodes: int, solved: bool, steps: int, protocol: Mapping[str, Any] | None
) -> str:
    """Return why no trial that counts episodes ends like this; "" if one may.

    Args:
        episodes: Episodes to the target, or the cap.
        solved: Whether the target was reached.
        steps: Environment steps of learning.
        protocol: How it was run and judged, as a folder's config.json has it; None if unknown.

    Example:
        >>> protocol = {"max_episodes": 3000, "evaluate_every": 10}
        >>> episodes_fault(30, True, 700, protocol)
        ''
        >>> episodes_fault(4000, True, 90_000, protocol)
        'episodes is 4000, above the cap of 3000'
    """
    if steps < 1:
        return f"steps is {steps}, and every trial takes some"
    if protocol is None:
        return ""
    cap, every = protocol["max_episodes"], protocol["evaluate_every"]
    if episodes > cap:
        return f"episodes is {episodes}, above the cap of {cap}"
    if not solved and episodes != cap:
        return f"it is not solved, and episodes is {episodes} instead of the cap of {cap}"
    if solved and (episodes < every or episodes % every):
        return f"it is solved after {episodes} episodes, and is judged after every {every}"
    if solved and steps < episodes:
        return f"it has {steps} steps in {episodes} episodes"
    return ""


R = TypeVar("R", bound=Record)
_READERS: dict[type[Kind], Callable[[str], Any]] = {Whole: int, Number: float}


def values_in(row: Mapping[str, str], columns: Mapping[str, Kind]) -> list[Any]:
    """Return the values of a row of text, or raise a `ValueError` for one not of its kind."""
    return [
        kind.check(_READERS.get(type(kind), str)(row[name]), name) for name, kind in columns.items()
    ]


class Trials(Generic[R]):
    """The trials in a folder, one row of `trials.csv` each.

    Args:
        folder: The folder.
        kind: The type of its records.

    Attributes:
        found: The records by their keys.
    """

    def __init__(self, folder: Path, kind: type[R]) -> None:
        self.folder = folder
        # A record checks its own values, so to the file they are all text.
        self._rows = Rows(folder / "trials.csv", list(kind.COLUMNS), text=kind.COLUMNS)
        self.found: dict[Key, R] = {}
        self._lines: dict[Key, int] = {}
        for number, row in enumerate(self._rows.read(), 2):
            try:
                record = kind.parse(row)
            except ValueError as error:
                raise ValueError(
                    f"line {number} of {self._rows.path} is not a trial ({error}); delete that "
                    "line, and the trial is run again"
                ) from None
            if self.found.get(record.key, record) != record:
                raise ValueError(
                    f"lines {self._lines[record.key]} and {number} of {self._rows.path} are the "
                    "same trial with different ends; delete both, and it is run again"
                )
            self.found[record.key], self._lines[record.key] = record, number

    def check(self, config: Mapping[str, Any]) -> None:
        """Raise a `ValueError` for a stored trial that cannot have ended as its row says."""
        for key, number in self._lines.items():
            if fault := self.found[key].fault(config):
                raise ValueError(
                    f"line {number} of {self._rows.path} is no trial of this study ({fault}); "
                    "delete that line, and the trial is run again"
                )

    def add(self, record: R) -> None:
        """Put a finished trial on disk."""
        self._rows.append(record.row())
        self.found[record.key] = record

    def sort(self) -> None:
        """Write the file anew in order, so that it does not depend on who finished first."""
        if self.found:
            self._rows.write(self.found[key].row() for key in sorted(self.found))

    def complete(
        self,
        keys: Iterable[Key],
        job: Callable[..., Job],
        workers: Workers,
        progress: bool = True,
        prepare: Callable[[list[Key]], None] = lambda keys: None,
        check: Callable[[list[Key]], None] = lambda keys: None,
    ) -> None:
        """Run the trials that are not there yet.

        Args:
            keys: The trials that are wanted.
            job: Returns what runs a trial, called with the entries of its key.
            workers: Where they run.
            progress: Whether to show progress bars; if not, lines.
            prepare: What must be done before trials can run, called with those that are missing.
            check: Raises an error if they cannot be run here, before anything is said or done.
        """
        began, todo = time.monotonic(), [key for key in keys if key not in self.found]
        if todo:
            check(todo)
            if not progress:
                print(f"{len(todo)} trials to run in {self.folder}", file=sys.stderr, flush=True)
            prepare(todo)
            results = workers.results(job(*key) for key in todo)
            for record in tracked(results, "trials", len(todo), progress):
                self.add(record)
            self._note_time(len(todo), time.monotonic() - began, workers)
        self.sort()

    def _note_time(self, trials: int, seconds: float, workers: Workers) -> None:
        """Keep how long the trials of this call took."""
        path = self.folder / "time.json"
        try:
            calls = list(read_json(path, Many(Anything()))) if path.exists() else []
        except ValueError:
            calls = []  # of no other use
        calls.append(
            {
                "trials": trials,
                "seconds": round(seconds, 1),
                "jobs": workers.jobs,
                "backend": workers.backend,
                "cores": os.cpu_count(),
            }
        )
        write_json(path, calls)


@contextmanager
def open_trials(
    folder: str | os.PathLike[str], config: dict[str, Any], kind: type[R]
) -> Iterator[Trials[R]]:
    """Open a folder of trials, made if it is not there, for this process alone.

    Args:
        folder: The folder.
        config: What the trials depend on beside their key; a folder that holds trials of another
            configuration is refused.
        kind: The type of its records.
    """
    with only_here(folder):
        trials = Trials(Path(folder), kind)
        claim(folder, config, empty=not trials.found)
        trials.check(config)
        yield trials
