"""Numbers of a table: means with confidence intervals, and tests between methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.statistics import mean_interval

__all__ = ["Summary", "compare", "summarise"]


@dataclass(frozen=True)
class Summary:
    """The trials of one setting.

    Attributes:
        setting: The setting.
        trials: How many.
        mean: Mean episodes to the target; a trial that did not reach it counts as the cap.
        low: Lower end of the 95 % confidence interval of the mean, by bootstrap.
        high: Upper end.
        median: Median episodes.
        capped: Trials that did not reach the target.
        episodes: Episodes of each trial.
    """

    setting: Setting
    trials: int
    mean: float
    low: float
    high: float
    median: float
    capped: int
    episodes: tuple[int, ...]

    def data(self) -> dict[str, Any]:
        """Return the summary as plain data, without the single trials."""
        found = asdict(self)
        del found["episodes"]
        setting = found.pop("setting")
        return {**setting, **found}


def summarise(records: Iterable[TrialRecord], settings: Sequence[Setting]) -> list[Summary]:
    """Return the summary of each setting that has trials."""
    by_setting: dict[Setting, list[TrialRecord]] = {s: [] for s in settings}
    for record in records:
        if record.setting in by_setting:
            by_setting[record.setting].append(record)
    return [_summary(s, sorted(r, key=lambda x: x.seed)) for s, r in by_setting.items() if r]


def _summary(setting: Setting, records: list[TrialRecord]) -> Summary:
    episodes = [r.episodes for r in records]
    return Summary(
        setting,
        len(records),
        float(np.mean(episodes)),
        *mean_interval(episodes),
        float(np.median(episodes)),
        sum(not r.solved for r in records),
        tuple(episodes),
    )


def compare(ours: Summary, other: Summary) -> float:
    """Return the p-value of a one-sided Mann–Whitney test that ours needs fewer episodes."""
    return float(mannwhitneyu(ours.episodes, other.episodes, alternative="less").pvalue)
