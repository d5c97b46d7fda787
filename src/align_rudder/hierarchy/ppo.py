"""PPO on the redistributed reward, for thousands of environments in one jitted update."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask
from align_rudder.hierarchy.improvement import (
    PPO,
    Examples,
    Steps,
    advantages,
    improve,
    optimizer,
)
from align_rudder.hierarchy.resets import Starts, begin_again, remember, watch

__all__ = ["PPO", "Examples", "Learner", "Metrics", "advantages", "new_learner", "update"]


class Learner(NamedTuple):
    """All that training changes."""

    agent: Policy
    memory: Any
    envs: AlignedState
    starts: Starts
    key: jax.Array
    updates: jax.Array


class Metrics(NamedTuple):
    """What a batch showed.

    Attributes:
        tried: Steps spent at each sub-task (K + 1,).
        reached: How often each sub-goal was reached (K,).
        failed: Episodes that ended at each sub-task, the task not solved (K,).
        ended: Episodes that ended.
        solved: Those that solved the task.
        solved_fresh: Those of them that began in a new world.
        ended_fresh: Episodes that ended and began in a new world.
        loss: Policy loss, value loss and entropy.
    """

    tried: jax.Array
    reached: jax.Array
    failed: jax.Array
    ended: jax.Array
    solved: jax.Array
    solved_fresh: jax.Array
    ended_fresh: jax.Array
    loss: jax.Array


def new_learner(
    agent: Policy, starts: Starts, ppo: PPO, total_updates: int, key: jax.Array
) -> Learner:
    """Return a learner whose environments stand at new beginnings."""
    memory = optimizer(ppo, total_updates).init(eqx.filter(agent, eqx.is_inexact_array))
    one, two = jax.random.split(key)
    blank = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], (ppo.n_envs, *x.shape[1:])), starts.pool)
    envs = begin_again(starts, one, blank, jnp.ones(ppo.n_envs, bool), jnp.float32(ppo.fresh))
    return Learner(agent, memory, envs, starts, two, jnp.int32(0))


def _play(
    task: AlignedTask, ppo: PPO, learner: Learner
) -> tuple[Learner, Steps, jax.Array, Metrics]:
    """Play a batch; return it, the values after it, and what it showed."""
    k, worth = task.n_subtasks, task.tables.worth

    def step(
        carry: tuple[AlignedState, Starts, jax.Array], _: None
    ) -> tuple[tuple[AlignedState, Starts, jax.Array], tuple[Steps, Any]]:
        envs, starts, key = carry
        key, k_act, k_step, k_keep, k_reset = jax.random.split(key, 5)
        seen = jax.vmap(task.task.observe)(envs.state)
        subtask, cell = envs.subtask, envs.position.cell
        logits, value = jax.vmap(learner.agent, (None, 0, 0, 0))(task, seen, subtask, cell)
        action = actions.sample(k_act, logits)
        log_p = actions.log_prob(logits, action)
        new, out = jax.vmap(task.step)(jax.random.split(k_step, ppo.n_envs), envs, action)
        ended = out.over | out.cut
        stop, paid = ended, out.reward
        if ppo.own_subtask:
            # Not all that was gained on the way: it would learn to do the work of others first.
            own = out.goal == subtask
            stop, paid = ended | out.reached, jnp.where(own, worth[subtask], 0.0)
        reward = paid * ppo.reward_scale
        # A cut-off episode would have gone on: the value before stands for what would have come.
        reward = reward + jnp.where(out.cut, ppo.gamma * value, 0.0)
        starts = remember(starts, k_keep, new, out.reached & ~out.over)
        fresh = jnp.float32(ppo.fresh)
        following = begin_again(starts, k_reset, new, ended, fresh)
        kept = Steps(seen, subtask, cell, action, log_p, value, reward, stop)
        shown = (
            jax.nn.one_hot(subtask, k + 1).sum(0),
            (jax.nn.one_hot(subtask, k) * out.reached[:, None]).sum(0),
            (jax.nn.one_hot(new.subtask, k) * (ended & ~out.solved)[:, None]).sum(0),
            ended.sum(),
            out.solved.sum(),
            (out.solved & (new.begun == 0)).sum(),
            (ended & (new.begun == 0)).sum(),
        )
        return (following, starts, key), (kept, shown)

    carry = (learner.envs, learner.starts, learner.key)
    (envs, starts, key), (batch, shown) = jax.lax.scan(step, carry, None, ppo.n_steps)
    seen = jax.vmap(task.task.observe)(envs.state)
    last = jax.vmap(learner.agent, (None, 0, 0, 0))(task, seen, envs.subtask, envs.position.cell)[1]
    totals = [x.sum(axis=0) for x in shown]
    metrics = Metrics(*totals, loss=jnp.zeros(3))
    starts = watch(starts, metrics.reached, metrics.failed)
    learner = learner._replace(envs=envs, starts=starts, key=key)
    return learner, batch, last, metrics


def update(
    task: AlignedTask,
    ppo: PPO,
    total_updates: int,
    learner: Learner,
    examples: Examples | None = None,
) -> tuple[Learner, Metrics]:
    """Play a batch and learn from it."""
    learner, played, last, metrics = _play(task, ppo, learner)
    key, k_learn = jax.random.split(learner.key)
    agent, memory, losses = improve(
        task,
        ppo,
        total_updates,
        learner.agent,
        learner.memory,
        played,
        last,
        k_learn,
        examples,
        frozen=learner.updates < ppo.burn_in,
    )
    learner = learner._replace(agent=agent, memory=memory, key=key, updates=learner.updates + 1)
    return learner, metrics._replace(loss=losses)
