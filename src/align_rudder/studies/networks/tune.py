"""A search of hyper-parameters, the same for every method, on seeds that no result uses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from align_rudder.files import Whole
from align_rudder.runs.workers import Workers
from align_rudder.studies.choice import choose
from align_rudder.studies.hyperparameters import add_parameters
from align_rudder.studies.method import check_methods
from align_rudder.studies.networks.methods import METHODS, read_parameters
from align_rudder.studies.networks.runner import run_settings
from align_rudder.studies.networks.settings import STEPS, Setting
from align_rudder.studies.networks.trials import NetworkTrial, learning_options
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import TRIALS, open_trials

__all__ = ["FIRST_SEED", "tune_networks"]

FIRST_SEED = 160_000


def tune_networks(
    methods: Sequence[str],
    trials: int,
    folder: str | os.PathLike[str],
    workers: Workers,
    progress: bool = True,
    steps: int = STEPS,
) -> tuple[dict[str, dict[str, Any]], list[Table]]:
    """Try every configuration of each method; the one with the fewest steps lost is chosen.

    Args:
        methods: Names of methods.
        trials: Trials of each configuration.
        folder: Where trials are stored; the same call resumes a search that was stopped.
        workers: Where trials run.
        progress: Whether to show progress.
        steps: Most environment steps of a trial.

    Returns:
        The chosen hyper-parameters of each method, and a table for each.

    Notes:
        Steps lost are the area above the curve of success, Σ (1 − success) · 5,000 up to the most
        steps, the mean over the trials: where no configuration reaches the target, that still tells
        which one comes closer.
    """
    check_methods(methods, METHODS)
    TRIALS.check(trials, "trials")
    Whole(1).check(steps, "steps")
    grids = {name: method.configurations() for name, method in METHODS.items()}
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    settings = [
        Setting(method=name, variant=variant)
        for name in methods
        for variant in range(len(grids[name]))
    ]
    config = {"study": "tune networks", "steps": steps, "learner": learning_options()}
    with open_trials(folder, {**config, "grids": grids}, NetworkTrial) as store:
        run_settings(
            settings,
            seeds,
            store,
            lambda setting: grids[setting.method][setting.variant],
            steps,
            workers,
            progress,
        )
        lost = {
            setting: np.mean([store.found[setting, seed].lost(steps) for seed in seeds])
            for setting in settings
        }
    chosen, tables = {}, []
    for name in methods:
        means = [[float(lost[s])] for s in settings if s.method == name]
        title = f"{METHODS[name].label}: steps lost ({trials} seeds)"
        best, table = choose(METHODS[name].label, title, grids[name], means, ["steps lost"])
        chosen[name] = grids[name][best]
        edges = ", ".join(METHODS[name].edges(chosen[name]))
        notes = (*table.notes, *([f"at an end of its values: {edges}"] if edges else []))
        tables.append(replace(table, notes=notes))
    how = f"{trials} seeds from {FIRST_SEED}, steps lost of {steps:,}"
    add_parameters(folder, how, chosen, read_parameters)
    return chosen, tables
