"""Confidence intervals, means, caps and p-values."""

import numpy as np
import pytest
from rooms_trials import trial_record
from scipy.stats import mannwhitneyu

from align_rudder.studies.statistics import compare, mean_interval, summarise, wilson_interval


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide(rng):
    values = rng.normal(10.0, 2.0, 400)
    low, high = mean_interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert mean_interval(values) == (low, high)
    assert mean_interval([7]) == (7.0, 7.0)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (143, 512), (0, 10_000)])
def test_a_wilson_interval_solves_its_equation(k, n):
    """At its ends, the share lies 1.96 standard errors of the *end* away."""
    ends = wilson_interval(k, n)
    assert 0 <= ends[0] <= k / n <= ends[1] <= 1
    for end in ends:
        if 0 < end < 1:
            assert abs(k / n - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / n))


def test_several_wilson_intervals_come_as_arrays():
    low, high = wilson_interval(np.array([1, 2, 3]), 3)
    assert list(zip(low, high, strict=True)) == [wilson_interval(k, 3) for k in (1, 2, 3)]
    with pytest.raises(ValueError, match="3 successes of 2 trials"):
        wilson_interval(3, 2)


def summary(records):
    (found,) = summarise(records, [records[0].setting])
    return found


def test_summaries_count_caps_and_hold_the_mean():
    episodes = [10, 20, 30, 20_000]
    found = summary([trial_record(s, n, n < 20_000) for s, n in enumerate(episodes)])
    assert (found.trials, found.capped, found.median) == (4, 1, 25.0)
    assert found.mean == np.mean(episodes)
    assert found.low < found.mean < found.high <= 20_000
    assert found.episodes == tuple(episodes)


def test_p_values_are_scipys_one_sided_ones():
    ours = summary([trial_record(s, 10 * s + 10) for s in range(20)])
    other = summary([trial_record(s, 10 * s + 95, method="bc-q") for s in range(20)])
    expected = mannwhitneyu(ours.episodes, other.episodes, alternative="less").pvalue
    assert compare(ours, other) == pytest.approx(expected)
    assert compare(ours, other) < 0.01 < 0.9 < compare(other, ours)
