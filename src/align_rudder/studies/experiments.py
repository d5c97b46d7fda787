"""The experiments of the paper by name: rooms and KeyChest.

Nothing heavy is imported here: command lines take their choices from `EXPERIMENTS`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from align_rudder.studies.rooms.settings import STUDIES

if TYPE_CHECKING:
    from align_rudder.baselines.protocol import Protocol
    from align_rudder.runs.workers import Workers
    from align_rudder.studies.report import Report

__all__ = ["EXPERIMENTS", "KEY_CHEST", "run_experiment"]

KEY_CHEST = "key-chest"
EXPERIMENTS = (*STUDIES, KEY_CHEST)


def run_experiment(
    name: str,
    out: str | os.PathLike[str],
    parameters: dict[str, dict[str, Any]],
    *,
    trials: int | None = None,
    methods: Sequence[str] | None = None,
    demos: Sequence[int] | None = None,
    protocol: Protocol | None = None,
    workers: Workers | None = None,
    progress: bool = True,
) -> Report:
    """Run the trials of an experiment that are not stored yet, and report what was asked for.

    Args:
        name: One of `EXPERIMENTS`.
        out: Folder of results; the experiment has a folder of its own in it.
        parameters: Hyper-parameters of every method of the rooms.
        trials: Trials of each setting; None for as many as in the paper.
        methods: Methods; None for those of the experiment.
        demos: Numbers of demonstrations; None for those of the experiment.
        protocol: How trials in the rooms are run and judged.
        workers: Where trials run.
        progress: Whether to show progress bars; if not, lines.
    """
    from align_rudder.studies.key_chest import run_key_chest
    from align_rudder.studies.rooms.studies import run_study

    options: dict[str, Any] = {"trials": trials, "methods": methods, "demos": demos}
    options |= {"workers": workers, "progress": progress}
    if name == KEY_CHEST:
        return run_key_chest(out, **options)
    return run_study(name, parameters, out, protocol=protocol, **options)
