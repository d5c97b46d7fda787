"""PPO on a sparse MiniGrid task in five ways: which trials there are, and their table and figure.

A trial itself is made of the pieces of `examples/minigrid_ppo.py`; `tools/minigrid_study.py` puts
them together. Its options are a dataclass, of which the study changes some.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import sem

from align_rudder.files import write_text
from align_rudder.runs.lock import only_here
from align_rudder.runs.rows import JsonRows
from align_rudder.runs.workers import Workers
from align_rudder.show.figures.curves import curves
from align_rudder.studies.tables import Table

__all__ = [
    "METHODS",
    "STRETCH",
    "best_settings",
    "mean_success",
    "put_table",
    "run_trials",
    "settings_in",
    "success_figure",
    "success_table",
    "trials",
]

STRETCH = 10_000
"""Steps of one point of a curve."""
TUNING_SEED = 50  # no result uses it
GRID = [  # tried for each method
    {"n_steps": 64, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 128, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 256, "learning_rate": 1e-3, "ent_coef": 0.01},
    {"n_steps": 256, "learning_rate": 5e-4, "ent_coef": 0.02},
]
MARKS = ("<!-- minigrid: table -->", "<!-- minigrid: end -->")

Row = dict[str, Any]
"""A finished trial: method, seed, curve, final, settings and what else should be known."""


class Method(NamedTuple):
    """A way to learn the task.

    Attributes:
        label: How table and figure name it.
        clone: Whether PPO begins with a policy cloned from the demonstrations.
        redistribute: Whether it is paid the redistributed reward.
        progress: Whether it observes how far along the profile it is.
    """

    label: str
    clone: bool
    redistribute: bool
    progress: bool


METHODS = {
    "bc+redistributed": Method("cloned, redistributed", True, True, True),
    "redistributed": Method("redistributed", False, True, True),
    "bc": Method("cloned", True, False, False),
    "bc+progress": Method("cloned, progress seen", True, False, True),  # the control
    "ppo": Method("PPO", False, False, False),
}


# Trials


def settings_in(options: Any) -> dict[str, Any]:
    """Return what tells trials of one method and seed apart."""
    return {k: v for k, v in asdict(options).items() if k not in ("out", "smoke", "seed")}


def trials(
    base: Any, methods: Sequence[str], seeds: int, tuned: Sequence[Row]
) -> Iterator[tuple[str, Any]]:
    """Yield method and options of every trial, seed by seed.

    A study that is stopped early then still compares the methods on the same seeds.

    Args:
        base: Options that all trials share.
        methods: Names of methods.
        seeds: How many seeds; 0 for the trials of the grid, on a seed of their own.
        tuned: Finished trials of the grid.
    """
    for seed in range(seeds):
        for name in methods:
            yield name, _options(base, name, seed, best_settings(tuned, name))
    if not seeds:
        for values in GRID:
            for name in methods:
                yield name, _options(base, name, TUNING_SEED, values)


def _options(base: Any, method: str, seed: int, tuned: dict[str, Any]) -> Any:
    _, *flags = METHODS[method]
    return replace(base, seed=seed, **dict(zip(Method._fields[1:], flags)), **tuned)


def _tuned(row: Row) -> dict[str, Any]:
    return {key: row["settings"][key] for key in GRID[0]}


def best_settings(tuned: Sequence[Row], method: str) -> dict[str, Any]:
    """Return the settings with the highest success over all of training; of equals the first."""
    rows = [row for row in tuned if row["method"] == method]
    if len(rows) < len(GRID):
        raise ValueError(f"{method} is not tuned yet; run with --tune first")
    return _tuned(max(sorted(rows, key=lambda row: GRID.index(_tuned(row))), key=mean_success))


def run_trials(
    path: Path,
    wanted: Iterable[tuple[str, Any]],
    trial: Callable[[str, Any], Row],
    workers: Workers,
) -> None:
    """Run the trials that a file does not hold, and add each to it as it ends.

    Args:
        path: The file, of JSON lines.
        wanted: Method and options of each trial.
        trial: Runs one.
        workers: Where they run.
    """
    with only_here(path.parent):
        rows = JsonRows(path)
        there = {_identity(r["method"], r["seed"], r["settings"]) for r in rows.read()}
        todo = [(m, o) for m, o in wanted if _identity(m, o.seed, settings_in(o)) not in there]
        print(f"{len(todo)} trials to run, {len(there)} there already", flush=True)
        for n, row in enumerate(workers.results((trial, job) for job in todo), 1):
            rows.append(row)
            name, found = f"{row['method']:18} seed {row['seed']:2}", f"final {row['final']:.2f}"
            found = f"mean {mean_success(row):.2f}, {found} ({row['seconds']} s)"
            print(f"{n}/{len(todo)} {name} {_tuned(row)}: {found}", flush=True)


def _identity(method: str, seed: int, settings: dict[str, Any]) -> str:
    return json.dumps([method, seed, settings], sort_keys=True)


# Table and figure


def mean_success(row: Row) -> float:
    """Return the mean success over a trial's training."""
    return float(np.mean(_rates(row)))


def _rates(row: Row) -> list[float]:
    return [won / began for began, won in row["curve"]]


def _curve(row: Row) -> tuple[list[float], list[float]]:
    """Return steps and the success rate around them; the last is final."""
    steps = [(k + 0.5) * STRETCH for k in range(len(row["curve"]))]
    return [*steps, row["settings"]["steps"]], [*_rates(row), row["final"]]


def _by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found = {name: [row for row in rows if row["method"] == name] for name in METHODS}
    return {name: mine for name, mine in found.items() if mine}


def success_table(rows: Sequence[Row]) -> Table:
    """Return success rates in percent, mean and standard error over the seeds."""
    steps = rows[0]["settings"]["steps"]
    shown = (0, steps // (4 * STRETCH), steps // (2 * STRETCH), 3 * steps // (4 * STRETCH), -1)
    around = [f"around {(k + 0.5) * STRETCH:,.0f}" for k in shown[1:-1]]
    lines = []
    for name, mine in _by_method(rows).items():
        y = 100 * np.array([_curve(row)[1] for row in mine])
        cells = [f"{y[:, k].mean():.0f}" for k in shown]
        if len(y) > 1:  # one seed has no standard error
            errors = sem(y)
            cells = [f"{c} ± {errors[k]:.0f}" for c, k in zip(cells, shown, strict=True)]
        lines.append([METHODS[name].label, *cells, ", ".join(f"{rate:.0f}" for rate in y[:, -1])])
    header = ["", f"first {STRETCH:,} steps", *around, f"at {steps:,}", "each seed"]
    return Table("", header, lines)


def put_table(rows: Sequence[Row], page: Path) -> None:
    """Replace the table of a page, which stands between two marks."""
    before, rest = page.read_text("utf-8").split(MARKS[0])
    table = success_table(rows).markdown()
    write_text(page, f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


def success_figure(rows: Sequence[Row]) -> Figure:
    """Return the success rates over the steps."""
    lines = {}
    for name, mine in _by_method(rows).items():
        drawn = [_curve(row) for row in mine]
        thousands = np.array(drawn[0][0]) / 1000
        lines[METHODS[name].label] = (thousands, [rates for _, rates in drawn])
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    ax = curves(lines, ax=figure.subplots())
    ax.set(xlabel="thousand environment steps", ylabel="success rate in new worlds", ylim=(0, 1))
    return figure
