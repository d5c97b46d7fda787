"""PPO on the redistributed reward, for thousands of environments in one jitted update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask
from align_rudder.hierarchy.resets import Starts, begin_again, remember, watch

__all__ = ["PPO", "Examples", "Learner", "Metrics", "new_learner", "update"]

_SHOWN = 256  # examples of each minibatch


@dataclass(frozen=True)
class PPO:
    """Hyper-parameters of PPO.

    Attributes:
        n_envs: Environments at once.
        n_steps: Steps of each in a batch.
        epochs: Passes over a batch.
        minibatches: Parts of a batch.
        learning_rate: Learning rate at the beginning; it falls linearly to a tenth.
        gamma: Discount.
        trace: λ of the advantages.
        clip: Range of the probability ratio.
        entropy: Weight of the entropy.
        value_weight: Weight of the value's error.
        max_norm: Largest norm of a gradient.
        reward_scale: What rewards are multiplied with.
        fresh: Share of episodes that begin in a new world; the others at stored sub-goals.
        burn_in: Updates in which only the value is learned.
        cloning: Weight of the cloning loss beside PPO's.
        own_subtask: Whether an agent learns for its own sub-task alone, as in the paper, and not
            for those that follow.
    """

    n_envs: int = 1024
    n_steps: int = 64
    epochs: int = 4
    minibatches: int = 8
    learning_rate: float = 3e-4
    gamma: float = 0.995
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.005
    value_weight: float = 0.5
    max_norm: float = 0.5
    reward_scale: float = 10.0
    fresh: float = 0.2
    burn_in: int = 5
    cloning: float = 0.1
    own_subtask: bool = False

    def __post_init__(self) -> None:
        batch = self.n_envs * self.n_steps
        if batch % self.minibatches:
            raise ValueError(
                f"a batch of {self.n_envs} × {self.n_steps} steps cannot be split into "
                f"{self.minibatches} equal minibatches"
            )

    @property
    def batch(self) -> int:
        """Steps of an update."""
        return self.n_envs * self.n_steps


class Examples(NamedTuple):
    """Steps of demonstrations: observation, sub-task, cell and action (n, …)."""

    observation: Any
    subtask: jax.Array
    cell: jax.Array
    action: jax.Array


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


class _Step(NamedTuple):
    observation: Any
    subtask: jax.Array
    cell: jax.Array
    action: jax.Array
    log_p: jax.Array
    value: jax.Array
    reward: jax.Array
    ended: jax.Array  # for the learner; the episode may go on


def optimizer(ppo: PPO, total_updates: int) -> optax.GradientTransformation:
    """Return Adam with clipped gradients and a falling learning rate."""
    per = ppo.epochs * ppo.minibatches
    schedule = optax.linear_schedule(
        ppo.learning_rate, ppo.learning_rate / 10, max(total_updates * per, 1)
    )
    return optax.chain(optax.clip_by_global_norm(ppo.max_norm), optax.adam(schedule, eps=1e-5))


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
) -> tuple[Learner, _Step, jax.Array, Metrics]:
    """Play a batch; return it, the values after it, and what it showed."""
    k = task.n_subtasks

    def step(
        carry: tuple[AlignedState, Starts, jax.Array], _: None
    ) -> tuple[tuple[AlignedState, Starts, jax.Array], tuple[_Step, Any]]:
        envs, starts, key = carry
        key, k_act, k_step, k_keep, k_reset = jax.random.split(key, 5)
        seen = jax.vmap(task.task.observe)(envs.state)
        subtask, cell = envs.subtask, envs.position.cell
        logits, value = jax.vmap(learner.agent, (None, 0, 0, 0))(task, seen, subtask, cell)
        action = jax.random.categorical(k_act, logits)
        log_p = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        new, out = jax.vmap(task.step)(jax.random.split(k_step, ppo.n_envs), envs, action)
        ended = out.over | out.cut
        reward = out.reward * ppo.reward_scale
        # A cut-off episode would have gone on: the value before stands for what would have come.
        reward = reward + jnp.where(out.cut, ppo.gamma * value, 0.0)
        starts = remember(starts, k_keep, new, out.reached & ~out.over)
        fresh = jnp.float32(ppo.fresh)
        following = begin_again(starts, k_reset, new, ended, fresh)
        stop = ended | out.reached if ppo.own_subtask else ended
        kept = _Step(seen, subtask, cell, action, log_p, value, reward, stop)
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


def advantages(
    reward: jax.Array, value: jax.Array, ended: jax.Array, last: jax.Array, ppo: PPO
) -> jax.Array:
    """Return the advantages (T, N) of generalised advantage estimation."""

    def back(
        carry: tuple[jax.Array, jax.Array], x: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        advantage, following = carry
        r, v, end = x
        go_on = 1.0 - end
        delta = r + ppo.gamma * following * go_on - v
        advantage = delta + ppo.gamma * ppo.trace * go_on * advantage
        return (advantage, v), advantage

    start = (jnp.zeros_like(last), last)
    inputs = (reward, value, ended.astype(jnp.float32))
    return jax.lax.scan(back, start, inputs, reverse=True)[1]


def _loss(
    agent: Policy,
    task: AlignedTask,
    ppo: PPO,
    batch: tuple[_Step, jax.Array, jax.Array],
    examples: Examples | None,
    frozen: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    step, advantage, target = batch
    logits, value = jax.vmap(agent, (None, 0, 0, 0))(
        task, step.observation, step.subtask, step.cell
    )
    log_ps = jax.nn.log_softmax(logits)
    log_p = jnp.take_along_axis(log_ps, step.action[:, None], 1)[:, 0]
    ratio = jnp.exp(log_p - step.log_p)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip)
    policy = -jnp.minimum(ratio * scaled, clipped * scaled).mean()
    near = step.value + jnp.clip(value - step.value, -ppo.clip, ppo.clip)
    error = jnp.maximum((value - target) ** 2, (near - target) ** 2).mean() / 2
    entropy = -(jnp.exp(log_ps) * log_ps).sum(axis=1).mean()
    loss = (policy - ppo.entropy * entropy) * (1 - frozen) + ppo.value_weight * error
    if examples is not None and ppo.cloning > 0:
        shown = jax.vmap(agent, (None, 0, 0, 0))(
            task, examples.observation, examples.subtask, examples.cell
        )[0]
        cloned = jnp.take_along_axis(jax.nn.log_softmax(shown), examples.action[:, None], 1).mean()
        loss = loss - ppo.cloning * cloned
    return loss, jnp.stack([policy, error, entropy])


def _draw(examples: Examples, key: jax.Array) -> Examples:
    """Return some of the examples."""
    n = examples.action.shape[0]
    at = jax.random.randint(key, (min(n, _SHOWN),), 0, n)
    return jax.tree.map(lambda x: x[at], examples)


def update(
    task: AlignedTask,
    ppo: PPO,
    total_updates: int,
    learner: Learner,
    examples: Examples | None = None,
) -> tuple[Learner, Metrics]:
    """Play a batch and learn from it."""
    learner, batch, last, metrics = _play(task, ppo, learner)
    advantage = advantages(batch.reward, batch.value, batch.ended, last, ppo)
    target = advantage + batch.value
    n = ppo.batch
    flat = jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), (batch, advantage, target))
    frozen = (learner.updates < ppo.burn_in).astype(jnp.float32)
    change = optimizer(ppo, total_updates)
    arrays, static = eqx.partition(learner.agent, eqx.is_inexact_array)

    def epoch(carry: Any, key: jax.Array) -> Any:
        k_order, k_shown = jax.random.split(key)
        order = jax.random.permutation(k_order, n).reshape(ppo.minibatches, -1)

        def part(carry: Any, drawn: tuple[jax.Array, jax.Array]) -> Any:
            arrays, memory = carry
            chosen = jax.tree.map(lambda x: x[drawn[0]], flat)
            shown = None if examples is None else _draw(examples, drawn[1])

            def loss(arrays: Any) -> tuple[jax.Array, jax.Array]:
                agent = eqx.combine(arrays, static)
                return _loss(agent, task, ppo, chosen, shown, frozen)

            gradient, losses = jax.grad(loss, has_aux=True)(arrays)
            updates, memory = change.update(gradient, memory, arrays)
            return (optax.apply_updates(arrays, updates), memory), losses

        return jax.lax.scan(part, carry, (order, jax.random.split(k_shown, ppo.minibatches)))

    keys = jax.random.split(learner.key, ppo.epochs + 1)
    (arrays, memory), shown = jax.lax.scan(epoch, (arrays, learner.memory), keys[1:])
    learner = learner._replace(
        agent=eqx.combine(arrays, static),
        memory=memory,
        key=keys[0],
        updates=learner.updates + 1,
    )
    return learner, metrics._replace(loss=shown.mean(axis=(0, 1)))
