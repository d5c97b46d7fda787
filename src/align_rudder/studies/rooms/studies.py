"""The studies of the rooms: run what is missing, then make tables and figures of all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from align_rudder.baselines.protocol import OptimalProtocol, Protocol
from align_rudder.studies.report import Report
from align_rudder.studies.rooms.figures import (
    demonstration_figure,
    learning_curves,
    scaling_figure,
)
from align_rudder.studies.rooms.runner import run_settings
from align_rudder.studies.rooms.settings import NOISE, STUDIES, Setting, settings_of
from align_rudder.studies.rooms.tables import (
    cluster_table,
    episode_table,
    growth_table,
    p_value_table,
    scaling_table,
    world_name,
)
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.rooms.worlds import cluster_figure, trajectory_figure
from align_rudder.studies.statistics import Summary, summarise
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import FORMAT, Scope, open_trials

__all__ = ["configuration", "protocol_of", "run_study"]


def protocol_of(study: str, max_episodes: int | None = None) -> Protocol:
    """Return how the trials of a study are run and judged.

    Args:
        study: Name of the study.
        max_episodes: Cap on the episodes of a trial; None for the study's.
    """
    given = {} if max_episodes is None else {"max_episodes": max_episodes}
    kind = OptimalProtocol if STUDIES[study].optimal else Protocol
    return kind(**{**STUDIES[study].protocol, **given})


def configuration(
    study: str, parameters: dict[str, dict[str, Any]], protocol: Protocol
) -> dict[str, Any]:
    """Return what the trials of a study depend on beside their setting and seed."""
    used = {name: parameters[name] for name in STUDIES[study].known}
    return {"format": FORMAT, "study": study, "protocol": asdict(protocol), "parameters": used}


def run_study(
    study: str,
    parameters: dict[str, dict[str, Any]],
    out: str | os.PathLike[str],
    scope: Scope | None = None,
    protocol: Protocol | None = None,
) -> Report:
    """Run the trials of a study that are not stored yet, and report all that were asked for.

    Args:
        study: Name of the study.
        parameters: Hyper-parameters of every method.
        out: Folder of results; the study has a folder of its own in it.
        scope: How much of it is run, and where.
        protocol: How trials are run and judged; None for the study's.
    """
    scope, protocol = scope or Scope(), protocol or protocol_of(study)
    settings = settings_of(study, scope.methods, scope.demos)
    first = STUDIES[study].first_seed
    seeds = range(first, first + (scope.trials or STUDIES[study].trials))
    config = configuration(study, parameters, protocol)
    with open_trials(Path(out) / study, config, TrialRecord) as store:
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
        report = _report(study, summarise(shown, settings), shown, protocol)
        report.write(store.folder, partial=len(shown) < len(store.found))
    return report


def _report(
    study: str, found: Sequence[Summary], records: Sequence[TrialRecord], protocol: Protocol
) -> Report:
    cap = protocol.max_episodes
    data = [s.data() for s in found]
    if study == "clusters":
        figures = {"grid": cluster_figure(), "trajectories": trajectory_figure()}
        return Report([cluster_table(found, cap)], figures, data)
    if study == "scaling":
        tables = [scaling_table(found, cap), growth_table(found)]
        return Report(tables, {"scaling": scaling_figure(found, cap)}, data)
    tables: list[Table] = []
    panels = []
    published = study if study in ("four-rooms", "eight-rooms") else ""
    goal = f"{protocol.target:.0%}".replace("%", " %") + " of the best" * STUDIES[study].optimal
    for _, cells in groupby(found, key=lambda s: _title(s.setting)):
        group = list(cells)
        title = _title(group[0].setting)
        tables.append(episode_table(f"Episodes to {goal}, {title}", group, cap, published))
        compared = p_value_table(f"p-values, {title}", group, published)
        if compared is not None and study != "variants":
            tables.append(compared)
        panels.append((title, group))
    figures = {"episodes": demonstration_figure(panels, cap, goal)} if panels else {}
    if published:
        few = sorted({s.setting.demos for s in found})[:3]
        figures["curves"] = learning_curves(records, few, protocol)
    return Report(tables, figures, data)


def _title(setting: Setting) -> str:
    """Return how tables name the environment and the demonstrations of a setting."""
    noisy = "" if setting.noise == NOISE else f", {setting.noise:.0%} random actions"
    return f"{world_name(setting)}, slip {setting.slip:.0%}{noisy}"
