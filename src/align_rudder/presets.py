"""Sets of parameters of the model that have a name."""

from __future__ import annotations

from typing import Any

__all__ = ["IN_ORDER", "PAPER"]

PAPER: dict[str, Any] = {
    "skip": 0.0,
    "done": False,
    "undo": None,
    "min_conservation": 0.5,
    "baseline": 0.0,
    "weigh_returns": False,
}
"""The model as the paper has it, and version 0.1 had it: events are paid out of order too, success
is no event, nothing is lost, columns are those of a majority, all demonstrations count alike."""

IN_ORDER: dict[str, Any] = {"strategies": 1, "min_conservation": 0.5, "skip": 1e4}
"""For one sequence, given twice: its next event is paid and no other, as none is worth skipping."""
