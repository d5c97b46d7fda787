"""Training of sub-agents and main agent, from demonstrations to the best checkpoint; resumable."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from align_rudder.files import write_whole
from align_rudder.hierarchy.agents import Policy, new_agent, new_separate_agents
from align_rudder.hierarchy.aligned import PAYS, AlignedTask, PlainTask
from align_rudder.hierarchy.alignment import AlignmentTables, reached_goals
from align_rudder.hierarchy.cloning import Shown, clone_agent, follow_demonstrations
from align_rudder.hierarchy.devices import Devices
from align_rudder.hierarchy.evaluation import evaluate, new_worlds
from align_rudder.hierarchy.loading import load_agent, load_manager
from align_rudder.hierarchy.manager import managed, new_manager
from align_rudder.hierarchy.ppo import PPO, Examples, Learner, Metrics, new_learner, update
from align_rudder.hierarchy.resets import fill, new_starts
from align_rudder.hierarchy.task import Task
from align_rudder.runs.checkpoint import advised, digest, load_tree, save_tree
from align_rudder.runs.interrupt import Stop, stop_on_signal
from align_rudder.runs.lock import only_here
from align_rudder.runs.rows import Rows

__all__ = ["Training", "train"]

_PHASES = ("agents", "manager", "done")
_SAVE_EVERY = 120.0  # seconds
_MANAGER_EVALUATIONS = 2
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """All that the result of a training depends on.

    Attributes:
        steps: Environment steps in all: of demonstrations, sub-agents, main agent, and of the
            evaluations that choose the best checkpoint.
        seed: Seed.
        ppo: Hyper-parameters of PPO.
        pay: What agents are paid; see `AlignedTask`.
        patience: Steps without a new sub-goal after which training cuts an episode off.
        plain: Whether the learner knows nothing of demonstrations and alignment.
        separate: Whether each sub-task has a network of its own.
        symmetric: Whether agents use the symmetries of the task.
        hidden: Layers of the networks.
        clone: Updates of behavioural cloning before PPO.
        pool: Number of new worlds to begin in.
        buffer: States kept for each sub-task.
        evaluations: Evaluations during training.
        worlds: New worlds of each evaluation.
        horizon: Steps after which an episode of these evaluations is given up.
        manager: Share of the steps for the main agent.
        precision: Of products of matrices, as JAX names it: "default", "bfloat16", "float32".
        name: What it is called where results are shown.
    """

    steps: int = 8_000_000
    seed: int = 0
    ppo: PPO = field(default_factory=PPO)
    pay: str = "subgoal"
    patience: int = 500
    plain: bool = False
    separate: bool = False
    symmetric: bool = True
    hidden: tuple[int, ...] = (512, 512)
    clone: int = 1000
    pool: int = 2048
    buffer: int = 256
    evaluations: int = 8
    worlds: int = 512
    horizon: int = 1000
    manager: float = 0.05
    precision: str = "default"
    name: str = "align-rudder"

    def __post_init__(self) -> None:
        for name in ("steps", "pool", "buffer", "worlds", "horizon", "evaluations", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: at least 1 is needed")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed}: one from 0 to {2**32 - 1:,} is needed")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden={self.hidden}: layers of at least 1 unit are needed")
        if self.clone < 0:
            raise ValueError(f"clone={self.clone}: 0 for none, or more")
        if not 0 <= self.manager < 1:
            raise ValueError(f"manager={self.manager} is a share of the steps: from 0 to below 1")
        if self.pay not in PAYS:
            raise ValueError(f"pay={self.pay!r} is not one of {', '.join(PAYS)}")
        if self.plain and self.pay not in ("task", "dense"):
            raise ValueError(f"a plain learner is paid 'task' or 'dense', not {self.pay!r}")
        if self.ppo.own_subtask and self.pay != "subgoal":
            raise ValueError(
                f"with own_subtask agents are paid for their sub-goals; pay={self.pay!r} cannot be "
                "had at the same time"
            )

    def aligned(self, task: Task, tables: AlignmentTables) -> AlignedTask:
        """Return the task as agents are trained on it."""
        kind = PlainTask if self.plain else AlignedTask
        return kind(task, tables, self.pay, self.patience)

    def new_agent(self, task: AlignedTask, key: jax.Array) -> Policy:
        """Return an untrained agent."""
        if self.separate:
            return new_separate_agents(task, key, self.hidden, self.symmetric)
        return new_agent(task, key, self.hidden, self.symmetric, conditioned=not self.plain)

    def configuration(self, tables: AlignmentTables) -> dict[str, Any]:
        """Return what checkpoints must agree on."""
        return json.loads(json.dumps({**asdict(self), "alignment": digest(tables)}))


@dataclass
class _Progress:
    """How far training has come; stored with every checkpoint.

    Attributes:
        phase: "agents", "manager" or "done".
        steps: Environment steps so far, of all kinds.
        begun: Steps before this phase.
        updates: Updates of this phase.
        total: Updates that this phase will have.
        evaluated: Evaluations of this phase.
        reserve: Steps kept for the last evaluation: somewhat more than the one before took.
        best: Most worlds solved in an evaluation of this phase.
        demonstrations: Digest of the demonstrations.
    """

    phase: str = "agents"
    steps: int = 0
    begun: int = 0
    updates: int = 0
    total: int = 0
    evaluated: int = 0
    reserve: int = 0
    best: int = -1
    demonstrations: str = ""


def train(
    task: Task,
    tables: AlignmentTables,
    demonstrations: Sequence[tuple[Any, np.ndarray]],
    training: Training,
    folder: str | Path,
    devices: Devices | None = None,
    progress: bool = True,
) -> None:
    """Train, or go on with it; the folder then holds the best agents and the logs.

    Files: `training.json`, `updates.csv` (each update), `evaluations.csv` (each evaluation),
    `cloning.csv`, `cloned.npz`, `agent.npz` (best sub-agents), `manager.npz` (best main agent) and
    `checkpoint.npz`, from which an interrupted training goes on. On Ctrl-C or SIGTERM the update
    that runs is finished and saved, then `KeyboardInterrupt` raised; a second one does so at once.

    Args:
        task: The task.
        tables: Tables of the alignment.
        demonstrations: States and actions of each.
        training: Configuration.
        folder: Where files are kept.
        devices: Devices to train on.
        progress: Whether to show a progress bar.
    """
    devices = devices or Devices()
    trainer = _Trainer(task, tables, demonstrations, training, Path(folder), devices)
    bar = tqdm(
        total=training.steps,
        unit=" steps",
        unit_scale=True,
        disable=not (progress and devices.first),
    )
    alone = only_here(folder) if devices.first else nullcontext()
    signals = stop_on_signal(several=jax.process_count() > 1)
    with alone, bar, jax.default_matmul_precision(training.precision), signals as stop:
        trainer.run(bar, stop)


class _Trainer:
    def __init__(
        self,
        task: Task,
        tables: AlignmentTables,
        demonstrations: Sequence[tuple[Any, np.ndarray]],
        training: Training,
        folder: Path,
        devices: Devices,
    ) -> None:
        devices.check(n_envs=training.ppo.n_envs, worlds=training.worlds)
        self.training, self.devices, self.folder = training, devices, folder
        self.task = training.aligned(task, tables)
        self.demonstrations = [] if training.plain else demonstrations
        self.shown = self._follow()
        self.configuration = training.configuration(tables)
        self.at = _Progress(demonstrations=digest(list(self.demonstrations)))
        shown = sum(len(actions) for _, actions in self.demonstrations)
        if training.steps < shown + training.ppo.batch:
            raise ValueError(
                f"{training.steps} steps are too few: the demonstrations have {shown} and an "
                f"update takes {training.ppo.batch}; give at least {shown + training.ppo.batch}, "
                "and more for evaluations, or fewer environments"
            )
        self.keys = jax.random.split(jax.random.key(training.seed), 8)
        k = self.task.n_subtasks
        self.reached = [f"reached_{i}" for i in range(k)]
        failed = [f"failed_{i}" for i in range(k)]
        head = ["phase", "updates", "steps"]
        played = ["ended", "solved", "ended_fresh", "solved_fresh"]
        losses = ["policy_loss", "value_loss", "entropy"]
        judged = ["worlds", "solved", "episode_steps"]
        self.updates = Rows(
            folder / "updates.csv", [*head, *played, *losses, *self.reached, *failed]
        )
        self.evaluations = Rows(folder / "evaluations.csv", [*head, *judged, *self.reached])

    def run(self, bar: tqdm, stop: Stop) -> None:
        """Clone, learn, manage; each phase from its beginning or from the checkpoint."""
        self.bar, self.stop = bar, stop
        resumed = self._resume()
        if self.at.phase == "done":
            self._check_agents()
        bar.initial = bar.n = self.at.steps
        bar.set_postfix_str("compiling: minutes without a GPU")
        if self.at.phase == "agents":
            ppo = self.training.ppo
            agent = self.training.new_agent(self.task, self.keys[0])
            if not resumed:
                self._count(sum(len(actions) for _, actions in self.demonstrations))
                agent = self._clone(agent)
                self._maybe_stop()
            self._learn(self.task, agent, ppo, "agent.npz", resumed)
            self._next("manager" if self.training.manager and not self.training.plain else "done")
            resumed = False
        if self.at.phase == "manager":
            task = managed(self.task, load_agent(self.folder, self.task, self.training))
            hidden, symmetric = self.training.hidden, self.training.symmetric
            manager = new_manager(task, self.keys[1], hidden, symmetric)
            burn_in = self.training.ppo.burn_in if self.training.separate else 0
            ppo = replace(self.training.ppo, cloning=0.0, entropy=0.0, fresh=0.5, burn_in=burn_in)
            ppo = replace(ppo, own_subtask=False)  # it learns for all that follows
            self._learn(task, manager, ppo, "manager.npz", resumed)
            self._next("done")
        self._save("checkpoint.npz", ())

    def _resume(self) -> bool:
        """Return whether there is a checkpoint to go on from; another configuration is refused."""
        checkpoint = self.folder / "checkpoint.npz"
        there = checkpoint.exists()
        if not there and self.updates.read():
            raise ValueError(
                f"{self.folder} has the logs of a training but no checkpoint.npz to go on from; "
                "give another folder (--out), or delete this one to begin anew"
            )
        if there:
            mine = self.at.demonstrations
            with advised("Put back a copy, or begin anew in another folder (--out)"):
                notes = load_tree(checkpoint, (), self.configuration)[1]
            self.at = _Progress(**{"demonstrations": mine, **notes})
            if self.at.demonstrations != mine:
                raise ValueError(
                    f"{self.folder} belongs to a training with other demonstrations; give those "
                    "again (--demos), or another folder"
                )
        if self.devices.first:
            text = json.dumps(self.configuration, indent=1) + "\n"
            write_whole(self.folder / "training.json", lambda file: file.write(text.encode()))
            here = (_PHASES.index(self.at.phase), self.at.updates)
            for log in (self.updates, self.evaluations):
                if self.at.updates and not log.path.exists():
                    raise ValueError(
                        f"{log.path} is lost; put back a copy, or begin anew in another folder "
                        "(--out)"
                    )
                log.keep(
                    lambda row: there and (_PHASES.index(row["phase"]), int(row["updates"])) <= here
                )
        self.devices.wait("resume")
        if not (self.folder / "training.json").exists():
            raise ValueError(f"{self.folder} is not the first process's: all need the same folder")
        return there

    def _check_agents(self) -> None:
        """Refuse a finished training whose agents are lost."""
        try:
            if self.training.manager and not self.training.plain:
                load_manager(self.folder, self.task, self.training)
            else:
                load_agent(self.folder, self.task, self.training)
        except (ValueError, FileNotFoundError) as error:
            raise ValueError(
                f"{self.folder} is of a finished training, but its agents are lost: {error}. Put "
                "back a copy, or train again in another folder (--out)"
            ) from error

    def _maybe_stop(self) -> None:
        if self.devices.any(self.stop.asked):
            raise KeyboardInterrupt

    def _next(self, phase: str) -> None:
        steps, shown = self.at.steps, self.at.demonstrations
        self.at = _Progress(phase, steps, steps, demonstrations=shown)

    def _count(self, steps: int) -> None:
        self.at.steps += steps
        self.bar.update(steps)

    def _budget(self) -> int:
        """Return after how many steps this phase ends."""
        share = self.training.manager if self.at.phase == "agents" else 0.0
        return int(self.training.steps * (1 - (0.0 if self.training.plain else share)))

    def _save(self, name: str, tree: Any) -> None:
        """Save a tree with how far training has come."""
        tree = self.devices.gather(tree)
        if self.devices.first:
            save_tree(self.folder / name, tree, self.configuration, asdict(self.at))
        self.devices.wait(name)

    # Demonstrations

    def _follow(self) -> Shown | None:
        if not self.demonstrations:
            return None
        return follow_demonstrations(self.task, self.demonstrations)

    def _clone(self, agent: Policy) -> Policy:
        if self.shown is None or self.training.clone == 0:
            return agent
        task, agent, examples, key = self.devices.place(
            (self.task, agent, self.shown.examples, self.keys[2])
        )
        agent, curve = eqx.filter_jit(clone_agent)(task, agent, examples, key, self.training.clone)
        if self.devices.first:
            k = self.task.n_subtasks
            names = [f"{what}_{i}" for what in ("loss", "accuracy") for i in range(k)]
            log = Rows(self.folder / "cloning.csv", ["updates", *names])
            log.write([int(row[0]), *row[1:].tolist()] for row in np.asarray(curve))
        self._save("cloned.npz", agent)
        return self.devices.gather(agent)

    # PPO

    def _new_learner(self, agent: Policy, ppo: PPO) -> Learner:
        pool = new_worlds(self.task, self.keys[3], self.training.pool)
        size = self.training.buffer if self.shown is not None else 1
        starts = new_starts(pool, self.task.n_subtasks, size)
        if self.shown is not None:
            starts = fill(starts, self.shown.states, self.shown.reached)
        return new_learner(agent, starts, ppo, self.at.total, self.keys[4])

    def _place(self, learner: Learner) -> Learner:
        rest = self.devices.place(learner._replace(envs=None))  # pyright: ignore[reportArgumentType]
        return rest._replace(envs=self.devices.place(learner.envs, spread=True))

    def _learn(self, task: AlignedTask, agent: Policy, ppo: PPO, name: str, resumed: bool) -> None:
        """Learn until the steps of the phase are spent; the best agent is in the file `name`."""
        budget = self._budget()
        if not resumed:
            self.at.total = max(budget - self.at.steps, 0) // ppo.batch
        learner = self._new_learner(agent, ppo)
        if resumed:
            path, pool = self.folder / "checkpoint.npz", learner.starts.pool
            kept = load_tree(path, _without_pool(learner), self.configuration)[0]
            learner = kept._replace(starts=kept.starts._replace(pool=pool))
            try:
                load_tree(self.folder / name, agent, self.configuration)
            except (ValueError, FileNotFoundError):  # the next evaluation writes it again
                self.at.best = -1
        learner = self._place(learner)
        examples = self.shown.examples if self.shown is not None and ppo.cloning > 0 else None
        fixed = self.devices.place((task, examples))
        devices, total = self.devices, self.at.total

        @eqx.filter_jit(donate="all-except-first")
        def step(fixed: tuple[AlignedTask, Examples | None], learner: Learner) -> Any:
            new, metrics = update(fixed[0], ppo, total, learner, fixed[1])
            rest = devices.keep(new._replace(envs=None))  # pyright: ignore[reportArgumentType]
            new = rest._replace(envs=devices.keep(new.envs, spread=True))
            return new, devices.keep(metrics)

        judge = self._judge(task, name)
        agents = self.at.phase == "agents"
        who = "sub-agents" if agents else "main agent"
        if not resumed:
            judge(learner.agent)
            self._save("checkpoint.npz", _without_pool(learner))
            self._maybe_stop()
        evaluations = self.training.evaluations if agents else _MANAGER_EVALUATIONS
        saved, length = time.monotonic(), max(budget - self.at.begun, 1)
        while self._fits(ppo, budget):
            learner, metrics = step(fixed, learner)
            self.at.updates += 1
            self._count(ppo.batch)
            self._log(metrics)
            # Evaluations are close together at first, where learning is fast.
            done = ((self.at.steps - self.at.begun) / length) ** 0.5 * evaluations
            due = done >= self.at.evaluated or not self._fits(ppo, budget)
            if due:
                judge(learner.agent)
            late = time.monotonic() - saved > _SAVE_EVERY
            if due or devices.any(late or self.stop.asked):
                self._save("checkpoint.npz", _without_pool(learner))
                saved = time.monotonic()
                self._maybe_stop()
        if self.at.updates <= ppo.burn_in:
            _logger.warning(
                "too few steps were left to train the %s: %d updates were made, and its policy "
                "moves from update %d on",
                who,
                self.at.updates,
                ppo.burn_in + 1,
            )

    def _fits(self, ppo: PPO, budget: int) -> bool:
        return self.at.steps + ppo.batch + self.at.reserve <= budget

    def _log(self, m: Metrics) -> None:
        if not self.devices.first:
            return
        counts = [int(x) for x in (m.ended, m.solved, m.ended_fresh, m.solved_fresh)]
        losses = [round(float(x), 6) for x in np.asarray(m.loss)]
        by_goal = [int(x) for x in (*np.asarray(m.reached), *np.asarray(m.failed))]
        head = [self.at.phase, self.at.updates, self.at.steps]
        self.updates.append([*head, *counts, *losses, *by_goal])
        ended = max(counts[2], 1)
        self.bar.set_postfix_str(
            f"{self.at.phase}: {100 * counts[3] / ended:.1f} % of new worlds solved", refresh=False
        )

    def _judge(self, task: AlignedTask, name: str) -> Callable[[Policy], None]:
        """Return a function that evaluates an agent in new worlds and keeps the best."""
        training = self.training
        # Also of a learner that knows nothing of the alignment it is told how far it comes.
        judged = AlignedTask(task.task, task.tables) if training.plain else task
        worlds = new_worlds(judged, self.keys[5], training.worlds)
        worlds = self.devices.place(worlds, spread=True)
        placed, play = self.devices.place(judged), eqx.filter_jit(evaluate)

        def judge(agent: Policy) -> None:
            key = self.devices.place(jax.random.fold_in(self.keys[6], self.at.evaluated))
            left = min(training.steps - self.at.steps, 2**31 - 1)
            most = self.devices.place(jnp.int32(left))
            played = play(placed, agent, worlds, key, training.horizon, most=most)
            found = self.devices.gather(played)
            steps, solved = int(np.sum(found.steps)), int(np.sum(found.solved))
            self.at.evaluated += 1
            self.at.reserve = steps * 5 // 4
            self._count(steps)
            if self.devices.first:
                head = [self.at.phase, self.at.updates, self.at.steps]
                reached = np.asarray(reached_goals(judged.tables, found.counts)).sum(axis=0)
                self.evaluations.append([*head, training.worlds, solved, steps, *reached.tolist()])
                done = f"{self.at.steps:,} of {training.steps:,} steps ({self.at.phase})"
                _logger.info("%s: %d of %d new worlds solved", done, solved, training.worlds)
            if solved >= self.at.best:
                self.at.best = solved
                self._save(name, agent)

        return judge


def _without_pool(learner: Learner) -> Any:
    """Return what a checkpoint holds; the pool is made again from its key."""
    return learner._replace(starts=learner.starts._replace(pool=None))  # pyright: ignore[reportArgumentType]
