"""Event logs of agents and processes: chat messages, SWE-agent, τ-bench, XES, CSV, JSON lines.

`read_log` reads files and folders into a `RunLog`; what becomes an event is one choice of the user
(`events`), and so is which runs succeeded (`outcomes`).
"""

from align_rudder.data.logs.events import event_chooser
from align_rudder.data.logs.read import read_log
from align_rudder.data.logs.runs import Entry, LogOptions, Message, Run, RunLog

__all__ = ["Entry", "LogOptions", "Message", "Run", "RunLog", "event_chooser", "read_log"]
