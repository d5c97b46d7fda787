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

__all__ = ["measure", "show"]

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


def measure() -> list[dict[str, float]]:
    """Return a row for each size and share of noise: seconds to align, to find strategies."""
    rng, rows = np.random.default_rng(0), []
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
            row = {"n_sequences": n, "n_events": length, "noise": share}
            row |= {"align_s": aligned, "strategies_s": found, "ratio": found / aligned}
            rows.append(row)
    return rows


def show(rows: list[dict[str, float]]) -> None:
    """Print them."""
    print(f"{'sequences':>9}  {'events':>6}  {'noise':>5}  {'align':>8}  {'strategies':>10}  ratio")
    for row in rows:
        print(
            f"{row['n_sequences']:>9}  {row['n_events']:>6}  {row['noise']:>5.0%}  "
            f"{1e3 * row['align_s']:>5.1f} ms  {1e3 * row['strategies_s']:>7.1f} ms  "
            f"{row['ratio']:.2f}"
        )


if __name__ == "__main__":
    show(measure())
