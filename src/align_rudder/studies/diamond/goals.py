"""Where the sub-goals come from: the alignment of all demonstrations, or a control without it."""

from __future__ import annotations

from typing import NamedTuple

from align_rudder.hierarchy.aligned import AlignmentTables, tables_of
from align_rudder.hierarchy.unordered import Checklist, checklist_of, kinds_of
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
        goals: As in `Training`: "alignment", with events of achievements too; "items", "checklist",
            "one" (the shortest) and "kinds", with events of items alone.
    """
    if goals == "alignment":
        return SubGoals(setup.task, tables_of(setup.model), setup.goals)
    task = DiamondTask(setup.task.map_size, setup.task.max_steps, flags=False)
    if goals == "one":
        # Given twice: an alignment needs two, and of two that are equal every event is kept.
        shortest = min(setup.demos, key=lambda demo: len(demo.actions))
        model = fit_demonstrations(task, [shortest] * 2, in_order=True, subgoal_threshold=0.0)
    else:
        model = fit_demonstrations(task, setup.demos, in_order=True)
    if goals == "kinds":
        return SubGoals(task, *kinds_of(model))
    tables = checklist_of(model) if goals == "checklist" else tables_of(model)
    return SubGoals(task, tables, [str(goal.symbol) for goal in model.subgoals_])
