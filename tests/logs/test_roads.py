"""How runs go along roads."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.logs.roads import MOST, Road, best_path, find_roads, follow

events_of = st.lists(st.integers(0, 4), max_size=7).map(lambda e: np.array(e, int))


@st.composite
def roads(draw):
    events = draw(st.lists(st.integers(0, 4), max_size=5))
    shares = draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=5, max_size=5))
    return Road(np.array(events, int), np.array(shares[: len(events)]), 10)


@given(roads(), events_of)
def test_a_path_holds_columns_in_order_that_are_worth_most(road, events):
    path = follow(road, events)
    held = path.columns[path.columns >= 0]
    assert (np.diff(held) > 0).all()
    assert (road.events[held] == events[path.columns >= 0]).all()
    best = 0.0
    for n in range(min(len(road), len(events)) + 1):
        for columns in combinations(range(len(road)), n):
            wanted, at = [road.events[j] for j in columns], 0
            for event in events.tolist():
                at += at < n and event == wanted[at]
            if at == n:
                best = max(best, sum(road.shares[list(columns)]))
    assert path.score == pytest.approx(2 * best - road.shares.sum())


@given(roads(), events_of)
def test_what_is_due_has_not_been_passed(road, events):
    path = follow(road, events)
    for t, due in enumerate(path.due.tolist()):
        assert (path.passed[:due] < t).all()
        assert (path.passed[due:] >= t).all()
    for j, t in enumerate(path.passed.tolist()):
        if t < len(events):
            assert path.columns[t] >= j
        if path.held[j]:
            assert path.columns[t] == j


def test_a_run_goes_the_road_of_its_task():
    a = Road(np.array([0, 1]), np.ones(2), 5, "a")
    b = Road(np.array([0, 1, 2]), np.ones(3), 3, "b")
    run = np.array([0, 1, 2])
    assert best_path([a, b], run, "a").road == 0
    assert best_path([a, b], run, "b").road == 1
    assert best_path([a, b], run, "of no road").road == 1


def test_roads_are_what_two_kinds_of_successes_have_in_common():
    rng = np.random.default_rng(0)

    def noisy(script):
        return np.insert(script, rng.integers(0, len(script) + 1, 2), rng.integers(8, 14, 2))

    some = [noisy([0, 1, 2, 3]) for _ in range(20)] + [noisy([4, 5, 6, 7]) for _ in range(12)]
    found = find_roads(some, range(14))
    assert [road.events.tolist() for road in found] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    # more than are aligned
    many = [noisy([0, 1, 2, 3]) for _ in range(3 * MOST)]
    assert [road.events.tolist() for road in find_roads(many, range(14))] == [[0, 1, 2, 3]]


def test_no_success_with_an_event_is_an_empty_road():
    (road,) = find_roads([np.array([], int)] * 3, [])
    assert len(road) == 0
    assert follow(road, np.array([3, 1])).columns.tolist() == [-1, -1]
