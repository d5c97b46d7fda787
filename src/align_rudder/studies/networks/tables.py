"""The table of the study with networks, and the numbers in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from align_rudder.studies.networks.methods import METHODS, OURS
from align_rudder.studies.networks.settings import Setting
from align_rudder.studies.networks.trials import TARGET, WINDOW, NetworkTrial
from align_rudder.studies.tables import Table

__all__ = ["Summary", "report_tables", "summarise"]


@dataclass(frozen=True)
class Summary:
    """The trials of one setting.

    Attributes:
        setting: The setting.
        trials: How many.
        solved: How many reached the target.
        median: Median steps to the target; a trial that did not reach it counts as the cap.
        final: Median success at the end of training.
        steps: Steps of each trial, by seed.
        reached: Whether each trial reached the target.
    """

    setting: Setting
    trials: int
    solved: int
    median: float
    final: float
    steps: tuple[int, ...]
    reached: tuple[bool, ...]

    def data(self) -> dict[str, Any]:
        """Return the summary as plain data, without the single trials."""
        found = asdict(self)
        del found["steps"], found["reached"]
        return {**found.pop("setting"), **found}


def summarise(trials: Iterable[NetworkTrial], settings: Sequence[Setting]) -> list[Summary]:
    """Return the summary of each setting that has trials."""
    by_setting: dict[Setting, list[NetworkTrial]] = {setting: [] for setting in settings}
    for trial in sorted(trials, key=lambda trial: trial.seed):
        by_setting[trial.setting].append(trial)
    return [_summary(setting, found) for setting, found in by_setting.items() if found]


def _summary(setting: Setting, trials: Sequence[NetworkTrial]) -> Summary:
    steps = tuple(trial.steps for trial in trials)
    reached = tuple(trial.solved for trial in trials)
    final = float(np.median([trial.final for trial in trials]))
    return Summary(
        setting, len(trials), sum(reached), float(np.median(steps)), final, steps, reached
    )


def report_tables(found: Sequence[Summary], cap: int) -> list[Table]:
    """Return steps to the target and success of each method, a table for each time limit.

    Args:
        found: The summaries.
        cap: Most steps of a trial.
    """
    paces = sorted({summary.setting.pace for summary in found})
    return [_table([s for s in found if s.setting.pace == pace], cap) for pace in paces]


def _table(found: Sequence[Summary], cap: int) -> Table:
    ours = {replace(s.setting, method=""): s for s in found if s.setting.method == OURS}
    rows = []
    for summary in found:
        setting = summary.setting
        method = METHODS[setting.method]
        first = ours.get(replace(setting, method=""), summary)
        each = zip(summary.steps, summary.reached, strict=True)
        rows.append(
            [
                f"{method.label} †" if method.more else method.label,
                method.knows,
                _thousands(summary.median, summary.median < cap),
                f"{summary.solved}/{summary.trials}",
                f"{summary.final:.0%}",
                "–" if first is summary else _p_value(first.steps, summary.steps),
                ", ".join(_thousands(steps, reached) for steps, reached in each),
            ]
        )
    n = max(summary.trials for summary in found)
    task = found[0].setting
    title = f"PPO on a level of MiniGrid, {task.length} items, {task.pace} steps for each"
    title += f" ({n} seed{'s' * (n != 1)})"
    header = ["method", "is given", "thousand steps", "solved", "success", "p", "each seed"]
    return Table(
        title,
        header,
        rows,
        (
            f"thousand steps until {TARGET:.0%} of {WINDOW} episodes in a row are successes, "
            f"median; a trial without it in {cap:,} counts as {cap:,}; success at the end, median",
            "p: one-sided Mann–Whitney U, Align-RUDDER needs fewer steps",
            *(["† is given more than logs"] if any(row[0].endswith("†") for row in rows) else []),
        ),
    )


def _thousands(steps: float, reached: bool) -> str:
    return f"{steps / 1000:.0f}" if reached else f"> {steps / 1000:.0f}"


def _p_value(ours: Sequence[int], other: Sequence[int]) -> str:
    return f"{mannwhitneyu(ours, other, alternative='less').pvalue:.3f}"
