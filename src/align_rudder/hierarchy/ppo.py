"""Proximal policy optimisation (Schulman et al., 2017): rollout, advantages, loss, update.

Environments in JAX are played and learned from in one jitted `train_step`. Those outside of JAX
(see `fine_tuning`) make their rollouts themselves and share the update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from align_rudder.files import Number, Whole
from align_rudder.hierarchy import actions
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask
from align_rudder.hierarchy.cloning import Examples
from align_rudder.hierarchy.resets import Starts, begin_again, remember, update_failure_rates

__all__ = [
    "LATER",
    "PPO",
    "Losses",
    "Metrics",
    "RunnerState",
    "TrainState",
    "Transition",
    "collect_rollout",
    "current_names",
    "flattened",
    "generalized_advantage_estimation",
    "learn_from",
    "new_runner_state",
    "new_train_state",
    "optimizer",
    "ppo_loss",
    "shuffled_rows",
    "train_step",
    "update_agent",
    "with_later",
    "without_later",
]

_EXAMPLES = 256  # cloned beside each minibatch
_NAMES_OF_0_1 = {
    "epochs": "n_epochs",
    "minibatches": "n_minibatches",
    "trace": "gae_lambda",
    "clip": "clip_eps",
    "entropy": "ent_coef",
    "value_weight": "vf_coef",
    "max_norm": "max_grad_norm",
    "cloning": "bc_coef",
}
LATER = {
    "beside": 0.0,
    "goals": "flags",
    "revisit": 0,
    "backplay": False,
    "clip_value": True,
}
"""Entries that configurations written before do not have, and what they were then."""


@dataclass(frozen=True)
class PPO:
    """Hyper-parameters of PPO.

    Attributes:
        n_envs: Environments at once.
        n_steps: Steps of each in a rollout.
        n_epochs: Passes over a rollout.
        n_minibatches: Minibatches of a pass.
        learning_rate: Learning rate at the beginning; it falls linearly to a tenth.
        gamma: Discount γ.
        gae_lambda: λ of generalised advantage estimation.
        clip_eps: ε, how far the probability ratio may move.
        clip_value: Whether values may move no further than ε either in an update.
        ent_coef: Weight of the entropy.
        vf_coef: Weight of the value loss.
        max_grad_norm: Largest norm of a gradient; larger ones are scaled down.
        reward_scale: What rewards are multiplied with.
        fresh: Share of episodes that begin in a new world; the others at stored sub-goals.
        revisit: Steps since the last sub-goal after which a state is stored as well, and each time
            so many more have passed; 0 to store only states that have just reached one.
        backplay: Whether the others begin at sub-goals of demonstrations alone, from the last one
            backwards (Salimans and Chen, 2018; Resnick et al., 2018).
        burn_in: Updates in which only the value is learned.
        bc_coef: Weight of the cloning loss beside PPO's.
        own_subtask: Whether an agent learns for its own sub-task alone, as in the paper: it is paid
            for its own sub-goal, and nothing that follows counts.
    """

    n_envs: int = 1024
    n_steps: int = 64
    n_epochs: int = 4
    n_minibatches: int = 8
    learning_rate: float = 3e-4
    gamma: float = 0.995
    gae_lambda: float = 0.95
    clip_eps: float = 0.2
    clip_value: bool = False
    ent_coef: float = 0.001
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    reward_scale: float = 10.0
    fresh: float = 0.2
    revisit: int = 0
    backplay: bool = False
    burn_in: int = 5
    bc_coef: float = 0.1
    own_subtask: bool = False

    def __post_init__(self) -> None:
        for name in ("n_envs", "n_steps", "n_epochs", "n_minibatches"):
            Whole(1).check(getattr(self, name), name)
        for name in ("revisit", "burn_in"):
            Whole().check(getattr(self, name), name)
        for name in ("ent_coef", "vf_coef", "bc_coef"):
            Number(0).check(getattr(self, name), name)
        for name in ("learning_rate", "clip_eps", "max_grad_norm", "reward_scale"):
            Number(above=0).check(getattr(self, name), name)
        for name in ("gae_lambda", "fresh"):
            Number(0, 1).check(getattr(self, name), name)
        Number(above=0, high=1).check(self.gamma, "gamma")
        if self.batch_size % self.n_minibatches:
            raise ValueError(
                f"a batch of {self.n_envs} × {self.n_steps} steps cannot be split into "
                f"{self.n_minibatches} equal minibatches"
            )

    @property
    def batch_size(self) -> int:
        """Environment steps of an update."""
        return self.n_envs * self.n_steps


def current_names(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose entry "ppo" has the names of `PPO`, not those of version 0.1."""
    ppo = configuration.get("ppo")
    if not isinstance(ppo, Mapping):
        return dict(configuration)
    return {**configuration, "ppo": {_NAMES_OF_0_1.get(k, k): v for k, v in ppo.items()}}


def without_later(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as it was written before the entries in `LATER`, if it can be.

    Files of before are then files of the same training; an entry that says anything new stays.
    """
    return {
        name: without_later(value) if isinstance(value, Mapping) else value
        for name, value in configuration.items()
        if name not in LATER or value != LATER[name]
    }


def with_later(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the entries in `LATER` that it lacks, as they were before."""
    ppo, own = configuration.get("ppo"), {name: LATER[name] for name in ("beside", "goals")}
    if not isinstance(ppo, Mapping):
        return dict(configuration)
    return {**own, **configuration, "ppo": {**{k: LATER[k] for k in LATER if k not in own}, **ppo}}


class Transition(NamedTuple):
    """Steps that were played, (n, …) or in time order (T, N, …).

    Attributes:
        observation: What was seen.
        subtask: Sub-task.
        cell: Cell of the profile.
        action: What was done.
        log_prob: Its log-probability.
        value: V of the state.
        reward: Reward, scaled.
        done: Whether nothing after the step counts for it; the episode may go on.
    """

    observation: Any
    subtask: jax.Array
    cell: jax.Array
    action: Any
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array


class TrainState(NamedTuple):
    """What learning changes.

    Attributes:
        agent: The agent: (task, observation, sub-task, cell) → (logits, value).
        opt_state: State of the optimiser.
        n_updates: Updates so far.
        key: Random key of the next update.
    """

    agent: Any
    opt_state: optax.OptState
    n_updates: jax.Array
    key: jax.Array


class RunnerState(NamedTuple):
    """All that training in JAX changes.

    Attributes:
        train_state: The agent and its optimiser.
        envs: The environments (N, …).
        starts: Where their next episodes begin.
        key: Random key of the next rollout.
    """

    train_state: TrainState
    envs: AlignedState
    starts: Starts
    key: jax.Array


class Losses(NamedTuple):
    """Parts of the loss, as means."""

    policy: jax.Array
    value: jax.Array
    entropy: jax.Array


class Metrics(NamedTuple):
    """What a rollout showed, as counts.

    Attributes:
        reached: How often each sub-goal was reached (K,).
        failed: Episodes that ended at each sub-task, the task not solved (K,).
        ended: Episodes that ended.
        solved: Those that solved the task.
        ended_fresh: Episodes that ended and had begun in a new world.
        solved_fresh: Those of them that solved the task.
    """

    reached: jax.Array
    failed: jax.Array
    ended: jax.Array
    solved: jax.Array
    ended_fresh: jax.Array
    solved_fresh: jax.Array


# Maths


def _check_shapes(**arrays: jax.Array) -> None:
    if len({x.shape for x in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"arrays of one shape are needed: {shapes}")


def generalized_advantage_estimation(
    r_t: jax.Array, discount_t: jax.Array, lambda_: float, values: jax.Array
) -> jax.Array:
    """Return the advantages (T, …) of the states at times 0 to T - 1.

    Args:
        r_t: Rewards at times 1 to T (T, …).
        discount_t: Discounts at times 1 to T (T, …), 0 where nothing that follows counts.
        lambda_: λ.
        values: Values of the states at times 0 to T (T + 1, …); the last one bootstraps.

    Notes:
        With the errors δ_t = r_{t+1} + γ_{t+1} V(s_{t+1}) − V(s_t),
        A_t = Σ_{l≥0} (Π_{i=1..l} γ_{t+i} λ) δ_{t+l} = δ_t + γ_{t+1} λ A_{t+1} and A_T = 0
        (Schulman et al., 2016).
    """
    _check_shapes(r_t=r_t, discount_t=discount_t, values=values[1:])
    delta_t = r_t + discount_t * values[1:] - values[:-1]

    def back(advantage: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, discount = x
        advantage = delta + discount * lambda_ * advantage
        return advantage, advantage

    start = jnp.zeros_like(values[-1])
    return jax.lax.scan(back, start, (delta_t, discount_t), reverse=True)[1]


def ppo_loss(
    agent: Any,
    task: Any,
    ppo: PPO,
    minibatch: tuple[Transition, jax.Array, jax.Array],
    examples: Examples | None = None,
    value_only: jax.Array | bool = False,
) -> tuple[jax.Array, Losses]:
    """Return the loss of an agent on a minibatch, and its parts.

    Args:
        agent: The agent.
        task: What it is called with.
        ppo: Hyper-parameters.
        minibatch: Transitions (n, …), their advantages A and the returns R to learn (n,).
        examples: Steps of demonstrations to clone.
        value_only: Whether policy loss and entropy are left out.

    Notes:
        With the ratio ρ = π(a|s) / π_old(a|s), and advantages brought to mean 0 and deviation 1::

            L_policy = −mean min(ρ A, clip(ρ, 1 − ε, 1 + ε) A)
            L_value  = ½ mean max((V − R)², (V_old + clip(V − V_old, −ε, ε) − R)²)
            L        = L_policy − c_ent H + c_vf L_value + c_bc L_bc

        Without `clip_value` L_value = ½ mean (V − R)². H is the mean entropy of the policy, L_bc
        the cross-entropy of demonstrated actions.
    """
    old, advantage, target = minibatch
    apply = jax.vmap(agent, (None, 0, 0, 0))
    logits, value = apply(task, old.observation, old.subtask, old.cell)
    log_prob = actions.log_prob(logits, old.action)
    _check_shapes(log_prob=log_prob, value=value, advantage=advantage, target=target)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio, eps = jnp.exp(log_prob - old.log_prob), ppo.clip_eps
    surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - eps, 1 + eps) * advantage)
    error = (value - target) ** 2
    if ppo.clip_value:
        clipped = old.value + jnp.clip(value - old.value, -eps, eps)
        error = jnp.maximum(error, (clipped - target) ** 2)
    losses = Losses(-surrogate.mean(), error.mean() / 2, actions.entropy(logits).mean())
    policy_weight = 1.0 - jnp.asarray(value_only, jnp.float32)
    loss = policy_weight * (losses.policy - ppo.ent_coef * losses.entropy)
    loss = loss + ppo.vf_coef * losses.value
    if examples is not None and ppo.bc_coef > 0:
        shown, _ = apply(task, examples.observation, examples.subtask, examples.cell)
        loss = loss + ppo.bc_coef * actions.cross_entropy(shown, examples.action).mean()
    return loss, losses


# Learning from a rollout


def optimizer(ppo: PPO, total_updates: int | jax.Array) -> optax.GradientTransformation:
    """Return Adam with clipped gradients and a learning rate that falls linearly to a tenth."""
    steps = jnp.maximum(jnp.asarray(total_updates) * ppo.n_epochs * ppo.n_minibatches, 1)

    def schedule(step: Any) -> jax.Array:
        return ppo.learning_rate * (1.0 - 0.9 * jnp.minimum(step / steps, 1.0))

    return optax.chain(optax.clip_by_global_norm(ppo.max_grad_norm), optax.adam(schedule, eps=1e-5))


def new_train_state(
    agent: Any, ppo: PPO, total_updates: int | jax.Array, key: jax.Array
) -> TrainState:
    """Return the state of a training that begins."""
    opt_state = optimizer(ppo, total_updates).init(eqx.filter(agent, eqx.is_inexact_array))
    return TrainState(agent, opt_state, jnp.int32(0), key)


def update_agent(
    task: Any,
    ppo: PPO,
    total_updates: int | jax.Array,
    state: TrainState,
    traj_batch: Transition,
    last_value: jax.Array,
    examples: Examples | None = None,
) -> tuple[TrainState, Losses]:
    """Return the state after learning from a rollout, and the mean losses.

    Args:
        task: What the agent is called with.
        ppo: Hyper-parameters.
        total_updates: Updates of the whole training, over which the learning rate falls.
        state: The state.
        traj_batch: Transitions of the rollout, in time order (T, N, …).
        last_value: V of the states after them (N,).
        examples: Steps of demonstrations to clone at the same time.
    """
    flat = flattened(ppo, traj_batch, last_value)
    n = traj_batch.reward.size

    params, static = eqx.partition(state.agent, eqx.is_inexact_array)

    def minibatch(carry: Any, x: tuple[jax.Array, jax.Array]) -> Any:
        before = state._replace(agent=eqx.combine(carry[0], static), opt_state=carry[1])
        after, losses = learn_from(task, ppo, total_updates, before, flat, x[0], (examples, x[1]))
        return (eqx.filter(after.agent, eqx.is_inexact_array), after.opt_state), losses

    def epoch(carry: Any, key: jax.Array) -> Any:
        k_rows, k_shown = jax.random.split(key)
        rows = shuffled_rows(ppo, k_rows, n)
        size = (ppo.n_minibatches, min(n_shown, _EXAMPLES))
        shown = jax.random.randint(k_shown, size, 0, n_shown) if n_shown else rows
        return jax.lax.scan(minibatch, carry, (rows, shown))

    n_shown = 0 if examples is None else examples.action.shape[0]
    keys = jax.random.split(state.key, ppo.n_epochs + 1)
    (params, opt_state), losses = jax.lax.scan(epoch, (params, state.opt_state), keys[1:])
    state = TrainState(eqx.combine(params, static), opt_state, state.n_updates + 1, keys[0])
    return state, jax.tree.map(jnp.mean, losses)


def flattened(ppo: PPO, traj_batch: Transition, last_value: jax.Array) -> Any:
    """Return transitions, advantages and targets of the value as rows (T N, …)."""
    advantage = generalized_advantage_estimation(
        traj_batch.reward,
        ppo.gamma * (1.0 - traj_batch.done),
        ppo.gae_lambda,
        jnp.concatenate([traj_batch.value, last_value[None]]),
    )
    return jax.tree.map(
        lambda x: x.reshape(advantage.size, *x.shape[2:]),
        (traj_batch, advantage, advantage + traj_batch.value),
    )


def shuffled_rows(ppo: PPO, key: jax.Array, n: int) -> jax.Array:
    """Return the rows of each minibatch of an epoch."""
    return jax.random.permutation(key, n).reshape(ppo.n_minibatches, -1)


def learn_from(
    task: Any,
    ppo: PPO,
    total_updates: int | jax.Array,
    state: TrainState,
    flat: Any,
    rows: jax.Array,
    examples: tuple[Examples | None, jax.Array | None] = (None, None),
) -> tuple[TrainState, Losses]:
    """Return the state after learning from a minibatch, and the losses.

    Args:
        task: What the agent is called with.
        ppo: Hyper-parameters.
        total_updates: Updates of the whole training.
        state: The state.
        flat: What `flattened` returned.
        rows: Rows of it.
        examples: Steps of demonstrations, and which of them are cloned.
    """
    params, static = eqx.partition(state.agent, eqx.is_inexact_array)
    part = jax.tree.map(lambda leaf: leaf[rows], flat)
    shown = jax.tree.map(lambda leaf: leaf[examples[1]], examples[0])
    value_only = state.n_updates < ppo.burn_in

    def loss(params: Any) -> tuple[jax.Array, Losses]:
        return ppo_loss(eqx.combine(params, static), task, ppo, part, shown, value_only)

    grads, losses = jax.grad(loss, has_aux=True)(params)
    updates, opt_state = optimizer(ppo, total_updates).update(grads, state.opt_state, params)
    params = optax.apply_updates(params, updates)
    return state._replace(agent=eqx.combine(params, static), opt_state=opt_state), losses


# In JAX


def new_runner_state(
    agent: Policy, starts: Starts, ppo: PPO, total_updates: int | jax.Array, key: jax.Array
) -> RunnerState:
    """Return the state of a training that begins, its environments at new beginnings."""
    k_learn, k_begin, k_play = jax.random.split(key, 3)

    @jax.jit
    def begin(starts: Starts, key: jax.Array) -> AlignedState:
        blank = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:1], (ppo.n_envs, *x.shape[1:])), starts.pool
        )
        every = jnp.ones(ppo.n_envs, bool)
        return begin_again(starts, key, blank, every, ppo.fresh, ppo.backplay)

    state = new_train_state(agent, ppo, total_updates, k_learn)
    return RunnerState(state, begin(starts, k_begin), starts, k_play)


def collect_rollout(
    task: AlignedTask, ppo: PPO, runner: RunnerState
) -> tuple[RunnerState, Transition, jax.Array, Metrics]:
    """Play a rollout; return its transitions, the values after it, and what it showed."""
    k, worth = task.n_subtasks, task.tables.worth
    apply = jax.vmap(runner.train_state.agent, (None, 0, 0, 0))

    def step(
        carry: tuple[AlignedState, Starts], key: jax.Array
    ) -> tuple[tuple[AlignedState, Starts], tuple[Transition, Metrics]]:
        envs, starts = carry
        k_act, k_step, k_keep, k_reset = jax.random.split(key, 4)
        seen, subtask, cell = jax.vmap(task.see)(envs)
        logits, value = apply(task, seen, subtask, cell)
        action = actions.sample(k_act, logits)
        log_prob = actions.log_prob(logits, action)
        new, out = jax.vmap(task.step)(jax.random.split(k_step, ppo.n_envs), envs, action)
        ended = out.over | out.cut
        done, paid = ended, out.reward
        if ppo.own_subtask:
            # Not all that was gained on the way: it would learn to do the work of others first.
            own = out.goal == subtask
            done, paid = ended | out.reached, jnp.where(own, worth[subtask], 0.0)
        reward = paid * ppo.reward_scale
        # A cut-off episode would have gone on: the value before stands for what would have come.
        reward = reward + jnp.where(out.cut, ppo.gamma * value, 0.0)
        keep = out.reached
        if ppo.revisit:  # before the first sub-goal there are new worlds to begin in
            keep |= (new.subtask > 0) & (new.idle > 0) & (new.idle % ppo.revisit == 0)
        if not ppo.backplay:
            starts = remember(starts, k_keep, new, keep & ~ended)
        fresh = new.begun == 0
        metrics = Metrics(
            (jax.nn.one_hot(subtask, k) * out.reached[:, None]).sum(0),
            (jax.nn.one_hot(new.subtask, k) * (ended & ~out.solved)[:, None]).sum(0),
            ended.sum(),
            out.solved.sum(),
            (ended & fresh).sum(),
            (out.solved & fresh).sum(),
        )
        transition = Transition(seen, subtask, cell, action, log_prob, value, reward, done)
        begun = begin_again(starts, k_reset, new, ended, ppo.fresh, ppo.backplay)
        return (begun, starts), (transition, metrics)

    key, k_play = jax.random.split(runner.key)
    (envs, starts), (traj_batch, shown) = jax.lax.scan(
        step, (runner.envs, runner.starts), jax.random.split(k_play, ppo.n_steps)
    )
    last_value = apply(task, *jax.vmap(task.see)(envs))[1]
    metrics = jax.tree.map(lambda x: x.sum(axis=0), shown)
    starts = update_failure_rates(starts, metrics.reached, metrics.failed)
    runner = runner._replace(envs=envs, starts=starts, key=key)
    return runner, traj_batch, last_value, metrics


def train_step(
    task: AlignedTask,
    ppo: PPO,
    total_updates: int | jax.Array,
    runner: RunnerState,
    examples: Examples | None = None,
) -> tuple[RunnerState, Metrics, Losses]:
    """Play a rollout and learn from it."""
    runner, traj_batch, last_value, metrics = collect_rollout(task, ppo, runner)
    state, losses = update_agent(
        task, ppo, total_updates, runner.train_state, traj_batch, last_value, examples
    )
    return runner._replace(train_state=state), metrics, losses
