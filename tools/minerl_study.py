"""The MineRL pipeline end to end in the package's small world: what cloning, PPO and manager give.

    python tools/minerl_study.py --work runs/minerl-study --out results/minerl

Records demonstrations, finds sub-goals, clones and fine-tunes sub-agents and the manager, and
plays new worlds with a player that acts at random, the clones, the fine-tuned sub-agents, and these
with the manager. It uses the commands of `align-rudder minerl` with small settings (one frame
instead of 32, as the recorded player looks at nothing else). Stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from align_rudder.cli.main import main as command
from align_rudder.files import write_json
from align_rudder.hierarchy.external import Players
from align_rudder.minerl.networks import HEAD_SIZES
from align_rudder.minerl.playing import evaluate, load_players, open_game
from align_rudder.model import AlignRudder
from align_rudder.runs.rows import read_rows

WORLD = {"hits": 4, "distance": 2}
DEMOS = ["--n", "40", "--noise", "0.05", "--seed", "0"]
SETTINGS = {
    "frames": 1,
    "batch": 16,
    "epochs": 20,
    "steps": 3072,
    "rollout": 32,
    "burn-in": 256,
    "least-steps": 0,
    "enough": 0.9,
    "evaluations": 5,
    "manager-steps": 2048,
    "patience": 40,
    "seed": 0,
}
TRAIN = [part for name, value in SETTINGS.items() for part in (f"--{name}", str(value))]
MAX_STEPS = 400
SEED = 1_000_000  # of the worlds that are played; demonstrations have 0 to 39


def uniform(task: Any, seen: jax.Array, subtask: jax.Array, cell: jax.Array) -> Any:
    """Act at random: every choice of every head is as likely."""
    return {head: jnp.zeros(n) for head, n in HEAD_SIZES.items()}, jnp.zeros(())


def run(*args: str) -> None:
    """Run a command of `align-rudder minerl`, or stop."""
    print("align-rudder minerl", *args, flush=True)
    if code := command(["minerl", *args]):
        sys.exit(code)


def train(work: Path) -> None:
    """Go from nothing to trained agents in a folder; what is there is kept."""
    data, model = work / "data", work / "model.npz"
    work.mkdir(parents=True, exist_ok=True)
    world = [f"{name}={value}" for name, value in WORLD.items()]
    if not data.is_dir():
        run("demos", str(data), *DEMOS, "--world", *world)
    if not model.is_file():
        run("events", str(data), "-o", str(model), "--json", str(work / "events.json"))
    where = ["-o", str(work / "run"), "--cache", str(work / "cache")]
    run("train", str(data), str(model), *where, *TRAIN)
    played = ["--environments", "4", "--environment.module", "scripted"]
    run("train", str(data), str(model), *where, *TRAIN, *played, "--environment.world", *world)


def rates(folder: Path, n: int) -> list[dict[str, float]]:
    """Return how often each sub-goal is reached from where its sub-task begins."""
    found = []
    for k in range(n):
        curve = [(int(r["steps"]), float(r["rate"])) for r in read_rows(folder / f"tuning-{k}.csv")]
        if not curve:
            found.append({"steps": 0})
            continue
        found.append(
            {"steps": curve[-1][0], "cloned": curve[0][1], "tuned": max(rate for _, rate in curve)}
        )
    return found


def play(work: Path, episodes: int) -> dict[str, Any]:
    """Return how far each player comes in new worlds."""
    model, found = AlignRudder.load(work / "model.npz"), {}
    stages = ("cloned", "agent", "manager")
    players = {stage: load_players(work / "run", stage) for stage in stages}
    settings = players["cloned"][1]
    everyone = {"random": Players([jax.tree_util.Partial(uniform)])}
    everyone |= {stage: players[stage][0] for stage in stages}
    seen = {"skip": settings["skip"], "frames": settings["frames"]}
    followed = open_game(model, module="scripted", world=WORLD, **seen)
    with followed.env:
        for name, who in everyone.items():
            kept = work / f"played-{name}-{episodes}.json"
            if not kept.is_file():
                counts = evaluate(who, followed, episodes, SEED, MAX_STEPS, sys.stderr.isatty())
                write_json(kept, counts)
            found[name] = json.loads(kept.read_text())
            print(f"{name}: {found[name]['solved']} of {episodes} with a diamond", flush=True)
    return found


def main() -> None:
    """Train, play, write and show."""
    parser = argparse.ArgumentParser(description="The MineRL pipeline in the small world.")
    parser.add_argument("--work", default="runs/minerl-study", help="folder for data and agents")
    parser.add_argument("--out", default="results/minerl", help="folder for the results")
    parser.add_argument("--episodes", type=int, default=40, help="new worlds for each player")
    given = parser.parse_args()
    work, out = Path(given.work), Path(given.out)
    train(work)
    configuration = json.loads((work / "run/training.json").read_text())
    goals = configuration["goals"]
    played = play(work, given.episodes)
    out.mkdir(parents=True, exist_ok=True)
    result = {
        "world": WORLD,
        "demonstrations": DEMOS,
        "training": configuration,
        "max_steps": MAX_STEPS,
        "seed": SEED,
        "played": played,
        "subtasks": rates(work / "run", len(goals)),
    }
    write_json(out / "scripted.json", result)
    show(goals, result)


def show(goals: list[str], result: dict[str, Any]) -> None:
    """Print the result as a table."""
    played = result["played"]
    print(f"\n{'':>4}  {'new worlds, % that reach it':^38}  {'from its start, %':^16}")
    print(f"{'':>4}  " + "".join(f"{name:>8}  " for name in played) + "  cloned  tuned  sub-goal")
    for k, goal in enumerate(goals):
        row = f"{k:>4}  "
        for found in played.values():
            row += f"{found['reached'][k] / found['episodes']:>8.0%}  "
        own = result["subtasks"][k]
        for name in ("cloned", "tuned"):
            row += f"{own[name]:>8.0%}" if name in own else f"{'–':>8}"
        print(f"{row}  {goal}")
    row = "".join(f"{found['solved'] / found['episodes']:>8.0%}  " for found in played.values())
    print(f"{'':>4}  {row}{'':>16}  diamond")


if __name__ == "__main__":
    main()
