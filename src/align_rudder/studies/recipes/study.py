"""The study of recipes: run what is missing, then make tables and a figure of all of it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from align_rudder.baselines.protocol import Protocol
from align_rudder.studies.recipes.figures import length_figure
from align_rudder.studies.recipes.runner import run_settings
from align_rudder.studies.recipes.settings import FIRST_SEED, RECIPES, TRIALS, settings_of
from align_rudder.studies.recipes.tables import report_tables
from align_rudder.studies.recipes.trials import RecipeTrial, protocol_of
from align_rudder.studies.report import Report
from align_rudder.studies.statistics import summarise
from align_rudder.studies.trials import FORMAT, Scope, open_trials

__all__ = ["CAP", "configuration", "run_recipes"]

CAP = 3000
"""Most episodes of a trial."""


def configuration(parameters: dict[str, dict[str, Any]], protocol: Protocol) -> dict[str, Any]:
    """Return what the trials depend on beside their setting and seed."""
    protocol_data = asdict(protocol)
    return {"format": FORMAT, "study": RECIPES, "protocol": protocol_data, "parameters": parameters}


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
