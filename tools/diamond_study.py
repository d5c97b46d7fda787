"""Train all methods of the diamond study, several at a time on one GPU, and evaluate them.

    python tools/diamond_study.py --steps 8e6 --jobs 4
    python tools/diamond_study.py --steps 240e6 --jobs 2

Results are in results/diamond/STEPS/METHOD-SEED. What is finished is not run again; what was
stopped goes on from its checkpoint. Agents and checkpoints stay out of the repository.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

from align_rudder.cli.diamond import Method

Running = tuple[subprocess.Popen[bytes], list[list[str]]]
ALL: tuple[Method, ...] = (
    "align-rudder",
    "equal-reward",
    "no-redistribution",
    "no-cloning",
    "separate",
    "own-subtask",
    "ppo-dense",
    "ppo-diamond",
)


@dataclass
class Arguments:
    """Run the study."""

    steps: float = 8e6
    """Environment steps of each training."""
    methods: tuple[Method, ...] = ALL
    """Methods."""
    seeds: tuple[int, ...] = (0,)
    """Seeds."""
    jobs: int = 1
    """Processes at once; they share the GPU."""
    worlds: int = 10_000
    """New worlds of the evaluation; 0 to leave it out."""
    seconds: float = float("inf")
    """Time after which what still runs is stopped, to go on later."""
    out: Path = Path("results/diamond")
    """Folder for results."""


def commands(arguments: Arguments) -> list[list[str]]:
    """Return the commands of all trainings, each followed by its evaluation."""
    out = []
    for seed in arguments.seeds:
        for method in arguments.methods:
            folder = str(arguments.out / f"{arguments.steps / 1e6:.12g}m" / f"{method}-{seed}")
            train = ["diamond", "train", method, "--steps", f"{arguments.steps:.0f}"]
            train += ["--seed", str(seed), "--out", folder]
            judge = ["diamond", "evaluate", folder, "--worlds", str(arguments.worlds)]
            judge += [] if method == ALL[0] else ["--last"]
            if not counted(Path(folder), arguments.worlds):
                out.append([train, judge] if arguments.worlds else [train])
    return out


def counted(folder: Path, worlds: int) -> bool:
    """Return whether a folder is published with its counts, but without the agents."""
    path = folder / "evaluation.json"
    if not path.is_file() or (folder / "agent.npz").is_file():
        return False
    try:
        return json.loads(path.read_text())["worlds"] == worlds or not worlds
    except (ValueError, KeyError, TypeError):
        sys.exit(f"{path} is damaged; put back a copy, or delete it")


def run_all(waiting: list[list[list[str]]], jobs: int, seconds: float) -> None:
    """Run chains of commands of `align-rudder`, so many at once, for at most so long."""
    if jobs < 1:
        sys.exit(f"--jobs is {jobs}; at least 1 is needed")
    running: list[Running] = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        failed = _run(list(waiting), running, jobs, seconds)
    except (KeyboardInterrupt, TimeoutError):
        for process, _ in running:
            process.terminate()
        for process, _ in running:
            process.wait()
        sys.exit("stopped; run it again to go on")
    if failed:
        sys.exit(f"{failed} commands failed")


def _run(waiting: list[list[list[str]]], running: list[Running], jobs: int, seconds: float) -> int:
    """Return how many commands failed; `running` holds those under way."""
    program = [sys.executable, "-m", "align_rudder"]
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    begun, failed = time.monotonic(), 0
    while waiting or running:
        while waiting and len(running) < jobs:
            first, *rest = waiting.pop(0)
            print(f"{time.monotonic() - begun:6.0f} s  {' '.join(first)}", flush=True)
            # A group of its own, so that Ctrl-C reaches it once, from here.
            process = subprocess.Popen([*program, *first], env=env, start_new_session=True)
            running.append((process, rest))
        time.sleep(0.5)
        if time.monotonic() - begun > seconds:
            raise TimeoutError
        for entry in [entry for entry in running if entry[0].poll() is not None]:
            running.remove(entry)
            process, rest = entry
            failed += process.returncode != 0
            if rest and process.returncode == 0:
                waiting.insert(0, rest)
    return failed


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    if not (found := commands(given)):
        print(f"all of it is in {given.out} already; give --out for runs of your own")
    run_all(found, given.jobs, given.seconds)
