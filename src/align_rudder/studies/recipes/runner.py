"""Run the trials of settings that are not there yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.workers import Job, Workers
from align_rudder.studies.recipes.settings import Setting
from align_rudder.studies.recipes.trials import RecipeTrial, protocol_of, run_trial
from align_rudder.studies.trials import Trials

__all__ = ["run_settings"]


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
            short = Setting(2, logs=2, method=setting.method, variant=setting.variant)
            run_trial(short, 0, parameters(setting), small)

    def job(setting: Setting, seed: int) -> Job:
        return run_trial, (setting, seed, parameters(setting), protocol)

    keys = [(setting, seed) for seed in seeds for setting in settings]
    trials.complete(keys, job, workers, progress, prepare)
