"""`align-rudder logs`: why runs fail."""

from __future__ import annotations

from dataclasses import dataclass

import tyro

from align_rudder.cli.options import OptionalOutput, check_least
from align_rudder.files import check_outputs, write_json
from align_rudder.text import visible

__all__ = ["Logs", "columns_of"]


@dataclass
class Logs:
    """Show why runs fail: what successes have in common, and where failed runs leave it."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Files or folders: chat messages with tool calls, τ-bench, SWE-agent, XES, CSV, JSON lines."""
    output: OptionalOutput = None
    """HTML page to write."""
    events: str = "tool"
    """What becomes an event: tool, tool:ARGUMENT, tool+error, message, joined by +."""
    success: str | None = None
    """Which runs succeeded, such as 'reward >= 1'; default: what the file says."""
    group: str | None = None
    """The field that names the task; default: task_id, instance_id or group. '' for no tasks."""
    column: tuple[str, ...] = ()
    """For CSV: case=NAME, activity=NAME, time=NAME (time= for the order of the lines),
    outcome=NAME, and dates=dmy or dates=mdy where dates do not begin with the year."""
    per_task: bool = False
    """Look for roads of each task by itself, and show each task."""
    strategies: int | None = None
    """Number of roads (of each task); default: find it."""
    json: str | None = None
    """Also write all that was found as JSON to this file."""
    model: str | None = None
    """Also write the model as JSON to this file, for redistribute --turns."""

    def run(self) -> None:
        """Read, fit, write, show."""
        from align_rudder.data.logs import event_chooser, read_log
        from align_rudder.logs import LogModel, report_data
        from align_rudder.logs.text import as_text

        check_outputs(self.output, self.json, self.model, inputs=self.runs)
        check_least(self, strategies=1)
        event_chooser(self.events)
        log = read_log(self.runs, self.success, self.group, columns_of(self.column))
        for note in log.notes:
            print(f"note: {visible(note)}")
        model = LogModel(self.events, per_group=self.per_task, strategies=self.strategies).fit(log)
        data = report_data(model, log)
        if self.model is not None:
            model.save(self.model)
        write_json(self.json, data)
        if self.output is not None:
            from align_rudder.show.logs import write_page

            write_page(self.output, data)
        print(visible(as_text(data, groups=self.per_task), keep="\n"))
        print()
        for path in filter(None, (self.json, self.model)):
            print(f"saved to {path}")
        if self.output is not None:
            print(f"saved to {self.output}; open it in a browser")


def columns_of(given: tuple[str, ...]) -> dict[str, str] | None:
    """Return the columns of a CSV from NAME=COLUMN; None if none was given.

    Example:
        >>> columns_of(("case=Order No",))
        {'case': 'Order No'}
    """
    pairs = [text.partition("=") for text in given]
    for (name, sign, column), text in zip(pairs, given, strict=True):
        if not (name and sign and (column or name in ("time", "outcome"))):
            raise ValueError(f"--column {text!r}: write what=NAME, such as case=order")
    return {name: column for name, _, column in pairs} or None
