"""Time and quality of the native alignment beside scikit-bio and ClustalW, on the same data.

    python benchmarks/alignment.py --json alignment.json

Every engine runs in a process of its own, warmed up on a small set, and is stopped after
`--timeout` seconds. The time is the best of a few runs where a run is quick.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import rivals
import suite
import tyro

import align_rudder
from align_rudder import kernels
from align_rudder.scoring import background, scoring_matrix

SIZES = [(10, 500), (100, 100), (100, 1000)]  # sequences, events in each
LARGEST = SIZES[-1]


@dataclass
class Arguments:
    """Compare the native alignment with scikit-bio and ClustalW."""

    quick: bool = False
    """Leave out the rivals on the largest set."""
    timeout: float = 600.0
    """Seconds after which a run is stopped and reported as longer."""
    json: Path | None = None
    """File to write the numbers to."""


@dataclass
class Result:
    """One engine on one set; the numbers are None where it was stopped."""

    n_sequences: int
    n_events: int
    engine: str
    seconds: float | None = None
    times_native: float | None = None
    sum_of_pairs: float | None = None
    share_of_native: float | None = None
    columns: int | None = None
    recovery: float | None = None


def native(sequences: list[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    return align_rudder.align(sequences, scoring=matrix).matrix


ENGINES: dict[str, Callable[[list[np.ndarray], np.ndarray], np.ndarray]] = {
    "native": native,
    "scikit-bio": rivals.scikit_bio,
    "ClustalW": rivals.clustalw_full,
}


def data(n_sequences: int, n_events: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return demonstrations over 20 symbols, a fifth of the events key events, truth and scores."""
    n_keys, drop = n_events // 5, 0.1
    kept = n_keys * (1 - drop)
    rng = np.random.default_rng([n_sequences, n_events])
    sequences, truth = suite.generate(
        rng,
        n_sequences,
        n_keys,
        10,
        (n_events - kept) / (kept + 1),
        n_key_symbols=10,
        drop=drop,
        shared_noise=0.2,
    )
    return sequences, truth, scoring_matrix("inverse", background(sequences, 20))


def _work(connection: Connection, engine: str, size: tuple[int, int]) -> None:
    os.setsid()  # a group of its own, so that programs it starts are stopped with it
    align = ENGINES[engine]
    sequences, _, matrix = data(3, 100)
    align(sequences, matrix)
    sequences, _, matrix = data(*size)
    connection.send("ready")
    times: list[float] = []
    while len(times) < 5 and sum(times) < 5.0:
        start = time.perf_counter()
        aligned = align(sequences, matrix)
        times.append(time.perf_counter() - start)
    connection.send((min(times), aligned))


def run(engine: str, size: tuple[int, int], timeout: float) -> tuple[float, np.ndarray] | None:
    """Return the seconds an engine needs for a set and its alignment, None if it was stopped."""
    context = mp.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, engine, size))
    process.start()
    sender.close()
    done = None
    try:
        receiver.recv()
        done = receiver.recv() if receiver.poll(timeout) else None
    except EOFError as error:
        raise RuntimeError(f"{engine} failed on {size}; its error stands above") from error
    finally:
        if done is None and process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return done


def compare(size: tuple[int, int], engines: list[str], timeout: float) -> list[Result]:
    """Return the results of the engines on one set, the native one first."""
    _, truth, matrix = data(*size)
    results = []
    for engine in engines:
        result = Result(*size, engine)
        done = run(engine, size, timeout)
        if done is not None:
            result.seconds, aligned = done
            columns = kernels.columns_of(aligned, len(matrix))
            result.sum_of_pairs = kernels.sum_of_pairs(*columns, len(aligned), matrix, 0.0)
            result.columns = aligned.shape[1]
            result.recovery = suite.column_recovery(aligned, truth)
        results.append(result)
        first = results[0]
        if done is not None and first.seconds and first.sum_of_pairs:
            result.times_native = result.seconds / first.seconds
            result.share_of_native = result.sum_of_pairs / first.sum_of_pairs
        print(line(result, timeout), flush=True)
    return results


HEADER = (
    f"{'set':>10}  {'engine':<10}  {'seconds':>9}  {'× native':>8}  {'sum of pairs':>12}  "
    f"{'share':>6}  {'columns':>7}  {'recovery':>8}"
)


def line(result: Result, timeout: float) -> str:
    """Return one line of the table."""
    start = f"{result.n_sequences:>4} × {result.n_events:<4}  {result.engine:<10}"
    if result.seconds is None:
        return f"{start[1:]}  {f'> {timeout:g}':>9}"
    return (
        f"{start[1:]}  {result.seconds:>9.3f}  {result.times_native:>8.1f}  "
        f"{result.sum_of_pairs:>12.6g}  {result.share_of_native:>6.3f}  {result.columns:>7}  "
        f"{result.recovery:>8.3f}"
    )


def main(arguments: Arguments) -> None:
    engines = [e for e in ENGINES if e != "ClustalW" or rivals.clustalw_program()]
    if "ClustalW" not in engines:
        print("ClustalW is not installed and left out")
    print(HEADER)
    results = []
    for size in SIZES:
        alone = arguments.quick and size == LARGEST
        results += compare(size, engines[:1] if alone else engines, arguments.timeout)
    if arguments.json:
        rows = [vars(result) for result in results]
        text = json.dumps({"timeout": arguments.timeout, "results": rows}, indent=1)
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
