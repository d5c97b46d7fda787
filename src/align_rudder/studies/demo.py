"""The demonstration of the method: a strategy found, a reward redistributed, a learner using it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.episodes import Episode
from align_rudder.model import AlignRudder
from align_rudder.redistribution import Redistribution
from align_rudder.text import letters_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CraftingDemo", "LearningDemo", "craft", "learn"]

_METHODS = ("align-rudder", "shortest-log", "gail-events", "q-memory")
_TASKS, _EPISODES = 20, 1000


class CraftingDemo(NamedTuple):
    """Ten players craft a stone pickaxe; what the model finds, and what two new players earn.

    Attributes:
        model: The model fitted to the ten.
        players: A title, the episode and its redistribution for each new player.
    """

    model: AlignRudder
    players: Sequence[tuple[str, Episode, Redistribution]]

    def __str__(self) -> str:
        lines = [
            "Ten players craft a stone pickaxe; only the pickaxe is paid, at the very end.\n",
            self.model.summary(),
        ]
        for title, episode, rr in self.players:
            lines.append(f"\n{title}: {rr}\n{timeline(self.model, episode, rr)}")
        return "\n".join(lines)

    def figure(self) -> Figure:
        """Return the figure of the alignment and of the two new players."""
        from align_rudder.show.figures import overview

        return overview(self.model, [(title, rr, e.rewards) for title, e, rr in self.players])


class LearningDemo(NamedTuple):
    """An agent learns recipes of eight items from ten logs of other kitchens.

    Attributes:
        table: Episodes to the first success, as text.
        figure: The share of recipes that were learned over the episodes.
        data: The numbers of the table, for JSON.
    """

    table: str
    figure: Figure
    data: list[dict[str, Any]]


def craft(seed: int = 0) -> CraftingDemo:
    """Fit to ten players and redistribute the reward of one who makes it and one who does not."""
    model = AlignRudder().fit(crafting_demonstrations(10, seed))
    titles = {True: "A new player who makes it", False: "One who does not: dirt instead of stone"}
    episodes = {title: crafting_episode(seed * 1000 + 500, made) for made, title in titles.items()}
    players = [(title, e, model.redistribute(e)) for title, e in episodes.items()]
    return CraftingDemo(model, players)


def learn(progress: bool = False) -> LearningDemo:
    """Learn recipes from logs with Align-RUDDER and three rivals, tuned alike."""
    from align_rudder.studies.recipes.figures import solved_figure
    from align_rudder.studies.recipes.methods import chosen_parameters
    from align_rudder.studies.recipes.settings import FIRST_SEED, Setting
    from align_rudder.studies.recipes.tables import report_tables
    from align_rudder.studies.recipes.trials import protocol_of, run_trial
    from align_rudder.studies.statistics import summarise

    protocol, parameters = protocol_of(_EPISODES), chosen_parameters()
    settings = [Setting(8, method=name) for name in _METHODS]
    jobs = [(s, FIRST_SEED + k) for k in range(_TASKS) for s in settings]
    trials = [
        run_trial(setting, seed, parameters[setting.method], protocol)
        for setting, seed in tqdm(jobs, "trials", leave=False, disable=not progress)
    ]
    found = summarise(trials, settings)
    table = report_tables(found, _EPISODES)[0]
    return LearningDemo(table.text(), solved_figure(trials, _EPISODES), [s.data() for s in found])


def timeline(model: AlignRudder, episode: Episode, rr: Redistribution) -> str:
    """Return the rewarded steps of an episode as a bar chart in text."""
    letters = letters_for(model.events_.symbols_)
    top = max(float(rr.rewards.max()), abs(rr.correction), 1e-12)
    lines = []
    for t in np.flatnonzero(rr.rewards != 0):
        e = rr.events[t]
        bar = "█" * max(round(24 * rr.rewards[t] / top), 1)
        lines.append(
            f"  step {t + 1:>3}  {rr.rewards[t]:>+7.3f}  {bar:<24} "
            f"{letters[e]} = {model.events_.symbols_[e]}"
        )
    bar = "█" * round(24 * abs(rr.correction) / top)
    lines.append(f"  {'after':>8}  {rr.correction:>+7.3f}  {bar:<24} correction")
    lines.append(
        f"  {'sum':>8}  {rr.rewards.sum() + rr.correction:>+7.3f}  "
        f"= the return of the {len(episode)} steps"
    )
    return "\n".join(lines)
