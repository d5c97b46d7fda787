"""Numbers of a table: means and shares with confidence intervals, and tests between methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, bootstrap, mannwhitneyu

__all__ = ["Summary", "compare", "mean_interval", "summarise", "wilson_interval"]

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of a mean: percentiles of 2000 means of resampled values.

    The same values always give the same interval.

    Example:
        >>> mean_interval([10.0, 10.0, 10.0])
        (10.0, 10.0)
    """
    array = np.asarray(values, float)
    if len(array) < 2:
        return float(array.mean()), float(array.mean())
    rng = np.random.default_rng(0)
    found = bootstrap((array,), np.mean, n_resamples=2000, method="percentile", rng=rng)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def wilson_interval(successes: ArrayLike, trials: ArrayLike) -> tuple[Any, Any]:
    """Return the 95 % Wilson interval of a share.

    Args:
        successes: How many succeeded; an array for several shares.
        trials: Of how many.

    Example:
        >>> low, high = wilson_interval(0, 10_000)
        >>> f"{low:.2%} to {high:.2%}"
        '0.00% to 0.04%'
    """
    counts = np.broadcast_arrays(successes, trials)
    pairs = [(int(k), int(n)) for k, n in zip(*(array.ravel() for array in counts), strict=True)]
    if any(not 0 <= k <= n or n < 1 for k, n in pairs):
        raise ValueError(f"{successes} successes of {trials} trials: give 0 to all of 1 or more")
    ends = [binomtest(k, n).proportion_ci(method="wilson") for k, n in pairs]
    low, high = (np.array(end).reshape(counts[0].shape) for end in zip(*ends, strict=True))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


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
