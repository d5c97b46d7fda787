"""How every tabular learner starts, is run and is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from align_rudder.baselines.kernels import evaluate, seeded
from align_rudder.episodes import Episode
from align_rudder.files import LARGEST, Number, Whole, check_values
from align_rudder.files import shown as shown_value
from align_rudder.tasks.mdp import TabularMDP, best_return

__all__ = ["OptimalProtocol", "Protocol", "Result", "Trial", "behavioural_cloning"]


@dataclass(frozen=True)
class Protocol:
    """How every learner is run and judged.

    Attributes:
        epsilon: Exploration while learning.
        evaluate_every: Episodes between evaluations; the first is after as many.
        evaluation_episodes: Episodes of an evaluation, spread evenly over the start states.
        evaluation_epsilon: Exploration while being evaluated.
        target: Share of the demonstrations' mean return at which a trial has succeeded and ends.
        max_episodes: Cap; a trial that reaches it has failed and counts as the cap.
    """

    epsilon: float = 0.2
    evaluate_every: int = 10
    evaluation_episodes: int = 40
    evaluation_epsilon: float = 0.1
    target: float = 0.8
    max_episodes: int = 20_000

    def __post_init__(self) -> None:
        check_values(
            epsilon=(self.epsilon, Number(0, 1)),
            evaluation_epsilon=(self.evaluation_epsilon, Number(0, 1)),
            evaluate_every=(self.evaluate_every, Whole(1, 10**9)),
            evaluation_episodes=(self.evaluation_episodes, Whole(1, 10**9)),
            max_episodes=(self.max_episodes, Whole(1, 10**9)),
            target=(self.target, Number(above=0)),
        )
        if self.max_episodes < self.evaluate_every:
            raise ValueError(
                f"max_episodes={self.max_episodes} ends a trial before its first evaluation, after "
                f"{self.evaluate_every} episodes"
            )

    def goal(self, mdp: TabularMDP, returns: Sequence[float]) -> float:
        """Return the mean return at which a trial has succeeded."""
        mean = float(np.mean(returns))
        if mean == 0:
            raise ValueError(
                "the mean return of the demonstrations is 0, and so is any share of it; give "
                "demonstrations that earned something"
            )
        # Below zero, falling short by a fifth is a return that is a fifth more negative.
        return (self.target if mean > 0 else 2 - self.target) * mean


@dataclass(frozen=True)
class OptimalProtocol(Protocol):
    """The target is a share of what the best policy earns, whatever the demonstrations did."""

    def goal(self, mdp: TabularMDP, returns: Sequence[float]) -> float:
        """Return the mean return at which a trial has succeeded."""
        best = best_return(mdp)
        return (self.target if best > 0 else 2 - self.target) * best


@dataclass(frozen=True)
class Result:
    """One trial.

    Attributes:
        episodes: Episodes until the target was reached, or the cap.
        solved: Whether it was reached.
        curve: Mean return at each evaluation.
        steps: Environment steps taken while learning.
        q: The learned table (S, A), or (positions or sub-tasks, S, A).
    """

    episodes: int
    solved: bool
    curve: np.ndarray
    steps: int
    q: np.ndarray


class Trial:
    """What a learner needs of one trial: tables, demonstrations, random numbers, and the judge.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        protocol: How the trial is run and judged; None for the default.
        seed: Seed of the trial.
        returns: The returns that set the target; None for those of the demonstrations.

    Attributes:
        observed: What is seen of each state (S,).
        paths: States (T+1,), actions (T,) and rewards (T,) of each demonstration.
        ended: Whether each demonstration came to an end by itself, not by the time limit.
    """

    def __init__(
        self,
        mdp: TabularMDP,
        demonstrations: Sequence[Episode],
        protocol: Protocol | None,
        seed: int,
        returns: Sequence[float] | None = None,
    ) -> None:
        if isinstance(demonstrations, Episode):
            raise ValueError("one Episode was given; give a list of demonstrations")
        if not isinstance(mdp, TabularMDP):
            hint = "; give its mdp" if isinstance(getattr(mdp, "mdp", None), TabularMDP) else ""
            raise ValueError(f"mdp is {type(mdp).__name__}; a TabularMDP is needed{hint}")
        if demonstrations is None or (not demonstrations and returns is None):
            raise ValueError("no demonstrations were given; they set the return to reach")
        if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
            raise ValueError(f"seed={seed} must be a whole number from 0 to 2^63 − 1")
        self.mdp, self.demonstrations, self.seed = mdp, list(demonstrations), int(seed)
        self.protocol = protocol or Protocol()
        self.paths: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for i, episode in enumerate(self.demonstrations):
            states = _whole_numbers("observations", episode.observations, mdp.n_states, i)
            actions = _whole_numbers("actions", episode.actions, mdp.n_actions, i)
            self.paths.append((states, actions, np.asarray(episode.rewards)))
        self.observed = mdp.observed.astype(np.int64)
        self.ended = [not episode.truncated for episode in self.demonstrations]
        self.tables = (
            mdp.next_states,
            mdp.cumulative,
            mdp.rewards,
            mdp.terminal,
            mdp.time_factor,
            np.flatnonzero(mdp.starts),
        )
        self.rng = seeded(self.seed)
        shown = [e.ret for e in demonstrations] if returns is None else _finite(returns)
        self.target = self.protocol.goal(mdp, shown)
        if returns is not None and self.target < 0 <= mdp.rewards.min():
            raise ValueError(
                f"the returns have the mean {np.mean(shown):g}, so the target is "
                f"{self.target:g}, but this table pays nothing below 0: every episode would reach "
                "it; give returns of successful runs, [1.0] where success is paid 1"
            )

    def cloned(self, scale: float, mean: float = 0.0) -> np.ndarray:
        """Return a Q-table initialised by `behavioural_cloning`."""
        check_values(initial_scale=(scale, Number()), initial_mean=(mean, Number()))
        return behavioural_cloning(self.mdp, self.demonstrations, self.seed, scale, mean)

    def run(
        self,
        q: np.ndarray,
        train: Callable[..., int],
        judge: Callable[..., float] | None = None,
    ) -> Result:
        """Learn until the target is reached or the cap.

        Args:
            q: The table that `train` changes.
            train: Called with (tables, ε, episodes, rng); learns for so many more episodes and
                returns the steps taken.
            judge: Called with the same; returns the mean return of the policy. None for ε-greedy
                on q.
        """
        p = self.protocol
        judge = judge or partial(evaluate, q, self.observed)
        curve: list[float] = []
        steps, solved = 0, False
        while not solved and (len(curve) + 1) * p.evaluate_every <= p.max_episodes:
            steps += train(self.tables, float(p.epsilon), p.evaluate_every, self.rng)
            epsilon, episodes = float(p.evaluation_epsilon), p.evaluation_episodes
            curve.append(judge(self.tables, epsilon, episodes, self.rng))
            solved = curve[-1] >= self.target
        episodes = len(curve) * p.evaluate_every if solved else p.max_episodes
        return Result(episodes, solved, np.array(curve), steps, q)


def _finite(returns: Any) -> list[float]:
    """Return the returns that set the target, each seen to be a finite number."""
    needed = "returns must be a list of finite numbers, at least one, as [1.0]"
    if isinstance(returns, str | bytes):
        raise ValueError(f"{needed}; {shown_value(returns)} was given")
    try:
        found = np.asarray(returns)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{needed}; {shown_value(returns)} was given") from error
    real = found.dtype.kind in "iuf"
    if found.ndim != 1 or not len(found) or not real or not (np.abs(found) <= LARGEST).all():
        raise ValueError(f"{needed}; {shown_value(returns)} was given")
    return found.astype(float).tolist()


def _whole_numbers(name: str, values: Any, n: int, i: int) -> np.ndarray:
    """Return states or actions of demonstration i, each seen to be one of the table's n."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(
            f"the {name} of demonstration {i} have shape {found.shape} and type {found.dtype}; "
            "tabular learners need one whole number for each step"
        )
    if found.min() < 0 or found.max() >= n:
        raise ValueError(
            f"the {name} of demonstration {i} reach from {found.min()} to {found.max()}; this "
            f"table has 0 to {n - 1}. Are they from another environment?"
        )
    return found.astype(np.int64)


def behavioural_cloning(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    seed: int,
    scale: float = 0.3,
    mean: float = 0.0,
    noise: float = 0.001,
) -> np.ndarray:
    """Return a Q-table initialised by behavioural cloning.

    Where demonstrations were, an action's value is the share with which it was taken there times
    `scale`; elsewhere values are drawn from a normal distribution.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states.
        seed: Seed.
        scale: Value of an action that was always taken.
        mean: Mean value where no demonstration was. Above zero it is hope: an action that earned
            nothing looks worse than those not tried yet, so that the agent does not turn in circles
            where it was never shown the way.
        noise: Deviation of the values where no demonstration was.
    """
    rng = np.random.default_rng(seed)
    q = rng.normal(mean, noise, (mdp.n_observations, mdp.n_actions))
    counts = np.zeros_like(q)
    for episode in demonstrations:
        states = mdp.observed[np.asarray(episode.observations)[:-1]]
        np.add.at(counts, (states, episode.actions), 1.0)
    seen = counts.sum(axis=1) > 0
    q[seen] = scale * counts[seen] / counts[seen].sum(axis=1, keepdims=True)
    return q
