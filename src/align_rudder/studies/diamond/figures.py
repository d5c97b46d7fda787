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
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from align_rudder.files import write_figure
from align_rudder.model import AlignRudder
from align_rudder.runs.rows import read_rows
from align_rudder.show.figures import consensus
from align_rudder.show.figures.colors import OKABE_ITO, ink_on, legend_outside
from align_rudder.studies.diamond.methods import METHODS, OURS, label_of, order_of
from align_rudder.studies.diamond.results import read_evaluation, read_training
from align_rudder.studies.diamond.tables import (
    GIVEN_UP,
    endings_rows,
    final_stage,
    range_of,
    short_number,
)
from align_rudder.tasks.diamond.names import event_names, goal_names

__all__ = [
    "draw_alignment",
    "draw_results",
    "endings_bars",
    "learning_curves",
    "sub_agent_curves",
    "subgoal_bars",
]

_SHOWN, _CLONED, _TUNED = OKABE_ITO["blue"], OKABE_ITO["green"], OKABE_ITO["orange"]
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


def _tidy(ax: Axes) -> None:
    """Leave out the lines above and to the right, and draw faint lines to read heights from."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", lw=0.4, color="#dddddd")
    ax.set_axisbelow(True)


def _step_axis(ax: Axes, low: float, high: float, ticks: int = 6) -> None:
    """Make x a logarithmic axis of steps, with ticks at 1, 2, 5, 10 …, as many as fit."""
    ax.set_xscale("log")
    ax.set_xlim(low, max(high, low * 1.01))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        places = [d * 10.0**e for e in range(13) for d in digits]
        inside = [p for p in places if low <= p <= high]
        if len(inside) <= ticks:
            break
    ax.xaxis.set_major_locator(FixedLocator(inside))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


# Sub-goals


def subgoal_bars(evaluation: Mapping[str, Any]) -> Figure:
    """Return how often each sub-goal along the consensus is reached, as bars.

    Demonstrations, behavioural cloning and the fine-tuned agent (with its manager if it has one)
    stand side by side; what a training does not have is left out. The axis is linear up to one
    world of all those played and logarithmic beyond, so that rare successes can be seen.

    Args:
        evaluation: Contents of `evaluation.json`.
    """
    stages, method = evaluation["stages"], evaluation["method"]
    after = "fine-tuned" if "cloned" in stages else label_of(method)
    after += f", {short_number(evaluation['steps'])} steps"
    series = [
        ("demonstrations", _SHOWN, evaluation.get("demonstrations")),
        ("behavioural cloning", _CLONED, stages.get("cloned")),
        (after, _TUNED, stages[final_stage(evaluation)]),
    ]
    series = [(label, color, found) for label, color, found in series if found]
    names = goal_names(evaluation["goals"])
    at, width = np.arange(len(names)), 0.84 / len(series)
    figure = Figure(figsize=(max(6.0, 0.48 * len(names) + 1.2), 4.2), layout="constrained")
    ax = figure.subplots()
    least = 100 / max(found["worlds"] for _, _, found in series)
    ax.set_yscale("symlog", linthresh=least, linscale=0.6)
    for i, (label, color, found) in enumerate(series):
        rates = 100 * np.array(found["reached"]) / found["worlds"]
        x = at + (i - (len(series) - 1) / 2) * width
        many = f"{found['worlds']:,} {'runs' if label == 'demonstrations' else 'worlds'}"
        ax.bar(x, rates, width * 0.94, color=color, label=f"{label} ({many})")
        for place in x[rates == 0]:
            bold = {"fontsize": 7, "fontweight": "bold", "color": color, "ha": "center"}
            ax.annotate("0", (place, 0), xytext=(0, 1), textcoords="offset points", **bold)
    first = int(np.ceil(np.log10(least) - 1e-9))
    ax.set_yticks([0.0, *(10.0**e for e in range(first, 3))])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:g} %")
    ax.set_ylim(0, 130)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xticks(at, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    ax.tick_params(axis="x", length=0)
    _tidy(ax)
    ax.set_ylabel("sub-goal reached")
    legend_outside(figure, ax, 3, "upper center", fontsize=9)
    return figure


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
            _step_axis(ax, min(every) * 0.93, max(every) * 1.08, ticks=9)
        if len(panels) > 1:
            ax.set_title(f"{short_number(steps)} steps in all", loc="left", fontsize=10)
        ax.set_xlabel("environment steps")
        _tidy(ax)
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
    columns = min(5, n)
    rows = -(-n // columns)
    width, height = 2.3 * columns + 0.6, 1.65 * rows + 0.75
    figure = Figure(figsize=(width, height))
    outer = figure.add_gridspec(
        rows,
        columns,
        left=0.65 / width,
        right=1 - 0.15 / width,
        bottom=0.6 / height,
        top=1 - 0.3 / height,
        wspace=0.16,
        hspace=0.42,
    )
    for k, name in enumerate(names):
        inner = outer[divmod(k, columns)].subgridspec(1, 2, width_ratios=(1, 2.2), wspace=0.06)
        left, right = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
        left.set_title(name, fontsize=9.5, loc="left", pad=3)
        _draw_cloning(left, cloning, k)
        _draw_tries(right, updates, k, window or max(len(updates) // 50, 1))
        for ax in (left, right):
            ax.set_ylim(-3, 104)
            ax.set_yticks([0, 50, 100])
            _tidy(ax)
            ax.tick_params(labelsize=7.5, length=2, pad=2)
        left.set_facecolor("#f4f4f4")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.spines["left"].set_visible(False)
        left.set_yticklabels(["0", "50", "100 %"] if k % columns == 0 else [])
    figure.legend(
        [Line2D([], [], color=_CLONED), Line2D([], [], color=_TUNED)],
        [
            "accuracy on the demonstrations, over updates of cloning",
            "success of tries, over environment steps of PPO",
        ],
        loc="lower center",
        ncols=2,
        frameon=False,
        fontsize=8.5,
    )
    return figure


def _draw_cloning(ax: Axes, rows: Sequence[Mapping[str, str]], k: int) -> None:
    """Draw the accuracy of a sub-agent while it is cloned."""
    ax.set_xticks([])
    if rows:
        x = [int(row["updates"]) for row in rows]
        ax.plot(x, [100 * float(row[f"accuracy_{k}"]) for row in rows], color=_CLONED, lw=1.4)
        ax.set_xlim(0, x[-1])
        ax.set_xticks([x[-1]], [short_number(x[-1])], ha="right")


def _draw_tries(ax: Axes, rows: Sequence[Mapping[str, str]], k: int, window: int) -> None:
    """Draw the success of a sub-agent's tries while it is trained by PPO."""
    if rows:
        reached, failed = (
            np.array([float(row[f"{name}_{k}"]) for row in rows]) for name in ("reached", "failed")
        )
        steps = [int(row["steps"]) for row in rows]
        ax.plot(steps, 100 * _moving_rate(reached, failed, window), color=_TUNED, lw=1.4)
        _step_axis(ax, steps[0], steps[-1], ticks=3)
