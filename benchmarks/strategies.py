"""Time of finding strategies by evidence, as a multiple of aligning alone.

python benchmarks/strategies.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from align_rudder.alignment import align_ids
from align_rudder.scoring import background, inverse_frequency
from align_rudder.strategies import align_strategies

KINDS = 10
ROUNDS = 15


def sequences_of(rng: np.random.Generator, n: int, length: int, share: float) -> list[np.ndarray]:
    """Return copies of one sequence in which a share of the events is replaced by noise."""
    base = rng.integers(0, KINDS, length)
    noise = rng.integers(0, KINDS, (n, length))
    return list(np.where(rng.random((n, length)) < share, noise, base).astype(np.int32))


def seconds(work: Callable[[], Any]) -> float:
    """Return the least time (of the processor) of some rounds, after one that compiles."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a row for each size and share of noise."""
    rng = np.random.default_rng(0)
    print(f"{'sequences':>9}  {'events':>6}  {'noise':>5}  {'align':>8}  {'strategies':>10}  ratio")
    for n, length in ((10, 50), (30, 50), (10, 200)):
        for share in (0.2, 1.0):
            sequences = sequences_of(rng, n, length, share)
            scores = inverse_frequency(background(sequences, KINDS))
            aligned = seconds(lambda: align_ids(sequences, range(KINDS), scores))  # noqa: B023
            found = seconds(
                lambda: align_strategies(
                    sequences,  # noqa: B023
                    range(KINDS),
                    scores,  # noqa: B023
                    gap=0.0,
                    n_strategies=None,
                    engine="native",
                    refine=1,
                    progress=False,
                    by_evidence=True,
                )
            )
            print(
                f"{n:>9}  {length:>6}  {share:>5.0%}  {1e3 * aligned:>5.1f} ms  "
                f"{1e3 * found:>7.1f} ms  {found / aligned:.2f}"
            )


if __name__ == "__main__":
    main()
