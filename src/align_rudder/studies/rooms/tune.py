"""Grid search with the same budget for every method, on seeds that no result uses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.workers import Workers
from align_rudder.studies.choice import choose
from align_rudder.studies.hyperparameters import add_parameters
from align_rudder.studies.method import check_methods
from align_rudder.studies.rooms.methods import METHODS, read_parameters
from align_rudder.studies.rooms.runner import run_settings
from align_rudder.studies.rooms.settings import SEARCHES, Search, Setting
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.statistics import Summary, summarise
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import TRIALS, open_trials

__all__ = ["FIRST_SEED", "configuration", "tune"]

FIRST_SEED = 100_000


def tune(
    methods: Sequence[str],
    trials: int,
    protocol: Protocol,
    folder: str | os.PathLike[str],
    workers: Workers,
    progress: bool = True,
    search: str = "paper",
) -> tuple[dict[str, dict[str, Any]], list[Table]]:
    """Try every configuration of each method on the tasks of a search.

    The one with the lowest geometric mean of the mean episodes to the target is chosen: one for
    all tasks and numbers of demonstrations.

    Args:
        methods: Names of methods; those of the search if empty.
        trials: Trials of each configuration in each setting.
        protocol: How trials are run; a low cap makes hopeless configurations cheap.
        folder: Where trials are stored; the same call resumes a search that was stopped.
        workers: Where trials run.
        progress: Whether to show progress.
        search: One of `SEARCHES`.

    Returns:
        The chosen hyper-parameters of each method, and a table for each.
    """
    which = SEARCHES[search]
    methods = tuple(methods) or which.methods
    TRIALS.check(trials, "trials")
    for name in methods:
        if name in METHODS and not METHODS[name].grid:
            raise ValueError(f"{name} is a variant of Align-RUDDER and takes its hyper-parameters")
    check_methods(methods, which.methods)
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    settings = [
        Setting(rooms, slip, 15, demos, name, variant, noise)
        for name in methods
        for variant in range(len(METHODS[name].configurations()))
        for rooms, slip, noise, demos in which.places
    ]
    with open_trials(folder, configuration(protocol, search), TrialRecord) as store:
        run_settings(settings, seeds, store, parameters_of, protocol, workers, progress)
        found = summarise((r for r in store.found.values() if r.seed in seeds), settings)
    chosen, tables = {}, []
    for name in methods:
        mine = [s for s in found if s.setting.method == name]
        best, table = _choose(name, mine, which)
        chosen[name] = METHODS[name].configurations()[best]
        tables.append(table)
    how = f"{trials} trials from seed {FIRST_SEED}, {which.how}"
    add_parameters(folder, how, chosen, read_parameters)
    return chosen, tables


def configuration(protocol: Protocol, search: str = "paper") -> dict[str, Any]:
    """Return what the trials depend on beside their setting and seed."""
    grids = {name: METHODS[name].configurations() for name in SEARCHES[search].methods}
    study = "tune" if search == "paper" else f"tune {search}"
    return {"study": study, "protocol": asdict(protocol), "grids": grids}


def parameters_of(setting: Setting) -> dict[str, Any]:
    """Return the configuration of a setting's variant."""
    return METHODS[setting.method].configurations()[setting.variant]


def _choose(name: str, found: Sequence[Summary], search: Search) -> tuple[int, Table]:
    cells = {
        (s.setting.variant, s.setting.rooms, s.setting.slip, s.setting.noise, s.setting.demos): s
        for s in found
    }
    method, configurations = METHODS[name], METHODS[name].configurations()
    means = [[cells[v, *p].mean for p in search.places] for v in range(len(configurations))]
    title = f"{method.label}: episodes to the target ({found[0].trials} trials)"
    heads = [search.name_of(place) for place in search.places]
    best, table = choose(method.label, title, configurations, means, heads)
    if edges := method.edges(configurations[best]):
        note = f"* chosen; at an end of its values: {', '.join(edges)}"
        table = replace(table, notes=(note,))
    return best, table
