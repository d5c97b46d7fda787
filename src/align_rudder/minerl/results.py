"""What a training came to: how far each stage gets in new worlds, as the paper shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from align_rudder.events.names import goal_names
from align_rudder.files import write_figure
from align_rudder.model import AlignRudder
from align_rudder.runs.rows import read_rows
from align_rudder.show.figures.subtasks import Reached, SubAgent, frequencies, learning

__all__ = ["STAGES", "agent_curves", "draw_results", "results_text", "stages_there", "subgoal_bars"]

STAGES = {
    "random": ("acting at random", "random"),
    "cloned": ("cloned", "cloned"),
    "agent": ("fine-tuned", "fine-tuned"),
    "manager": ("with their manager", "manager"),
}
"""Who can play after a training: what they are called, and as what they are drawn."""


def stages_there(folder: str | Path, n: int) -> list[str]:
    """Return the stages that a training has come to.

    Args:
        folder: Its folder.
        n: Number of sub-tasks.
    """
    folder = Path(folder)
    there = [
        stage
        for stage, kind in (("cloned", "cloned"), ("agent", "agent"))
        if all((folder / f"{kind}-{k}.npz").is_file() for k in range(n))
    ]
    return there + ["manager"] * ("agent" in there and (folder / "manager.npz").is_file())


def results_text(goals: list[str], stages: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how many episodes of each stage reach each sub-goal, and the deepest item of each.

    Args:
        goals: Symbols of the sub-goals.
        stages: What `evaluate` returned for each stage.
    """
    names = goal_names(goals)
    width = max(map(len, [*names, "sub-goal"]))
    head = [f"{STAGES[stage][0]:>18}" for stage in stages]
    lines = [f"{'sub-goal':<{width}}  {'  '.join(head)}"]
    for k, name in enumerate(names):
        cells = [_cell(found["reached"][k], found["episodes"]) for found in stages.values()]
        lines.append(f"{name:<{width}}  {'  '.join(cells)}")
    cells = [_cell(found["solved"], found["episodes"]) for found in stages.values()]
    lines.append(f"{'solved':<{width}}  {'  '.join(cells)}")
    deepest = [f"{deepest_of(names, found):>18}" for found in stages.values()]
    lines.append(f"{'deepest':<{width}}  {'  '.join(deepest)}")
    return "\n".join(lines)


def deepest_of(names: list[str], found: Mapping[str, Any]) -> str:
    """Return the last sub-goal that any episode reached."""
    reached = [name for name, n in zip(names, found["reached"], strict=True) if n]
    return reached[-1] if reached else "nothing"


def _cell(n: int, episodes: int) -> str:
    return f"{f'{n:,} ({n / episodes:.1%})':>18}"


def subgoal_bars(
    model: AlignRudder, goals: list[str], stages: Mapping[str, Mapping[str, Any]]
) -> Figure:
    """Return how often demonstrations and each stage reach each sub-goal, as bars.

    Args:
        model: The model, whose demonstrations are counted.
        goals: Symbols of the sub-goals.
        stages: What `evaluate` returned for each stage.
    """
    n, one = len(model.used_), "demonstrations"
    shown = [round(goal.share * n) for goal in model.subgoals_]
    series = [Reached(one, one, shown, n, "runs")]
    series += [
        Reached(*STAGES[stage], found["reached"], found["episodes"])
        for stage, found in stages.items()
    ]
    return frequencies(goal_names(goals), series)


def agent_curves(folder: str | Path, goals: list[str]) -> Figure:
    """Return a panel for each sub-agent: its trials while it was cloned, then in PPO.

    Args:
        folder: Folder of the training.
        goals: Symbols of the sub-goals.
    """

    def curve(name: str, x: str, y: str) -> list[tuple[float, float]]:
        path = Path(folder) / name
        rows = read_rows(path, (x, y)) if path.is_file() else []
        return [(float(row[x]), float(row[y])) for row in rows]

    agents = []
    for k, name in enumerate(goal_names(goals)):
        judged = [(at, score) for at, score in curve(f"cloning-{k}.csv", "epoch", "score")]
        # Without environments, clones are judged by held-out loss, which is no share.
        shares = all(0 <= score <= 1 for _, score in judged)
        agents.append(
            SubAgent(name, judged if shares else [], curve(f"tuning-{k}.csv", "steps", "rate"))
        )
    return learning(
        agents,
        "success of trials, over epochs of cloning",
        "success of trials, over environment steps of PPO",
    )


def draw_results(
    folder: str | Path,
    model: AlignRudder,
    goals: list[str],
    stages: Mapping[str, Mapping[str, Any]],
    out: str | Path,
) -> None:
    """Write `subgoals.png` and `agents.png` into a folder.

    Args:
        folder: Folder of the training.
        model: The model.
        goals: Symbols of the sub-goals.
        stages: What `evaluate` returned for each stage.
        out: Where to write them.
    """
    Path(out).mkdir(parents=True, exist_ok=True)
    write_figure(Path(out) / "subgoals.png", subgoal_bars(model, goals, stages))
    write_figure(Path(out) / "agents.png", agent_curves(folder, goals))
