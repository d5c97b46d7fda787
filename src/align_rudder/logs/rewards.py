"""Turn rewards of many runs: as JSON lines, as plain data, as a table."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from align_rudder.data.logs import RunLog
from align_rudder.files import write_text
from align_rudder.logs.model import LogModel
from align_rudder.logs.turns import outcome_of
from align_rudder.text import short

__all__ = ["TurnRow", "TurnTable"]

_MOST = 20


class TurnRow(NamedTuple):
    """The turn rewards of one run.

    Attributes:
        run: What it is called.
        group: Its task; None if it has none.
        ret: Its return.
        rewards: A number for each turn of the assistant, None for other messages.
    """

    run: str
    group: str | None
    ret: float
    rewards: list[float | None]


@dataclass(frozen=True)
class TurnTable:
    """The turn rewards of the runs of a log.

    Attributes:
        rows: One for each run that has an outcome and a turn.
        faults: What was left out, and why, a line each.
    """

    rows: tuple[TurnRow, ...]
    faults: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: LogModel, log: RunLog) -> Self:
        """Return what a model gives the turns of a log; `ValueError` if no run can have any."""
        rows, faults = [], list(log.faults)
        for run in log.runs:
            try:
                rewards = model.turn_rewards(run)
            except ValueError as error:
                faults.append(str(error))
                continue
            rows.append(TurnRow(run.name, run.group, outcome_of(run), rewards))
        if not rows:
            raise ValueError(f"no run has turn rewards: {faults[0] if faults else 'there is none'}")
        return cls(tuple(rows), tuple(faults))

    def data(self) -> list[dict[str, Any]]:
        """Return the rows as plain data: {run, group, return, rewards}."""
        return [
            {"run": row.run, "group": row.group, "return": row.ret, "rewards": row.rewards}
            for row in self.rows
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the same as JSON lines, one run each."""
        write_text(path, "".join(json.dumps(row) + "\n" for row in self.data()))

    def __str__(self) -> str:
        lines = [
            f"{'turns':>5}  {'return':>8}  {'least':>8}  {'at':>4}  {'most':>8}  {'at':>4}  run"
        ]
        for row in self.rows[:_MOST]:
            numbers = [(r, i) for i, r in enumerate(row.rewards) if r is not None]
            (least, at), (most, where) = min(numbers, default=(0, 0)), max(numbers, default=(0, 0))
            lines.append(
                f"{len(numbers):>5}  {row.ret:>8.4g}  {least:>8.3f}  {at:>4}  {most:>8.3f}  "
                f"{where:>4}  {short(row.run, 60)}"
            )
        if len(self.rows) > _MOST:
            lines.append(f"… and {len(self.rows) - _MOST} more runs")
        return "\n".join(lines)
