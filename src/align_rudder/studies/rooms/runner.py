"""Run the trials of settings that are not there yet: networks first, then trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.progress import tracked
from align_rudder.runs.workers import Job, Workers
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.trials import TrialRecord, run_trial
from align_rudder.studies.trials import Trials
from align_rudder.tasks.mdp import TabularMDP, optimal_policy, rollout

__all__ = ["run_settings", "warm_up"]


def run_settings(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    trials: Trials[TrialRecord],
    parameters: Callable[[Setting], Mapping[str, Any]],
    protocol: Protocol,
    workers: Workers,
    progress: bool = True,
) -> None:
    """Run the trials that are not there yet.

    Args:
        settings: The settings.
        seeds: The seeds of the trials of each.
        trials: Where trials are kept.
        parameters: Gives the learner's arguments for a setting.
        protocol: How trials are run and judged.
        workers: Where they run.
        progress: Whether to show progress bars.
    """
    folder = trials.folder / "networks"
    methods = dict.fromkeys(setting.method for setting in settings)
    others = [name for name in methods if METHODS[name].network is None]

    def check(todo: list[tuple[Setting, int]]) -> None:
        networks.missing(todo, parameters, folder, others)

    def prepare(todo: list[tuple[Setting, int]]) -> None:
        batches = networks.missing(todo, parameters, folder)
        warm_up({setting.method for setting, _ in todo}, progress)
        results = workers.results((networks.train, batch) for batch in batches)
        for batch, found in tracked(results, "batches of networks", len(batches), progress):
            networks.save(folder, batch, found)

    def job(setting: Setting, seed: int) -> Job:
        network = networks.load(folder, setting, seed, parameters(setting))
        return run_trial, (setting, seed, parameters(setting), protocol, network)

    keys = [(setting, seed) for setting in settings for seed in seeds]
    trials.complete(keys, job, workers, progress, prepare, check)


def warm_up(methods: Iterable[str], progress: bool = True) -> None:
    """Compile the learners, which takes some seconds each the first time and is cached then."""
    outcomes = [
        [[(1.0, min(s + a, 3), float(s + a == 3), s + a == 3)] for a in (0, 1)] for s in range(4)
    ]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(4)[0], 6)
    rng = np.random.default_rng(0)
    demos = [rollout(mdp, optimal_policy(mdp), rng) for _ in range(2)]
    protocol = Protocol(max_episodes=10)
    learners = {METHODS[name].learner: METHODS[name] for name in methods}
    bar = tqdm(learners.values(), "compiling learners (once)", disable=not progress, leave=False)
    for method in bar:
        options = {} if method.network is None else {"model": networks.small(mdp, demos)}
        method.learn(mdp, demos, protocol=protocol, **options)
