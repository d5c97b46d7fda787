"""Ctrl-C in the middle of a training: the update that runs is finished and saved first."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stop", "stop_on_signal"]


class Stop:
    """Whether the training was asked to stop."""

    asked = False


@contextmanager
def stop_on_signal(several: bool = False) -> Iterator[Stop]:
    """Take note of the first SIGINT or SIGTERM; a second one interrupts at once.

    Only the main thread can do so; in another one signals are left as they are.

    Args:
        several: Whether other processes train along: then the second one ends the process, as it
            would wait for the others for ever.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        if stop.asked and several:
            os._exit(130)
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        print("\nstopping once this update is saved; Ctrl-C again to stop at once", file=sys.stderr)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
