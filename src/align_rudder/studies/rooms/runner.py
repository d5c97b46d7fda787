"""Run the trials that are not there yet, in parallel, each stored as soon as it is finished."""

from __future__ import annotations

import queue as queues
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from align_rudder.baselines.protocol import Protocol
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms.methods import all_methods
from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.store import Store
from align_rudder.studies.rooms.trials import run_trial
from align_rudder.tasks.mdp import TabularMDP, optimal_policy, rollout

__all__ = ["Workers", "run_settings", "warm_up"]

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
        if self.jobs == 0:
            raise ValueError("jobs=0: give the number of trials at once, or -1 for all cores")
        if self.address is not None and self.backend != "ray":
            raise ValueError(f"address={self.address!r} is that of a Ray cluster; add backend ray")
        _check_address(self.address)

    def results(self, jobs: Iterable[Job], total: int) -> Iterator[Any]:
        """Yield what the jobs return, in the order in which they finish."""
        if self.backend == "ray":
            yield from _ray_results(jobs, total, self.jobs, self.address)
        else:
            parallel = Parallel(self.jobs, backend="loky", return_as="generator_unordered")
            with warnings.catch_warnings():
                # Loky replaces a worker that has grown; nothing is lost by it.
                warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
                yield from parallel(delayed(call)(*arguments) for call, arguments in jobs)


def _ray_results(
    jobs: Iterable[Job], total: int, n_jobs: int, address: str | None
) -> Iterator[Any]:
    """Yield results from a Ray cluster; each worker puts its own into a queue at once.

    Joblib's Ray backend returns only when all is done.
    """
    try:
        import ray
        from ray.util.joblib import register_ray
        from ray.util.queue import Queue
    except ImportError as error:
        raise ImportError(
            "the backend ray needs Ray; pip install 'align-rudder[ray]', or use --backend loky"
        ) from error
    register_ray()
    if not ray.is_initialized():
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        except ConnectionError as error:
            raise ValueError(
                f"no Ray cluster answers at {address!r}; start one with `ray start --head`"
            ) from error
    results = Queue()
    failure: list[BaseException] = []

    def work() -> None:
        try:
            with parallel_config(backend="ray"):
                Parallel(n_jobs, batch_size=1)(  # pyright: ignore[reportArgumentType]
                    delayed(_put)(results, *job) for job in jobs
                )
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    received = 0
    while received < total:
        try:
            value = results.get(timeout=1.0)
        except queues.Empty:
            if failure:
                raise failure[0] from None
            continue
        received += 1
        yield value
    thread.join()


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


def _put(results: Any, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    results.put(call(*arguments))


def run_settings(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    store: Store,
    parameters: Callable[[Setting], Mapping[str, Any]],
    protocol: Protocol,
    workers: Workers,
    progress: bool = True,
) -> None:
    """Run what the store does not hold yet.

    Args:
        settings: The settings.
        seeds: The seeds of the trials of each.
        store: An open store.
        parameters: Gives the learner's arguments for a setting.
        protocol: How trials are run and judged.
        workers: Where they run.
        progress: Whether to show a progress bar.
    """
    todo = [(s, seed) for s in settings for seed in seeds if (s, seed) not in store.trials]
    if not todo:
        store.sort()
        return
    folder = store.folder / "networks"
    batches = networks.missing(todo, parameters, folder)
    if not progress:
        print(f"{len(todo)} trials to run in {store.folder}", file=sys.stderr, flush=True)
    warm_up({setting.method for setting, _ in todo}, progress)
    bar = tqdm(
        workers.results(networks.jobs(batches), len(batches)),
        "networks",
        len(batches),
        disable=not progress or not batches,
    )
    for batch, found in bar:
        networks.save(folder, batch, found)

    def jobs() -> Iterator[Job]:
        for setting, seed in todo:
            network = networks.load(folder, setting, seed, parameters(setting))
            yield run_trial, (setting, seed, parameters(setting), protocol, network)

    with tqdm(total=len(todo), desc="trials", disable=not progress) as bar:
        for done, record in enumerate(workers.results(jobs(), len(todo)), 1):
            store.add(record)
            bar.set_postfix_str(f"{record.setting.method}, {record.setting.demos} demonstrations")
            bar.update()
            if not progress and done % max(len(todo) // 10, 1) == 0:
                print(f"{done} of {len(todo)} trials", file=sys.stderr, flush=True)
    store.sort()


def warm_up(methods: Iterable[str], progress: bool = True) -> None:
    """Compile the learners, which takes some seconds each the first time and is cached then."""
    outcomes = [
        [[(1.0, min(s + a, 3), float(s + a == 3), s + a == 3)] for a in (0, 1)] for s in range(4)
    ]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(4)[0], 6)
    rng = np.random.default_rng(0)
    demos = [rollout(mdp, optimal_policy(mdp), rng) for _ in range(2)]
    protocol = Protocol(max_episodes=10)
    learners = {all_methods()[name].learn.__name__: name for name in methods}
    bar = tqdm(learners.values(), "compiling learners (once)", disable=not progress, leave=False)
    for name in bar:
        method = all_methods()[name]
        options = {} if method.network is None else {"model": networks.small(mdp, demos)}
        method.learn(mdp, demos, protocol=protocol, **options)
