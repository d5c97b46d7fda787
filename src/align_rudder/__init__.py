"""Align-RUDDER: reward redistribution from a handful of demonstrations."""

from align_rudder.alignment import Alignment, align

__all__ = ["Alignment", "align"]
