"""Behavioural cloning of one sub-task, as in the appendix: SGD, batches of 256, best of 30."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from align_rudder.files import Number, Whole, check_values
from align_rudder.hierarchy import actions
from align_rudder.minerl.networks import SubAgent
from align_rudder.minerl.samples import Samples
from align_rudder.runs.checkpoint import Checkpoint

__all__ = ["Cloning", "CloningResult", "clone_sub_agent"]


@dataclass(frozen=True)
class Cloning:
    """Settings of behavioural cloning; the defaults are the paper's.

    Attributes:
        epochs: Passes over the samples.
        batch: Samples of an update; the last one of a pass is filled with others.
        learning_rate: Learning rate of SGD.
        momentum: Its momentum.
        evaluate_every: Epochs between evaluations; the best agent is kept.
        held_out: Share of the samples to judge by, where there is no environment.
    """

    epochs: int = 300
    batch: int = 256
    learning_rate: float = 0.01
    momentum: float = 0.9
    evaluate_every: int = 10
    held_out: float = 0.1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "evaluate_every"):
            Whole(1).check(getattr(self, name), name)
        check_values(
            learning_rate=(self.learning_rate, Number(above=0)),
            momentum=(self.momentum, Number(0, below=1)),
            held_out=(self.held_out, Number(0, below=1)),
        )


class CloningResult(NamedTuple):
    """The best agent, and for each evaluation the epoch, the training loss and the score."""

    agent: SubAgent
    curve: list[tuple[int, float, float]]


@eqx.filter_jit
def _update(agent: SubAgent, opt_state: Any, optimizer: Any, seen: Any, targets: Any) -> Any:
    arrays, static = eqx.partition(agent, eqx.is_inexact_array)

    def loss(arrays: Any) -> tuple[jax.Array, SubAgent]:
        logits, kept = eqx.combine(arrays, static).clone(seen)
        return actions.cross_entropy(logits, targets).mean(), kept

    (value, kept), gradient = jax.value_and_grad(loss, has_aux=True)(arrays)
    updates, opt_state = optimizer.update(gradient, opt_state, arrays)
    # The running means of the batch norms are not learned; they come from the forward pass.
    arrays = optax.apply_updates(eqx.filter(kept, eqx.is_inexact_array), updates)
    return eqx.combine(arrays, static), opt_state, value


@eqx.filter_jit
def _losses(agent: SubAgent, seen: Any, targets: Any) -> jax.Array:
    return actions.cross_entropy(agent.clone(seen, learning=False)[0], targets)


@cache
def _sgd(learning_rate: float, momentum: float) -> optax.GradientTransformation:
    """Return SGD, the same object for the same numbers, so that `_update` is compiled once."""
    return optax.sgd(learning_rate, momentum)


def _batches(indices: np.ndarray, size: int) -> np.ndarray:
    """Return the indices as rows of one size, which is compiled once; the last is filled up."""
    return np.resize(indices, (-(-len(indices) // size), size))


def _held_out_score(samples: Samples, indices: np.ndarray, batch: int, agent: SubAgent) -> float:
    """Return the mean loss of an agent on some samples, negative: the higher the better."""
    losses = [_losses(agent, *samples.batch(part)) for part in _batches(indices, batch)]
    return -float(np.concatenate(losses)[: len(indices)].mean())


def _nothing(agent: SubAgent) -> float:
    return 0.0


def clone_sub_agent(
    agent: SubAgent,
    samples: Samples,
    cloning: Cloning,
    seed: int = 0,
    judge: Callable[[SubAgent], float] | None = None,
    progress: Callable[[int, float], None] | None = None,
    checkpoint: Checkpoint | None = None,
    keep: Callable[[int, SubAgent], None] | None = None,
) -> CloningResult:
    """Return the agent with its policy fitted to the samples.

    Args:
        agent: The agent; its value is not touched.
        samples: Steps of the sub-task's segments.
        cloning: Settings.
        seed: Seed.
        judge: Score of an agent, the higher the better, such as its successes in 12 trials in the
            environment; if there is none, the loss on held-out samples decides.
        progress: Called after each epoch with its number and mean loss.
        checkpoint: Where the training is saved on its way; it goes on from what is there. The
            result is the same, as far as the judge is.
        keep: Called at each evaluation with its epoch and the agent, for who judges them later:
            all samples are then learned from, scores are 0, and the last agent is returned.
    """
    if keep is not None:
        judge = _nothing
    order = np.random.default_rng(seed).permutation(len(samples))
    held = int(len(samples) * cloning.held_out) if judge is None else 0
    training = order[held:]
    if judge is None:
        kept_out = order[:held] if held else order  # too few to hold any out
        judge = partial(_held_out_score, samples, kept_out, cloning.batch)
    optimizer = _sgd(cloning.learning_rate, cloning.momentum)
    opt_state = optimizer.init(eqx.filter(agent, eqx.is_inexact_array))
    best, curve, done = agent, [], 0
    kept = None if checkpoint is None else checkpoint.load((agent, best, opt_state))
    if kept is not None:
        (agent, best, opt_state), notes = kept
        done, curve = notes["epoch"], [(at, loss, score) for at, loss, score in notes["curve"]]
    for epoch in range(done + 1, cloning.epochs + 1):
        losses = []
        shuffled = np.random.default_rng([seed, epoch]).permutation(training)
        for part in _batches(shuffled, cloning.batch):
            agent, opt_state, loss = _update(agent, opt_state, optimizer, *samples.batch(part))
            losses.append(float(loss))
        mean = float(np.mean(losses))
        if not np.isfinite(mean):
            raise ValueError(
                f"the loss became {mean} in epoch {epoch}; choose a smaller learning rate than "
                f"{cloning.learning_rate}"
            )
        if progress is not None:
            progress(epoch, mean)
        if epoch % cloning.evaluate_every == 0 or epoch == cloning.epochs:
            score = judge(agent)
            if keep is not None:
                keep(epoch, agent)
            if all(score >= before for _, _, before in curve):
                best = agent
            curve.append((epoch, mean, score))
        if checkpoint is not None:
            checkpoint.offer((agent, best, opt_state), {"epoch": epoch, "curve": curve})
    return CloningResult(best, curve)
