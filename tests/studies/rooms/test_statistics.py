"""Means, caps and p-values."""

import numpy as np
import pytest
from rooms_trials import trial_record
from scipy.stats import mannwhitneyu

from align_rudder.studies.rooms.statistics import compare, summarise


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
