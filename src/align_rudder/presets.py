"""Sets of parameters of the model that have a name."""

from __future__ import annotations

__all__ = ["PAPER"]

PAPER = {"skip": 0.0, "done": False}
"""The model as the paper has it: events are paid out of order too, and success is no event."""
