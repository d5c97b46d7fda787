"""A training under way, kept in a file, so that it goes on where it was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from align_rudder.runs.checkpoint import OtherConfigurationError, load_tree, save_tree
from align_rudder.runs.interrupt import Stop

__all__ = ["Unfinished", "advised"]


_MADE_AGAIN = "Delete that file: the same command makes it again and keeps all others"


@contextmanager
def advised(advice: str = _MADE_AGAIN) -> Iterator[None]:
    """Say of a damaged file how to go on."""
    try:
        yield
    except OtherConfigurationError:
        raise
    except ValueError as error:
        raise ValueError(f"{error}. {advice}") from error


class Unfinished:
    """The file of a training that is not finished.

    Args:
        path: The file.
        configuration: What it belongs to; another one is refused.
        stop: Whether the training was asked to stop: then it is saved, and left.
        every: Seconds after which it is saved in any case.
        beside: Called with each saving, to save what else is needed.
    """

    def __init__(
        self,
        path: Path,
        configuration: Mapping[str, Any],
        stop: Stop,
        every: float = 300.0,
        beside: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.configuration, self.stop = path, configuration, stop
        self.every, self.beside = every, beside
        self._saved = time.monotonic()

    def load(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
        """Return the tree and notes that were saved last, or None."""
        if not self.path.is_file():
            return None
        with advised():
            return load_tree(self.path, like, self.configuration)

    def offer(self, tree: Any, notes: Mapping[str, Any]) -> None:
        """Save if it is time to; leave with `KeyboardInterrupt` if that was asked for."""
        if not self.stop.asked and time.monotonic() - self._saved < self.every:
            return
        save_tree(self.path, tree, self.configuration, notes)
        if self.beside is not None:
            self.beside()
        self._saved = time.monotonic()
        if self.stop.asked:
            raise KeyboardInterrupt

    def remove(self) -> None:
        """Delete the file: what it led to is saved."""
        self.path.unlink(missing_ok=True)
