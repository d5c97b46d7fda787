"""Linear agents in the place of MineRL's, which take a minute to compile."""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from align_rudder.minerl import playing, sub_agents, training
from align_rudder.minerl.crashes import recovery_of
from align_rudder.minerl.networks import UNITS, split_heads
from align_rudder.minerl.pipeline import segments
from align_rudder.minerl.place import Games, crash_notes


class Linear(eqx.Module):
    """Logits and value as linear functions of the last picture, 4×4 pixels of it."""

    heads: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(self, key):
        k_heads, k_value = jax.random.split(key)
        self.heads = eqx.nn.Linear(48, UNITS, key=k_heads)
        self.value = eqx.nn.Linear(48, 1, key=k_value)

    def __call__(self, task, observation, subtask, cell):
        seen = observation[-1].reshape(4, 12, 4, 12, 3).mean(axis=(1, 3)).ravel() / 255
        return split_heads(self.heads(seen)), self.value(seen)[0]

    def clone(self, observations, learning=True):
        return jax.vmap(self, (None, 0, None, None))(None, observations, 0, 0)[0], self


class LinearManager(eqx.Module):
    own: Linear
    who: eqx.nn.Linear

    def __init__(self, key, n):
        self.own, self.who = Linear(key), eqx.nn.Linear(1, n + 1, key=key)

    def __call__(self, task, observation, subtask, cell):
        logits, value = self.own(task, observation, subtask, cell)
        return {**logits, "who": self.who(jnp.ones(1) * subtask)}, value


@contextmanager
def small_networks():
    """Train and play with linear agents."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (sub_agents, playing):
            patch.setattr(module, "new_sub_agent", Linear)
        for module in (training, playing):
            patch.setattr(module, "new_manager", LinearManager)
        yield


class opened(Games):
    """Environments that are open already, and stay so."""

    def __init__(self, *envs):
        super().__init__(lambda: envs[0], len(envs))
        self.envs = list(envs)

    @contextmanager
    def playing(self, crashes):
        note = crash_notes(crashes)
        for i, env in enumerate(self.envs):
            if (recovery := recovery_of(env.env)) is not None:
                recovery.on_crash = partial(note, i)
        yield self.envs


def first_subtasks(pool, model, n):
    """Return the first sub-tasks with few steps, so that a test is quick."""
    return [
        replace(
            task,
            segments=tuple(s._replace(start=max(s.stop - 8, s.start)) for s in task.segments[:2]),
        )
        for task in segments(pool, model)[:n]
    ]


def contents(folder):
    """Return what a training left, but for what tells of crashes."""
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".npz":
            with np.load(path) as file:
                found[path.name] = {name: file[name].tobytes() for name in file.files}
        elif path.suffix == ".csv" and path.name != "crashes.csv":
            found[path.name] = path.read_text()
    return found
