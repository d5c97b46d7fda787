"""Run the trials that are not there yet, in parallel, each stored as soon as it is finished."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from align_rudder.baselines.protocol import Protocol
from align_rudder.runs.workers import Job, Workers
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms.methods import all_methods
from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.store import Store
from align_rudder.studies.rooms.trials import run_trial
from align_rudder.tasks.mdp import TabularMDP, optimal_policy, rollout

__all__ = ["run_settings", "warm_up"]


def run_settings(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    store: Store,
    parameters: Callable[[Setting], Mapping[str, Any]],
    protocol: Protocol,
    workers: Workers,
    progress: bool = True,
) -> None:
    """Run what the store does not hold yet.

    Args:
        settings: The settings.
        seeds: The seeds of the trials of each.
        store: An open store.
        parameters: Gives the learner's arguments for a setting.
        protocol: How trials are run and judged.
        workers: Where they run.
        progress: Whether to show a progress bar.
    """
    todo = [(s, seed) for s in settings for seed in seeds if (s, seed) not in store.trials]
    if not todo:
        store.sort()
        return
    folder = store.folder / "networks"
    batches = networks.missing(todo, parameters, folder)
    if not progress:
        print(f"{len(todo)} trials to run in {store.folder}", file=sys.stderr, flush=True)
    warm_up({setting.method for setting, _ in todo}, progress)
    bar = tqdm(
        workers.results(networks.jobs(batches), len(batches)),
        "networks",
        len(batches),
        disable=not progress or not batches,
    )
    for batch, found in bar:
        networks.save(folder, batch, found)

    def jobs() -> Iterator[Job]:
        for setting, seed in todo:
            network = networks.load(folder, setting, seed, parameters(setting))
            yield run_trial, (setting, seed, parameters(setting), protocol, network)

    with tqdm(total=len(todo), desc="trials", disable=not progress) as bar:
        for done, record in enumerate(workers.results(jobs(), len(todo)), 1):
            store.add(record)
            bar.set_postfix_str(f"{record.setting.method}, {record.setting.demos} demonstrations")
            bar.update()
            if not progress and done % max(len(todo) // 10, 1) == 0:
                print(f"{done} of {len(todo)} trials", file=sys.stderr, flush=True)
    store.sort()


def warm_up(methods: Iterable[str], progress: bool = True) -> None:
    """Compile the learners, which takes some seconds each the first time and is cached then."""
    outcomes = [
        [[(1.0, min(s + a, 3), float(s + a == 3), s + a == 3)] for a in (0, 1)] for s in range(4)
    ]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(4)[0], 6)
    rng = np.random.default_rng(0)
    demos = [rollout(mdp, optimal_policy(mdp), rng) for _ in range(2)]
    protocol = Protocol(max_episodes=10)
    learners = {all_methods()[name].learn.__name__: name for name in methods}
    bar = tqdm(learners.values(), "compiling learners (once)", disable=not progress, leave=False)
    for name in bar:
        method = all_methods()[name]
        options = {} if method.network is None else {"model": networks.small(mdp, demos)}
        method.learn(mdp, demos, protocol=protocol, **options)
