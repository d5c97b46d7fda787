"""Run the trials of settings that are not there yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from align_rudder.runs.workers import Job, Workers
from align_rudder.studies.networks.settings import Setting
from align_rudder.studies.networks.trials import NetworkTrial, run_trial
from align_rudder.studies.networks.worlds import model_of
from align_rudder.studies.trials import Trials

__all__ = ["run_settings"]


def run_settings(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    trials: Trials[NetworkTrial],
    parameters: Callable[[Setting], Mapping[str, Any]],
    steps: int,
    workers: Workers,
    progress: bool = True,
) -> None:
    """Run the trials that are not there yet, seed by seed.

    A study that is stopped early then still compares the methods on the same seeds.

    Args:
        settings: The settings.
        seeds: The seeds of the trials of each.
        trials: Where trials are kept.
        parameters: Gives the hyper-parameters for a setting.
        steps: Most environment steps of a trial.
        workers: Where they run.
        progress: Whether to show progress bars.
    """

    def prepare(todo: list[tuple[Setting, int]]) -> None:
        model_of(*todo[0])  # compiles what aligns; workers find it in the cache

    def job(setting: Setting, seed: int) -> Job:
        return run_trial, (setting, seed, dict(parameters(setting)), steps)

    keys = [(setting, seed) for seed in seeds for setting in settings]
    trials.complete(keys, job, workers, progress, prepare)
