"""Figures of the diamond task: sub-goals, learning curves, sub-agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from align_rudder.events.names import short_goal_names
from align_rudder.runs.rows import read_rows
from align_rudder.studies.diamond.methods import METHODS, label_of
from align_rudder.studies.diamond.tables import final_stage, short_number, wilson_interval

__all__ = ["learning_curves", "sub_agent_curves", "subgoal_bars"]

# Okabe and Ito's colours; a marker of its own for each, for print without colour.
_STYLES = {
    "align-rudder": ("#D55E00", "o"),
    "separate": ("#0072B2", "s"),
    "own-subtask": ("#000000", "<"),
    "no-redistribution": ("#009E73", "D"),
    "equal-reward": ("#56B4E9", "P"),
    "no-cloning": ("#CC79A7", "v"),
    "ppo-dense": ("#E69F00", "^"),
    "ppo-diamond": ("#999999", "X"),
}
_SHOWN, _CLONED, _TUNED = "#0072B2", "#009E73", "#E69F00"
_PHASES = ("agents", "manager")


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

    Demonstrations, behavioural cloning and the fine-tuned agent (with its main agent if it has
    one) stand side by side; what a training does not have is left out. The axis is linear up to
    one world of all those played and logarithmic beyond, so that rare successes can be seen.

    Args:
        evaluation: Contents of `evaluation.json`.
    """
    stages, method = evaluation["stages"], evaluation["method"]
    tuned, steps = stages[final_stage(evaluation)], short_number(evaluation["steps"])
    after = (
        f"fine-tuned, {steps} steps" if "cloned" in stages else f"{label_of(method)}, {steps} steps"
    )
    series = [
        ("demonstrations", _SHOWN, evaluation.get("demonstrations")),
        ("behavioural cloning", _CLONED, stages.get("cloned")),
        (after, _TUNED, tuned),
    ]
    series = [(label, color, found) for label, color, found in series if found]
    names = short_goal_names(evaluation["goals"])
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
        for place, rate in zip(x, rates):
            if rate == 0:
                ax.annotate(
                    "0",
                    (place, 0),
                    xytext=(0, 1),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=color,
                    fontweight="bold",
                )
    first = int(np.ceil(np.log10(least) - 1e-9))
    ax.set_yticks([0.0, *(10.0**e for e in range(first, 3))])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    ax.set_ylim(0, 130)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xticks(at, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", lw=0.4, color="#dddddd")
    ax.set_axisbelow(True)
    ax.set_ylabel("sub-goal reached")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


# Learning


def _group(folders: Sequence[str | Path]) -> dict[int, list[tuple[str, str, list[Path]]]]:
    """Return by number of steps: method, label and folders, those of other seeds together."""
    groups: dict[tuple[Any, ...], list[Path]] = {}
    for folder in map(Path, folders):
        try:
            found = json.loads((folder / "training.json").read_text())
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{folder} is not the folder of a training: its training.json cannot be read "
                f"({error})"
            ) from None
        same = {k: v for k, v in found.items() if k != "seed"}
        key = (found["steps"], found.get("name", folder.name), json.dumps(same, sort_keys=True))
        groups.setdefault(key, []).append(folder)
    order = list(METHODS)
    alone = all(method != order[0] for _, method, _ in groups)
    out: dict[int, list[tuple[str, str, list[Path]]]] = {}
    for key in sorted(groups, key=lambda k: (k[0], order.index(k[1]) if k[1] in order else 99)):
        steps, method, _ = key
        label = label_of(method, alone)
        if sum(other[:2] == key[:2] for other in groups) > 1:
            label += f" ({groups[key][0].name})"
        out.setdefault(steps, []).append((method, label, groups[key]))
    return out


def _curve(
    runs: Sequence[list[dict[str, str]]], phase: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Return steps, mean share, and the ends of its band; None if nothing was evaluated.

    Seeds have the same schedule, so their n-th evaluations belong together; of trainings still
    going on, those that all have.
    """
    mine = [[row for row in rows if row["phase"] == phase] for rows in runs]
    length = min(map(len, mine), default=0)
    if length == 0:
        return None

    def numbers(name: str) -> np.ndarray:
        return np.array([[float(row[name]) for row in rows[:length]] for rows in mine])

    steps, worlds, solved = numbers("steps"), numbers("worlds"), numbers("solved")
    shares = solved / worlds
    if len(mine) == 1:
        low, high = wilson_interval(solved[0], worlds[0])
    else:
        low, high = shares.min(axis=0), shares.max(axis=0)
    return steps.mean(axis=0), shares.mean(axis=0), low, high


def _draw_curve(ax: Axes, method: str, label: str, style: tuple[str, str], rows: Any) -> bool:
    """Draw a method's curve, the main agent's part dashed; return whether it has such a part."""
    color, marker = style
    ours = method == "align-rudder"
    ended: tuple[float, float] | None = None
    for phase in _PHASES:
        found = _curve(rows, phase)
        if found is None:
            continue
        steps, mean, low, high = found
        later = phase == "manager"
        if ended is not None:  # a thin line from where the sub-agents ended
            x, y = (ended[0], steps[0]), (ended[1], 100 * mean[0])
            ax.plot(x, y, color=color, lw=0.8, ls=":", zorder=2)
        ax.plot(
            steps,
            100 * mean,
            color=color,
            marker=marker,
            markersize=5,
            markerfacecolor="white" if later else color,
            lw=2.2 if ours else 1.4,
            ls="--" if later else "-",
            label="_" if later else label,
            zorder=3 if ours else 2,
        )
        ax.fill_between(steps, 100 * low, 100 * high, color=color, alpha=0.18, lw=0)
        ended = (float(steps[-1]), float(100 * mean[-1]))
    if ended is None:
        ax.plot([], [], color=color, marker=marker, label=f"{label} (no evaluation yet)")
    return any(row["phase"] == "manager" for run in rows for row in run)


def learning_curves(folders: Sequence[str | Path]) -> Figure:
    """Return the share of new worlds in which the diamond is found, over environment steps.

    Trainings of so many steps share a panel. Lines are means over seeds, bands go from the least to
    the most; of a single seed the band is the 95 % interval over worlds. The main agent's phase is
    dashed.

    Args:
        folders: Folders of trainings, which are grouped by method.
    """
    panels = _group(folders)
    if not panels:
        raise ValueError("there is nothing to draw; give at least one folder of a training")
    lines = max(map(len, panels.values()))
    size = (7.2 if len(panels) == 1 else 4.6 * len(panels), 4.0 + 0.1 * lines)
    figure = Figure(figsize=size, layout="constrained")
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    legend: dict[str, Any] = {}
    managed = evaluated = False
    for ax, (steps, groups) in zip(row, panels.items()):
        named = [method for method, _, _ in groups]
        free = [style for name, style in _STYLES.items() if name not in named]
        for i, (method, label, seeds) in enumerate(groups):
            known = method in _STYLES and method not in named[:i]
            style = _STYLES[method] if known else free.pop(0) if free else ("#333333", "*")
            needed = ("phase", "steps", "worlds", "solved")
            rows = [read_rows(folder / "evaluations.csv", needed) for folder in seeds]
            managed |= _draw_curve(ax, method, label, style, rows)
        every = [x for line in ax.lines for x in np.asarray(line.get_xdata(), float)]
        evaluated |= bool(every)
        if every:
            _step_axis(ax, min(every) * 0.93, max(every) * 1.08, ticks=9)
        if len(panels) > 1:
            ax.set_title(f"{short_number(steps)} steps in all", loc="left", fontsize=10)
        ax.set_xlabel("environment steps")
        ax.grid(axis="y", lw=0.4, color="#dddddd")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*ax.get_legend_handles_labels()):
            legend.setdefault(label, handle)
    if not evaluated:
        raise ValueError("no training has an evaluation yet; its evaluations.csv is empty")
    bands = [band.get_paths()[0].get_extents().y1 for ax in row for band in ax.collections]
    top = max([*bands, 1e-3])
    row[0].set_ylim(-0.01 * top, 1.04 * top)
    row[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    row[0].set_ylabel("new worlds in which the diamond is found")
    if managed:
        dashes = Line2D([], [], color="#555555", ls="--", marker="o", markerfacecolor="white")
        legend["with the main agent"] = dashes
    numbers = {len(seeds) for groups in panels.values() for _, _, seeds in groups}
    band = "least to most of the seeds" + (", or 95 % interval of one" if 1 in numbers else "")
    legend["95 % interval over worlds (one seed)" if numbers == {1} else band] = Patch(
        color="#bbbbbb"
    )
    ncols = 1 if max(map(len, legend)) > 60 else 2 if len(panels) == 1 else 3
    figure.legend(
        list(legend.values()),
        list(legend),
        loc="outside lower center",
        ncols=ncols,
        frameon=False,
        fontsize=8,
    )
    return figure


def _moving_rate(reached: np.ndarray, failed: np.ndarray, window: int) -> np.ndarray:
    """Return successes per tries over the last `window` updates; NaN where nothing was tried."""

    def last(counts: np.ndarray) -> np.ndarray:
        sums = np.concatenate([[0.0], np.cumsum(counts)])
        end = np.arange(1, len(counts) + 1)
        return sums[end] - sums[np.maximum(end - window, 0)]

    tries = last(reached + failed)
    return np.divide(last(reached), tries, out=np.full(len(tries), np.nan), where=tries > 0)


def sub_agent_curves(
    folder: str | Path, goals: Sequence[object] = (), window: int | None = None
) -> Figure:
    """Return a panel for each sub-task: accuracy while cloning, then success of tries in PPO.

    The main agent's phase is left out: it begins again at states of the demonstrations, so that its
    tries are others.

    Args:
        folder: Folder of a training.
        goals: Symbols of the sub-goals; those in its `evaluation.json` if left out, or numbers.
        window: Updates over which tries are counted together; a fiftieth of all if None.
    """
    folder = Path(folder)
    path = folder / "updates.csv"
    logged = read_rows(path, ("phase",)) if path.is_file() else []
    updates = [row for row in logged if row["phase"] == "agents"]
    shown = read_rows(folder / "cloning.csv") if (folder / "cloning.csv").is_file() else []
    if not updates and not shown:
        raise ValueError(f"{folder} has no updates yet; give the folder of a training")
    n = sum(name.startswith(("reached_", "accuracy_")) for name in (updates or shown)[0])
    evaluation = folder / "evaluation.json"
    if not goals and evaluation.is_file():
        goals = json.loads(evaluation.read_text())["goals"]
    if goals and len(goals) != n:
        raise ValueError(f"{folder} has {n} sub-tasks; {len(goals)} goals were given")
    names = [f"sub-goal {k + 1}" for k in range(n)]
    if goals:
        names = short_goal_names([str(goal) for goal in goals])
    columns = min(5, n)
    rows = -(-n // columns)
    figure = Figure(figsize=(2.3 * columns + 0.6, 1.65 * rows + 0.75))
    outer = figure.add_gridspec(
        rows,
        columns,
        left=0.65 / figure.get_figwidth(),
        right=1 - 0.15 / figure.get_figwidth(),
        bottom=0.6 / figure.get_figheight(),
        top=1 - 0.3 / figure.get_figheight(),
        wspace=0.16,
        hspace=0.42,
    )
    for k, name in enumerate(names):
        row, column = divmod(k, columns)
        inner = outer[row, column].subgridspec(1, 2, width_ratios=(1, 2.2), wspace=0.06)
        left, right = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
        left.set_title(name, fontsize=9.5, loc="left", pad=3)
        if shown:
            x = [int(r["updates"]) for r in shown]
            left.plot(x, [100 * float(r[f"accuracy_{k}"]) for r in shown], color=_CLONED, lw=1.4)
            left.set_xlim(0, x[-1])
            left.set_xticks([x[-1]], [short_number(x[-1])])
            left.xaxis.get_majorticklabels()[0].set_horizontalalignment("right")
        else:
            left.set_xticks([])
        if updates:
            reached = np.array([float(r[f"reached_{k}"]) for r in updates])
            failed = np.array([float(r[f"failed_{k}"]) for r in updates])
            size = window or max(len(updates) // 50, 1)
            every = [int(r["steps"]) for r in updates]
            right.plot(every, 100 * _moving_rate(reached, failed, size), color=_TUNED, lw=1.4)
            _step_axis(right, every[0], every[-1], ticks=3)
        for ax in (left, right):
            ax.set_ylim(-3, 104)
            ax.set_yticks([0, 50, 100])
            ax.grid(axis="y", lw=0.4, color="#dddddd")
            ax.set_axisbelow(True)
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize=7.5, length=2, pad=2)
        left.set_facecolor("#f4f4f4")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.spines["left"].set_visible(False)
        left.set_yticklabels(["0", "50", "100 %"] if column == 0 else [])
    handles = [Line2D([], [], color=_CLONED), Line2D([], [], color=_TUNED)]
    labels = ["accuracy on the demonstrations, over updates of cloning"]
    labels += ["success of tries, over environment steps of PPO"]
    figure.legend(
        handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=8.5
    )
    return figure
