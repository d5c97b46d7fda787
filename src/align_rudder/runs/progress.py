"""How long work shows that it goes on: bars in a terminal, lines elsewhere."""

from __future__ import annotations

import logging
import sys

__all__ = ["bars_or_lines"]


def bars_or_lines() -> bool:
    """Return whether bars can be shown; where they cannot, have what is logged printed as lines."""
    if sys.stderr.isatty():
        return True
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("align_rudder").setLevel(logging.INFO)
    return False
