"""`align-rudder reproduce` and `align-rudder tune`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from align_rudder.files import check_outputs, write_json
from align_rudder.runs.interrupt import interrupt_on_signal
from align_rudder.studies.rooms.methods import COMPARED, KEY_CHEST, MODELS, VARIANTS
from align_rudder.studies.rooms.settings import EXPERIMENTS

if TYPE_CHECKING:
    from align_rudder.runs.workers import Workers

    Experiment = str
else:
    Experiment = tyro.extras.literal_type_from_choices([*EXPERIMENTS, "all"])

__all__ = ["Reproduce", "Tune"]

_METHODS = (
    f"Methods to run: {', '.join(COMPARED)}; variants of Align-RUDDER: {', '.join(VARIANTS)}; of "
    f"{KEY_CHEST}: {', '.join(MODELS)}. All of the study if left out. The LSTMs need the extra jax."
)


@dataclass(kw_only=True)
class _Parallel:
    jobs: int = -1
    """Trials at once; -1 for one on each core."""
    backend: Literal["loky", "ray"] = "loky"
    """Processes on this machine, or a Ray cluster."""
    address: str | None = None
    """Address of a running Ray cluster."""

    def workers(self) -> Workers:
        """Return where trials run."""
        from align_rudder.runs.workers import Workers

        return Workers(self.jobs, self.backend, self.address)


@dataclass
class Reproduce(_Parallel):
    """Run an experiment of the paper, or go on with it; show its tables and write its figures."""

    goes_on: ClassVar[bool] = True
    study: tyro.conf.Positional[Experiment]
    """Which one."""
    trials: int | None = None
    """Trials of each setting; as in the paper if left out."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(help=_METHODS)] = ()
    demos: tuple[int, ...] = ()
    """Numbers of demonstrations; those of the study if left out."""
    max_episodes: int = 20_000
    """Cap on the episodes of a trial; a trial that reaches it counts as the cap."""
    out: str = "results"
    """Folder of results. Trials found there are not run again."""
    hyperparameters: str | None = None
    """File of hyper-parameters that `tune` wrote; those that come with the package if left out."""
    json: str | None = None
    """Also write the numbers of the tables as JSON to this file."""

    def run(self) -> None:
        """Run, report, write."""
        from align_rudder.baselines.protocol import Protocol
        from align_rudder.studies.key_chest import run_key_chest
        from align_rudder.studies.rooms.methods import chosen_parameters
        from align_rudder.studies.rooms.studies import run_study
        from align_rudder.studies.trials import Scope

        check_outputs(self.json)
        workers, protocol = self.workers(), Protocol(max_episodes=self.max_episodes)
        parameters = chosen_parameters(self.hyperparameters)
        began, data = time.monotonic(), {}
        for name in EXPERIMENTS if self.study == "all" else (self.study,):
            # The methods of the rooms are not those of KeyChest.
            methods = () if self.study == "all" and name == KEY_CHEST else self.methods
            scope = Scope(self.trials, methods, self.demos, workers, sys.stderr.isatty())
            with interrupt_on_signal():
                if name == KEY_CHEST:
                    report = run_key_chest(self.out, scope)
                else:
                    report = run_study(name, parameters, self.out, scope, protocol)
            data[name] = report.data
            where = f"files: {self.out}/{name}"
            if report.partial:
                where = f"{where}, which show all trials that are stored, not only these"
            print(f"{report.text()}\n\n{where}\n", flush=True)
        write_json(self.json, data)
        print(f"{time.monotonic() - began:,.0f} s", file=sys.stderr)


@dataclass
class Tune(_Parallel):
    """Search the grid of every method with the same budget, on seeds that no result uses."""

    goes_on: ClassVar[bool] = True
    methods: Annotated[
        tuple[str, ...], tyro.conf.arg(help=f"Methods: {', '.join(COMPARED)}; all if left out.")
    ] = ()
    trials: int = 10
    """Trials of each configuration in each of four settings."""
    max_episodes: int = 3000
    """Cap on the episodes of a trial."""
    out: str = "results/tune"
    """Folder of the trials and of hyperparameters.json."""
    json: str | None = None
    """Also write the chosen hyper-parameters to this file."""

    def run(self) -> None:
        """Search and show."""
        from align_rudder.baselines.protocol import Protocol
        from align_rudder.studies.rooms.tune import tune

        check_outputs(self.json)
        with interrupt_on_signal():
            chosen, tables = tune(
                self.methods or COMPARED,
                self.trials,
                Protocol(max_episodes=self.max_episodes),
                self.out,
                self.workers(),
                sys.stderr.isatty(),
            )
        print("\n\n".join(table.text() for table in tables))
        write_json(self.json, chosen)
        print(f"\nchosen: {self.out}/hyperparameters.json")
