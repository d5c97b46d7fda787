"""Settings of a training of sub-agents and manager: all that its result depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import jax

from align_rudder.files import (
    Choice,
    Many,
    Number,
    Table,
    Text,
    Whole,
    check_values,
    kind_like,
)
from align_rudder.hierarchy.agents import Policy, new_agent, new_separate_agents
from align_rudder.hierarchy.aligned import PAYS, AlignedTask, AlignmentTables, PlainTask
from align_rudder.hierarchy.ppo import LATER, PPO, current_names, with_later, without_later
from align_rudder.hierarchy.task import Task
from align_rudder.hierarchy.unordered import Checklist, tracked_task

__all__ = ["GOALS", "Training"]

GOALS = ("alignment", "flags", "checklist", "one", "kinds")
_CHECKLISTS = ("checklist", "kinds")


@dataclass(frozen=True)
class Training:
    """All that the result of a training depends on.

    Attributes:
        steps: Environment steps in all: of demonstrations, sub-agents, manager, and of the
            evaluations that choose the best checkpoint.
        seed: Seed.
        ppo: Hyper-parameters of PPO.
        pay: What agents are paid; see `AlignedTask`.
        beside: What the task itself pays for being solved, beside the reward of sub-goals.
        goals: Where sub-goals come from: "alignment" of all demonstrations, paid in order; "flags",
            as version 0.1 had it, with achievements among the events, also paid out of order;
            "checklist", those of "alignment" in any order; "one", all events of a single
            demonstration in their order; "kinds", each kind of event once, in any order.
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
        manager: Share of the steps for the manager.
        precision: Of products of matrices, as JAX names it: "default", "bfloat16", "float32".
        name: What it is called where results are shown.
    """

    steps: int = 8_000_000
    seed: int = 0
    ppo: PPO = field(default_factory=PPO)
    pay: str = "subgoal"
    beside: float = 0.0
    goals: str = "alignment"
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
    manager: float = 0.0
    precision: str = "default"
    name: str = "align-rudder"

    def __post_init__(self) -> None:
        for name in ("pool", "buffer", "worlds", "horizon", "evaluations", "patience"):
            Whole(1).check(getattr(self, name), name)
        check_values(
            steps=(self.steps, Whole(1, 2**62)),
            seed=(self.seed, Whole(0, 2**32 - 1)),
            hidden=(self.hidden, Many(Whole(1), 1)),
            clone=(self.clone, Whole()),
            manager=(self.manager, Number(0, below=1)),
            pay=(self.pay, Choice(PAYS)),
            goals=(self.goals, Choice(GOALS)),
            beside=(self.beside, Number(0)),
        )
        if self.plain and self.pay not in ("task", "dense"):
            raise ValueError(f"a plain learner is paid 'task' or 'dense', not {self.pay!r}")
        if self.plain and self.goals in _CHECKLISTS:
            raise ValueError(
                f"a plain learner has no sub-goals of its own; goals={self.goals!r} cannot be had "
                "at the same time: take 'alignment', by which it is counted how far it comes"
            )
        if self.beside and (self.pay in ("task", "dense") or self.ppo.own_subtask):
            how = "own_subtask" if self.ppo.own_subtask else f"pay={self.pay!r}"
            raise ValueError(
                f"beside={self.beside:g} is paid for the task beside the reward of sub-goals; with "
                f"{how} it cannot be had: leave it out, or take pay 'subgoal', 'step' or 'goals' "
                "for agents that learn for all that follows"
            )
        if self.ppo.own_subtask and self.goals in _CHECKLISTS:
            raise ValueError(
                "with own_subtask agents are paid for their own sub-goals, but with "
                f"goals={self.goals!r} no sub-goal is an agent's own; take goals 'alignment', "
                "'flags' or 'one'"
            )
        if self.ppo.own_subtask and self.pay != "subgoal":
            raise ValueError(
                f"with own_subtask agents are paid for their sub-goals; pay={self.pay!r} cannot be "
                "had at the same time"
            )

    def aligned(self, task: Task, tables: AlignmentTables | Checklist) -> AlignedTask:
        """Return the task as agents are trained on it."""
        if isinstance(tables, Checklist) != (self.goals in _CHECKLISTS):
            raise ValueError(
                f"goals is {self.goals!r}, and the tables are {type(tables).__name__}; "
                f"{' and '.join(map(repr, _CHECKLISTS))} need a Checklist, as checklist_of and "
                "kinds_of make it, and all others AlignmentTables"
            )
        if self.plain and isinstance(tables, AlignmentTables):
            return PlainTask(task, tables, self.pay, self.patience)
        return tracked_task(task, tables, self.pay, self.patience, self.beside)

    def new_agent(self, task: AlignedTask, key: jax.Array) -> Policy:
        """Return an untrained agent."""
        if self.separate:
            return new_separate_agents(task, key, self.hidden, self.symmetric)
        return new_agent(task, key, self.hidden, self.symmetric, conditioned=not self.plain)

    def configuration(self, tables: AlignmentTables | Checklist) -> dict[str, Any]:
        """Return what checkpoints must agree on."""
        found = {**without_later(asdict(self)), "alignment": tables.digest}
        return json.loads(json.dumps(found))

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Training:
        """Return the training of a configuration, as `training.json` holds it, also of 0.1."""
        found, later = with_later(current_names(configuration)), tuple(LATER)
        kinds = {name: kind_like(default) for name, default in vars(cls()).items()}
        ppo = {name: kind_like(default) for name, default in vars(PPO()).items()}
        entries = {**kinds, "ppo": Table(ppo, later), "alignment": Text()}
        Table(entries, later).check(found, "the configuration")
        del found["alignment"]
        ppo, hidden = PPO(**found.pop("ppo")), tuple(found.pop("hidden"))
        return cls(**found, ppo=ppo, hidden=hidden)
