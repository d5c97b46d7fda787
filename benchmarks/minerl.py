"""MineRL data of the size of the real ObtainDiamond: how fast it is read, and in how much memory.

    python benchmarks/minerl.py

Generates 122 trajectories with the names and lengths of the real ones (`minerl_lengths.csv`,
1.9 million steps) with arrays and a video of every step. Only the longest video is encoded; the
others are its beginnings, copied packet by packet. Each job runs in a process of its own; its peak
memory stands beside that of a process which only imports what is needed.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from align_rudder.files import write_json
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.convert import episode_of
from align_rudder.minerl.dataset import (
    Trajectory,
    find_trajectories,
    load_pool,
    parallel_map,
    shortest_with_diamond,
)
from align_rudder.minerl.testing.synthetic import write_dataset
from align_rudder.minerl.testing.videos import frame_number

__all__ = ["measure"]

WINDOW, WINDOWS, WORKERS = 32, 2000, 2


def peak_memory() -> int:
    """Return the most bytes that this process has had in memory (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell the peak memory")


def see(trajectory: Trajectory) -> int:
    """Decode every frame and check from its colour that it is the right one."""
    steps = len(trajectory)
    for t, picture in enumerate(trajectory.frames()):
        assert (
            frame_number(picture[32:33, 32:33])
            == (trajectory.lead_frames + min(t, steps - 1)) % 512
        )
    return steps + 1


def nothing(root: Path, scratch: Path) -> int:
    import av  # noqa: F401

    return 0


def check(root: Path, scratch: Path) -> int:
    return sum(map(len, load_pool(root, workers=WORKERS)))


def episodes(root: Path, scratch: Path) -> int:
    found = find_trajectories(root)
    return sum(parallel_map(lambda t: len(episode_of(t)), found, WORKERS))


def frames_one(root: Path, scratch: Path) -> int:
    longest = max(find_trajectories(root), key=len)
    return see(longest)


def frames(root: Path, scratch: Path) -> int:
    return sum(parallel_map(see, find_trajectories(root), WORKERS))


def windows(root: Path, scratch: Path) -> int:
    rng, found, n = np.random.default_rng(0), find_trajectories(root), 0
    for i in rng.integers(len(found), size=WINDOWS):
        start = int(rng.integers(len(found[i]) - WINDOW))
        n += len(found[i].frame_array(start, start + WINDOW))
    return n


def cached(root: Path, scratch: Path) -> int:
    cache = ArrayCache(scratch / "cache")
    found = find_trajectories(root)
    shortest = shortest_with_diamond(found, min(10, sum(t.has_diamond for t in found)))

    def small(trajectory: Trajectory) -> np.ndarray:
        def frames(t: Trajectory) -> Iterator[np.ndarray]:
            return t.frame_batches(256, size=16)

        return cache.array(trajectory, "frames-16", frames, (16, 16, 3), np.uint8)

    return sum(parallel_map(lambda t: len(small(t)), shortest, WORKERS))


JOBS: dict[str, tuple[Callable[[Path, Path], int], str]] = {
    "import": (nothing, "nothing but the imports"),
    "check": (check, "load_pool: all arrays read, all video packets counted"),
    "episodes": (episodes, "every trajectory as an Episode without pictures"),
    "frames-one": (frames_one, "every frame of the longest trajectory, 1 thread"),
    "frames": (frames, f"every frame of all trajectories, {WORKERS} threads"),
    "windows": (windows, f"{WINDOWS} windows of {WINDOW} frames at random places"),
    "cached": (cached, "frames at 16×16 of the ten shortest with a diamond, written to the cache"),
}


def measure(n: int = 122, folder: Path | None = None) -> dict[str, Any]:
    """Return seconds and peak memory of each job on a dataset of the first n lengths."""
    with open(Path(__file__).with_name("minerl_lengths.csv"), newline="") as file:
        rows = list(csv.DictReader(file))[:n]
    lengths = [int(row["length"]) for row in rows]
    with tempfile.TemporaryDirectory(dir=folder, prefix="minerl-") as scratch:
        root = Path(scratch, "data")
        start = time.perf_counter()
        write_dataset(
            root, n, lengths=lengths, names=[r["trajectory"] for r in rows], diamonds=n * 72 // 122
        )
        found: dict[str, Any] = {
            "trajectories": n,
            "steps": sum(lengths),
            "longest": max(lengths),
            "generated_s": time.perf_counter() - start,
            "on_disk_mb": sum(p.stat().st_size for p in root.rglob("*.*") if p.is_file()) / 1e6,
            "all_frames_mb": (sum(lengths) + n) * 64 * 64 * 3 / 1e6,
            "workers": WORKERS,
            "jobs": {},
        }
        for job in JOBS:
            command = [sys.executable, __file__, "--job", job, "--root", str(root)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found["jobs"][job] = json.loads(output)
    base = found["jobs"]["import"]["peak_mb"]
    for result in found["jobs"].values():
        result["above_import_mb"] = result["peak_mb"] - base
    return found


def show(found: dict[str, Any]) -> None:
    print(
        f"  {found['trajectories']} trajectories, {found['steps']:,} steps, "
        f"{found['on_disk_mb']:,.0f} MB on disk (generated in {found['generated_s']:.0f} s); all "
        f"frames decoded would be {found['all_frames_mb']:,.0f} MB"
    )
    print(f"  {'':<11}{'seconds':>8}{'items/s':>10}{'peak MB':>9}{'above import':>14}")
    for job, r in found["jobs"].items():
        print(
            f"  {job:<11}{r['seconds']:8.1f}{r['items'] / r['seconds']:10,.0f}{r['peak_mb']:9.0f}"
            f"{r['above_import_mb']:14.0f}   {JOBS[job][1]}"
        )


@dataclass
class Arguments:
    """Measure reading of MineRL data."""

    n: int = 122
    """Number of trajectories."""
    folder: Path | None = None
    """Where the data is generated (and deleted again); the system's temporary folder if None."""
    json: Path | None = None
    """File for the numbers."""
    job: str | None = None
    """Used by the benchmark itself: run one job and print its numbers."""
    root: Path = Path(".")
    """Used by the benchmark itself: where the data lies."""


def main(arguments: Arguments) -> None:
    if arguments.job is None:
        found = measure(arguments.n, arguments.folder)
        show(found)
        write_json(arguments.json, found)
        return
    start = time.perf_counter()
    items = JOBS[arguments.job][0](arguments.root, arguments.root.parent)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "items": items, "peak_mb": peak_memory() / 1e6}))


if __name__ == "__main__":
    main(tyro.cli(Arguments))
