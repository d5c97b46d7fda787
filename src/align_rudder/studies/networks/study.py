"""The study with networks: run what is missing, then make table and figure of all of it.

`align-rudder reproduce networks` calls it. Without the command line:

    from align_rudder.runs.workers import Workers
    from align_rudder.studies.networks.study import run_networks
    from align_rudder.studies.trials import Scope

    report = run_networks("results", scope=Scope(workers=Workers(16)))
    print(report.text())

In a script, put it under `if __name__ == "__main__":`. The same call goes on with a study that was
stopped. Needed are Stable-Baselines3 and MiniGrid (the extra `networks`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from align_rudder.files import Whole
from align_rudder.studies.networks.figures import curves_figure
from align_rudder.studies.networks.methods import chosen_parameters
from align_rudder.studies.networks.runner import run_settings
from align_rudder.studies.networks.settings import (
    FIRST_SEED,
    NETWORKS,
    STEPS,
    TRIALS,
    settings_of,
)
from align_rudder.studies.networks.tables import report_tables, summarise
from align_rudder.studies.networks.trials import NetworkTrial, learning_options
from align_rudder.studies.report import Report
from align_rudder.studies.trials import FORMAT, Scope, open_trials

__all__ = ["configuration", "run_networks"]


def configuration(parameters: dict[str, dict[str, Any]], steps: int) -> dict[str, Any]:
    """Return what the trials depend on beside their setting and seed."""
    return {
        "format": FORMAT,
        "study": NETWORKS,
        "steps": steps,
        "learner": learning_options(),
        "parameters": parameters,
    }


def run_networks(
    out: str | os.PathLike[str],
    parameters: dict[str, dict[str, Any]] | None = None,
    scope: Scope | None = None,
    steps: int = STEPS,
) -> Report:
    """Run the trials that are not stored yet, and report all that were asked for.

    Args:
        out: Folder of results; the study has a folder of its own in it.
        parameters: Hyper-parameters of every method; None for those that come with the package.
        scope: How much of it is run, and where; `demos` are numbers of logs.
        steps: Most environment steps of a trial.
    """
    Whole(1).check(steps, "steps")
    scope, parameters = scope or Scope(), parameters or chosen_parameters()
    settings = settings_of(scope.methods, scope.demos)
    seeds = range(FIRST_SEED, FIRST_SEED + (scope.trials or TRIALS))
    folder, config = Path(out) / NETWORKS, configuration(parameters, steps)
    with open_trials(folder, config, NetworkTrial) as store:
        run_settings(
            settings,
            seeds,
            store,
            lambda setting: parameters[setting.method],
            steps,
            scope.workers,
            scope.progress,
        )
        shown = [store.found[setting, seed] for setting in settings for seed in seeds]
        found = summarise(shown, settings)
        data = [summary.data() for summary in found]
        figures = {"curves": curves_figure(shown, steps)}
        report = Report(report_tables(found, steps), figures, data)
        report.write(store.folder, partial=len(shown) < len(store.found))
    return report
