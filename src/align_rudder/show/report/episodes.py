"""Episodes of the report: events, scores and rewards at the steps where something happens."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.episodes import Episode
from align_rudder.events import Encoded
from align_rudder.redistribution import Redistribution
from align_rudder.sequences import NO_EVENT
from align_rudder.show.figures.maps import Grid
from align_rudder.show.report.numbers import differences, rounded

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["GivenEpisode", "demonstration_data", "episode_data"]

GivenEpisode = Episode | tuple[Iterable[Hashable], float]


def episode_data(
    model: AlignRudder, episode: GivenEpisode, name: str, grid: Grid | None = None
) -> dict[str, Any]:
    """Return what the report shows of an episode, or of (symbols, return)."""
    if isinstance(episode, Episode):
        rr, encoded = model.redistribute(episode), model.encode(episode)
        original: np.ndarray | None = episode.rewards
    else:
        symbols, ret = list(episode[0]), episode[1]
        rr, original = model.redistribute_events(symbols, ret), None
        encoded = Encoded(NO_EVENT, rr.events)
    data = _shown(rr, encoded, name, original)
    if model.strategies_:
        k = model.scorer_.strategy_of(int(rr.cells[-1])) if len(rr.cells) else 0
        data |= {"strategy": k, "goals": _goals(model, encoded, k)}
    if grid is not None and isinstance(episode, Episode):
        observations = np.asarray(episode.observations)
        path = [r * grid.shape[1] + c for r, c in map(grid.cell, observations)]
        at = np.flatnonzero(rr.events != NO_EVENT)
        data |= {"at": [path[t + 1] for t in at], "path": path}
    return data


def demonstration_data(model: AlignRudder, index: int) -> dict[str, Any]:
    """Return what the report shows of a demonstration; the model does not hold its rewards."""
    encoded = model.encoded_[index]
    rr = model.demonstration(index)
    data = _shown(rr, encoded, f"Demonstration {index}", None)
    for k, strategy in enumerate(model.strategies_):
        if index in strategy.members:
            data |= {"strategy": k, "goals": _goals(model, encoded, k)}
    return data


def _shown(
    rr: Redistribution, encoded: Encoded, name: str, original: np.ndarray | None
) -> dict[str, Any]:
    steps = np.flatnonzero(rr.events != NO_EVENT)
    data: dict[str, Any] = {
        "name": name,
        "steps": len(rr.events),
        "ret": rounded(rr.ret),
        "correction": rounded(rr.correction),
        "start": int(encoded.start),
        "t": differences(steps + 1),
        "e": rr.events[steps].tolist(),
        "s": rounded(rr.scores[steps]),
        "r": rounded(rr.rewards[steps]),
        "original": None,
        "strategy": None,
        "goals": [],
    }
    if original is not None:
        paid = np.flatnonzero(original)
        data["original"] = {"t": differences(paid + 1), "r": rounded(original[paid])}
    return data


def _goals(model: AlignRudder, encoded: Encoded, k: int) -> list[list[int]]:
    """Return [sub-goal, step] of the sub-goals that the best alignment with a profile matches."""
    matched = model.matched_columns(encoded, k)
    step_at = {int(matched[t]): int(t) + 1 for t in np.flatnonzero(matched >= 0)}
    goals = enumerate(model.strategies_[k].subgoals)
    return [[i, step_at[goal.column]] for i, goal in goals if goal.column in step_at]
