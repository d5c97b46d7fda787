"""Logs as CSV files that grow row by row and can be cut back to a checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

from align_rudder._files import write_whole

__all__ = ["Log", "read_log"]


class Log:
    """A CSV file; every row is on disk when `write` returns."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, list(columns)

    def cut(self, keep: Callable[[dict[str, str]], bool]) -> None:
        """Keep only some rows; begin the file if there is none."""
        rows = [row for row in read_log(self.path) if keep(row)] if self.path.exists() else []
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


def read_log(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a log; a last row that was cut off is left out."""
    with Path(path).open(newline="") as file:
        lines = [line for line in file if line.endswith("\n")]
    return list(csv.DictReader(lines))
