"""`align-rudder demo`: the method on built-in data, and what it does for a learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from matplotlib.figure import Figure
from tqdm import tqdm

from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.episodes import Episode
from align_rudder.files import check_outputs, write_json, write_whole
from align_rudder.model import AlignRudder
from align_rudder.redistribution import Redistribution
from align_rudder.show import figures as plot
from align_rudder.summary import as_data
from align_rudder.text import letters_for

__all__ = ["Demo"]

_METHODS = ("align-rudder", "bc-q", "control")
_TRIALS = 20


@dataclass
class Demo:
    """Show a strategy found in demonstrations, a reward redistributed, and a learner using it."""

    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "demo/align-rudder-demo.png"
    """File for the figure; that of the learning curves has "-learning" in its name."""
    seed: int = 0
    """Seed of the demonstrations."""
    json: str | None = None
    """Also write summary and learning results as JSON to this file."""

    def run(self) -> None:
        """Fit, redistribute, learn, draw."""
        path = Path(self.output)
        learning = path.with_name(f"{path.stem}-learning{path.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        check_outputs(self.output, str(learning), self.json)
        print("aligning; a first run compiles for some seconds …", file=sys.stderr, flush=True)
        model = AlignRudder().fit(crafting_demonstrations(10, self.seed))
        text = [
            "Ten players craft a stone pickaxe; only the pickaxe is paid, at the very end.\n",
            model.summary(),
        ]
        shown: list[tuple[str, Redistribution, np.ndarray]] = []
        for title, success in (
            ("A new player who makes it", True),
            ("One who does not: dirt instead of stone", False),
        ):
            episode = crafting_episode(self.seed * 1000 + 500, success)
            rr = model.redistribute(episode)
            text.append(f"\n{title}: {rr}\n{_timeline(model, episode, rr)}")
            shown.append((title, rr, episode.rewards))
        _save(plot.overview(model, shown), path)
        print("\n".join(text), f"\nfigure: {path}\n", sep="\n", flush=True)
        table, curves, data = _learn()
        _save(curves, learning)
        write_json(self.json, {**as_data(model), "learning": data})
        print(table, f"\nfigure: {learning}", sep="\n")


def _save(figure: Figure, path: Path) -> None:
    form = path.suffix[1:] or "png"
    write_whole(path, lambda file: figure.savefig(file, format=form, dpi=150))


def _learn() -> tuple[str, Figure, list[dict[str, object]]]:
    """Learn FourRooms from two demonstrations with three methods; return table and curves."""
    from align_rudder.baselines.protocol import Protocol
    from align_rudder.studies.rooms.figures import learning_curves
    from align_rudder.studies.rooms.methods import chosen_parameters
    from align_rudder.studies.rooms.runner import warm_up
    from align_rudder.studies.rooms.settings import settings_of
    from align_rudder.studies.rooms.statistics import summarise
    from align_rudder.studies.rooms.tables import episode_table
    from align_rudder.studies.rooms.trials import run_trial

    protocol, parameters = Protocol(), chosen_parameters()
    settings = settings_of("four-rooms", _METHODS, (2,))
    print("A robot learns FourRooms from two demonstrations, paid only at the target.", flush=True)
    warm_up(_METHODS, sys.stderr.isatty())
    jobs = [(setting, seed) for setting in settings for seed in range(_TRIALS)]
    records = [
        run_trial(setting, seed, parameters[setting.method], protocol)
        for setting, seed in tqdm(jobs, "trials", leave=False, disable=not sys.stderr.isatty())
    ]
    found = summarise(records, settings)
    title = "Episodes until the return is 80 % of the demonstrations'"
    table = episode_table(title, found, protocol.max_episodes, "four-rooms")
    return table.text(), learning_curves(records, (2,), protocol), [s.data() for s in found]


def _timeline(model: AlignRudder, episode: Episode, rr: Redistribution) -> str:
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
