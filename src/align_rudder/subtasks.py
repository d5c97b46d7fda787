"""Sub-tasks: sub-goals of the profile, segments of episodes, progress of a running one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from align_rudder.profile import Profile

__all__ = ["Progress", "Segment", "SubGoal", "SubTask", "cut_segments", "find_subgoals"]


@dataclass(frozen=True)
class SubGoal:
    """A column of the profile that ends a sub-task.

    Attributes:
        column: The profile column.
        event: Its most frequent event.
        symbol: That event's symbol.
        reward: Mean redistributed reward of the column over the demonstrations.
        share: Share of the demonstrations that hold the event there.
    """

    column: int
    event: int
    symbol: Hashable
    reward: float
    share: float


@dataclass(frozen=True)
class Segment:
    """Steps `start` to `stop` (exclusive) of an episode; the last of them reaches the sub-goal."""

    episode: int
    start: int
    stop: int


@dataclass(frozen=True)
class Progress:
    """How far an episode has come along a strategy.

    Attributes:
        strategy: The strategy that scores best so far.
        column: The profile column where the best alignment ends, -1 if nothing matched yet.
        done: Indices of the sub-goals that the best alignment matches.
        next: Index of the next sub-goal, the first behind the last one reached (see
            `align_rudder.tracking`); None if there is none left.
        score: S(τ).
    """

    strategy: int
    column: int
    done: tuple[int, ...]
    next: int | None
    score: float


@dataclass(frozen=True)
class SubTask:
    """The way to one sub-goal, as an option: where it may start, where it ends, how it was done.

    The redistributed reward need not be Markov in the observation; it is given when the option
    ends, so options over these sub-tasks are the way to use it in hierarchical learning.

    Attributes:
        index: Index of the sub-goal.
        goal: The sub-goal.
        after: Profile column of the sub-goal before, -1 for the first.
        segments: The stretches of the demonstrations that did it.
    """

    index: int
    goal: SubGoal
    after: int
    segments: tuple[Segment, ...]

    def initiation(self, column: int) -> bool:
        """Return whether the option may start for an episode that stands at that column."""
        return self.after <= column < self.goal.column

    def termination(self, column: int) -> bool:
        """Return whether the sub-goal is reached or passed at that column."""
        return column >= self.goal.column


def find_subgoals(
    profile: Profile,
    column_rewards: np.ndarray,
    *,
    threshold: float | None = None,
    conservation: float | None = None,
    value: float | None = None,
    worth: np.ndarray | None = None,
) -> list[SubGoal]:
    """Return the columns that are sub-goals, by one rule.

    Args:
        profile: The profile.
        column_rewards: Mean redistributed reward of each column over the demonstrations.
        threshold: Columns whose reward is above it. Default, when no rule is given: half the
            reward-weighted mean of the column rewards, Σ r² / 2 Σ r, which many weak columns
            do not pull down.
        conservation: Instead: columns whose top event that share of the demonstrations holds.
        value: Instead: columns whose reward is this value (to within a thousandth of it).
        worth: Rewards for the default rule, where those that are paid are less for what chance
            reaches as well: it is a sub-goal all the same.
    """
    if sum(rule is not None for rule in (threshold, conservation, value)) > 1:
        raise ValueError("give one of threshold, conservation and value, not several")
    r = np.asarray(column_rewards, float)
    if conservation is not None:
        if not 0 < conservation <= 1:
            raise ValueError(f"conservation={conservation} is a share, above 0 up to 1")
        chosen = profile.conservation >= conservation - 1e-12
    elif value is not None:
        chosen = np.isclose(r, value, rtol=1e-3, atol=0.0)
    else:
        judged = r
        if threshold is None:
            judged = r if worth is None else worth
            positive = np.maximum(judged, 0.0)
            total = positive.sum()
            threshold = float((positive**2).sum() / (2 * total)) if total > 0 else np.inf
        chosen = judged > threshold
    top, share = profile.top_events, profile.conservation
    return [
        SubGoal(int(t), int(top[t]), profile.symbols[top[t]], float(r[t]), float(share[t]))
        for t in np.flatnonzero(chosen)
    ]


def cut_segments(
    subgoals: Sequence[SubGoal], columns: Sequence[np.ndarray]
) -> list[tuple[Segment, ...]]:
    """Cut episodes into the segments of each sub-goal.

    Args:
        subgoals: The sub-goals in order.
        columns: For each episode, the profile column to which each step's event is aligned (T,),
            -1 for none.

    Returns:
        For each sub-goal the segments, from the step after the last sub-goal that the episode
        reached before to the step that reaches this one. An episode that misses a sub-goal has
        no segment for it; the next one's begins earlier.
    """
    out: list[list[Segment]] = [[] for _ in subgoals]
    for i, steps in enumerate(columns):
        start = 0
        for k, goal in enumerate(subgoals):
            reached = np.flatnonzero(steps == goal.column)
            if len(reached):
                out[k].append(Segment(i, start, int(reached[0]) + 1))
                start = int(reached[0]) + 1
    return [tuple(segments) for segments in out]
