"""PPO's part that knows no environment: from a batch of steps to better networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from align_rudder.hierarchy import actions

__all__ = ["PPO", "Examples", "Steps", "advantages", "improve", "optimizer"]

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
        own_subtask: Whether an agent learns for its own sub-task alone, as in the paper: it is paid
            for its own sub-goal, and nothing that follows counts.
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
        for name in ("n_envs", "n_steps", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: at least 1 is needed")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma={self.gamma} is a discount: above 0 and at most 1")
        if not 0 <= self.entropy < float("inf"):
            raise ValueError(f"entropy={self.entropy} is a weight: 0 or more")
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


class Steps(NamedTuple):
    """Steps that were played, (n, …) or in time order (T, N, …).

    Attributes:
        observation: What was seen.
        subtask: Sub-task.
        cell: Cell of the profile.
        action: What was done.
        log_p: Log-probability of that.
        value: Value of the state.
        reward: Reward, scaled.
        ended: Whether nothing after the step counts for it; the episode may go on.
    """

    observation: Any
    subtask: jax.Array
    cell: jax.Array
    action: Any
    log_p: jax.Array
    value: jax.Array
    reward: jax.Array
    ended: jax.Array


def optimizer(ppo: PPO, total_updates: int) -> optax.GradientTransformation:
    """Return Adam with clipped gradients and a falling learning rate."""
    per = ppo.epochs * ppo.minibatches
    schedule = optax.linear_schedule(
        ppo.learning_rate, ppo.learning_rate / 10, max(total_updates * per, 1)
    )
    return optax.chain(optax.clip_by_global_norm(ppo.max_norm), optax.adam(schedule, eps=1e-5))


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
    agent: Any,
    task: Any,
    ppo: PPO,
    batch: tuple[Steps, jax.Array, jax.Array],
    examples: Examples | None,
    frozen: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    step, advantage, target = batch
    act = jax.vmap(agent, (None, 0, 0, 0))
    logits, value = act(task, step.observation, step.subtask, step.cell)
    ratio = jnp.exp(actions.log_prob(logits, step.action) - step.log_p)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip)
    policy = -jnp.minimum(ratio * scaled, clipped * scaled).mean()
    near = step.value + jnp.clip(value - step.value, -ppo.clip, ppo.clip)
    error = jnp.maximum((value - target) ** 2, (near - target) ** 2).mean() / 2
    entropy = actions.entropy(logits).mean()
    loss = (policy - ppo.entropy * entropy) * (1 - frozen) + ppo.value_weight * error
    if examples is not None and ppo.cloning > 0:
        shown = act(task, examples.observation, examples.subtask, examples.cell)[0]
        loss = loss + ppo.cloning * actions.cross_entropy(shown, examples.action).mean()
    return loss, jnp.stack([policy, error, entropy])


def _draw(examples: Examples, key: jax.Array) -> Examples:
    """Return some of the examples."""
    n = examples.action.shape[0]
    at = jax.random.randint(key, (min(n, _SHOWN),), 0, n)
    return jax.tree.map(lambda x: x[at], examples)


def improve(
    task: Any,
    ppo: PPO,
    total_updates: int,
    agent: Any,
    memory: Any,
    played: Steps,
    last: jax.Array,
    key: jax.Array,
    examples: Examples | None = None,
    frozen: jax.Array | bool = False,
) -> tuple[Any, Any, jax.Array]:
    """Return agent and optimiser's memory after learning from a batch, and the mean losses.

    Args:
        task: What the agent is called with.
        ppo: Hyper-parameters.
        total_updates: Batches of the whole training, for the learning rate.
        agent: The agent: (task, observation, sub-task, cell) → (logits, value).
        memory: Memory of the optimiser.
        played: The batch (T, N, …).
        last: Values of the states after it (N,).
        key: Random key.
        examples: Steps of demonstrations to clone at the same time.
        frozen: Whether only the value is learned.
    """
    advantage = advantages(played.reward, played.value, played.ended, last, ppo)
    n = advantage.size
    flat = jax.tree.map(
        lambda x: x.reshape(n, *x.shape[2:]), (played, advantage, advantage + played.value)
    )
    change = optimizer(ppo, total_updates)
    arrays, static = eqx.partition(agent, eqx.is_inexact_array)
    still = jnp.asarray(frozen, jnp.float32)

    def epoch(carry: Any, key: jax.Array) -> Any:
        k_order, k_shown = jax.random.split(key)
        order = jax.random.permutation(k_order, n).reshape(ppo.minibatches, -1)

        def part(carry: Any, drawn: tuple[jax.Array, jax.Array]) -> Any:
            arrays, memory = carry
            chosen = jax.tree.map(lambda x: x[drawn[0]], flat)
            shown = None if examples is None else _draw(examples, drawn[1])

            def loss(arrays: Any) -> tuple[jax.Array, jax.Array]:
                agent = eqx.combine(arrays, static)
                return _loss(agent, task, ppo, chosen, shown, still)

            gradient, losses = jax.grad(loss, has_aux=True)(arrays)
            updates, memory = change.update(gradient, memory, arrays)
            return (optax.apply_updates(arrays, updates), memory), losses

        return jax.lax.scan(part, carry, (order, jax.random.split(k_shown, ppo.minibatches)))

    keys = jax.random.split(key, ppo.epochs)
    (arrays, memory), losses = jax.lax.scan(epoch, (arrays, memory), keys)
    return eqx.combine(arrays, static), memory, losses.mean(axis=(0, 1))
