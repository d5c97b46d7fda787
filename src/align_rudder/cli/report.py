"""`align-rudder report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import gymnasium as gym
import tyro

from align_rudder._warnings import warn
from align_rudder.data.sources import load_source
from align_rudder.files import check_outputs
from align_rudder.model import AlignRudder
from align_rudder.show.report.page import write_report

__all__ = ["Report"]


@dataclass
class Report:
    """Write one HTML page that shows what a model found and what it does with episodes."""

    model: tyro.conf.Positional[str]
    """A model that `fit` saved."""
    episodes: tyro.conf.Positional[str | None] = None
    """Episodes to show, in any of the forms that demonstrations have."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "report.html"
    """File for the page."""
    title: str = "Align-RUDDER report"
    """Title of the page."""
    max_episodes: int = 20
    """The most episodes shown."""
    env: str | None = None
    """Gymnasium id of a grid environment, to show clusters and reward on its map."""

    def run(self) -> None:
        """Load, redistribute, write."""
        check_outputs(self.output, inputs=[self.model, self.episodes])
        if self.max_episodes < 0:
            raise ValueError(f"--max-episodes {self.max_episodes} must be at least 0")
        model = AlignRudder.load(self.model)
        given = []
        if self.episodes is not None:
            source = load_source(self.episodes)
            if source.episodes is not None:
                given = source.episodes
            else:
                given = list(zip(source.sequences or [], source.returns or [], strict=True))
        verdict = write_report(
            model,
            given,
            self.output,
            title=self.title,
            max_episodes=self.max_episodes,
            env=None if self.env is None else _make(self.env),
        )
        for remark in verdict["warnings"]:
            warn(f"{remark['what']} {remark['do']}")
        print(f"saved to {self.output}; open it in a browser")


def _make(name: str) -> gym.Env:
    try:
        return gym.make(name)
    except gym.error.Error as error:
        raise ValueError(f"there is no environment {name}: {error}") from error
