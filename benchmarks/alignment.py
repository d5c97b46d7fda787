"""Time and quality of the native alignment beside other programs, on the same data.

    python benchmarks/alignment.py --json alignment.json

Every engine has the same scores and one core. It runs in a process of its own, warmed up on a small
set, and is stopped after `--timeout` seconds. The time is the best of a few runs where a run is
quick. What is not installed or cannot do a job says so in its row.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import rivals
import rivals_mafft
import rivals_python
import suite
import tyro

import align_rudder
from align_rudder import kernels
from align_rudder.scoring import background, scoring_matrix

SMALL = "40 small"
SIZES = {"10 × 500": (10, 500), "100 × 100": (100, 100), "100 × 1000": (100, 1000)}
LARGEST = "100 × 1000"  # sequences × events in each


@dataclass
class Arguments:
    """Compare the native alignment with other programs."""

    quick: bool = False
    """Leave out the rivals on the largest set."""
    timeout: float = 600.0
    """Seconds after which a run is stopped and reported as longer."""
    json: Path | None = None
    """File to write the numbers to."""


@dataclass
class Result:
    """One engine on one case; where it gave nothing, `note` says why and the numbers are None.

    Over several sets, seconds, sums of pairs and columns are added up, shares and recovery means.
    """

    case: str
    engine: str
    seconds: float | None = None
    times_native: float | None = None
    sum_of_pairs: float | None = None
    share_of_native: float | None = None
    columns: int | None = None
    recovery: float | None = None
    note: str | None = None


def native(sequences: Sequence[np.ndarray], matrix: np.ndarray, refine: int = 1) -> np.ndarray:
    symbols = np.unique(np.concatenate(sequences))
    scores = matrix[np.ix_(symbols, symbols)]
    aligned = align_rudder.align(sequences, scoring=scores, refine=refine).matrix
    return np.where(aligned < 0, -1, symbols[aligned])


def native_refined(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    return native(sequences, matrix, refine=5)


ENGINES: dict[str, Callable[[Sequence[np.ndarray], np.ndarray], np.ndarray]] = {
    "native": native,
    "native refine=5": native_refined,
    "scikit-bio": rivals.scikit_bio,
    "ClustalW": rivals.clustalw_full,
    "MAFFT NW-NS-i": rivals_mafft.mafft_nw_ns_i,
    "MAFFT G-INS-i": rivals_mafft.mafft_g_ins_i,
    "biotite": rivals_python.biotite,
    "LingPy": rivals_python.lingpy,
}


def data(n_sequences: int, n_events: int) -> suite.DataSet:
    """Return demonstrations over 20 symbols, a fifth of the events key events, and their truth."""
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
    return suite.DataSet(f"{n_sequences} × {n_events}", sequences, truth, 20)


def sets_of(case: str) -> list[suite.DataSet]:
    """Return the sets of a case: the fixed suite of small ones, or one of a size."""
    return suite.fixed_suite() if case == SMALL else [data(*SIZES[case])]


def scores_of(sets: list[suite.DataSet]) -> list[np.ndarray]:
    return [scoring_matrix("inverse", background(s.sequences, s.n_symbols)) for s in sets]


def _work(connection: Connection, engine: str, case: str) -> None:
    os.setsid()  # a group of its own, so that programs it starts are stopped with it
    align = ENGINES[engine]
    try:
        small = data(3, 100)
        align(small.sequences, scores_of([small])[0])
        sets = sets_of(case)
        jobs = [(s.sequences, scores) for s, scores in zip(sets, scores_of(sets))]
        connection.send(None)
        times: list[float] = []
        while len(times) < 5 and sum(times) < 5.0:
            start = time.perf_counter()
            aligned = [align(*job) for job in jobs]
            times.append(time.perf_counter() - start)
        connection.send((min(times), aligned))
    except ModuleNotFoundError as error:
        connection.send(f"not installed: no module {error.name}")
    except rivals.Unable as reason:
        connection.send(str(reason))


def run(engine: str, case: str, timeout: float) -> tuple[float, list[np.ndarray]] | str:
    """Return the seconds an engine needs for a case and its alignments, or why there are none."""
    context = mp.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, engine, case))
    process.start()
    sender.close()
    done = None
    try:
        done = receiver.recv()
        if done is None:
            done = receiver.recv() if receiver.poll(timeout) else None
    except EOFError:
        done = "failed; its error stands above"
    finally:
        if done is None and process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return f"stopped after {timeout:g} s" if done is None else done


def judge(case: str, alignments: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of pairs and the column recovery of the alignment of each set of a case."""
    sets = sets_of(case)
    sums = []
    for aligned, found, scores in zip(alignments, sets, scores_of(sets)):
        for row, sequence in zip(aligned, found.sequences, strict=True):
            if not np.array_equal(row[row >= 0], sequence):
                raise rivals.Unable(f"gave back other events than it was given, in {found.name}")
        columns = kernels.columns_of(aligned, len(scores))
        sums.append(kernels.sum_of_pairs(*columns, len(aligned), scores, 0.0))
    recovery = [suite.column_recovery(a, s.truth) for a, s in zip(alignments, sets)]
    return np.array(sums), np.array(recovery)


def compare(case: str, engines: list[str], timeout: float) -> list[Result]:
    """Return the results of the engines on one case, the native one first."""
    results = []
    for engine in engines:
        result = Result(case, engine)
        done = run(engine, case, timeout)
        try:
            if isinstance(done, str):
                raise rivals.Unable(done)
            sums, recovery = judge(case, done[1])
        except rivals.Unable as reason:
            if not results:
                raise
            result.note = str(reason)
        else:
            if not results:
                first_seconds, first_sums = done[0], sums
            result.seconds, result.times_native = done[0], done[0] / first_seconds
            result.sum_of_pairs = float(sums.sum())
            result.share_of_native = float((sums / first_sums).mean())
            result.columns = sum(aligned.shape[1] for aligned in done[1])
            result.recovery = float(recovery.mean())
        results.append(result)
        print(line(result), flush=True)
    return results


HEADER = (
    f"{'case':<10}  {'engine':<15}  {'seconds':>9}  {'× native':>8}  {'sum of pairs':>12}  "
    f"{'share':>6}  {'columns':>7}  {'recovery':>8}"
)


def line(result: Result) -> str:
    """Return one line of the table."""
    start = f"{result.case:<10}  {result.engine:<15}"
    if result.note is not None:
        return f"{start}  {result.note}"
    return (
        f"{start}  {result.seconds:>9.3f}  {result.times_native:>8.1f}  "
        f"{result.sum_of_pairs:>12.6g}  {result.share_of_native:>6.3f}  {result.columns:>7}  "
        f"{result.recovery:>8.3f}"
    )


def measure(quick: bool, timeout: float) -> dict[str, object]:
    """Compare all engines on all cases; if quick, the native one alone on the largest."""
    print(HEADER)
    rows: list[Result] = []
    for case in (SMALL, *SIZES):
        engines = [e for e in ENGINES if e.startswith("native") or not quick or case != LARGEST]
        rows += compare(case, engines, timeout)
    return {"timeout": timeout, "results": [vars(row) for row in rows]}


def main(arguments: Arguments) -> None:
    found = measure(arguments.quick, arguments.timeout)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
