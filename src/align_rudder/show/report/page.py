"""The report as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from align_rudder.files import write_text
from align_rudder.show.figures.maps import Grid
from align_rudder.show.page import html_page
from align_rudder.show.report.data import report_data
from align_rudder.show.report.episodes import GivenEpisode

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["page", "write_report"]

_LINKS = {"strategy": "Strategy", "alignment": "Alignment", "episodes": "Episodes"}
_SCRIPTS = (
    "verdict",
    "strategy",
    "scores",
    "tree",
    "rows",
    "alignment",
    "pointing",
    "episode",
    "choosing",
    "map",
    "print",
    "main",
)


def page(data: dict[str, Any]) -> str:
    """Return the page that shows what `report_data` returned."""
    return html_page("align_rudder.show.report", _LINKS, _SCRIPTS, data)


def write_report(
    model: AlignRudder,
    episodes: Sequence[GivenEpisode] | None,
    path: str | os.PathLike[str],
    *,
    title: str = "Align-RUDDER report",
    max_episodes: int = 20,
    env: gym.Env[Any, Any] | Grid | None = None,
) -> dict[str, Any]:
    """Write the report of a model and of what it does with episodes as one HTML file.

    Args:
        model: A fitted model.
        episodes: Episodes to show beside the demonstrations, or None; see `report_data`.
        path: The file.
        title: Title of the page.
        max_episodes: The most episodes shown.
        env: A grid environment, or its `Grid`, for the map of a model of states.

    Returns:
        The verdict at the top of the page, with its state, headline, numbers and warnings.
    """
    data = report_data(model, episodes, title=title, max_episodes=max_episodes, env=env)
    write_text(path, page(data))
    return data["verdict"]
