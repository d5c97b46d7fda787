"""Time and memory to fit a log of many runs, and the size of what its page shows.

python benchmarks/logs_speed.py
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from align_rudder.data.logs import Entry, Run, RunLog
from align_rudder.files import write_json
from align_rudder.logs import LogModel, report_data

__all__ = ["main", "many_runs"]


def many_runs(runs: int, distinct: int, length: int, seed: int = 0) -> RunLog:
    """Return runs of two scripts with noise, 60 % successes; failures lack one step.

    Args:
        runs: How many.
        distinct: How many distinct sequences.
        length: Events of each, on average.
        seed: Seed of the noise.
    """
    rng = np.random.default_rng(seed)
    kinds = 30
    scripts = [rng.integers(0, kinds, length - 3) for _ in range(2)]
    found: dict[bytes, tuple[np.ndarray, bool]] = {}
    while len(found) < distinct:
        script, good = scripts[rng.integers(2)], rng.random() < 0.6
        kept = rng.random(len(script)) > 0.05
        kept[7] = good
        events = script[kept]
        at = rng.integers(0, len(events) + 1, rng.poisson(4))
        events = np.insert(events, at, rng.integers(0, kinds, len(at)))
        found.setdefault(events.tobytes(), (events, good))
    pool = list(found.values())
    which = np.concatenate([np.arange(distinct), rng.integers(0, distinct, runs - distinct)])
    out = []
    for i, (events, good) in enumerate(pool[k] for k in which):
        entries = tuple(Entry("activity", f"step {e}", t) for t, e in enumerate(events))
        out.append(Run(f"case {i}", entries, success=good, ret=float(good)))
    return RunLog(tuple(out))


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description="Time and memory of fitting a log")
    parser.add_argument("--runs", type=int, default=12_000)
    parser.add_argument("--distinct", type=int, default=4_000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    LogModel().fit(many_runs(20, 10, given.length))  # compiles
    log = many_runs(given.runs, given.distinct, given.length)
    start = time.perf_counter()
    model = LogModel().fit(log)
    fitted = time.perf_counter()
    data = report_data(model, log)
    text = json.dumps(data, allow_nan=False)
    done = time.perf_counter()
    row = {
        "runs": given.runs,
        "distinct": data["counts"]["distinct"],
        "events": float(np.mean([len(run.entries) for run in log.runs])),
        "roads": len(model.roads_),
        "seconds_fit": fitted - start,
        "seconds_data": done - fitted,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "json_mb": len(text) / 2**20,
        "first": data["divergences"][0]["says"],
    }
    for name, value in row.items():
        print(f"{name:14} {value:.3g}" if isinstance(value, float) else f"{name:14} {value}")
    write_json(given.json, row)


if __name__ == "__main__":
    main()
