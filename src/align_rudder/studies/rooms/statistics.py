"""Numbers of a table: means with confidence intervals, and tests between methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy.stats import mannwhitneyu

from align_rudder.studies.statistics import mean_interval

__all__ = ["Summary", "compare", "summarise"]

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class Finished(Protocol[S_co]):
    """A finished trial, whatever its setting is."""

    @property
    def setting(self) -> S_co:
        """Its setting."""
        ...

    @property
    def seed(self) -> int:
        """Its seed."""
        ...

    @property
    def episodes(self) -> int:
        """Episodes to the target, or the cap."""
        ...

    @property
    def solved(self) -> bool:
        """Whether the target was reached."""
        ...


@dataclass(frozen=True)
class Summary(Generic[S]):
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

    setting: S
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


def summarise(records: Iterable[Finished[S]], settings: Sequence[S]) -> list[Summary[S]]:
    """Return the summary of each setting that has trials."""
    by_setting: dict[S, list[Finished[S]]] = {s: [] for s in settings}
    for record in records:
        if record.setting in by_setting:
            by_setting[record.setting].append(record)
    return [_summary(s, sorted(r, key=lambda x: x.seed)) for s, r in by_setting.items() if r]


def _summary(setting: S, records: list[Finished[S]]) -> Summary[S]:
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


def compare(ours: Summary[S], other: Summary[S]) -> float:
    """Return the p-value of a one-sided Mann–Whitney test that ours needs fewer episodes."""
    return float(mannwhitneyu(ours.episodes, other.episodes, alternative="less").pvalue)
