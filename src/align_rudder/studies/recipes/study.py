"""The study of recipes: run what is missing, then make tables and a figure of all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.workers import Job, Workers
from align_rudder.studies.recipes.figures import length_figure
from align_rudder.studies.recipes.settings import (
    FIRST_SEED,
    RECIPES,
    TRIALS,
    Setting,
    settings_of,
)
from align_rudder.studies.recipes.tables import report_tables
from align_rudder.studies.recipes.trials import RecipeTrial, protocol_of, run_trial
from align_rudder.studies.report import Report
from align_rudder.studies.statistics import summarise
from align_rudder.studies.trials import FORMAT, Scope, Trials, open_trials

__all__ = ["CAP", "configuration", "run_recipes", "run_settings"]

CAP = 3000
"""Most episodes of a trial."""


def configuration(parameters: dict[str, dict[str, Any]], protocol: Protocol) -> dict[str, Any]:
    """Return what the trials depend on beside their setting and seed."""
    protocol_data = asdict(protocol)
    return {"format": FORMAT, "study": RECIPES, "protocol": protocol_data, "parameters": parameters}


def run_settings(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    trials: Trials[RecipeTrial],
    parameters: Callable[[Setting], Mapping[str, Any]],
    protocol: Protocol,
    workers: Workers,
    progress: bool = True,
) -> None:
    """Run the trials that are not there yet; those of one task follow each other.

    Args:
        settings: The settings.
        seeds: The seeds of the trials of each.
        trials: Where trials are kept.
        parameters: Gives the learner's arguments for a setting.
        protocol: How trials are run and judged.
        workers: Where they run.
        progress: Whether to show progress bars.
    """

    def prepare(todo: list[tuple[Setting, int]]) -> None:
        # Compiles the learners, whose code is then found in the cache by all workers.
        small = protocol_of(protocol.evaluate_every)
        for setting in {setting.method: setting for setting, _ in todo}.values():
            short = replace(setting, length=2, logs=2, wrong="nothing")
            run_trial(short, 0, parameters(setting), small)

    def job(setting: Setting, seed: int) -> Job:
        return run_trial, (setting, seed, parameters(setting), protocol)

    keys = [(setting, seed) for seed in seeds for setting in settings]
    trials.complete(keys, job, workers, progress, prepare)


def run_recipes(
    parameters: dict[str, dict[str, Any]],
    out: str | os.PathLike[str],
    scope: Scope | None = None,
    max_episodes: int = CAP,
) -> Report:
    """Run the trials that are not stored yet, and report all that were asked for.

    Args:
        parameters: Hyper-parameters of every method.
        out: Folder of results; the study has a folder of its own in it.
        scope: How much of it is run, and where; `demos` are numbers of logs.
        max_episodes: Most episodes of a trial.
    """
    scope, protocol = scope or Scope(), protocol_of(max_episodes)
    settings = settings_of(scope.methods, scope.demos)
    seeds = range(FIRST_SEED, FIRST_SEED + (scope.trials or TRIALS))
    with open_trials(
        Path(out) / RECIPES, configuration(parameters, protocol), RecipeTrial
    ) as store:
        run_settings(
            settings,
            seeds,
            store,
            lambda setting: parameters[setting.method],
            protocol,
            scope.workers,
            scope.progress,
        )
        shown = [store.found[setting, seed] for setting in settings for seed in seeds]
        found = summarise(shown, settings)
        figures = {"episodes": length_figure(found, max_episodes)}
        data = [summary.data() for summary in found]
        report = Report(report_tables(found, max_episodes), figures, data)
        report.write(store.folder, partial=len(shown) < len(store.found))
    return report
