"""A trained agent as a file of its own, small enough to come with the package."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.files import Anything, Each, Format
from align_rudder.hierarchy.agents import Agent, Mlp
from align_rudder.hierarchy.aligned import AlignedTask
from align_rudder.hierarchy.folder import load_agent
from align_rudder.hierarchy.settings import Training
from align_rudder.runs.checkpoint import arrays_of, tree_of
from align_rudder.studies.diamond.results import aligned_task, read_training
from align_rudder.tasks.diamond.demos import Setup

__all__ = ["load_player", "save_player", "shipped_player"]

_PLAYER = Format(
    "align-rudder-diamond-player",
    1,
    header={"training": Each(Anything())},
    groups=("",),
    remedy="write it again: align-rudder diamond ship FOLDER",
)


def shipped_player() -> Path | None:
    """Return the file of the agent that comes with the package, None if there is none."""
    path = Path(str(files("align_rudder.studies.diamond") / "player.npz"))
    return path if path.is_file() else None


def save_player(path: str | os.PathLike[str], folder: str | Path, setup: Setup) -> None:
    """Save the policy of a training's sub-agents, without its value, in half precision.

    Args:
        path: The file.
        folder: Folder of the training.
        setup: Task, demonstrations and model, as `prepare` returns them.
    """
    training, _ = read_training(folder)
    task = aligned_task(setup, training.goals)
    agent = load_agent(folder, task, training)
    if not isinstance(agent, Agent):
        raise ValueError(
            f"{folder} has a network for each sub-task; an agent is saved that has one for all"
        )
    arrays = arrays_of(_half(agent.actor))
    _PLAYER.save(path, {"training": training.configuration(task.tables)}, arrays, level=9)


def load_player(path: str | os.PathLike[str], setup: Setup) -> tuple[AlignedTask, Agent, Training]:
    """Return the task, the agent and what it was trained with, of a file of `save_player`."""
    with _PLAYER.open(path) as contents:
        configuration = contents.header["training"]
        training = Training.from_configuration(configuration)
        task = aligned_task(setup, training.goals)
        if configuration["alignment"] != task.tables.digest:
            raise ValueError(
                "it was trained with other demonstrations than these; give those of its training "
                "(--demos)"
            )
        agent = eqx.filter_eval_shape(training.new_agent, task, jax.random.key(0))
        if not isinstance(agent, Agent):
            raise ValueError("it has a network for each sub-task; one for all is needed")
        actor = tree_of(contents.others, _half(agent.actor))
    actor = jax.tree.map(lambda x: x.astype(jnp.float32), actor)
    n_in = actor.layers[0].weight.shape[1] if actor.layers else actor.out.weight.shape[1]
    return (
        task,
        eqx.tree_at(lambda a: (a.actor, a.critic), agent, (actor, _no_value(n_in))),
        training,
    )


def _half(actor: Any) -> Any:
    """Return a network, or the shapes of one, in half precision."""

    def half(x: Any) -> Any:
        shape = isinstance(x, jax.ShapeDtypeStruct)
        return jax.ShapeDtypeStruct(x.shape, jnp.float16) if shape else x.astype(jnp.float16)

    return jax.tree.map(half, actor)


def _no_value(n_in: int) -> Mlp:
    """Return a network that is always 0: who only plays needs no value."""
    return jax.tree.map(jnp.zeros_like, Mlp(n_in, (), 1, 1.0, jax.random.key(0)))
