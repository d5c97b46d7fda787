"""Ctrl-C while the command line still loads ends it in a line, as it does later."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

__all__ = ["SAID", "loaded"]

SAID = "interrupted; begin again"
_STATUS = 128 + signal.SIGINT


def _end(*_: Any) -> None:
    # At once: libraries that are being imported take an exception for a fault of their own.
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{SAID}\n".encode())
    os._exit(_STATUS)


def loaded() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command(given: list[str]) -> bool:
    """Return whether a process was started as the command, from what it was started with.

    Example:
        >>> _is_command(["python", "bin/align-rudder", "logs"]), _is_command(["python", "-c", ""])
        (True, False)
    """
    return given[1:3] == ["-m", "align_rudder"] or Path(*given[1:2]).stem == "align-rudder"


if _is_command(sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
