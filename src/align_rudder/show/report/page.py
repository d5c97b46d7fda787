"""The page: template, style, scripts and data in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from align_rudder.files import write_text
from align_rudder.show.figures.maps import Grid
from align_rudder.show.report.data import report_data
from align_rudder.show.report.episodes import GivenEpisode

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["page", "write_report"]

_SCRIPTS = (
    "basics",
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
    folder = files("align_rudder.show.report")
    parts = {
        "title": html.escape(data["title"]),
        "style": folder.joinpath("style.css").read_text("utf-8"),
        "script": "\n".join(
            folder.joinpath("scripts", f"{name}.js").read_text("utf-8") for name in _SCRIPTS
        ),
        # "<" as \u003c: no symbol can end the script element or begin a comment.
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    }
    template = folder.joinpath("template.html").read_text("utf-8")
    return re.sub("{{(.+?)}}", lambda found: parts[found[1]], template)


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
