"""A search of hyper-parameters with the same budget for every method, on seeds no result uses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from align_rudder.runs.workers import Workers
from align_rudder.studies.choice import choose
from align_rudder.studies.hyperparameters import add_parameters
from align_rudder.studies.method import check_methods
from align_rudder.studies.recipes.methods import METHODS, TUNED, read_parameters
from align_rudder.studies.recipes.runner import run_settings
from align_rudder.studies.recipes.settings import Setting
from align_rudder.studies.recipes.trials import RecipeTrial, protocol_of
from align_rudder.studies.statistics import summarise
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import TRIALS, open_trials

__all__ = ["FIRST_SEED", "tune_recipes"]

FIRST_SEED = 140_000
_LENGTHS = (8, 12)


def tune_recipes(
    methods: Sequence[str],
    trials: int,
    max_episodes: int,
    folder: str | os.PathLike[str],
    workers: Workers,
    progress: bool = True,
) -> tuple[dict[str, dict[str, Any]], list[Table]]:
    """Try every configuration of each method on recipes of 8 and 12 items with 10 logs.

    The one with the lowest geometric mean of the mean episodes is chosen; among equals, the first.

    Args:
        methods: Names of methods.
        trials: Trials of each configuration with each length.
        max_episodes: Most episodes of a trial.
        folder: Where trials are stored; the same call resumes a search that was stopped.
        workers: Where trials run.
        progress: Whether to show progress.

    Returns:
        The chosen hyper-parameters of each method, and a table for each.
    """
    check_methods(methods, TUNED)
    TRIALS.check(trials, "trials")
    grids = {name: METHODS[name].configurations() for name in TUNED}
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    settings = [
        Setting(length, method=name, variant=variant)
        for length in _LENGTHS
        for name in methods
        for variant in range(len(grids[name]))
    ]
    protocol = protocol_of(max_episodes)
    config = {"study": "tune recipes", "protocol": asdict(protocol), "grids": grids}
    with open_trials(folder, config, RecipeTrial) as store:
        run_settings(
            settings,
            seeds,
            store,
            lambda setting: grids[setting.method][setting.variant],
            protocol,
            workers,
            progress,
        )
        found = summarise((r for r in store.found.values() if r.seed in seeds), settings)
    chosen, tables = {}, []
    for name in methods:
        cells = {
            (s.setting.variant, s.setting.length): s for s in found if s.setting.method == name
        }
        means = [[cells[v, length].mean for length in _LENGTHS] for v in range(len(grids[name]))]
        title = f"{METHODS[name].label}: mean episodes ({trials} tasks)"
        heads = [f"{n} items" for n in _LENGTHS]
        best, table = choose(METHODS[name].label, title, grids[name], means, heads)
        chosen[name] = grids[name][best]
        tables.append(table)
    how = f"{trials} tasks from seed {FIRST_SEED}, {_LENGTHS} items, 10 logs"
    add_parameters(folder, how, chosen, read_parameters)
    return chosen, tables
