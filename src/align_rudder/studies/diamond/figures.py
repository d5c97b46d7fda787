"""Figures of the diamond task: sub-goals, endings, learning curves, sub-agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from align_rudder.files import write_figure
from align_rudder.model import AlignRudder
from align_rudder.runs.rows import read_rows
from align_rudder.show.figures import consensus
from align_rudder.show.figures.colors import OKABE_ITO, ink_on, legend_outside
from align_rudder.show.figures.subtasks import (
    Reached,
    SubAgent,
    frequencies,
    learning,
    step_axis,
    tidy,
)
from align_rudder.studies.diamond.methods import METHODS, OURS, label_of, order_of
from align_rudder.studies.diamond.results import read_evaluation, read_training
from align_rudder.studies.diamond.tables import (
    GIVEN_UP,
    endings_rows,
    final_stage,
    range_of,
)
from align_rudder.tasks.diamond.names import event_names, goal_names
from align_rudder.text import short_number

__all__ = [
    "draw_alignment",
    "draw_results",
    "endings_bars",
    "learning_curves",
    "sub_agent_curves",
    "subgoal_bars",
]

_ENDINGS = {
    name: OKABE_ITO[color]
    for name, color in {
        "diamond": "blue",
        "lava": "vermillion",
        "zombie": "green",
        "zombie, asleep": "purple",
        "arrow": "orange",
        "hunger": "yellow",
        "thirst": "sky",
        "fatigue": "black",
        "time": "gray",
    }.items()
} | {GIVEN_UP: "#e4e4e4"}


def draw_alignment(model: AlignRudder) -> Figure:
    """Return the demonstrations aligned, their consensus, and the sub-goals by name."""
    return consensus(model, name_goals=goal_names, name_events=event_names)


def draw_results(
    folders: Sequence[str | Path],
    evaluations: Sequence[Mapping[str, Any]],
    model: AlignRudder,
    out: str | Path,
) -> None:
    """Write all figures of trainings into a folder.

    Args:
        folders: Folders of the trainings.
        evaluations: What `evaluate_folder` returned for each.
        model: The model of the demonstrations.
        out: Where to write `curves.png`, `alignment.png`, `endings.png` if endings were counted,
            and, for each training whose clones were, `NAME-subgoals.png` and `NAME-agents.png`.
    """
    out, paths = Path(out), [Path(folder).resolve() for folder in folders]
    out.mkdir(parents=True, exist_ok=True)
    write_figure(out / "curves.png", learning_curves(folders))
    write_figure(out / "alignment.png", draw_alignment(model))
    if endings_rows(evaluations):
        write_figure(out / "endings.png", endings_bars(evaluations))
    unique = len({path.name for path in paths}) == len(paths)
    for path, evaluation in zip(paths, evaluations, strict=True):
        name = path.name if unique else f"{path.parent.name}-{path.name}"
        if "cloned" in evaluation["stages"]:
            write_figure(out / f"{name}-subgoals.png", subgoal_bars(evaluation))
            agents = sub_agent_curves(path, _agent_names(path, evaluation["goals"]))
            write_figure(out / f"{name}-agents.png", agents)


def _agent_names(folder: Path, goals: list[str]) -> list[str]:
    """Return what sub-agents are called: by their sub-goals, or by how many kinds there were."""
    by_number = read_training(folder)[0].goals == "kinds"
    return [f"kind {k + 1}" for k in range(len(goals))] if by_number else goals


# Sub-goals


def subgoal_bars(evaluation: Mapping[str, Any]) -> Figure:
    """Return how often each sub-goal along the consensus is reached, as bars.

    Demonstrations, behavioural cloning and the fine-tuned agent (with its manager if it has one)
    stand side by side; what a training does not have is left out.

    Args:
        evaluation: Contents of `evaluation.json`.
    """
    stages, method = evaluation["stages"], evaluation["method"]
    after = "fine-tuned" if "cloned" in stages else label_of(method)
    after += f", {short_number(evaluation['steps'])} steps"
    played = [(after, "fine-tuned", stages[final_stage(evaluation)])]
    if "cloned" in stages:
        played.insert(0, ("behavioural cloning", "cloned", stages["cloned"]))
    series = [
        Reached(label, stage, found["reached"], found["worlds"]) for label, stage, found in played
    ]
    if shown := evaluation.get("demonstrations"):
        one = "demonstrations"
        series.insert(0, Reached(one, one, shown["reached"], shown["worlds"], "runs"))
    return frequencies(goal_names(evaluation["goals"]), series)


# Endings


def endings_bars(evaluations: Sequence[Mapping[str, Any]]) -> Figure:
    """Return how the episodes of each method ended, as bars that are stacked to all worlds.

    Methods stand in the order of tables. Shares of at least 4 % are written into the bar.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
    """
    rows = endings_rows(evaluations)
    if not rows:
        raise ValueError("there is nothing to draw: how episodes ended was not counted")
    several = len({row["steps"] for row in rows if row["steps"] is not None}) > 1

    def name(row: Mapping[str, Any]) -> str:
        steps = f", {short_number(row['steps'])} steps" if several and row["steps"] else ""
        return row["label"] + steps

    figure = Figure(figsize=(8.4, 0.36 * len(rows) + 1.5), layout="constrained")
    ax = figure.subplots()
    worlds, left = np.array([row["worlds"] for row in rows]), np.zeros(len(rows))
    for ending, color in _ENDINGS.items():
        shares = 100 * np.array([row["endings"].get(ending, 0) for row in rows]) / worlds
        if not shares.any():
            continue
        look = {"color": color, "edgecolor": "white", "linewidth": 0.7}
        ax.barh(np.arange(len(rows)), shares, 0.78, left, label=ending, **look)
        for y, (start, share) in enumerate(zip(left, shares, strict=True)):
            if share >= 4:
                ink: dict[str, Any] = {"color": ink_on(to_rgb(color)), "fontsize": 8}
                at = (start + share / 2, y)
                ax.text(*at, f"{share:.0f}", ha="center", va="center_baseline", **ink)
        left += shares
    ax.set_yticks(np.arange(len(rows)), [name(row) for row in rows], fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.xaxis.set_major_formatter("{x:g} %")
    ax.set_xlabel("share of new worlds")
    ax.spines[["top", "right", "left"]].set_visible(False)
    legend_outside(figure, ax, 5, "upper center", fontsize=9)
    return figure


# Learning


class _Line(NamedTuple):
    """Trainings that differ in their seed only, and how they are drawn."""

    folders: list[Path]
    method: str
    label: str
    color: str
    marker: str


def _lines(folders: Sequence[str | Path]) -> dict[int, list[_Line]]:
    """Return the trainings by number of steps, then in the order of the methods."""
    groups: dict[Any, list[Path]] = {}
    for folder in map(Path, folders):
        training, alignment = read_training(folder)
        groups.setdefault((replace(training, seed=0), alignment), []).append(folder)
    order = sorted(groups, key=lambda key: (key[0].steps, order_of(key[0].name)))
    alone = all(training.name != OURS for training, _ in groups)
    panels: dict[int, list[_Line]] = {steps: [] for steps in sorted({t.steps for t, _ in order})}
    for steps, lines in panels.items():
        here = [key for key in order if key[0].steps == steps]
        names = [training.name for training, _ in here]
        free = (method for name, method in METHODS.items() if name not in names)
        for i, (name, key) in enumerate(zip(names, here, strict=True)):
            label, found = label_of(name, alone), groups[key]
            label += f" ({found[0].name})" if names.count(name) > 1 else ""
            # A method that is not known, or is there a second time, looks like one that is not.
            own = name in METHODS and name not in names[:i]
            method = METHODS[name] if own else next(free, METHODS[OURS])
            lines.append(_Line(found, name, label, OKABE_ITO[method.color], method.marker))
    return panels


class _Curve(NamedTuple):
    """Shares of worlds with a diamond over steps: mean over seeds, and the ends of its band."""

    steps: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _curve(runs: Sequence[list[dict[str, str]]], phase: str) -> _Curve | None:
    """Return the curve of a phase; None if nothing was evaluated.

    Seeds have the same schedule, so their n-th evaluations belong together; of trainings still
    going on, those that all have.
    """
    mine = [[row for row in rows if row["phase"] == phase] for rows in runs]
    length = min(map(len, mine), default=0)
    if length == 0:
        return None
    steps, worlds, solved = (
        np.array([[int(row[name]) for row in rows[:length]] for rows in mine])
        for name in ("steps", "worlds", "solved")
    )
    low, high = range_of(solved, worlds)
    return _Curve(steps.mean(axis=0), 100 * (solved / worlds).mean(axis=0), 100 * low, 100 * high)


def _draw_line(ax: Axes, line: _Line) -> bool:
    """Draw a method's curve, the manager's part dashed; return whether it has such a part."""
    needed = ("phase", "steps", "worlds", "solved")
    runs = [read_rows(folder / "evaluations.csv", needed) for folder in line.folders]
    agents, manager = (_curve(runs, phase) for phase in ("agents", "manager"))
    color, ours = line.color, line.method == OURS
    look = {"color": color, "marker": line.marker, "markersize": 5, "zorder": 3 if ours else 2}
    for curve, face, dashes, label in (
        (agents, color, "-", line.label),
        (manager, "white", "--", "_"),
    ):
        if curve is not None:
            look |= {"markerfacecolor": face, "ls": dashes, "label": label}
            ax.plot(curve.steps, curve.mean, lw=2.2 if ours else 1.4, **look)
            ax.fill_between(curve.steps, curve.low, curve.high, color=color, alpha=0.18, lw=0)
    if agents and manager:  # a thin line from where the sub-agents ended
        x, y = (agents.steps[-1], manager.steps[0]), (agents.mean[-1], manager.mean[0])
        ax.plot(x, y, color=color, lw=0.8, ls=":", zorder=2)
    if not agents and not manager:
        ax.plot([], [], **look, label=f"{line.label} (no evaluation yet)")
    return manager is not None


def learning_curves(folders: Sequence[str | Path]) -> Figure:
    """Return the share of new worlds in which the diamond is found, over environment steps.

    Trainings of so many steps share a panel. Lines are means over seeds, bands go from the least to
    the most; of a single seed the band is the 95 % interval over worlds. The manager's phase is
    dashed.

    Args:
        folders: Folders of trainings, which are grouped by method.
    """
    panels = _lines(folders)
    if not panels:
        raise ValueError("there is nothing to draw; give at least one folder of a training")
    most = max(map(len, panels.values()))
    size = (7.2 if len(panels) == 1 else 4.6 * len(panels), 4.0 + 0.1 * most)
    figure = Figure(figsize=size, layout="constrained")
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    legend: dict[str, Any] = {}
    managed = evaluated = False
    for ax, (steps, lines) in zip(row, panels.items()):
        for line in lines:
            managed |= _draw_line(ax, line)
        every = [x for line in ax.lines for x in np.asarray(line.get_xdata(), float)]
        evaluated |= bool(every)
        if every:
            step_axis(ax, min(every) * 0.93, max(every) * 1.08, ticks=9)
        if len(panels) > 1:
            ax.set_title(f"{short_number(steps)} steps in all", loc="left", fontsize=10)
        ax.set_xlabel("environment steps")
        tidy(ax)
        for handle, label in zip(*ax.get_legend_handles_labels()):
            legend.setdefault(label, handle)
    if not evaluated:
        raise ValueError("no training has an evaluation yet; its evaluations.csv is empty")
    bands = [band.get_paths()[0].get_extents().y1 for ax in row for band in ax.collections]
    top = max([*bands, 1e-3])
    row[0].set_ylim(-0.01 * top, 1.04 * top)
    row[0].yaxis.set_major_formatter("{x:g} %")
    row[0].set_ylabel("new worlds in which the diamond is found")
    if managed:
        dashes = Line2D([], [], color="#555555", ls="--", marker="o", markerfacecolor="white")
        legend["with the manager"] = dashes
    seeds = {len(line.folders) for lines in panels.values() for line in lines}
    band = "least to most of the seeds" + (", or 95 % interval of one" if 1 in seeds else "")
    band = "95 % interval over worlds (one seed)" if seeds == {1} else band
    legend[band] = Patch(color="#bbbbbb")
    columns = 1 if max(map(len, legend)) > 60 else 2 if len(panels) == 1 else 3
    legend_outside(figure, legend, columns)
    return figure


# Sub-agents


def _moving_rate(reached: np.ndarray, failed: np.ndarray, window: int) -> np.ndarray:
    """Return successes per tries over the last `window` updates; NaN where nothing was tried."""

    def last(counts: np.ndarray) -> np.ndarray:
        return np.convolve(counts, np.ones(window))[: len(counts)]

    tries = last(reached + failed)
    return np.divide(last(reached), tries, out=np.full(len(tries), np.nan), where=tries > 0)


def sub_agent_curves(
    folder: str | Path, goals: Sequence[object] = (), window: int | None = None
) -> Figure:
    """Return a panel for each sub-task: accuracy while cloning, then success of tries in PPO.

    The manager's phase is left out: it begins again at states of the demonstrations, so that its
    tries are others.

    Args:
        folder: Folder of a training.
        goals: Symbols of the sub-goals; those in its `evaluation.json` if left out, or numbers.
        window: Updates over which tries are counted together; a fiftieth of all if None.
    """
    folder = Path(folder)
    updates, cloning = (
        read_rows(folder / name, needed) if (folder / name).is_file() else []
        for name, needed in (("updates.csv", ("phase",)), ("cloning.csv", ()))
    )
    updates = [row for row in updates if row["phase"] == "agents"]
    if not updates and not cloning:
        raise ValueError(f"{folder} has no updates yet; give the folder of a training")
    n = sum(name.startswith(("reached_", "accuracy_")) for name in (updates or cloning)[0])
    evaluation = folder / "evaluation.json"
    if not goals and evaluation.is_file():
        goals = read_evaluation(evaluation)["goals"]
    if goals and len(goals) != n:
        raise ValueError(f"{folder} has {n} sub-tasks; {len(goals)} goals were given")
    names = goal_names([str(goal) for goal in goals]) or [f"sub-goal {k + 1}" for k in range(n)]
    return learning(
        [
            SubAgent(name, _cloning(cloning, k), _tries(updates, k, window))
            for k, name in enumerate(names)
        ],
        "accuracy on the demonstrations, over updates of cloning",
        "success of tries, over environment steps of PPO",
    )


def _cloning(rows: Sequence[Mapping[str, str]], k: int) -> list[tuple[float, float]]:
    """Return the accuracy of a sub-agent while it is cloned."""
    return [(int(row["updates"]), float(row[f"accuracy_{k}"])) for row in rows]


def _tries(
    rows: Sequence[Mapping[str, str]], k: int, window: int | None
) -> list[tuple[float, float]]:
    """Return the success of a sub-agent's tries while it is trained by PPO."""
    reached, failed = (
        np.array([float(row[f"{name}_{k}"]) for row in rows]) for name in ("reached", "failed")
    )
    rates = _moving_rate(reached, failed, window or max(len(rows) // 50, 1))
    return [(int(row["steps"]), float(rate)) for row, rate in zip(rows, rates, strict=True)]
