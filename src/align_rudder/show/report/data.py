"""What the report shows, as plain data for JSON: integers, rounded numbers, strings."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from scipy.cluster.hierarchy import leaves_list

from align_rudder.episodes import Episode
from align_rudder.show.figures.colors import STRATEGY_COLORS
from align_rudder.show.figures.maps import Grid, cell_events, grid_of
from align_rudder.show.figures.profiles import logo_heights
from align_rudder.show.page import event_data
from align_rudder.show.report.episodes import GivenEpisode, demonstration_data, episode_data
from align_rudder.show.report.numbers import differences, rounded
from align_rudder.show.report.verdict import verdict_data

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder, Strategy

__all__ = ["report_data"]


def report_data(
    model: AlignRudder,
    episodes: Sequence[GivenEpisode] | None = (),
    *,
    title: str = "Align-RUDDER report",
    max_episodes: int = 20,
    env: gym.Env[Any, Any] | Grid | None = None,
) -> dict[str, Any]:
    """Return everything that the report shows.

    Args:
        model: A fitted model.
        episodes: Episodes to show beside the demonstrations, each an `Episode`, or for a model
            fitted to symbols (sequence, return).
        title: Title of the page.
        max_episodes: The most of them; how many were left out is told.
        env: A grid environment, or its `Grid`, for the map of a model of states.

    Notes:
        Lists that only grow (steps, columns) are stored as differences, the first from 0. An
        episode has its steps with an event only: between them no score changes and nothing is
        paid.
    """
    if max_episodes < 0:
        raise ValueError(f"max_episodes={max_episodes} must be at least 0")
    if not hasattr(model, "_check_fitted"):
        raise ValueError(
            f"model is a {type(model).__name__}; a fitted AlignRudder comes first, then the "
            "episodes: write_report(model, episodes, path)"
        )
    model._check_fitted()
    episodes = () if episodes is None else episodes
    if isinstance(episodes, (str, Episode)) or not isinstance(episodes, Sequence):
        raise ValueError(
            f"episodes is {type(episodes).__name__}; a list of episodes is needed (load_episodes "
            "reads them from a file)"
        )
    grid = grid_of(env) if isinstance(env, gym.Env) else env
    shown = [
        episode_data(model, episode, f"Episode {i}", grid)
        for i, episode in enumerate(episodes[:max_episodes])
    ]
    demos = [demonstration_data(model, i) for i in range(len(model.encoded_))]
    left_out = max(len(episodes) - max_episodes, 0)
    return {
        "title": title,
        "version": version("align-rudder"),
        "verdict": verdict_data(model, shown, left_out),
        "events": _events(model),
        "scale": rounded(model.scale_),
        "strategies": [_strategy(model, k, s) for k, s in enumerate(model.strategies_)],
        "tree": _tree(model),
        "outliers": model.outliers_.tolist(),
        "demonstrations": demos,
        "episodes": shown,
        "map": None if grid is None else _map(model, grid),
    }


def _events(model: AlignRudder) -> list[dict[str, Any]]:
    """Return name, letter, colour and number of each event, and last the unknown one's."""
    symbols = list(model.events_.symbols_)
    counts = np.zeros(len(symbols), int)
    for i in model.used_:
        counts += np.bincount(model.encoded_[i].sequence, minlength=len(symbols))
    known = event_data(symbols, counts.tolist())
    return [*known, {"name": "unknown event", "letter": "?", "color": "#777777", "count": 0}]


def _strategy(model: AlignRudder, index: int, strategy: Strategy) -> dict[str, Any]:
    aligned, profile = strategy.alignment, strategy.profile
    heights, columns = logo_heights(profile), []
    for t in range(len(profile)):
        present = np.flatnonzero(profile.frequencies[:, t] > 0)
        columns.append(
            {
                "at": int(profile.columns[t]),
                "e": present.tolist(),
                "q": rounded(profile.frequencies[present, t], 4),
                "s": rounded(profile.pssm[present, t], 4),
                "h": rounded(heights[present, t], 4),
                "r": rounded(strategy.column_rewards[t]),
            }
        )
    return {
        "members": strategy.members.tolist(),
        "n_columns": aligned.n_columns,
        "score": rounded(aligned.score),
        "rows": [differences(aligned.column_of(row)) for row in range(len(aligned))],
        "columns": columns,
        "consensus": profile.top_events[profile.conservation >= 0.8 - 1e-12].tolist(),
        "subgoals": [
            {
                "column": goal.column,
                "event": goal.event,
                "reward": rounded(goal.reward),
                "share": rounded(goal.share, 4),
            }
            for goal in strategy.subgoals
        ],
    }


def _tree(model: AlignRudder) -> dict[str, Any]:
    """Return the merges of the guide tree (left, right, distance) and its leaves in order."""
    more = len(model.encoded_) - len(model.used_)  # the tree has those that were used only
    node = [*model.used_.tolist(), *range(len(model.encoded_), 2 * len(model.encoded_) - more)]
    merges = [[node[int(a)], node[int(b)], rounded(d, 4)] for a, b, d, _ in model.tree_]
    leaves = [node[leaf] for leaf in leaves_list(model.tree_).tolist()]
    return {"merges": merges, "leaves": leaves, "colors": list(STRATEGY_COLORS)}


def _map(model: AlignRudder, grid: Grid) -> dict[str, Any]:
    return {
        "shape": list(grid.shape),
        "events": cell_events(model.events_, grid).ravel().tolist(),
        "walls": [[*a, *b] for a, b in grid.walls],
        "marks": [[name, *cell] for name, cell in grid.marks],
    }
