"""Logs as CSV files that grow row by row and can be cut back to a checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from align_rudder.files import write_whole

__all__ = ["Log", "read_log"]


class Log:
    """A CSV file; every row is on disk when `write` returns."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, list(columns)

    def cut(self, keep: Callable[[dict[str, str]], bool]) -> None:
        """Keep only some rows; begin the file if there is none."""
        rows = []
        if self.path.exists():
            head = next(csv.reader(_lines(self.path)), self.columns)
            if head != self.columns:
                raise ValueError(
                    f"{self.path} has the columns {', '.join(head)}; {', '.join(self.columns)} are "
                    "needed. Put back a copy, or give another folder (--out)"
                )
            rows = read_log(self.path)
        try:
            rows = [row for row in rows if keep(row)]
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged ({error}); put back a copy") from error
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, lambda file: file.write(text.getvalue().encode()))

    def write(self, row: Sequence[object]) -> None:
        """Append a row."""
        if len(row) != len(self.columns):
            raise ValueError(f"a row of {self.path.name} has {len(self.columns)} entries: {row}")
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)


def _lines(path: str | Path) -> list[str]:
    """Return the whole lines of a file."""
    try:
        with Path(path).open(newline="") as file:
            return [line for line in file if line.endswith("\n")]
    except FileNotFoundError:
        raise ValueError(f"{path} is not there; put back a copy") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged ({error}); put back a copy") from error


def read_log(path: str | Path, needed: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return the rows of a log, all numbers but the phase; a last row cut off is left out.

    Args:
        path: The file.
        needed: Columns that must be there.
    """
    try:
        rows = list(csv.DictReader(_lines(path)))
    except csv.Error as error:
        raise ValueError(f"{path} is damaged ({error}); put back a copy") from error
    if rows and (missing := [name for name in needed if name not in rows[0]]):
        raise ValueError(f"{path} is damaged: it has no column {missing[0]}; put back a copy")
    for number, row in enumerate(rows, 2):
        for name, value in row.items():
            try:
                if name != "phase":
                    float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"line {number} of {path} is damaged: {name} is {value!r}, not a number; put "
                    "back a copy"
                ) from None
    return rows
