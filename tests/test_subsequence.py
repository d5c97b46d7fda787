"""What all sequences hold in the same order: against brute force, and as a start of alignments."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder.sequences import GAP
from align_rudder.subsequence import along, common_subsequence

SETS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=4)


def rows_of(lists):
    return [np.array(row, np.int32) for row in lists]


def longest(lists):
    """Return the length of the longest common subsequence, by trying all of the first one's."""
    for m in range(len(lists[0]), 0, -1):
        for chosen in {tuple(c) for c in combinations(lists[0], m)}:
            if all(held(chosen, row) for row in lists):
                return m
    return 0


def held(chain, row):
    rest = iter(row)
    return all(event in rest for event in chain)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(SETS)
def test_of_short_sequences_it_is_the_longest(lists):
    places = common_subsequence(rows_of(lists), 4)
    assert places.shape == (len(lists), longest(lists))
    assert (np.diff(places, axis=1) > 0).all()
    found = [[row[t] for t in at] for row, at in zip(lists, places.tolist(), strict=True)]
    assert all(chain == found[0] for chain in found)


@settings(deadline=None, derandomize=True)
@given(SETS)
def test_the_alignment_holds_the_sequences_and_a_column_for_each_shared_event(lists):
    rows = rows_of(lists)
    places = common_subsequence(rows, 4)
    matrix = along(rows, places)
    for row, line in zip(rows, matrix, strict=True):
        np.testing.assert_array_equal(line[line != GAP], row)
    full = (matrix == matrix[0]).all(axis=0)
    assert full.sum() >= places.shape[1]
    if len(rows) > 1:
        assert full.sum() == places.shape[1]


@pytest.mark.parametrize("lists", [[[0, 1], []], [[0], [1]]])
def test_nothing_in_common(lists):
    rows = rows_of(lists)
    places = common_subsequence(rows, 2)
    assert places.shape == (2, 0)
    assert (along(rows, places) != GAP).sum() == sum(map(len, lists))


def test_what_lies_between_does_not_hide_what_all_hold():
    """Before each of 12 steps that all take, each of ten logs has two or three others."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        recipe = rng.integers(10, size=12)
        logs = [
            np.concatenate([[*rng.integers(10, size=rng.integers(2, 4)), item] for item in recipe])
            for _ in range(10)
        ]
        model = ar.AlignRudder().fit_events([log.tolist() for log in logs])
        goals = [[goal.symbol for goal in s.subgoals] for s in model.strategies_]
        wanted = [*recipe[:-1].tolist(), f"{recipe[-1]}, paid"]
        found.append([[str(g) for g in goals[0]]] == [[str(w) for w in wanted]] if goals else False)
    assert np.mean(found) >= 0.8
