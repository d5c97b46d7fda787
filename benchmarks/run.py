"""`make bench`: every speed claim of the project, measured in one run.

    python benchmarks/run.py --json results/bench.json

Ratios are measured side by side on the same machine; seconds alone mean little.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import alignment
import learners
import minerl
import prefix
import strategies
import tyro
import wrapper

from align_rudder.files import write_whole


@dataclass
class Arguments:
    """Run all benchmarks."""

    quick: bool = False
    """Leave out the rivals on the largest alignment (many minutes) and most of MineRL."""
    timeout: float = 600.0
    """Seconds after which a rival is stopped."""
    json: Path | None = Path("results/bench.json")
    """File for the numbers."""


def main(arguments: Arguments) -> None:
    found = {"machine": {"cores": os.cpu_count(), "python": platform.python_version()}}
    print("Prefix scores of a whole episode, beside realigning every prefix with Biopython")
    found["prefix"] = p = prefix.measure()
    print(
        f"  {p['steps']} steps, {p['columns']} columns: {p['ours_s'] * 1e3:.3f} ms, Biopython "
        f"{p['biopython_s']:.1f} s: {p['ratio']:,.0f} times faster\n"
    )
    print("What the wrappers add to a step, at 100 columns")
    found["wrapper"] = w = wrapper.measure()
    print(
        f"  one environment {w['single_us']:.2f} µs; {w['envs']} environments "
        f"{w['vector_us']:.3f} µs per environment-step; one with a vector {w['box_us']:.1f} µs, "
        f"with a dict {w['dict_us']:.1f} µs\n"
    )
    print("A step of the tabular learners on EightRooms, environment included")
    found["learners"] = rows = learners.measure()
    for row in rows:
        print(
            f"  {row['method']:<14} {row['ns_per_step']:8.0f} ns  "
            f"{row['times_q_learning']:6.2f} times Q-learning"
        )
    print()
    print("Finding strategies by evidence, beside one alignment")
    found["strategies"] = strategies.measure()
    strategies.show(found["strategies"])
    print()
    print("MineRL data of the real size: how fast it is read, and in how much memory")
    found["minerl"] = minerl.measure(10 if arguments.quick else 122)
    minerl.show(found["minerl"])
    print()
    print("Alignment beside other programs, with the same scores on one core each")
    found["alignment"] = alignment.measure(arguments.quick, arguments.timeout)
    if arguments.json:
        text = json.dumps(found, indent=1) + "\n"
        write_whole(arguments.json, lambda file: file.write(text.encode()))
        print(f"\nsaved to {arguments.json}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
