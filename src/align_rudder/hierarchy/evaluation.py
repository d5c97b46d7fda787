"""End to end from new worlds: how far episodes come along the consensus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask

__all__ = [
    "Evaluation",
    "evaluate",
    "new_worlds",
    "play_all",
]

_CHUNK = 64  # worlds generated at once
_BLOCK = 250  # steps between looks at who still plays
_SHRINK = 4  # those that are over are set aside once only this part of the rest still runs
_LEAST = 64  # worlds in play: fewer take no less time
_NO_LIMIT = 2**31 - 1


def new_worlds(task: AlignedTask, key: jax.Array, n: int) -> AlignedState:
    """Return the starts of n new worlds (n, …)."""
    return _make_worlds(task, jax.random.split(key, n))


@eqx.filter_jit
def _make_worlds(task: AlignedTask, keys: jax.Array) -> AlignedState:
    return jax.lax.map(task.begin, keys, batch_size=min(_CHUNK, keys.shape[0]))


class Evaluation(NamedTuple):
    """Episodes from new worlds (N,).

    Attributes:
        subtask: The next sub-goal at the end.
        reached: Which sub-goals were reached (N, K).
        solved: Whether the task was solved.
        steps: Steps taken.
        features: Features at the end (N, F).
    """

    subtask: jax.Array
    reached: jax.Array
    solved: jax.Array
    steps: jax.Array
    features: jax.Array


class _Play(NamedTuple):
    """Episodes on their way: states, which are over, steps, which are solved, time, key."""

    states: AlignedState
    over: jax.Array
    steps: jax.Array
    solved: jax.Array
    time: jax.Array
    key: jax.Array


def _start(worlds: AlignedState, key: jax.Array) -> _Play:
    none = jnp.zeros(worlds.subtask.shape[0], bool)
    return _Play(worlds, none, none.astype(jnp.int32), none, jnp.int32(0), key)


def _play_on(
    task: AlignedTask,
    agent: Policy,
    play: _Play,
    until: int | jax.Array,
    temperature: float = 1.0,
    most: int | jax.Array = _NO_LIMIT,
    among: tuple[jax.Array, int] | None = None,
) -> _Play:
    """Return the episodes at time `until`, when all are over, or before `most` steps in all.

    If they are some `among` others (which ones, of how many), all is left to the same chances as
    if the others played too.
    """
    n = play.over.shape[0]

    def go_on(play: _Play) -> jax.Array:
        following = play.steps.sum() + (~play.over).sum()
        return (play.time < until) & ~play.over.all() & (following <= most)

    def step(play: _Play) -> _Play:
        key, k_act, k_step = jax.random.split(play.key, 3)
        s, over = play.states, play.over
        seen = jax.vmap(task.task.observe)(s.state)
        logits, _ = jax.vmap(agent, (None, 0, 0, 0))(task, seen, s.subtask, s.position.cell)
        if among is None:
            action, keys = actions.sample(k_act, logits, temperature), jax.random.split(k_step, n)
        else:
            action = _sample_among(k_act, logits, temperature, among)
            keys = jax.random.split(k_step, among[1])[among[0]]
        new, out = jax.vmap(task.step)(keys, s, action)

        def keep(a: jax.Array, b: jax.Array) -> jax.Array:
            return jnp.where(over.reshape(n, *(1,) * (a.ndim - 1)), a, b)

        return _Play(
            jax.tree.map(keep, s, new),
            over | out.over,
            play.steps + ~over,
            play.solved | (out.solved & ~over),
            play.time + 1,
            key,
        )

    return jax.lax.while_loop(go_on, step, play)


def _sample_among(
    key: jax.Array, logits: Any, temperature: float, among: tuple[jax.Array, int]
) -> Any:
    rows, total = among

    def spread(x: jax.Array) -> jax.Array:
        return jnp.zeros((total, *x.shape[1:]), x.dtype).at[rows].set(x)

    drawn = actions.sample(key, jax.tree.map(spread, logits), temperature)
    return jax.tree.map(lambda x: x[rows], drawn)


def evaluate(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int | jax.Array,
    temperature: float = 1.0,
    most: int | jax.Array = _NO_LIMIT,
) -> Evaluation:
    """Play each world (N, …) once, to its end or for that many steps.

    Args:
        task: The task.
        agent: Who plays; its choices are drawn.
        worlds: Starts.
        key: Random key.
        max_steps: Steps after which an episode is given up.
        temperature: What the logits are divided by; below 1 the agent is surer than it has learned
            to be.
        most: Steps of all episodes together, after which all that still run are given up.
    """
    play = _play_on(task, agent, _start(worlds, key), max_steps, temperature, most)
    return _result(task, play)


def play_all(
    task: AlignedTask,
    agent: Policy,
    worlds: AlignedState,
    key: jax.Array,
    max_steps: int,
    report: Callable[[int], Any] = lambda over: None,
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
        report: Called now and then with the number of episodes that are over.
    """
    play, total = _start(worlds, key), worlds.subtask.shape[0]
    go_on, size = eqx.filter_jit(_play_on), total
    for until in range(_BLOCK, max_steps + _BLOCK, _BLOCK):
        running = total - int(play.over.sum())
        report(total - running)
        if not running:
            break
        while running <= size // _SHRINK and size > _LEAST:
            size //= _SHRINK
        rows = jnp.argsort(play.over)[:size]
        part = go_on(
            task,
            agent,
            _take(play, rows),
            jnp.int32(min(until, max_steps)),
            among=(rows, total),
        )
        play = _put(play, rows, part)
    report(int(play.over.sum()))
    return _result(task, play)


@eqx.filter_jit
def _take(play: _Play, rows: jax.Array) -> _Play:
    states, over, steps, solved = jax.tree.map(lambda x: x[rows], play[:4])
    return play._replace(states=states, over=over, steps=steps, solved=solved)


@eqx.filter_jit
def _put(play: _Play, rows: jax.Array, part: _Play) -> _Play:
    put = jax.tree.map(lambda x, new: x.at[rows].set(new), play[:4], part[:4])
    states, over, steps, solved = put
    return part._replace(states=states, over=over, steps=steps, solved=solved)


def _result(task: AlignedTask, play: _Play) -> Evaluation:
    s = play.states
    features = jax.vmap(task.task.features)(s.state)
    return Evaluation(s.subtask, s.reached, play.solved, play.steps, features)
