"""What the folder of a training holds: its best agents, and how far it has come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import equinox as eqx
import jax

from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedTask, AlignmentTables
from align_rudder.hierarchy.manager import ManagedTask, managed, new_manager
from align_rudder.runs.checkpoint import load_tree

if TYPE_CHECKING:
    from align_rudder.hierarchy.training import Training

__all__ = ["load_agent", "load_manager", "steps_so_far"]


def steps_so_far(folder: str | Path, training: Training, tables: AlignmentTables) -> int | None:
    """Return how many steps a training has made that is not finished; None if it is, or unknown."""
    path = Path(folder) / "checkpoint.npz"
    if not path.is_file():
        return None
    notes = load_tree(path, (), training.configuration(tables))[1]
    return None if notes["phase"] == "done" else int(notes["steps"])


def load_agent(
    folder: str | Path, task: AlignedTask, training: Training, name: str = "agent.npz"
) -> Policy:
    """Return the best sub-agents of a training, or those after cloning (`cloned.npz`)."""
    like = eqx.filter_eval_shape(training.new_agent, task, jax.random.key(0))
    return load_tree(Path(folder) / name, like, training.configuration(task.tables))[0]


def load_manager(
    folder: str | Path, task: AlignedTask, training: Training
) -> tuple[ManagedTask, Policy]:
    """Return the task with its sub-agents, and the best main agent of a training."""
    whole = managed(task, load_agent(folder, task, training))
    hidden, symmetric = training.hidden, training.symmetric
    like = eqx.filter_eval_shape(new_manager, whole, jax.random.key(0), hidden, symmetric)
    path = Path(folder) / "manager.npz"
    return whole, load_tree(path, like, training.configuration(task.tables))[0]
