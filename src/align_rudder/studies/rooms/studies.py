"""The studies of the rooms: run what is missing, then make tables and figures of all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.workers import Workers
from align_rudder.studies.report import Report
from align_rudder.studies.rooms.figures import (
    demonstration_figure,
    learning_curves,
    scaling_figure,
)
from align_rudder.studies.rooms.runner import run_settings
from align_rudder.studies.rooms.settings import STUDIES, environment, settings_of
from align_rudder.studies.rooms.statistics import Summary, summarise
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
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import FORMAT, open_trials

__all__ = ["configuration", "run_study"]


def configuration(
    study: str, parameters: dict[str, dict[str, Any]], protocol: Protocol
) -> dict[str, Any]:
    """Return what the trials of a study depend on beside their setting and seed."""
    protocol_data = asdict(protocol)
    return {"format": FORMAT, "study": study, "protocol": protocol_data, "parameters": parameters}


def run_study(
    study: str,
    parameters: dict[str, dict[str, Any]],
    out: str | os.PathLike[str],
    *,
    trials: int | None = None,
    methods: Sequence[str] | None = None,
    demos: Sequence[int] | None = None,
    protocol: Protocol | None = None,
    workers: Workers | None = None,
    progress: bool = True,
) -> Report:
    """Run the trials of a study that are not stored yet, and report all that were asked for.

    Args:
        study: Name of the study.
        parameters: Hyper-parameters of every method.
        out: Folder of results; the study has a folder of its own in it.
        trials: Trials of each setting; None for the study's own number.
        methods: Methods; None for the study's.
        demos: Numbers of demonstrations; None for the study's.
        protocol: How trials are run and judged.
        workers: Where trials run.
        progress: Whether to show progress bars; if not, lines.
    """
    protocol, workers = protocol or Protocol(), workers or Workers()
    settings = settings_of(study, methods, demos)
    trials = STUDIES[study].trials if trials is None else trials
    if trials < 1:
        raise ValueError(f"{trials} trials were asked for; at least 1 is needed")
    config = configuration(study, parameters, protocol)
    with open_trials(Path(out) / study, config, TrialRecord) as store:
        run_settings(
            settings,
            range(trials),
            store,
            lambda setting: parameters[setting.method],
            protocol,
            workers,
            progress,
        )
        chosen = set(settings)
        shown = [r for r in store.found.values() if r.setting in chosen and r.seed < trials]
        report = _report(study, summarise(shown, settings), shown, protocol)
        report.partial = len(shown) < len(store.found)
        report.write(store.folder)
    return report


def _report(
    study: str, found: Sequence[Summary], records: Sequence[TrialRecord], protocol: Protocol
) -> Report:
    cap = protocol.max_episodes
    data = [s.data() for s in found]
    if study == "clusters":
        figures = {"grid": _grid_figure(), "trajectories": _trajectories()}
        return Report([cluster_table(found, cap)], figures, data)
    if study == "scaling":
        tables = [scaling_table(found, cap), growth_table(found)]
        return Report(tables, {"scaling": scaling_figure(found, cap)}, data)
    tables: list[Table] = []
    panels = []
    published = study if study in ("four-rooms", "eight-rooms") else ""
    for (_, slip), cells in groupby(found, key=lambda s: (s.setting.rooms, s.setting.slip)):
        group = list(cells)
        title = f"{world_name(group[0].setting)}, slip {slip:.0%}"
        tables.append(episode_table(f"Episodes to 80 %, {title}", group, cap, published))
        compared = p_value_table(f"p-values, {title}", group, published)
        if compared is not None and study != "variants":
            tables.append(compared)
        panels.append((title, group))
    figures = {"episodes": demonstration_figure(panels, cap)} if panels else {}
    if published:
        few = sorted({s.setting.demos for s in found})[:3]
        figures["curves"] = learning_curves(records, few, protocol)
    return Report(tables, figures, data)


def _grid_figure() -> Figure:
    four, eight = environment(4, 0.01), environment(8, 0.01)
    return cluster_figure(
        [
            ("25 demonstrations, slip 1 %", four, 25),
            ("10 demonstrations, slip 1 %", four, 10),
            ("25 demonstrations, slip 5 %", environment(4, 0.05), 25),
            ("25 demonstrations, slip 1 %", eight, 25),
            ("10 demonstrations, slip 1 %", eight, 10),
            ("25 demonstrations, slip 5 %", environment(8, 0.05), 25),
        ]
    )


def _trajectories() -> Figure:
    return trajectory_figure(
        [("FourRooms", environment(4, 0.01)), ("EightRooms", environment(8, 0.01))]
    )
