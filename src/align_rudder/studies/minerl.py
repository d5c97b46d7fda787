"""The MineRL pipeline end to end in the package's small world: what cloning, PPO and manager give.

Demonstrations are recorded, sub-goals found, sub-agents cloned and fine-tuned, a manager trained on
top of them; then new worlds are played by a player that acts at random, the clones, the fine-tuned
sub-agents, and these with the manager. Settings are small: one frame instead of 32, as the recorded
player looks at nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from align_rudder.files import Many, Whole, read_json, write_json
from align_rudder.files import Table as Entries
from align_rudder.hierarchy.external import Players
from align_rudder.minerl.networks import HEAD_SIZES
from align_rudder.minerl.playing import evaluate, load_players, open_game
from align_rudder.model import AlignRudder
from align_rudder.runs.processes import Chain
from align_rudder.runs.rows import read_rows
from align_rudder.studies.tables import Table

__all__ = ["results", "results_table", "success_rates", "training_chain"]

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
MAX_STEPS = 400
_COUNT = Whole(0, 2**62)
_PLAYED = Entries(
    {"episodes": Whole(1), "solved": _COUNT, "reached": Many(_COUNT), "episode_steps": _COUNT}
)
SEED = 1_000_000  # of the worlds that are played; demonstrations have 0 to 39


def training_chain(work: Path) -> Chain:
    """Return the commands that go from nothing to trained agents; what is there is kept.

    Args:
        work: Folder for data and agents.
    """
    data, model = str(work / "data"), str(work / "model.npz")
    world = [f"{name}={value}" for name, value in WORLD.items()]
    options = [part for name, value in SETTINGS.items() for part in (f"--{name}", str(value))]
    train = ["minerl", "train", data, model, "-o", str(work / "run")]
    train += ["--cache", str(work / "cache"), *options]
    played = ["--environments", "4", "--environment.module", "scripted"]
    chain = [train, [*train, *played, "--environment.world", *world]]
    if not Path(model).is_file():
        found = ["--json", str(work / "events.json")]
        chain.insert(0, ["minerl", "events", data, "-o", model, *found])
    if not Path(data).is_dir():
        chain.insert(0, ["minerl", "demos", data, *DEMOS, "--world", *world])
    return chain


def results(work: Path, episodes: int, progress: bool = True) -> dict[str, Any]:
    """Return how far each player comes in new worlds, and each sub-agent from where it begins.

    Args:
        work: Folder of data and agents; what was played before is kept there.
        episodes: New worlds for each player.
        progress: Whether to show progress bars.
    """
    configuration = load_players(work / "run", "cloned")[1]
    return {
        "world": WORLD,
        "demonstrations": DEMOS,
        "training": configuration,
        "max_steps": MAX_STEPS,
        "seed": SEED,
        "played": _play(work, configuration, episodes, progress),
        "subtasks": [success_rates(work / "run", k) for k in range(len(configuration["goals"]))],
    }


def _uniform(task: Any, seen: jax.Array, subtask: jax.Array, cell: jax.Array) -> Any:
    """Act at random: every choice of every head is as likely."""
    return {head: jnp.zeros(n) for head, n in HEAD_SIZES.items()}, jnp.zeros(())


def _play(
    work: Path, configuration: dict[str, Any], episodes: int, progress: bool
) -> dict[str, Any]:
    """Return how far each player comes in new worlds."""
    model, found = AlignRudder.load(work / "model.npz"), {}
    everyone = {"random": Players([jax.tree_util.Partial(_uniform)])}
    for stage in ("cloned", "agent", "manager"):
        everyone[stage] = load_players(work / "run", stage)[0]
    seen = {name: configuration[name] for name in ("skip", "frames")}
    tracked = open_game(model, module="scripted", world=WORLD, **seen)
    with tracked.env:
        for name, who in everyone.items():
            kept = work / f"played-{name}-{episodes}.json"
            if not kept.is_file():
                write_json(kept, evaluate(who, tracked, episodes, SEED, MAX_STEPS, progress))
            found[name] = read_json(kept, _PLAYED, remedy="delete it: they play again")
            print(f"{name}: {found[name]['solved']} of {episodes} with a diamond", flush=True)
    return found


def success_rates(folder: Path, k: int) -> dict[str, float]:
    """Return how often a sub-goal is reached from where its sub-task begins."""
    rows = read_rows(folder / f"tuning-{k}.csv")
    if not rows:
        return {"steps": 0}
    rates = [float(row["rate"]) for row in rows]
    return {"steps": int(rows[-1]["steps"]), "cloned": rates[0], "tuned": max(rates)}


def results_table(found: dict[str, Any]) -> Table:
    """Return the results as a table, a row for each sub-goal."""
    played, goals = found["played"], found["training"]["goals"]
    header = ["sub-goal", *played, "own: cloned", "own: tuned"]
    rows = []
    for k, (goal, own) in enumerate(zip(goals, found["subtasks"], strict=True)):
        shares = [who["reached"][k] / who["episodes"] for who in played.values()]
        alone = [f"{own[name]:.0%}" if name in own else "–" for name in ("cloned", "tuned")]
        rows.append([f"{k} {goal}", *(f"{share:.0%}" for share in shares), *alone])
    solved = [f"{who['solved'] / who['episodes']:.0%}" for who in played.values()]
    rows.append(["diamond", *solved, "", ""])
    note = "new worlds that reach it; own: from where its sub-task begins"
    return Table("The small world", header, rows, (note,))
