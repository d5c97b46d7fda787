"""Being asked to stop: at once, or when the update that runs is finished and saved."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["Stop", "exit_status", "interrupt_on_signal", "stop_on_file", "stop_on_signal"]


class Stop:
    """Whether the training was asked to stop, and by which signal.

    Args:
        file: A file that asks for it too, to tell processes that the signal does not reach.
    """

    number: int = signal.SIGINT

    def __init__(self, file: Path | None = None) -> None:
        self.file, self._asked = file, False

    @property
    def asked(self) -> bool:
        """Whether it was asked to stop."""
        return self._asked or (self.file is not None and self.file.exists())

    @asked.setter
    def asked(self, asked: bool) -> None:
        self._asked = asked
        if asked and self.file is not None:
            self.file.touch()

    def interruption(self) -> KeyboardInterrupt:
        """Return what to raise once it can stop."""
        return KeyboardInterrupt(self.number)


def exit_status(error: KeyboardInterrupt) -> int:
    """Return the exit status of a program that was interrupted: 128 and the number of the signal.

    Example:
        >>> exit_status(KeyboardInterrupt()), exit_status(KeyboardInterrupt(signal.SIGTERM))
        (130, 143)
    """
    return 128 + int(error.args[0] if error.args else signal.SIGINT)


@contextmanager
def stop_on_signal(several: bool = False, file: Path | None = None) -> Iterator[Stop]:
    """Take note of the first SIGINT or SIGTERM; a second one interrupts at once.

    Only the main thread can do so; in another one signals are left as they are.

    Args:
        several: Whether other processes train along: then the second one ends the process, as it
            would wait for the others for ever.
        file: Made when a signal comes, for those who wait for it with `stop_on_file`.
    """
    if file is not None:
        file.unlink(missing_ok=True)
    stop = Stop(file)

    def note(number: int, frame: FrameType | None) -> None:
        if stop.asked and several:
            os._exit(128 + number)
        if stop.asked:
            raise KeyboardInterrupt(number)
        stop.asked, stop.number = True, number
        print("\nstopping once this update is saved; Ctrl-C again to stop at once", file=sys.stderr)

    try:
        with _handled(note):
            yield stop
    finally:
        if file is not None:
            file.unlink(missing_ok=True)


@contextmanager
def stop_on_file(file: Path) -> Iterator[Stop]:
    """Take no note of Ctrl-C, which reaches whoever started this process too; wait for a file."""
    with _handled(lambda number, frame: None, only=("SIGINT",)):
        yield Stop(file)


@contextmanager
def interrupt_on_signal() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at SIGTERM and SIGHUP as well, so that what was begun is ended.

    Only the main thread can do so; in another one signals are left as they are.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    with _handled(interrupt, "SIGHUP"):
        yield


@contextmanager
def _handled(
    handler: Callable[[int, FrameType | None], Any],
    *more: str,
    only: Sequence[str] = ("SIGINT", "SIGTERM"),
) -> Iterator[None]:
    """Handle SIGINT, SIGTERM and others that this system knows; outside the main thread, none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in (*only, *more) if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), handler) for name in names}
    try:
        yield
    finally:
        for name, old in before.items():
            signal.signal(getattr(signal, name), old)
