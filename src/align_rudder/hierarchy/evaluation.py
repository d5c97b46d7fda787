"""Evaluation from new worlds: how far episodes come along the consensus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = ["Evaluation", "evaluate", "new_worlds", "play_all"]

_CHUNK = 64  # worlds generated at once
_SHRINK = 4  # those that are over are set aside once only this part of the rest still runs
_NO_LIMIT = 2**31 - 1


@eqx.filter_jit
def new_worlds(task: AlignedTask, key: jax.Array, n: int) -> AlignedState:
    """Return the starts of n new worlds (n, …)."""
    return jax.lax.map(task.begin, jax.random.split(key, n), batch_size=min(_CHUNK, n))


class Evaluation(NamedTuple):
    """Episodes from new worlds (N,).

    Attributes:
        subtask: The next sub-goal at the end.
        reached: Which sub-goals were reached (N, K).
        solved: Whether the task was solved.
        steps: Steps taken.
        ending: How it ended, as an index of the task's `endings`; -1 if it was given up.
        report: What the task reports of its last state (N, R).
    """

    subtask: jax.Array
    reached: jax.Array
    solved: jax.Array
    steps: jax.Array
    ending: jax.Array
    report: jax.Array


class _Play(NamedTuple):
    """Episodes under way (N,).

    Each draws from its own random key, so that its course does not depend on who else plays.
    """

    states: AlignedState
    keys: jax.Array
    over: jax.Array
    solved: jax.Array
    steps: jax.Array
    ending: jax.Array

    def result(self, task: AlignedTask) -> Evaluation:
        """Return what the episodes came to."""
        s = self.states
        report = jax.vmap(task.task.report)(s.state)
        return Evaluation(s.subtask, s.reached, self.solved, self.steps, self.ending, report)


def _start(worlds: AlignedState, key: jax.Array) -> _Play:
    n = worlds.subtask.shape[0]
    no, zero = jnp.zeros(n, bool), jnp.zeros(n, jnp.int32)
    return _Play(worlds, jax.random.split(key, n), no, no, zero, zero - 1)


def _play_on(
    task: AlignedTask,
    agent: Policy,
    play: _Play,
    n_steps: int | jax.Array,
    most: int | jax.Array = _NO_LIMIT,
) -> _Play:
    """Return the episodes n_steps later, when all are over, or before `most` steps in all."""

    def step(s: AlignedState, key: jax.Array) -> tuple[AlignedState, Any]:
        k_act, k_step = jax.random.split(key)
        logits, _ = agent(task, *task.see(s))
        return task.step(k_step, s, actions.sample(k_act, logits))

    def go_on(carry: tuple[jax.Array, _Play]) -> jax.Array:
        time, play = carry
        following = play.steps.sum() + (~play.over).sum()
        return (time < n_steps) & ~play.over.all() & (following <= most)

    def step_all(carry: tuple[jax.Array, _Play]) -> tuple[jax.Array, _Play]:
        time, play = carry
        over = play.over
        keys = jax.vmap(jax.random.fold_in)(play.keys, play.steps)
        new, out = jax.vmap(step)(play.states, keys)
        ending = jax.vmap(task.task.ending)(play.states.state, new.state)

        def keep(a: jax.Array, b: jax.Array) -> jax.Array:
            return jnp.where(over.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

        return time + 1, play._replace(
            states=jax.tree.map(keep, play.states, new),
            over=over | out.over,
            solved=play.solved | (out.solved & ~over),
            steps=play.steps + ~over,
            ending=jnp.where(out.over & ~over, ending, play.ending),
        )

    return jax.lax.while_loop(go_on, step_all, (jnp.int32(0), play))[1]


def evaluate(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int | jax.Array,
    most: int | jax.Array = _NO_LIMIT,
) -> Evaluation:
    """Play each world (N, …) once, to its end or for `max_steps` steps.

    Args:
        task: The task.
        agent: Who plays; its choices are drawn.
        worlds: Starts.
        key: Random key.
        max_steps: Steps after which an episode is given up.
        most: Steps of all episodes together, before which all that still run are given up.
    """
    return _play_on(task, agent, _start(worlds, key), max_steps, most).result(task)


def play_all(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int,
    report: Callable[[int], Any] = lambda over: None,
    block: int = 250,
    least: int = 64,
) -> Evaluation:
    """Play each world once, as `evaluate` does, but from Python and without those that are over.

    Most episodes are short and a few go on to the limit: computing only those that still run takes
    far less work, with the same outcome.

    Args:
        task: The task.
        agent: Who plays; its choices are drawn.
        worlds: Starts (N, …).
        key: Random key.
        max_steps: Steps after which an episode is given up.
        report: Called after each block of steps with the number of episodes that are over.
        block: Steps between looks at who still plays.
        least: Worlds computed at least: fewer take no less time.
    """
    play, size = _start(worlds, key), worlds.subtask.shape[0]
    total = size
    for begin in range(0, max_steps, block):
        running = total - int(play.over.sum())
        report(total - running)
        if not running:
            break
        while running <= size // _SHRINK and size > least:
            size //= _SHRINK
        rows = jnp.argsort(play.over)[:size]
        n_steps = jnp.int32(min(block, max_steps - begin))
        play = _play_rows(task, agent, play, rows, n_steps)
    report(int(play.over.sum()))
    return play.result(task)


@eqx.filter_jit
def _play_rows(
    task: AlignedTask, agent: Policy, play: _Play, rows: jax.Array, n_steps: jax.Array
) -> _Play:
    """Return the episodes, n_steps later those in some rows."""
    part = _play_on(task, agent, jax.tree.map(lambda x: x[rows], play), n_steps)
    return jax.tree.map(lambda x, new: x.at[rows].set(new), play, part)
