"""Many jobs at once, in processes on this machine or on a Ray cluster."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from align_rudder.files import Whole
from align_rudder.runs.parent import end_with

__all__ = ["Job", "Workers"]

_MOST = 10_000  # more than any machine runs at once
Job = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Workers:
    """Where trials run.

    Attributes:
        jobs: How many at once; -1 for one on each core.
        backend: "loky", processes on this machine, or "ray", a Ray cluster.
        address: Address of a running Ray cluster; None for one on this machine alone.
    """

    jobs: int = -1
    backend: Literal["loky", "ray"] = "loky"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.jobs != -1 and isinstance(self.jobs, int) and self.jobs < 1:
            raise ValueError(
                f"jobs={self.jobs}: give the number of trials at once, or -1 for all cores"
            )
        Whole(-1, _MOST).check(self.jobs, "jobs")
        if self.address is not None and self.backend != "ray":
            raise ValueError(f"address={self.address!r} is that of a Ray cluster; add backend ray")
        _check_address(self.address)

    def results(self, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield what the jobs return, in the order in which they finish."""
        if self.backend == "ray":
            yield from _ray_results(jobs, self.jobs, self.address)
            return
        parallel = Parallel(
            self.jobs,
            backend="loky",
            return_as="generator_unordered",
            initializer=end_with,
            initargs=(os.getpid(),),
        )
        with warnings.catch_warnings():
            # Loky replaces a worker that has grown; nothing is lost by it.
            warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
            # When work is interrupted, what is under way is given up.
            warnings.filterwarnings("ignore", r"\d+ tasks (which|have been)", UserWarning)
            try:
                yield from parallel(delayed(call)(*arguments) for call, arguments in jobs)
            except TerminatedWorkerError as error:
                raise RuntimeError(
                    "a worker process was killed, by someone or by the system where memory ran "
                    "out: what is finished is kept, the same command goes on from there; where it "
                    "happens again, give fewer at once (--jobs 1)"
                ) from error


def _ray_results(jobs: Iterable[Job], n_jobs: int, address: str | None) -> Iterator[Any]:
    try:
        import ray
        from ray.exceptions import RayTaskError
    except ImportError as error:
        raise ImportError(
            "the backend ray needs Ray; in a clone: pip install '.[ray]', or use --backend loky"
        ) from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        except ConnectionError as error:
            raise ValueError(
                f"no Ray cluster answers at {address!r}; start one with `ray start --head`"
            ) from error
    run = ray.remote(_run)
    most = n_jobs if n_jobs > 0 else int(ray.cluster_resources()["CPU"])
    running: list[Any] = []
    waiting = iter(jobs)
    while True:
        running += [run.remote(*job) for job in islice(waiting, most - len(running))]
        if not running:
            return
        done, running = ray.wait(running)
        try:
            yield ray.get(done[0])
        except RayTaskError as error:
            raise error.cause from None


def _run(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return call(*arguments)


def _check_address(address: str | None) -> None:
    """Ask whether anyone answers at host:port; Ray itself would wait for a quarter of an hour."""
    host, _, port = (address or "").rpartition(":")
    if host and "/" not in host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise ValueError(
                f"no Ray cluster answers at {address!r} ({error}); start one: `ray start --head`"
            ) from error
