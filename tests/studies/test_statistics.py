"""Confidence intervals."""

import numpy as np
import pytest

from align_rudder.studies.statistics import mean_interval, wilson_interval


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
