"""Chains of our own commands, run as child processes, several at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from align_rudder.runs.interrupt import interrupt_on_signal

__all__ = ["Chain", "run_chains", "run_or_exit", "shared_compilation"]

Chain = Sequence[Sequence[str]]
"""Arguments of `align-rudder`, one command after the other; a failed one ends the chain."""


def run_chains(chains: Sequence[Chain], jobs: int, seconds: float = float("inf")) -> int:
    """Run chains of commands, so many at once.

    They share what JAX compiles, so that trainings which differ in their seed compile once. When
    this process is asked to stop, or killed, so are the commands under way: those that keep
    checkpoints save one.

    Args:
        chains: The chains.
        jobs: Commands at once.
        seconds: Time after which what still runs is stopped.

    Returns:
        How many commands failed.

    Raises:
        KeyboardInterrupt: If it was stopped or the time was over; all commands have ended then.
    """
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: at least 1 is needed")
    waiting = [list(chain) for chain in chains if chain]
    running: dict[subprocess.Popen[bytes], list[Sequence[str]]] = {}
    begun, failed = time.monotonic(), 0
    with interrupt_on_signal(), shared_compilation():
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    first, *rest = waiting.pop(0)
                    print(f"{time.monotonic() - begun:6.0f} s  {' '.join(first)}", flush=True)
                    running[_start(first)] = rest
                time.sleep(0.2)
                if time.monotonic() - begun > seconds:
                    raise KeyboardInterrupt
                for process in [process for process in running if process.poll() is not None]:
                    rest = running.pop(process)
                    failed += process.returncode != 0
                    if rest and process.returncode == 0:
                        waiting.insert(0, rest)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
    return failed


def run_or_exit(chains: Sequence[Chain], jobs: int, seconds: float = float("inf")) -> None:
    """Run chains of commands as a script does: end it when some failed or all were stopped."""
    try:
        if failed := run_chains(chains, jobs, seconds):
            sys.exit(f"{failed} commands failed")
    except KeyboardInterrupt:
        sys.exit("stopped; run it again to go on")
    except ValueError as error:
        sys.exit(str(error))


@contextmanager
def shared_compilation() -> Iterator[None]:
    """Have processes that are started meanwhile share what JAX compiles, and one GPU's memory."""
    shared = TemporaryDirectory(prefix="align-rudder-compiled-", ignore_cleanup_errors=True)
    before = dict(os.environ)
    with shared as cache:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", cache)
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command, in a session of its own, so that Ctrl-C reaches it once, from here."""
    program = [sys.executable, "-m", "align_rudder.runs.parent", str(os.getpid()), *command]
    return subprocess.Popen(program, start_new_session=True)
