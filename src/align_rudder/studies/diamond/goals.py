"""Where the sub-goals come from: the alignment of all demonstrations, or a control without it."""

from __future__ import annotations

from typing import NamedTuple

from align_rudder.hierarchy.aligned import AlignmentTables, tables_of
from align_rudder.hierarchy.unordered import Checklist, checklist_of, kinds_of
from align_rudder.presets import PAPER
from align_rudder.tasks.diamond.demos import Setup, fit_demonstrations
from align_rudder.tasks.diamond.task import DiamondTask

__all__ = ["SubGoals", "subgoals_of"]


class SubGoals(NamedTuple):
    """What a training needs to know of sub-goals.

    Attributes:
        task: The task whose features they are found in.
        tables: Tables of the alignment, or a checklist.
        symbols: What each is called.
    """

    task: DiamondTask
    tables: AlignmentTables | Checklist
    symbols: list[str]


def subgoals_of(setup: Setup, goals: str = "alignment") -> SubGoals:
    """Return the sub-goals of demonstrations.

    Args:
        setup: Task, demonstrations and the model of them.
        goals: As in `Training`.
    """
    task, model = setup.task, setup.model
    if goals == "flags":
        task = DiamondTask(task.map_size, task.max_steps, flags=True)
        model = fit_demonstrations(task, setup.demos, **PAPER)
    elif goals == "one":
        # Given twice: an alignment needs two, and of two that are equal every event is kept.
        shortest = min(setup.demos, key=lambda demo: len(demo.actions))
        model = fit_demonstrations(task, [shortest] * 2, subgoal_threshold=0.0)
    elif goals == "kinds":
        return SubGoals(task, *kinds_of(model))
    tables = checklist_of(model) if goals == "checklist" else tables_of(model)
    return SubGoals(task, tables, [str(goal.symbol) for goal in model.subgoals_])
