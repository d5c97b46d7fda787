"""PPO for environments outside of JAX: one sub-agent, or the main agent, from rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.external import (
    Followed,
    Players,
    Replays,
    act,
    begin_at,
    choice_of,
)
from align_rudder.hierarchy.improvement import PPO, Examples, Steps, improve, optimizer
from align_rudder.runs.checkpoint import Checkpoint

__all__ = ["FineTuned", "FineTuning", "fine_tune", "fine_tune_manager", "success_rate"]


@dataclass(frozen=True)
class FineTuning:
    """How an agent is trained in an environment outside of JAX.

    Attributes:
        steps: Steps of training at most.
        burn_in: Steps in which only the value is learned.
        patience: Steps without a sub-goal after which an episode is cut off.
        evaluate_every: Steps between evaluations.
        trials: Episodes of an evaluation; the best agent is kept.
        enough: Success rate of an evaluation with which the training ends early (above 1: never),
        least_steps: but not before so many steps.
        fresh: Share of the tries to begin that are played to the sub-task by earlier agents, from
            a new world or an earlier sub-task; the others go back to a recording.
        ppo: Hyper-parameters; `n_envs` is given by the environments.
    """

    steps: int = 500_000
    burn_in: int = 50_000
    patience: int = 1000
    evaluate_every: int = 50_000
    trials: int = 12
    enough: float = 1.0
    least_steps: int = 50_000
    fresh: float = 0.5
    ppo: PPO = field(default_factory=lambda: PPO(n_envs=1, n_steps=256, minibatches=4, cloning=0.0))

    def __post_init__(self) -> None:
        least = {"steps": 1, "patience": 1, "evaluate_every": 1, "trials": 1}
        for name, n in {**least, "burn_in": 0, "least_steps": 0}.items():
            if getattr(self, name) < n:
                raise ValueError(f"{name}={getattr(self, name)}; at least {n} is needed")
        if not self.enough >= 0:
            raise ValueError(f"enough={self.enough}; a share is needed, or above 1 for never")
        if not 0 <= self.fresh < 1:
            raise ValueError(f"fresh={self.fresh}; a share from 0 to less than 1 is needed")


class FineTuned(NamedTuple):
    """The best agent, and the success rate at each evaluation (steps, rate)."""

    agent: Any
    curve: list[tuple[int, float]]


def success_rate(
    env: Followed,
    subtask: int,
    replays: Replays,
    players: Players,
    rng: np.random.Generator,
    tuning: FineTuning,
) -> float:
    """Return how often a sub-task is solved when it is begun."""
    solved, patience = 0, tuning.patience
    for _ in range(tuning.trials):
        begin_at(env, subtask, replays, players, rng, patience, tuning.fresh)
        while not env.ended and env.subtask <= subtask and env.idle < patience:
            key = jax.random.key(int(rng.integers(2**31)))
            moved = env.step(players.choose(env, key))
            if moved.reached:
                replays.add(env)
        solved += env.subtask > subtask
    return solved / tuning.trials


@eqx.filter_jit
def _improve(
    ppo: PPO,
    total: int,
    agent: Any,
    memory: Any,
    played: Steps,
    last: jax.Array,
    key: jax.Array,
    examples: Examples | None,
    frozen: jax.Array,
) -> tuple[Any, Any, jax.Array]:
    return improve(None, ppo, total, agent, memory, played, last, key, examples, frozen)


def _stack(rows: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *rows)


def _train(
    agent: Any,
    envs: Sequence[Followed],
    tuning: FineTuning,
    key: jax.Array,
    step: Callable[[Any, PPO, jax.Array], Steps],
    rate: Callable[[Any], float],
    examples: Examples | None,
    log: Callable[[int, np.ndarray, float], None] | None,
    unfinished: Checkpoint | None,
) -> FineTuned:
    """Return the best agent of a training.

    Args:
        agent: The agent.
        envs: Environments that have begun.
        tuning: How to train.
        key: Random key.
        step: Plays one step in all environments (N, …) and begins again where it must.
        rate: Evaluates an agent.
        examples: Steps to clone.
        log: See `fine_tune`.
        unfinished: See `fine_tune`.
    """
    ppo = replace(tuning.ppo, n_envs=len(envs))
    if 0 < tuning.steps < ppo.batch:
        raise ValueError(
            f"steps={tuning.steps} are fewer than a batch of PPO, {ppo.n_envs} environments × "
            f"{ppo.n_steps} steps; give more, or 0 for none"
        )
    total = max(tuning.steps // ppo.batch, 1)
    memory = optimizer(ppo, total).init(eqx.filter(agent, eqx.is_inexact_array))
    best, curve, steps = agent, [], 0
    kept = None if unfinished is None else unfinished.load((agent, best, memory))
    if kept is not None:
        (agent, best, memory), notes = kept
        steps, curve = notes["steps"], [(at, found) for at, found in notes["curve"]]
    else:
        curve.append((0, rate(agent)))
    while steps + ppo.batch <= tuning.steps and not _enough(curve, tuning):
        k_play, k_last, k_learn = jax.random.split(jax.random.fold_in(key, steps), 3)
        played = _stack([step(agent, ppo, k) for k in jax.random.split(k_play, ppo.n_steps)])
        last = act(agent, envs, k_last).value
        frozen = jnp.asarray(steps < tuning.burn_in)
        steps += ppo.batch
        agent, memory, losses = _improve(
            ppo, total, agent, memory, played, last, k_learn, examples, frozen
        )
        if log is not None:
            log(steps, np.asarray(losses), float(played.reward.mean()))
        if steps - curve[-1][0] >= tuning.evaluate_every or steps + ppo.batch > tuning.steps:
            found = rate(agent)
            if found >= max(r for _, r in curve):
                best = agent
            curve.append((steps, found))
        if unfinished is not None:
            unfinished.offer((agent, best, memory), {"steps": steps, "curve": curve})
    return FineTuned(best, curve)


def _enough(curve: Sequence[tuple[int, float]], tuning: FineTuning) -> bool:
    steps, rate = curve[-1]
    return rate >= tuning.enough and steps >= tuning.least_steps


def fine_tune(
    subtask: int,
    agents: Sequence[Any],
    envs: Sequence[Followed],
    replays: Replays,
    tuning: FineTuning,
    seed: int = 0,
    examples: Examples | None = None,
    log: Callable[[int, np.ndarray, float], None] | None = None,
    unfinished: Checkpoint | None = None,
) -> FineTuned:
    """Train the sub-agent of a sub-task, begun at states that recordings or earlier agents reach.

    Args:
        subtask: The sub-task.
        agents: The sub-agents; that of the sub-task is trained, those before it play to it.
        envs: Environments.
        replays: Recordings; successes are added, so that the next sub-task can begin there.
        tuning: How to train.
        seed: Seed.
        examples: Steps of demonstrations, if PPO should go on cloning them.
        log: Called after each batch with the steps so far, the losses and the mean reward.
        unfinished: Where the training is kept while it lasts; it goes on with what is there.
    """
    rng = np.random.default_rng(seed)

    def begin(env: Followed) -> None:
        begin_at(env, subtask, replays, Players(agents), rng, tuning.patience, tuning.fresh)

    def step(agent: Any, ppo: PPO, key: jax.Array) -> Steps:
        chosen = act(agent, envs, key)
        seen = _stack([env.seen for env in envs])
        cells = jnp.array([env.cell for env in envs])
        reward, ended = np.zeros(len(envs), np.float32), np.zeros(len(envs), bool)
        for i, env in enumerate(envs):
            moved = env.step(choice_of(chosen, i))
            # Paid for its sub-goal alone, not for all on the way, it leaves to others their work.
            reward[i] = env.worth[subtask] * ppo.reward_scale if moved.reached else 0.0
            ended[i] = moved.reached or moved.ended or env.idle >= tuning.patience
            if moved.reached:
                replays.add(env)
            elif ended[i] and not moved.ended:
                # Cut off: the value before stands for what would have come.
                reward[i] += ppo.gamma * float(chosen.value[i])
            if ended[i]:
                begin(env)
        log_p = actions.log_prob(chosen.logits, chosen.action)
        at = jnp.full(len(envs), subtask)
        paid, over = jnp.asarray(reward), jnp.asarray(ended)
        return Steps(seen, at, cells, chosen.action, log_p, chosen.value, paid, over)

    def rate(agent: Any) -> float:
        players = Players([agent if k == subtask else other for k, other in enumerate(agents)])
        found = success_rate(envs[0], subtask, replays, players, rng, tuning)
        begin(envs[0])
        return found

    for env in envs:
        begin(env)
    key = jax.random.key(seed)
    return _train(agents[subtask], envs, tuning, key, step, rate, examples, log, unfinished)


def fine_tune_manager(
    manager: Any,
    agents: Sequence[Any],
    envs: Sequence[Followed],
    tuning: FineTuning,
    seed: int = 0,
    log: Callable[[int, np.ndarray, float], None] | None = None,
    unfinished: Checkpoint | None = None,
) -> FineTuned:
    """Train the main agent on whole episodes; the curve holds the mean share of sub-goals reached.

    Args:
        manager: The main agent; see `Players`.
        agents: The sub-agents, which stay as they are.
        envs: Environments.
        tuning: How to train.
        seed: Seed.
        log: Called after each batch with the steps so far, the losses and the mean reward.
        unfinished: Where the training is kept while it lasts; it goes on with what is there.
    """
    rng = np.random.default_rng(seed)

    def begin(env: Followed) -> None:
        env.begin(int(rng.integers(2**31)))

    def step(manager: Any, ppo: PPO, key: jax.Array) -> Steps:
        players = Players(agents, manager)
        k_who, *keys = jax.random.split(key, len(envs) + 1)
        chosen = act(manager, envs, k_who)
        seen = _stack([env.seen for env in envs])
        cells = jnp.array([env.cell for env in envs])
        at = jnp.array([env.subtask for env in envs])
        reward, ended, counted = np.zeros(len(envs), np.float32), np.zeros(len(envs), bool), []
        for i, env in enumerate(envs):
            done, own = players.follow(env, choice_of(chosen, i), keys[i])
            counted.append(own)
            moved = env.step(done)
            cut = not moved.ended and env.idle >= tuning.patience
            reward[i] = moved.reward * ppo.reward_scale
            reward[i] += ppo.gamma * float(chosen.value[i]) if cut else 0.0
            ended[i] = moved.ended or cut
            if ended[i]:
                begin(env)
        own = _stack(counted)
        log_p = actions.log_prob(chosen.logits, own)
        paid, over = jnp.asarray(reward), jnp.asarray(ended)
        return Steps(seen, at, cells, own, log_p, chosen.value, paid, over)

    def rate(manager: Any) -> float:
        env, came = envs[0], []
        for _ in range(tuning.trials):
            begin(env)
            while not env.ended and env.idle < tuning.patience:
                here = jax.random.key(int(rng.integers(2**31)))
                env.step(Players(agents, manager).choose(env, here))
            came.append(env.subtask / env.n_subtasks)
        begin(env)
        return float(np.mean(came))

    for env in envs:
        begin(env)
    key = jax.random.key(seed)
    return _train(manager, envs, tuning, key, step, rate, None, log, unfinished)
