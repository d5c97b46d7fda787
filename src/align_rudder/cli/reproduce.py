"""`align-rudder reproduce` and `align-rudder tune`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from align_rudder.cli.options import check_folder, check_least
from align_rudder.files import check_outputs, write_json
from align_rudder.runs.interrupt import interrupt_on_signal
from align_rudder.studies.networks.methods import METHODS as NETWORK_METHODS
from align_rudder.studies.networks.settings import NETWORKS
from align_rudder.studies.recipes.methods import METHODS as RECIPE_METHODS
from align_rudder.studies.recipes.methods import TUNED
from align_rudder.studies.recipes.settings import RECIPES
from align_rudder.studies.rooms.methods import (
    COMPARED,
    FAIR,
    KEY_CHEST,
    LONGER,
    MODELS,
    POOR,
    REPLAYED,
    VARIANTS,
)
from align_rudder.studies.rooms.settings import EXPERIMENTS, PAPERS, SEARCHES

if TYPE_CHECKING:
    from align_rudder.runs.workers import Workers
    from align_rudder.studies.report import Report
    from align_rudder.studies.trials import Scope

    Experiment = Searched = str
else:
    Searched = tyro.extras.literal_type_from_choices([*SEARCHES, RECIPES, NETWORKS])
    Experiment = tyro.extras.literal_type_from_choices([*EXPERIMENTS, RECIPES, NETWORKS, "all"])

__all__ = ["Reproduce", "Tune"]

_METHODS = (
    f"Methods to run: {', '.join(COMPARED)}; variants of Align-RUDDER: {', '.join(VARIANTS)}; of "
    f"rooms, poor, stochastic and scaling: {', '.join(FAIR)}; of poor also "
    f"{', '.join(name for name in POOR if name not in FAIR)}; of scaling also "
    f"{', '.join(name for name in LONGER if name not in FAIR)}; of {KEY_CHEST}: "
    f"{', '.join(MODELS)}; of {RECIPES}: {', '.join(RECIPE_METHODS)}; of {NETWORKS}: "
    f"{', '.join(NETWORK_METHODS)}. All of the study if left out. The LSTMs need the extra jax, "
    f"{NETWORKS} the extra networks."
)
_TUNING_CAP = 3000  # episodes of a trial


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
    """Run an experiment, or go on with it; show its tables and write its figures."""

    goes_on: ClassVar[bool] = True
    study: tyro.conf.Positional[Experiment]
    """Which one."""
    trials: int | None = None
    """Trials of each setting; as in the paper, 40 recipes or 5 networks, if left out."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(help=_METHODS)] = ()
    demos: tuple[int, ...] = ()
    """Numbers of demonstrations or logs; those of the study if left out."""
    max_episodes: int | None = None
    """Cap on the episodes of a trial, which counts as the cap then; the study's if left out."""
    steps: int | None = None
    """Cap on the environment steps of a trial of networks; the study's if left out."""
    out: str = "results"
    """Folder of results. Trials found there are not run again."""
    hyperparameters: str | None = None
    """File of hyper-parameters that `tune` wrote; those that come with the package if left out."""
    json: str | None = None
    """Also write the numbers of the tables as JSON to this file."""

    def run(self) -> None:
        """Run, report, write."""
        from align_rudder.studies.key_chest import run_key_chest
        from align_rudder.studies.recipes import methods as recipes
        from align_rudder.studies.recipes.study import CAP, run_recipes
        from align_rudder.studies.rooms.methods import chosen_parameters
        from align_rudder.studies.rooms.studies import protocol_of, run_study
        from align_rudder.studies.trials import Scope

        check_outputs(self.json)
        check_folder(self.out)
        self._check_caps()
        workers = self.workers()
        began, data = time.monotonic(), {}
        everything = (*EXPERIMENTS, RECIPES, NETWORKS)
        for name in everything if self.study == "all" else (self.study,):
            # Studies have methods and hyper-parameters of their own, and demonstrations or logs.
            whole, paper = self.study == "all", name in PAPERS
            methods = () if whole and not paper else self.methods
            demos = () if whole and not paper else self.demos
            given = None if whole and not paper else self.hyperparameters
            scope = Scope(self.trials, methods, demos, workers, sys.stderr.isatty())
            with interrupt_on_signal():
                if name == RECIPES:
                    cap = CAP if self.max_episodes is None else self.max_episodes
                    parameters = recipes.chosen_parameters(given)
                    report = run_recipes(parameters, self.out, scope, cap)
                elif name == NETWORKS:
                    report = self._networks(given, scope)
                elif name == KEY_CHEST:
                    report = run_key_chest(self.out, scope)
                else:
                    parameters = chosen_parameters(given, name)
                    protocol = protocol_of(name, self.max_episodes)
                    report = run_study(name, parameters, self.out, scope, protocol)
            data[name] = report.data
            where = f"files: {self.out}/{name}"
            if report.partial:
                where = f"{where}, which show all trials that are stored, not only these"
            print(f"{report.text()}\n\n{where}\n", flush=True)
        write_json(self.json, data)
        print(f"{time.monotonic() - began:,.0f} s", file=sys.stderr)

    def _check_caps(self) -> None:
        """Refuse options that the study would not look at."""
        if self.study not in (NETWORKS, "all") and self.steps is not None:
            other = "" if self.study == KEY_CHEST else "; its cap is --max-episodes"
            raise ValueError(f"--steps is of {NETWORKS} alone; {self.study} has none{other}")
        if self.study in (NETWORKS, KEY_CHEST) and self.max_episodes is not None:
            other = "; its cap is --steps" if self.study == NETWORKS else ""
            raise ValueError(f"--max-episodes: {self.study} has no cap on episodes{other}")
        if self.study == KEY_CHEST and self.hyperparameters is not None:
            raise ValueError(f"--hyperparameters: {KEY_CHEST} has none that are tuned")

    def _networks(self, hyperparameters: str | None, scope: Scope) -> Report:
        # Needs extras, which the other studies do without.
        from align_rudder.studies.networks.methods import chosen_parameters
        from align_rudder.studies.networks.settings import STEPS
        from align_rudder.studies.networks.study import run_networks

        steps = STEPS if self.steps is None else self.steps
        return run_networks(self.out, chosen_parameters(hyperparameters), scope, steps)


@dataclass
class Tune(_Parallel):
    """Search the grid of every method with the same budget, on seeds that no result uses."""

    goes_on: ClassVar[bool] = True
    search: tyro.conf.Positional[Searched] = "paper"
    """For which comparison: the paper's, the fair one of rooms, poor demonstrations, recipes or
    networks."""
    methods: Annotated[
        tuple[str, ...],
        tyro.conf.arg(
            help=f"Methods: {', '.join(COMPARED)}; of rooms and poor: {', '.join(FAIR)}; of "
            f"poor also {', '.join(REPLAYED)}; of "
            f"{RECIPES}: {', '.join(TUNED)}; of {NETWORKS}: "
            f"{', '.join(NETWORK_METHODS)}; all if left out."
        ),
    ] = ()
    trials: int | None = None
    """Trials of each configuration in each setting; those of the search if left out."""
    max_episodes: int | None = None
    """Cap on the episodes of a trial; 3,000 if left out."""
    steps: int | None = None
    """Cap on the environment steps of a trial of networks; the study's if left out."""
    out: str | None = None
    """Folder of the trials and of hyperparameters.json; results/tune or results/tune-SEARCH if left
    out."""
    json: str | None = None
    """Also write the chosen hyper-parameters to this file."""

    def run(self) -> None:
        """Search and show."""
        from align_rudder.studies.recipes.tune import tune_recipes
        from align_rudder.studies.rooms.studies import protocol_of
        from align_rudder.studies.rooms.tune import tune

        check_outputs(self.json)
        check_folder(self.out)
        check_least(self, trials=1, steps=1)
        if self.search != NETWORKS and self.steps is not None:
            raise ValueError(
                f"--steps is of {NETWORKS} alone; the cap of {self.search} is --max-episodes"
            )
        if self.search == NETWORKS and self.max_episodes is not None:
            raise ValueError(
                f"--max-episodes: {NETWORKS} has no cap on episodes; its cap is --steps"
            )
        cap = _TUNING_CAP if self.max_episodes is None else self.max_episodes
        out = self.out or ("results/tune" + f"-{self.search}" * (self.search != "paper"))
        where = out, self.workers(), sys.stderr.isatty()
        with interrupt_on_signal():
            if self.search == RECIPES:
                names = self.methods or TUNED
                chosen, tables = tune_recipes(names, self.trials or 30, cap, *where)
            elif self.search == NETWORKS:
                from align_rudder.studies.networks.settings import STEPS
                from align_rudder.studies.networks.tune import tune_networks

                names = self.methods or tuple(NETWORK_METHODS)
                steps = STEPS if self.steps is None else self.steps
                chosen, tables = tune_networks(names, self.trials or 2, *where, steps)
            else:
                search = SEARCHES[self.search]
                protocol = protocol_of(search.study, cap)
                trials = self.trials or search.trials
                chosen, tables = tune(self.methods, trials, protocol, *where, self.search)
        print("\n\n".join(table.text() for table in tables))
        write_json(self.json, chosen)
        print(f"\nchosen: {out}/hyperparameters.json")
