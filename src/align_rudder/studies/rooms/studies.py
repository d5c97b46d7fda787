"""The studies of the paper: run what is missing, then make tables and figures of all of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from align_rudder.baselines.protocol import Protocol
from align_rudder.files import write_json, write_whole
from align_rudder.runs.workers import Workers
from align_rudder.studies import key_chest
from align_rudder.studies.rooms.figures import (
    demonstration_figure,
    learning_curves,
    scaling_figure,
)
from align_rudder.studies.rooms.methods import all_methods
from align_rudder.studies.rooms.networks import require_jax
from align_rudder.studies.rooms.runner import run_settings
from align_rudder.studies.rooms.settings import TRIALS, environment, settings_of
from align_rudder.studies.rooms.statistics import Summary, summarise
from align_rudder.studies.rooms.store import Store, TrialRecord
from align_rudder.studies.rooms.tables import (
    Table,
    cluster_table,
    episode_table,
    p_value_table,
    scaling_table,
    world_name,
)
from align_rudder.studies.rooms.worlds import cluster_figure, trajectory_figure

__all__ = ["Report", "run_key_chest", "run_study"]

FORMAT = 1
"""Raised when learners change, so that old and new trials are not mixed."""


@dataclass
class Report:
    """What a study shows.

    Attributes:
        study: Its name.
        tables: Tables.
        figures: Figures by the name of their file.
        data: The numbers behind the tables.
        partial: Whether more trials are stored than were asked for; then the tables and figures in
            the folder, which show all of them, are left as they are.
    """

    study: str
    tables: list[Table]
    figures: dict[str, Figure]
    data: list[dict[str, Any]] = field(default_factory=list)
    partial: bool = False

    def text(self) -> str:
        """Return the tables for a terminal."""
        return "\n\n".join(table.text() for table in self.tables)

    def write(self, folder: Path) -> None:
        """Write tables, numbers and figures into a folder."""
        pages = "\n\n".join(table.markdown() for table in self.tables) + "\n"
        write_whole(folder / "tables.md", lambda file: file.write(pages.encode()))
        write_json(folder / "summary.json", self.data)
        for name, figure in self.figures.items():
            write_whole(
                folder / f"{name}.png",
                lambda file, figure=figure: figure.savefig(file, format="png", dpi=130),
            )


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
        progress: Whether to show progress.
    """
    protocol, workers = protocol or Protocol(), workers or Workers()
    settings = settings_of(study, methods, demos)
    trials = TRIALS.get(study, 100) if trials is None else trials
    if trials < 1:
        raise ValueError(f"{trials} trials were asked for; at least 1 is needed")
    config = {
        "format": FORMAT,
        "study": study,
        "protocol": asdict(protocol),
        "parameters": parameters,
    }
    began = time.monotonic()
    with Store(Path(out) / study, config, TrialRecord) as store:
        before = len(store.trials)
        run_settings(
            settings,
            range(trials),
            store,
            lambda setting: parameters[setting.method],
            protocol,
            workers,
            progress,
        )
        _note_time(store.folder, len(store.trials) - before, time.monotonic() - began, workers)
        records = list(store.trials.values())
        found = summarise(records, settings, range(trials))
        chosen = set(settings)
        shown = [r for r in records if r.setting in chosen and r.seed < trials]
        report = _report(study, found, shown, protocol)
        report.partial = len(shown) < len(records)
        if not report.partial:
            report.write(store.folder)
    return report


def _note_time(folder: Path, trials: int, seconds: float, workers: Workers) -> None:
    """Keep how long the trials of this call took."""
    if not trials:
        return
    path = folder / "time.json"
    try:
        calls = list(json.loads(path.read_text())) if path.exists() else []
    except ValueError:
        calls = []  # of no other use
    calls.append(
        {
            "trials": trials,
            "seconds": round(seconds, 1),
            "jobs": workers.jobs,
            "backend": workers.backend,
            "cores": os.cpu_count(),
        }
    )
    write_json(path, calls)


def _report(
    study: str, found: Sequence[Summary], records: Sequence[TrialRecord], protocol: Protocol
) -> Report:
    cap = protocol.max_episodes
    data = [s.data() for s in found]
    if study == "clusters":
        figures = {"grid": _grid_figure(), "trajectories": _trajectories()}
        return Report(study, [cluster_table(found, cap)], figures, data)
    if study == "scaling":
        tables = [scaling_table(found, cap), _growth(found)]
        return Report(study, tables, {"scaling": scaling_figure(found, cap)}, data)
    tables: list[Table] = []
    panels = []
    for world, cells in groupby(found, key=lambda s: (s.setting.rooms, s.setting.slip)):
        group = list(cells)
        name = world_name(group[0].setting)
        title = f"{name}, slip {world[1]:.0%}"
        published = {"four-rooms": study, "eight-rooms": study}.get(study, "")
        tables.append(episode_table(f"Episodes to 80 %, {title}", group, cap, published))
        compared = p_value_table(f"p-values, {title}", group, published)
        if compared is not None and study != "variants":
            tables.append(compared)
        panels.append((title, group))
    figures = {"episodes": demonstration_figure(panels, cap)} if panels else {}
    if study in ("four-rooms", "eight-rooms"):
        few = sorted({s.setting.demos for s in found})[:3]
        figures["curves"] = learning_curves(records, few, protocol)
    return Report(study, tables, figures, data)


def _growth(found: Sequence[Summary]) -> Table:
    """Return how the episodes grow with the rooms: the exponent of a power law."""
    rows = []
    for name in dict.fromkeys(s.setting.method for s in found):
        cells = [s for s in found if s.setting.method == name]
        if len(cells) > 1:
            x = np.log([s.setting.rooms for s in cells])
            y = np.log([s.mean for s in cells])
            capped = sum(s.capped for s in cells)
            limit = " or more" if capped else ""
            rows.append([all_methods()[name].label, f"{np.polyfit(x, y, 1)[0]:.2f}{limit}"])
    return Table("Growth: episodes ~ rooms^x, least squares on logarithms", ["method", "x"], rows)


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


def run_key_chest(
    out: str | os.PathLike[str],
    *,
    trials: int | None = None,
    demos: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    tests: int = key_chest.TESTS,
    workers: Workers | None = None,
    progress: bool = True,
) -> Report:
    """Measure key-event detection of alignment and LSTM; see `run_study` for the arguments."""
    workers = workers or Workers()
    trials = key_chest.TRIALS if trials is None else trials
    models = tuple(methods) if methods else tuple(key_chest.MODELS)
    for name in models:
        if name not in key_chest.MODELS:
            raise ValueError(
                f"model {name!r} is not known; use some of {', '.join(key_chest.MODELS)}"
            )
    demos = tuple(dict.fromkeys(demos)) if demos else key_chest.DEMOS
    if trials < 1:
        raise ValueError(f"{trials} trials were asked for; at least 1 is needed")
    if min(demos) < 2:
        raise ValueError(f"{min(demos)} training episodes; an alignment needs at least 2")
    keys = [(m, n, seed, tests) for m in models for n in demos for seed in range(trials)]
    began = time.monotonic()
    with Store(
        Path(out) / "key-chest", {"format": FORMAT, "study": "key-chest"}, key_chest.Detection
    ) as store:
        todo = [key for key in keys if key not in store.trials]
        if any(key[0] == "lstm" for key in todo):
            require_jax()
        jobs = [(key_chest.detect, key) for key in todo]
        results = workers.results(jobs, len(jobs)) if jobs else ()
        for record in tqdm(results, "trials", len(jobs), disable=not progress or not jobs):
            store.add(record)
        store.sort()
        _note_time(store.folder, len(todo), time.monotonic() - began, workers)
        found = [store.trials[key] for key in keys]
        table = key_chest.detection_table(found)
        figure = key_chest.detection_figure(found)
        data = [d._asdict() for d in found]
        report = Report("key-chest", [table], {"detection": figure}, data)
        report.partial = len(found) < len(store.trials)
        if not report.partial:
            report.write(store.folder)
    return report
