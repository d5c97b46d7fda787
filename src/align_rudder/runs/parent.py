"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

__all__ = ["end_with"]

_SECONDS = 0.5


def end_with(parent: int) -> None:
    """Watch the process that started this one, and send this one SIGTERM when it is gone.

    A killed process cannot end its children, and those of a pool would wait for more work for
    minutes. Where orphans keep their parent's id (Windows), this does nothing.

    Args:
        parent: Its id.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


if __name__ == "__main__":  # as `processes.py` starts commands
    end_with(int(sys.argv.pop(1)))
    runpy.run_module("align_rudder", run_name="__main__", alter_sys=True)
