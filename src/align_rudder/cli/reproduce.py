"""`align-rudder reproduce` and `align-rudder tune`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import tyro

from align_rudder.files import check_outputs, write_json
from align_rudder.runs.interrupt import interrupt_on_signal

__all__ = ["Reproduce", "Tune"]

Study = Literal[
    "four-rooms",
    "eight-rooms",
    "stochastic",
    "clusters",
    "variants",
    "key-chest",
    "scaling",
    "all",
]


@dataclass
class Reproduce:
    """Run an experiment of the paper, or go on with it; show its tables and write its figures."""

    goes_on: ClassVar[bool] = True
    study: tyro.conf.Positional[Study]
    """Which one."""
    trials: int | None = None
    """Trials of each setting; as in the paper if left out."""
    methods: tuple[str, ...] = ()
    """Methods to run: align-rudder, bc-q, control, dqfd, rudder (needs the extra jax), sqil,
    sqil-absorbing, gail, gail-absorbing; variants of Align-RUDDER: kappa, direct, method-c,
    subtasks, settled; of key-chest: alignment, alignment-all, alignment-states, lstm. All of the
    study if left out."""
    demos: tuple[int, ...] = ()
    """Numbers of demonstrations; those of the study if left out."""
    max_episodes: int = 20_000
    """Cap on the episodes of a trial; a trial that reaches it counts as the cap."""
    jobs: int = -1
    """Trials at once; -1 for one on each core."""
    backend: Literal["loky", "ray"] = "loky"
    """Processes on this machine, or a Ray cluster."""
    address: str | None = None
    """Address of a running Ray cluster."""
    out: str = "results"
    """Folder of results. Trials found there are not run again."""
    hyperparameters: str | None = None
    """File of hyper-parameters that `tune` wrote; those that come with the package if left out."""
    json: str | None = None
    """Also write the numbers of the tables as JSON to this file."""

    def run(self) -> None:
        """Run, report, write."""
        from align_rudder.baselines.protocol import Protocol
        from align_rudder.runs.workers import Workers
        from align_rudder.studies.rooms.methods import chosen_parameters
        from align_rudder.studies.rooms.settings import STUDIES
        from align_rudder.studies.rooms.studies import run_key_chest, run_study

        check_outputs(self.json)
        workers = Workers(self.jobs, self.backend, self.address)
        protocol = Protocol(max_episodes=self.max_episodes)
        parameters = chosen_parameters(self.hyperparameters)
        names = (*STUDIES, "key-chest") if self.study == "all" else (self.study,)
        began, data = time.monotonic(), {}
        for name in names:
            common: dict[str, Any] = {
                "trials": self.trials,
                "demos": self.demos,
                "workers": workers,
                "progress": sys.stderr.isatty(),
            }
            if name == "key-chest":
                methods = () if self.study == "all" else self.methods
                with interrupt_on_signal():
                    report = run_key_chest(self.out, methods=methods, **common)
            else:
                with interrupt_on_signal():
                    report = run_study(
                        name,
                        parameters,
                        self.out,
                        methods=self.methods,
                        protocol=protocol,
                        **common,
                    )
            data[name] = report.data
            where = f"files: {self.out}/{name}"
            if report.partial:
                where = f"{where}, which show all trials that are stored, not only these"
            print(f"{report.text()}\n\n{where}\n", flush=True)
        write_json(self.json, data)
        print(f"{time.monotonic() - began:,.0f} s", file=sys.stderr)


@dataclass
class Tune:
    """Search the grid of every method with the same budget, on seeds that no result uses."""

    goes_on: ClassVar[bool] = True
    methods: tuple[str, ...] = ()
    """Methods; all if left out."""
    trials: int = 10
    """Trials of each configuration in each of four settings."""
    max_episodes: int = 3000
    """Cap on the episodes of a trial."""
    jobs: int = -1
    """Trials at once; -1 for one on each core."""
    backend: Literal["loky", "ray"] = "loky"
    """Processes on this machine, or a Ray cluster."""
    address: str | None = None
    """Address of a running Ray cluster."""
    out: str = "results/tune"
    """Folder of the trials and of hyperparameters.json."""
    json: str | None = None
    """Also write the chosen hyper-parameters to this file."""

    def run(self) -> None:
        """Search and show."""
        from align_rudder.baselines.protocol import Protocol
        from align_rudder.runs.workers import Workers
        from align_rudder.studies.rooms.methods import METHODS
        from align_rudder.studies.rooms.tune import tune

        check_outputs(self.json)
        with interrupt_on_signal():
            chosen, tables = tune(
                self.methods or tuple(METHODS),
                self.trials,
                Protocol(max_episodes=self.max_episodes),
                self.out,
                Workers(self.jobs, self.backend, self.address),
                sys.stderr.isatty(),
            )
        print("\n\n".join(table.text() for table in tables))
        write_json(self.json, chosen)
        print(f"\nchosen: {self.out}/hyperparameters.json")
