"""The course of a training: clone, train the sub-agents, then the manager; evaluate, save."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from align_rudder.hierarchy import ppo
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask, AlignmentTables
from align_rudder.hierarchy.cloning import Examples, aligned_demonstrations, clone_agent
from align_rudder.hierarchy.devices import Devices
from align_rudder.hierarchy.evaluation import evaluate, new_worlds
from align_rudder.hierarchy.folder import TrainingFolder, load_agent, load_manager
from align_rudder.hierarchy.manager import managed, new_manager
from align_rudder.hierarchy.ppo import PPO, Losses, Metrics, RunnerState
from align_rudder.hierarchy.resets import new_starts
from align_rudder.hierarchy.settings import Training
from align_rudder.hierarchy.task import Task
from align_rudder.hierarchy.unordered import Checklist, tracked_task
from align_rudder.runs.checkpoint import digest
from align_rudder.runs.interrupt import stop_on_signal
from align_rudder.runs.lock import only_here

__all__ = ["Trainer", "train"]

_KEYS = ("agent", "manager", "cloning", "pool", "learning", "worlds", "evaluation")
_MANAGER_EVALUATIONS = 2
_logger = logging.getLogger(__name__)


class Trainer:
    """Trains sub-agents and manager; what its folder holds of them is not trained again.

    Args:
        task: The task as sub-agents are trained on it.
        runs: States and actions of each demonstration.
        training: Configuration.
        folder: Where files are kept.
        bar: Shows the steps so far.
    """

    def __init__(
        self,
        task: AlignedTask,
        runs: Sequence[tuple[Any, np.ndarray]],
        training: Training,
        folder: TrainingFolder,
        bar: tqdm,
    ) -> None:
        self.task, self.training, self.folder = task, training, folder
        self.devices, self.bar = folder.devices, bar
        self.at = folder.open(digest(list(runs)))
        self.shown_steps = sum(len(actions) for _, actions in runs)
        self.demonstrations = aligned_demonstrations(task, runs) if runs else None
        keys = jax.random.split(jax.random.key(training.seed), len(_KEYS))
        self.keys = dict(zip(_KEYS, keys, strict=True))
        self.manager_share = 0.0 if training.plain else training.manager

    def run(self) -> None:
        """Train to the end, from the begin or from the checkpoint."""
        if self.at.phase == "done":
            self._check_agents()
            return
        self.bar.initial = self.bar.n = self.at.steps
        self.bar.set_postfix_str("compiling: minutes without a GPU")
        if self.at.phase == "agents":
            self._train_sub_agents()
        if self.at.phase == "manager":
            self._train_manager()
        self.folder.save_checkpoint((), self.at)

    def _check_agents(self) -> None:
        """Refuse a finished training whose agents are lost."""
        load = load_manager if self.manager_share else load_agent
        try:
            load(self.folder.path, self.task, self.training)
        except (ValueError, FileNotFoundError) as error:
            raise ValueError(
                f"{self.folder.path} is of a finished training, but its agents are lost: {error}. "
                "Put back a copy, or train again in another folder (--out)"
            ) from error

    def _count(self, steps: int) -> None:
        self.at.steps += steps
        self.bar.update(steps)

    # Phases

    def _train_sub_agents(self) -> None:
        training = self.training
        agent = training.new_agent(self.task, self.keys["agent"])
        if not self.at.evaluated:
            self._count(self.shown_steps)
            agent = self._clone(agent)
            self.folder.stop_if_asked()
        end = int(training.steps * (1 - self.manager_share))
        self._learn(self.task, agent, training.ppo, "agent.npz", end, training.evaluations)
        self.at = self.at.next_phase("manager" if self.manager_share else "done")

    def _train_manager(self) -> None:
        training = self.training
        task = managed(self.task, load_agent(self.folder.path, self.task, training))
        manager = new_manager(task, self.keys["manager"], training.hidden, training.symmetric)
        settings = replace(
            training.ppo,
            bc_coef=0.0,
            ent_coef=0.0,
            fresh=max(0.5, training.ppo.fresh),
            burn_in=training.ppo.burn_in if training.separate else 0,  # else it knows the value
            own_subtask=False,  # it learns for all that follows
        )
        self._learn(task, manager, settings, "manager.npz", training.steps, _MANAGER_EVALUATIONS)
        self.at = self.at.next_phase("done")

    def _clone(self, agent: Policy) -> Policy:
        """Return the agent after cloning; its file and curve are written."""
        updates = self.training.clone
        if self.demonstrations is None or updates == 0:
            return agent
        task, agent, examples, key = self.devices.place(
            (self.task, agent, self.demonstrations.examples, self.keys["cloning"])
        )
        agent, curve = eqx.filter_jit(clone_agent)(task, agent, examples, key, updates)
        if self.devices.first:
            rows = [[int(row[0]), *row[1:].tolist()] for row in np.asarray(curve)]
            self.folder.cloning.write(rows)
        self.folder.save("cloned.npz", agent, self.at)
        return self.devices.gather(agent)

    def _learn(
        self,
        task: AlignedTask,
        agent: Policy,
        settings: PPO,
        file: str,
        end: int,
        evaluations: int,
    ) -> None:
        """Train an agent by PPO until all training has taken `end` steps; `file` gets the best."""
        at = self.at
        if not at.evaluated:
            at.total = max(end - at.steps, 0) // settings.batch_size
        runner = self._new_runner(agent, settings, file)
        step, evaluate_agent = self._train_step(task, settings), self._evaluation(task, file)

        def fits() -> bool:
            return at.steps + settings.batch_size + at.reserve <= end

        if not at.evaluated:
            evaluate_agent(runner.train_state.agent)
            self.folder.save_checkpoint(_without_pool(runner), at)
        while fits():
            runner, metrics, losses = step(runner)
            at.updates += 1
            self._count(settings.batch_size)
            self._log(metrics, losses)
            # Evaluations are close together at first, where learning is fast.
            done = ((at.steps - at.begun) / (end - at.begun)) ** 0.5 * evaluations
            due = done >= at.evaluated or not fits()
            if due:
                evaluate_agent(runner.train_state.agent)
            self.folder.save_checkpoint(_without_pool(runner), at, must=due)
        if at.updates <= settings.burn_in:
            _logger.warning(
                "too few steps were left to train the %s: %d updates were made, and its policy "
                "moves from update %d on",
                {"agents": "sub-agents"}.get(at.phase, at.phase),
                at.updates,
                settings.burn_in + 1,
            )

    def _new_runner(self, agent: Policy, settings: PPO, file: str) -> RunnerState:
        """Return the state to train from: a new one, or that of the checkpoint."""
        pool = new_worlds(self.task, self.keys["pool"], self.training.pool)
        size = self.training.buffer if self.demonstrations is not None else 1
        starts = new_starts(pool, self.task.n_subtasks, size, self.demonstrations)
        runner = ppo.new_runner_state(agent, starts, settings, self.at.total, self.keys["learning"])
        if self.at.evaluated:
            runner = self.folder.load("checkpoint.npz", _without_pool(runner))
            runner = runner._replace(starts=runner.starts._replace(pool=pool))
            try:
                self.folder.load(file, agent)
            except (ValueError, FileNotFoundError):  # the next evaluation writes it again
                self.at.best = -1
        return _spread_envs(self.devices.place, runner)

    def _train_step(self, task: AlignedTask, settings: PPO) -> Callable[[RunnerState], Any]:
        """Return one update of PPO, compiled for the devices."""
        # How many updates there will be is an argument: all seeds are one compiled program.
        total, examples = jnp.int32(self.at.total), None
        if self.demonstrations is not None and settings.bc_coef > 0:
            examples = self.demonstrations.examples

        @eqx.filter_jit(donate="all-except-first")
        def step(fixed: tuple[AlignedTask, Examples | None, jax.Array], runner: RunnerState) -> Any:
            task, examples, total = fixed
            runner, *shown = ppo.train_step(task, settings, total, runner, examples)
            return _spread_envs(self.devices.keep, runner), *self.devices.keep(shown)

        fixed = self.devices.place((task, examples, total))
        return lambda runner: step(fixed, runner)

    def _log(self, metrics: Metrics, losses: Losses) -> None:
        if not self.devices.first:
            return
        m, at = jax.tree.map(np.asarray, metrics), self.at
        counts = [int(x) for x in (m.ended, m.solved, m.ended_fresh, m.solved_fresh)]
        by_goal = [int(x) for x in (*m.reached, *m.failed)]
        rounded = [round(float(x), 6) for x in losses]
        self.folder.updates.append([at.phase, at.updates, at.steps, *counts, *rounded, *by_goal])
        share = f"{100 * counts[3] / max(counts[2], 1):.1f} % of new worlds solved"
        self.bar.set_postfix_str(f"{at.phase}: {share}", refresh=False)

    def _evaluation(self, task: AlignedTask, file: str) -> Callable[[Policy], None]:
        """Return a function that evaluates an agent in new worlds, and saves it if it is best."""
        training, at, devices = self.training, self.at, self.devices
        if training.plain:  # also of a plain learner it is counted how far it comes
            task = tracked_task(task.task, task.tables)
        worlds = new_worlds(task, self.keys["worlds"], training.worlds)
        worlds, placed = devices.place(worlds, spread=True), devices.place(task)
        play = eqx.filter_jit(evaluate)

        def evaluate_agent(agent: Policy) -> None:
            key = jax.random.fold_in(self.keys["evaluation"], at.evaluated)
            left = jnp.int32(min(training.steps - at.steps, 2**31 - 1))
            key, left = devices.place((key, left))
            found = devices.gather(play(placed, agent, worlds, key, training.horizon, most=left))
            steps, solved = int(np.sum(found.steps)), int(np.sum(found.solved))
            at.evaluated += 1
            at.reserve = steps * 5 // 4
            self._count(steps)
            if devices.first:
                reached = np.sum(found.reached, axis=0)
                head = [at.phase, at.updates, at.steps, training.worlds]
                self.folder.evaluations.append([*head, solved, steps, *reached.tolist()])
                done = f"{at.steps:,} of {training.steps:,} steps ({at.phase})"
                _logger.info("%s: %d of %d new worlds solved", done, solved, training.worlds)
            if solved >= at.best:
                at.best = solved
                self.folder.save(file, agent, at)

        return evaluate_agent


def train(
    task: Task,
    tables: AlignmentTables | Checklist,
    demonstrations: Sequence[tuple[Any, np.ndarray]],
    training: Training,
    folder: str | Path,
    devices: Devices | None = None,
    progress: bool = True,
) -> None:
    """Train, or go on with it; the folder then holds the best agents and the logs.

    Files: `training.json`, `updates.csv` (each update), `evaluations.csv` (each evaluation),
    `cloning.csv`, `cloned.npz`, `agent.npz` (best sub-agents), `manager.npz` (best manager) and
    `checkpoint.npz`, from which an interrupted training goes on. On Ctrl-C or SIGTERM the update
    that runs is finished and saved, then `KeyboardInterrupt` raised; a second one does so at once.

    Args:
        task: The task.
        tables: Tables of the alignment, or a checklist.
        demonstrations: States and actions of each.
        training: Configuration.
        folder: Where files are kept.
        devices: Devices to train on.
        progress: Whether to show a progress bar.
    """
    devices = devices or Devices()
    devices.check(n_envs=training.ppo.n_envs, worlds=training.worlds)
    runs = [] if training.plain else demonstrations
    shown, batch_size = sum(len(actions) for _, actions in runs), training.ppo.batch_size
    if training.steps < shown + batch_size:
        raise ValueError(
            f"{training.steps} steps are too few: the demonstrations have {shown} and an update "
            f"takes {batch_size}; give at least {shown + batch_size}, and more for evaluations, or "
            "fewer environments"
        )
    hidden = not (progress and devices.first)
    bar = tqdm(total=training.steps, unit=" steps", unit_scale=True, disable=hidden)
    alone = only_here(folder) if devices.first else nullcontext()
    signals = stop_on_signal(several=jax.process_count() > 1)
    with alone, bar, jax.default_matmul_precision(training.precision), signals as stop:
        aligned = training.aligned(task, tables)
        configuration = training.configuration(tables)
        files = TrainingFolder(folder, configuration, aligned.n_subtasks, devices, stop)
        Trainer(aligned, runs, training, files, bar).run()


def _spread_envs(place: Callable[..., Any], runner: RunnerState) -> RunnerState:
    """Return the state with its environments spread over the devices, the rest on each."""
    rest = place(runner._replace(envs=None))  # pyright: ignore[reportArgumentType]
    return rest._replace(envs=place(runner.envs, spread=True))


def _without_pool(runner: RunnerState) -> RunnerState:
    """Return what a checkpoint holds; the pool is made again from its key."""
    starts = runner.starts._replace(pool=None)  # pyright: ignore[reportArgumentType]
    return runner._replace(starts=starts)
