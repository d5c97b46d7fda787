"""Whether a planted cause of failure is found: `python tools/logs_study.py`.

100 made-up logs for each cause and each amount of noise: how often the divergence table names the
cause first, and how often the turn that holds it has the lowest reward. Where the cause depends on
the task, each task is looked at by itself, and a model of all must say that this is needed.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from logs.planted import CAUSES, judged

from align_rudder.files import write_json

NOISE = {
    "as in the tests": {},
    "twice the noise": {"extra": 0.3, "missing": 0.1, "repeats": 0.2},
    "40 runs": {"runs": 40},
    "a third of the failures without cause": {"without": 1 / 3},
    "8 tasks, half of them hard": {"tasks": 8},
}
FIRST = 30000  # seeds of their own, not those that were looked at while it was built


def main() -> None:
    """Measure, show, and write."""
    parser = argparse.ArgumentParser(description="Planted causes of failure")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, default=Path("results/logs/planted.json"))
    given = parser.parse_args()
    seeds, rows = range(FIRST, FIRST + given.sets), []
    with ProcessPoolExecutor(given.jobs) as pool:
        for noise, options in NOISE.items():
            for cause in CAUSES if not options else [c for c in CAUSES if c != "task"]:
                found = list(pool.map(partial(judged, cause=cause, **options), seeds))
                first, turns = zip(*found, strict=True)
                rows.append(
                    {
                        "noise": noise,
                        "cause": cause,
                        "sets": given.sets,
                        "named_first": int(sum(first)),
                        "sets_with_most_turns_right": int(sum(share > 0.5 for share in turns)),
                        "sets_with_90_percent_right": int(sum(share >= 0.9 for share in turns)),
                        "turns_right": float(np.mean(turns)),
                    }
                )
                print(rows[-1], flush=True)
    write_json(given.json, {"first_seed": FIRST, "rows": rows})


if __name__ == "__main__":
    main()
