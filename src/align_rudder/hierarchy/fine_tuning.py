"""PPO for environments outside of JAX: one sub-agent at a time, then their manager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.files import Number, Whole
from align_rudder.hierarchy.external import TrackedEnv, UnreachedError
from align_rudder.hierarchy.ppo import (
    PPO,
    Losses,
    TrainState,
    Transition,
    flattened,
    learn_from,
    new_train_state,
    shuffled_rows,
)
from align_rudder.hierarchy.practice import Practice, begin_all, play_batch
from align_rudder.runs.checkpoint import Checkpoint

__all__ = ["FineTuning", "TunedAgent", "fine_tune"]


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
        ppo: Hyper-parameters; `n_envs` is given by the environments, its `burn_in` by the above.
    """

    steps: int = 500_000
    burn_in: int = 50_000
    patience: int = 1000
    evaluate_every: int = 50_000
    trials: int = 12
    enough: float = 1.0
    least_steps: int = 50_000
    fresh: float = 0.5
    ppo: PPO = field(
        default_factory=lambda: PPO(
            n_envs=1, n_steps=256, n_minibatches=4, bc_coef=0.0, ent_coef=0.005, clip_value=True
        )
    )

    def __post_init__(self) -> None:
        least = {"steps": 1, "patience": 1, "evaluate_every": 1, "trials": 1}
        for name, n in {**least, "burn_in": 0, "least_steps": 0}.items():
            Whole(n).check(getattr(self, name), name)
        if not self.enough >= 0:
            raise ValueError(f"enough is {self.enough}; a share is needed, or above 1 for never")
        Number(0, below=1).check(self.fresh, "fresh")


class TunedAgent(NamedTuple):
    """What a training came to.

    Attributes:
        agent: The best agent there was.
        curve: The success rate at each evaluation (steps, rate).
        steps: Steps of training.
        unreached: Why the training was broken off, where its episodes could not be begun; it is in
            the checkpoint and can go on. None for one that came to its end.
        counts: All steps that it took in environments, by what they were for.
        tries: How often it was broken off for that; the next time other tries are made.
    """

    agent: Any
    curve: list[tuple[int, float]]
    steps: int = 0
    unreached: str | None = None
    counts: Mapping[str, int] = {}
    tries: int = 0


def fine_tune(
    practice: Practice,
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    seed: int = 0,
    log: Callable[[int, Losses, float], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> TunedAgent:
    """Train an agent, and return the best there was.

    Args:
        practice: What is practised: where episodes begin, what is paid, how it is judged.
        envs: Environments.
        tuning: How to train.
        seed: Seed.
        log: Called after each update with the steps so far, the losses and the mean reward.
        checkpoint: Where the training is kept while it lasts; it goes on with what is there.
            Whatever breaks it off, the last update is in it.
    """
    batch_size = len(envs) * tuning.ppo.n_steps
    if tuning.steps < batch_size:
        raise ValueError(
            f"steps={tuning.steps} are fewer than a batch of PPO, {len(envs)} environments × "
            f"{tuning.ppo.n_steps} steps; give more"
        )
    ppo = replace(tuning.ppo, n_envs=len(envs), burn_in=-(-tuning.burn_in // batch_size))
    total = max(tuning.steps // batch_size, 1)
    state = new_train_state(practice.agent, ppo, total, jax.random.key(seed))
    best, curve, steps, tries, counted = practice.agent, [], 0, 0, Counter[str]()
    before = [Counter(env.counts) for env in envs]
    saved = None if checkpoint is None else checkpoint.load((state, best))
    if saved is not None:
        (state, best), notes = saved
        steps, curve = notes["steps"], [(at, rate) for at, rate in notes["curve"]]
        tries = notes.get("tries", 0)
        counted.update(notes.get("counts", {}))

    def counts() -> dict[str, int]:
        here = [env.counts - had for env, had in zip(envs, before, strict=True)]
        return dict(sorted(sum(here, counted).items()))

    def notes_now() -> dict[str, Any]:
        return {"steps": steps, "curve": curve, "counts": counts(), "tries": tries}

    def rng(use: int) -> np.random.Generator:
        return np.random.default_rng([seed, steps, use, *([tries] if tries else [])])

    def evaluate() -> None:
        nonlocal best
        rate = practice.rate(state.agent, envs, rng(0), tuning)
        if rate >= max((r for _, r in curve), default=0.0):
            best = state.agent
        curve.append((steps, rate))

    def is_due() -> bool:
        since = steps - (curve[-1][0] if curve else -tuning.evaluate_every)
        return since >= tuning.evaluate_every or (since > 0 and steps + batch_size > tuning.steps)

    begun = False
    try:
        while True:
            if is_due():
                evaluate()
                begun = False
            if checkpoint is not None and steps:
                checkpoint.offer((state, best), notes_now())
            if steps + batch_size > tuning.steps or _good_enough(curve, tuning):
                return TunedAgent(best, curve, steps, None, counts())
            if not begun:
                begin_all(practice, envs, tuning, rng(1))
                begun = True
            batch, last_value = play_batch(practice, state.agent, envs, tuning, ppo, rng(2))
            state, losses = _update(ppo, total, state, batch, last_value)
            steps += batch_size
            if log is not None:
                log(steps, losses, float(batch.reward.mean()))
    except Exception as error:
        tries += isinstance(error, UnreachedError)
        if checkpoint is not None:
            checkpoint.save((state, best), notes_now())
        if isinstance(error, UnreachedError):
            return TunedAgent(best, curve, steps, str(error), counts(), tries)
        raise


def _update(
    ppo: PPO, total: int, state: TrainState, traj_batch: Transition, last_value: jax.Array
) -> tuple[TrainState, Losses]:
    """Return the state after learning from a batch, as `ppo.update_agent` does.

    Minibatches are steps of Python: in a compiled loop XLA's convolutions on CPUs take 15 times as
    long.
    """
    flat, found = _flattened(ppo, traj_batch, last_value), []
    key, *epochs = jax.random.split(state.key, ppo.n_epochs + 1)
    for k in epochs:
        for rows in shuffled_rows(ppo, jax.random.split(k)[0], traj_batch.reward.size):
            state, losses = _learn_from(None, ppo, total, state, flat, rows)
            found.append(losses)
    mean = jax.tree.map(lambda *x: jnp.stack(x).mean(), *found)
    return state._replace(n_updates=state.n_updates + 1, key=key), mean


_flattened, _learn_from = eqx.filter_jit(flattened), eqx.filter_jit(learn_from)


def _good_enough(curve: Sequence[tuple[int, float]], tuning: FineTuning) -> bool:
    steps, rate = curve[-1]
    return rate >= tuning.enough and steps >= tuning.least_steps
