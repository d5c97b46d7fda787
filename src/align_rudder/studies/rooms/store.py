"""A folder of finished trials: each is on disk as soon as it is finished, and counted once."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from align_rudder.files import write_json, write_whole
from align_rudder.runs.lock import only_here
from align_rudder.studies.rooms.settings import Setting

__all__ = ["Store", "TrialRecord"]


class Record(Protocol):
    """A finished trial as a line of a table."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from every other trial; it is also the order of the file."""
        ...

    def row(self) -> list[str]:
        """Return its values as text."""
        ...

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the values."""
        ...

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the record of a line."""
        ...


class TrialRecord(NamedTuple):
    """A finished trial of a learner.

    Attributes:
        setting: Its setting.
        seed: Its seed.
        episodes: Episodes to the target, or the cap.
        solved: Whether the target was reached.
        steps: Environment steps of learning.
        curve: Mean return at some evaluations, kept for some trials only.
    """

    setting: Setting
    seed: int
    episodes: int
    solved: bool
    steps: int
    curve: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[Setting, int]:
        """Setting and seed."""
        return self.setting, self.seed

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the values."""
        return [*Setting.columns(), "seed", "episodes", "solved", "steps", "curve"]

    def row(self) -> list[str]:
        """Return the values as text."""
        numbers = (self.seed, self.episodes, int(self.solved), self.steps)
        return [*self.setting.values(), *map(str, numbers), " ".join(f"{x:g}" for x in self.curve)]

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a line."""
        return cls(
            Setting.parse(row),
            int(row["seed"]),
            int(row["episodes"]),
            row["solved"] == "1",
            int(row["steps"]),
            tuple(map(float, row["curve"].split())),
        )


R = TypeVar("R", bound=Record)


class Store(Generic[R]):
    """The trials of one configuration, in a folder that one run at a time may write to.

    `trials.csv` has a line for each trial, appended when the trial is finished; a line that a
    killed run left half written is dropped, and its trial run again.

    Args:
        folder: The folder; made if it is not there.
        config: What the trials depend on beside their key. A folder that holds trials of another
            configuration is refused.
        kind: The type of its records.
    """

    def __init__(
        self, folder: str | os.PathLike[str], config: dict[str, Any], kind: type[R]
    ) -> None:
        self.folder, self.config, self.kind = Path(folder), config, kind
        self.trials: dict[tuple[Any, ...], R] = {}
        self._held = ExitStack()

    @property
    def path(self) -> Path:
        """The file of the trials."""
        return self.folder / "trials.csv"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(only_here(self.folder))
            self._check_config()
            self._read()
            self._held = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def _check_config(self) -> None:
        path = self.folder / "config.json"
        if path.exists():
            try:
                found = json.loads(path.read_text())
            except ValueError:
                raise ValueError(
                    f"{path} is damaged; put it back, or give another folder (--out)"
                ) from None
            wanted = json.loads(json.dumps(self.config))
            if found != wanted and not _whole_lines(self.path):
                write_json(path, self.config)  # nothing was finished under the other one
            elif found != wanted:
                raise ValueError(
                    f"{self.folder} holds trials of another configuration: "
                    f"{_difference(found, wanted)}. Give another folder (--out)"
                )
        elif self.path.exists():
            raise ValueError(
                f"{self.folder} has trials.csv but no config.json, so it is not known how they "
                "were made; give another folder (--out)"
            )
        else:
            write_json(path, self.config)

    def _read(self) -> None:
        lines = _whole_lines(self.path)
        expected = ",".join(self.kind.columns())
        if lines and lines[0] != expected:
            raise ValueError(
                f"{self.path} has the columns {lines[0]!r}, expected are {expected!r}; give "
                "another folder (--out)"
            )
        for number, row in enumerate(csv.DictReader(lines), 2):
            try:
                record = self.kind.parse(row)
            except (AttributeError, TypeError, ValueError):
                raise ValueError(
                    f"line {number} of {self.path} is not a trial: {lines[number - 1]!r}; delete "
                    "that line, and the trial is run again"
                ) from None
            self.trials[record.key] = record

    def add(self, record: R) -> None:
        """Put a finished trial on disk."""
        line = _lines([record.row()])
        if not self.trials and not _whole_lines(self.path):
            line = _lines([self.kind.columns()]) + line
        _append(self.path, line)
        self.trials[record.key] = record

    def sort(self) -> None:
        """Write the file anew in order, so that it does not depend on who finished first."""
        if self.trials:
            rows = [self.trials[key].row() for key in sorted(self.trials)]
            text = _lines([self.kind.columns(), *rows])
            write_whole(self.path, lambda file: file.write(text.encode()))


def _lines(rows: Iterable[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _append(path: Path, text: str) -> None:
    """Append text and wait until it is on disk; take back what a full disk took of it."""
    data = text.encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        size = os.fstat(handle).st_size
        try:
            if os.write(handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
        finally:
            os.close(handle)
    except OSError as error:
        raise ValueError(
            f"cannot write to {path}: {error.strerror}. All trials before are safe; make room and "
            "run the same command again"
        ) from error


def _whole_lines(path: Path) -> list[str]:
    """Return the lines of a file; a last one without its end is cut off, in the file too."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return whole.decode(errors="replace").splitlines()


def _difference(found: Any, wanted: Any, name: str = "") -> str:
    """Return the first difference of two configurations, in words."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            if found.get(key) != wanted.get(key):
                return _difference(found.get(key), wanted.get(key), f"{name}.{key}".lstrip("."))
    return f"{name} is {found!r} there and {wanted!r} here"
