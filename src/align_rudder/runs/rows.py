"""Files that grow line by line: every line is on disk when it is added, a torn one is dropped."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from align_rudder.files import Anything, Each, parse_json, read_text, shown, write_whole

__all__ = ["JsonRows", "Rows", "read_rows"]

TEXT = ("phase",)


class Rows:
    """A CSV file with a header and a row for everything that is finished.

    Args:
        path: The file; there need not be one yet.
        columns: Names of the columns.
        text: Columns that hold text; all others hold numbers.

    Example:
        ::

            rows = Rows("updates.csv", ["phase", "updates", "loss"])
            rows.append(["agents", 1, 0.25])        # on disk when it returns
            rows.keep(lambda row: int(row["updates"]) <= 1)
    """

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str], text: Collection[str] = TEXT
    ) -> None:
        self.path, self.columns, self.text = Path(path), list(columns), text

    def read(self) -> list[dict[str, str]]:
        """Return the rows; none if there is no file."""
        head, rows = _parsed(self.path, self.text) if self.path.exists() else ([], [])
        if head and head != self.columns:
            raise ValueError(
                f"{self.path} has the columns {', '.join(head)}; {', '.join(self.columns)} are "
                "needed. Put back a copy, or give another folder (--out)"
            )
        if head:
            self._check_torn()
        return rows

    def _check_torn(self) -> None:
        """Refuse what comes after the last whole line, unless it may be the beginning of a row.

        That is dropped, as a process that is killed leaves it; anything else is not ours to drop.
        """
        data = self.path.read_bytes()
        number, torn = data.count(b"\n") + 1, data[data.rfind(b"\n") + 1 :]
        text = torn.decode("utf-8", errors="replace").removesuffix("\ufffd")
        values = next(csv.reader([text]), []) if text.isprintable() else None
        known = zip(self.columns, (values or [])[:-1])
        if (
            values is None
            or "\ufffd" in text
            or len(values) > len(self.columns)
            or any(name not in self.text and not _is_number(value) for name, value in known)
        ):
            raise ValueError(
                f"line {number} of {self.path} has no end and is not the beginning "
                f"of a row ({shown(torn)}); delete it, or put back a copy"
            )

    def append(self, row: Sequence[object]) -> None:
        """Add a row; it is on disk when this returns, whole or not at all."""
        _append(self.path, self._csv([row]), self._csv([self.columns]))

    def keep(self, predicate: Callable[[dict[str, str]], bool]) -> None:
        """Keep only some rows; begin the file if there is none."""
        rows = self.read()
        try:
            rows = [row for row in rows if predicate(row)]
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged ({error}); put back a copy") from error
        self.write([row[name] for name in self.columns] for row in rows)

    def write(self, rows: Iterable[Sequence[object]]) -> None:
        """Write the whole file anew."""
        data = self._csv([self.columns, *rows])
        write_whole(self.path, lambda file: file.write(data))

    def _csv(self, rows: Iterable[Sequence[object]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {self.path.name} has {len(self.columns)} entries: {row}"
                )
            writer.writerow(row)
        return text.getvalue().encode()


class JsonRows:
    """A file of JSON lines, one object for everything that is finished."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> list[dict[str, Any]]:
        """Return the objects; none if there is no file."""
        out = []
        for number, line in enumerate(_whole_lines(self.path) if self.path.exists() else [], 1):
            try:
                out.append(Each(Anything()).check(parse_json(line, constants=True), "it"))
            except ValueError as error:
                raise ValueError(
                    f"line {number} of {self.path} is damaged ({error}); put back a copy"
                ) from None
        return out

    def append(self, row: dict[str, Any]) -> None:
        """Add an object; it is on disk when this returns, whole or not at all."""
        _append(self.path, (json.dumps(row) + "\n").encode())


def read_rows(
    path: str | os.PathLike[str], needed: Sequence[str] = (), text: Collection[str] = TEXT
) -> list[dict[str, str]]:
    """Return the rows of a CSV file whose columns are not known.

    Args:
        path: The file.
        needed: Columns that must be there.
        text: Columns that hold text; all others hold numbers.
    """
    head, rows = _parsed(Path(path), text)
    if missing := [name for name in needed if name not in head]:
        raise ValueError(f"{path} is damaged: it has no column {missing[0]}; put back a copy")
    return rows


def _parsed(path: Path, text: Collection[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and rows of a CSV file; all columns but those of text hold numbers."""
    try:
        head, *values = [row for row in csv.reader(_whole_lines(path)) if row] or [[]]
    except csv.Error as error:
        raise ValueError(f"{path} is damaged ({error}); put back a copy") from error
    for number, row in enumerate(values, 2):
        wrong = f"it has {len(row)} values for {len(head)} columns" if len(row) != len(head) else ""
        for name, value in zip(head, row):
            if name not in text and not _is_number(value):
                wrong = wrong or f"{name} is {value!r}, not a number"
        if wrong:
            raise ValueError(f"line {number} of {path} is damaged: {wrong}; put back a copy")
    return head, [dict(zip(head, row, strict=True)) for row in values]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole_lines(path: Path) -> list[str]:
    """Return the lines of a file without a last one that was not written to its end."""
    try:
        text = read_text(path, whole_lines=True)
    except FileNotFoundError:
        raise ValueError(f"{path} is not there; put back a copy") from None
    return text.split("\n")[:-1]


def _append(path: Path, line: bytes, head: bytes = b"") -> None:
    """Append a line, after the head of a new file, and wait for the disk.

    What a killed process left of a line is cut off first; what a full disk took of this one is
    taken back.
    """
    try:
        with open(path, "a+b", buffering=0) as file:
            size = _cut_to_whole_lines(file)
            data = line if size else head + line
            try:
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(size)
                raise
    except OSError as error:
        raise ValueError(
            f"cannot write to {path}: {error.strerror}. All that was finished before is safe; make "
            "room and run the same command again"
        ) from error


def _cut_to_whole_lines(file: io.FileIO) -> int:
    """Cut off a last line that was not written to its end; return the size of what is left."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if size and file.read(1) != b"\n":
        file.seek(0)
        size = file.readall().rfind(b"\n") + 1
        file.truncate(size)
    return size
