"""Roads: what the successful runs have in common, in order, and where other runs are on it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from align_rudder._warnings import AlignRudderWarning
from align_rudder.model import AlignRudder
from align_rudder.redistribution import match_columns

__all__ = ["MOST", "Path", "Road", "best_path", "counted", "find_roads", "follow"]

MOST = 200
"""Of more successes than this, so many are aligned; the others are placed on what they share."""


@dataclass(frozen=True, eq=False)
class Road:
    """The columns of one strategy: what its successes do, in order.

    Attributes:
        events: The event of each column (L,).
        shares: The share of its successes that hold each column (L,).
        members: How many successes these are.
        group: The task whose runs may follow it; None for all.
    """

    events: np.ndarray
    shares: np.ndarray
    members: int
    group: str | None = None

    def __len__(self) -> int:
        return len(self.events)


class Path(NamedTuple):
    """How a run goes along a road.

    Attributes:
        road: The index of the road.
        columns: The column at which each event stands (T,), -1 for one beside the road.
        due: The column that is due before each event (T,): all before it were held or passed by.
        passed: At which event each column is held or passed by (L,), T where the run ended before.
        score: The shares of the columns that it holds, less those of the others.
    """

    road: int
    columns: np.ndarray
    due: np.ndarray
    passed: np.ndarray
    score: float

    @property
    def held(self) -> np.ndarray:
        """Whether the run holds each column (L,)."""
        found = np.zeros(len(self.passed), bool)
        found[self.columns[self.columns >= 0]] = True
        return found

    @property
    def reached(self) -> int:
        """How many columns are held or passed by when the run ends."""
        return int((self.passed < len(self.columns)).sum())


def follow(road: Road, events: np.ndarray, k: int = 0) -> Path:
    """Return how a run goes along a road: the columns it holds in order, worth most together.

    Args:
        road: The road.
        events: Event ids (T,).
        k: The index of the road.

    Example:
        >>> road = Road(np.array([0, 1, 2]), np.ones(3), 4)
        >>> path = follow(road, np.array([0, 5, 2]))
        >>> path.columns.tolist(), path.due.tolist(), path.passed.tolist()
        ([0, -1, 2], [0, 1, 1], [0, 2, 2])
    """
    columns = np.full(len(events), -1)
    known = np.isin(events, road.events)
    if known.any():
        scores = np.full((int(road.events.max()) + 1, len(road)), -np.inf)
        scores[road.events, np.arange(len(road))] = np.maximum(road.shares, 1e-3)
        columns[known] = match_columns(scores, events[known])
    held = columns[columns >= 0]
    score = float(2 * road.shares[held].sum() - road.shares.sum())
    reached = np.maximum.accumulate(np.concatenate([[-1], columns])) + 1
    passed = np.searchsorted(reached[1:], np.arange(1, len(road) + 1))
    return Path(k, columns, reached[:-1], passed, score)


def best_path(roads: Sequence[Road], events: np.ndarray, group: str | None = None) -> Path:
    """Return how a run goes along the road that it scores best on, the larger among equals.

    Roads of its task are looked at; of a task that has none, all.
    """
    allowed = [k for k, road in enumerate(roads) if road.group in (None, group)]
    paths = [follow(roads[k], events, k) for k in allowed or range(len(roads))]
    return max(paths, key=lambda path: path.score)


def find_roads(
    successes: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    strategies: int | None = None,
    group: str | None = None,
) -> list[Road]:
    """Return the roads of successful runs: one for each strategy, the largest first.

    At least one is returned; it is empty where the runs have nothing in common.

    Args:
        successes: Event ids of each.
        symbols: The symbol of each id.
        strategies: How many roads; None to find that.
        group: The task whose roads they are.
    """
    known = [run for run in successes if len(run)]
    if len(known) > MOST:
        chosen = np.random.default_rng(0).choice(len(known), MOST, replace=False)
        known = [known[i] for i in np.sort(chosen)]
    if not known:
        return [Road(np.empty(0, int), np.empty(0), len(successes), group)]
    if len(known) == 1:  # an alignment needs two
        return [Road(known[0], np.ones(len(known[0])), 1, group)]
    model = AlignRudder(done=False, strategies=strategies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignRudderWarning)
        model.fit_events([run.tolist() for run in known])
    place = np.array(model.events_.symbols_, int)
    roads = [
        Road(
            place[strategy.profile.top_events],
            strategy.profile.conservation,
            len(strategy.members),
            group,
        )
        for strategy in model.strategies_
    ]
    return roads or [Road(np.empty(0, int), np.empty(0), len(successes), group)]


def counted(roads: Sequence[Road], paths: Sequence[Path], successes: np.ndarray) -> list[Road]:
    """Return the roads with members and shares as all successes have them.

    Args:
        roads: The roads.
        paths: How each kind of run goes.
        successes: How many successes are of each kind (N,).
    """
    out = []
    for k, road in enumerate(roads):
        on = [(path, n) for path, n in zip(paths, successes, strict=True) if path.road == k and n]
        members = int(sum(n for _, n in on))
        held = sum((n * path.held for path, n in on), np.zeros(len(road)))
        shares = held / members if members else road.shares
        out.append(replace(road, shares=shares, members=members))
    return out
