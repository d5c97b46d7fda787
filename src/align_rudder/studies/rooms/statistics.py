"""Numbers of a table: means with confidence intervals, and tests between methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.store import TrialRecord

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


def summarise(
    records: Iterable[TrialRecord], settings: Sequence[Setting], seeds: Sequence[int]
) -> list[Summary]:
    """Return the summary of each setting over the given seeds."""
    wanted, chosen = set(seeds), set(settings)
    by_setting: dict[Setting, list[TrialRecord]] = {s: [] for s in settings}
    for record in records:
        if record.setting in chosen and record.seed in wanted:
            by_setting[record.setting].append(record)
    return [_summary(s, sorted(r, key=lambda x: x.seed)) for s, r in by_setting.items() if r]


def _summary(setting: Setting, records: list[TrialRecord]) -> Summary:
    episodes = np.array([r.episodes for r in records], float)
    rng = np.random.default_rng(0)
    means = rng.choice(episodes, (2000, len(episodes))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Summary(
        setting,
        len(records),
        float(episodes.mean()),
        float(low),
        float(high),
        float(np.median(episodes)),
        sum(not r.solved for r in records),
        tuple(r.episodes for r in records),
    )


def compare(ours: Summary, other: Summary) -> float:
    """Return the p-value of a one-sided Mann–Whitney test that ours needs fewer episodes."""
    return float(mannwhitneyu(ours.episodes, other.episodes, alternative="less").pvalue)
