"""What all sequences hold in the same order: against brute force, and as a start of alignments."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder.sequences import GAP
from align_rudder.subsequence import along, central_subsequence, common_subsequence

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


def shared(a, b):
    """Return the length of the longest common subsequence of two, by the textbook's recursion."""
    if not a or not b:
        return 0
    if a[-1] == b[-1]:
        return shared(a[:-1], b[:-1]) + 1
    return max(shared(a[:-1], b), shared(a, b[:-1]))


def worth(chain, lists, share):
    return sum(shared(chain, row) for row in lists) - share * len(lists) * len(chain)


def of_places(lists, places):
    """Return the chain that places spell; each of its events is held by some."""
    at = [next(i for i, t in enumerate(column) if t >= 0) for column in places.T.tolist()]
    return [lists[i][places[i, k]] for k, i in enumerate(at)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=2, max_size=4),
    st.sampled_from([0.5, 0.65, 0.9]),
)
def test_no_change_of_one_event_makes_a_central_subsequence_better(lists, share):
    places = central_subsequence(rows_of(lists), 3, share)
    assert places.shape[0] == len(lists)
    for row, at in zip(lists, places.tolist(), strict=True):
        held_at = [t for t in at if t >= 0]
        assert held_at == sorted(set(held_at))
        assert len(held_at) == shared(of_places(lists, places), row)
    chain = of_places(lists, places)
    best, m = worth(chain, lists, share), len(chain)
    others = [chain[:t] + chain[t + 1 :] for t in range(m)]
    others += [[*chain[:t], e, *chain[t:]] for t, e in product(range(m + 1), range(3))]
    others += [[*chain[:t], e, *chain[t + 1 :]] for t, e in product(range(m), range(3))]
    assert all(worth(other, lists, share) <= best + 1e-9 for other in others)


@settings(deadline=None, derandomize=True)
@given(SETS, st.sampled_from([0.5, 0.8]))
def test_an_alignment_along_what_most_hold_has_a_column_for_each_of_its_events(lists, share):
    rows = rows_of(lists)
    places = central_subsequence(rows, 4, share)
    matrix = along(rows, places)
    for row, line in zip(rows, matrix, strict=True):
        np.testing.assert_array_equal(line[line != GAP], row)
    where = [
        {int(np.flatnonzero(line != GAP)[t]) for line, t in zip(matrix, column) if t >= 0}
        for column in places.T.tolist()
    ]
    assert all(len(columns) == 1 for columns in where)  # all that hold an event, in one column
    order = [next(iter(columns)) for columns in where]
    assert order == sorted(set(order))


def test_events_that_logs_lost_do_not_hide_the_order():
    """Each of ten logs lost a tenth of its events, and has others between.

    Of 12 items one is left in six logs or fewer about once in seven sets.
    """
    right = in_all = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        recipe = [*range(12)]
        logs = []
        for _ in range(10):
            log = [e for item in recipe for e in (*rng.integers(12, 16, rng.integers(2)), item)]
            logs.append([int(e) for e in log if rng.random() < 0.9])
        found = of_places(logs, central_subsequence(rows_of(logs), 16, 0.65))
        right += found == recipe
        in_all += common_subsequence(rows_of(logs), 16).shape[1] == len(recipe)
    assert right >= 15
    assert in_all == 0


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
