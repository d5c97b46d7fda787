"""Exact tests within tasks, against all ways to deal the outcomes out."""

from itertools import combinations, product
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import logistic

from align_rudder.logs.shares import differ, fisher, least_p
from align_rudder.logs.within import Tables, differ_within, exact_test, standard, uneven_p


@st.composite
def strata(draw, most=4, tasks=3):
    """Return tasks as (successes that show it, successes, failures that show it, failures)."""
    out = []
    for _ in range(draw(st.integers(1, tasks))):
        n, m = draw(st.integers(0, most)), draw(st.integers(0, most))
        out.append((draw(st.integers(0, n)), n, draw(st.integers(0, m)), m))
    return out


def tables(tasks):
    return Tables(*(np.array([[task[i] for task in tasks]], float) for i in range(4)))


def dealt(tasks):
    """Return how many successes of each task show it, for each way to deal its outcomes out."""
    each = []
    for k, n, j, m in tasks:
        shows = [1] * (k + j) + [0] * (n + m - k - j)
        each.append([sum(shows[i] for i in some) for some in combinations(range(n + m), n)])
    return list(product(*each))


@settings(max_examples=60, deadline=None)
@given(strata())
def test_p_is_the_share_of_all_ways_to_deal_the_outcomes_within_tasks(tasks):
    sums = np.array([sum(way) for way in dealt(tasks)])
    got = sum(task[0] for task in tasks)
    low, high = (sums <= got).mean(), (sums >= got).mean()
    test = exact_test(tables(tasks))
    assert test.p[0] == pytest.approx(min(1, 2 * min(low, high)))
    assert test.more[0] == pytest.approx(low)
    extremes = min((sums == sums.min()).mean(), (sums == sums.max()).mean())
    assert test.least[0] == pytest.approx(min(1, 2 * extremes))


def exactly(tasks):
    """Return the logarithm of p, from whole numbers of any size."""
    ways = [1]
    for k, n, j, m in tasks:
        shown = k + j
        some = range(max(0, shown - m), min(shown, n) + 1)
        each, new = (
            [comb(n, x) * comb(m, shown - x) for x in some],
            [0] * (len(ways) + len(some) - 1),
        )
        for a, one in enumerate(ways):
            for b, other in enumerate(each):
                new[a + b] += one * other
        ways = new
    t = sum(k - max(0, k + j - m) for k, _, j, m in tasks)
    tail, whole = min(sum(ways[: t + 1]), sum(ways[t:])), sum(ways)
    return min(0.0, (np.log(2) + log(tail) - log(whole)))


@pytest.mark.parametrize(
    "tasks",
    [
        [(10, 3000, 1900, 2000)],
        [(0, 3000, 2000, 2000)],
        [(2990, 3000, 10, 2000)],
        [(5, 300, 290, 300), (9, 200, 280, 300), (3, 9, 1, 9)],
        [(0, 300, 300, 300), (0, 200, 300, 300)],
        [(1, 400, 250, 260), (0, 1, 1, 1), (7, 300, 290, 300)],
    ],
)
def test_a_p_that_is_too_small_for_a_number_has_a_logarithm(tasks):
    test = exact_test(tables(tasks))
    assert test.log_p[0] == pytest.approx(exactly(tasks), rel=1e-9)
    assert test.log_p[0] < -250


@settings(max_examples=60, deadline=None)
@given(strata(most=12))
def test_the_logarithm_is_that_of_p(tasks):
    assert exact_test(tables(tasks)).log_p[0] == pytest.approx(exactly(tasks), abs=1e-9)


@given(strata(most=30, tasks=1), st.integers(0, 9), st.integers(1, 9))
def test_one_task_with_both_outcomes_is_fishers_test(tasks, shown, alone):
    (k, n, j, m) = tasks[0]
    with_others = [*tasks, (0, 0, min(shown, alone), alone), (min(shown, alone), alone, 0, 0)]
    arrays = [np.array([x]) for x in (k, n, j, m)]
    if not n + m:
        return
    expected = fisher(*arrays)[0] if n and m else 1.0
    assert exact_test(tables(with_others)).p[0] == pytest.approx(expected, rel=1e-6)
    assert exact_test(tables(tasks)).p[0] == pytest.approx(fisher(*arrays)[0], rel=1e-6)
    if n and m:
        assert exact_test(tables(with_others)).least[0] == pytest.approx(
            least_p(*arrays)[0], rel=1e-6
        )


def test_what_goes_with_hard_tasks_tells_nothing_and_what_fails_within_tasks_does():
    hard, easy = (2, 3, 38, 47), (0, 40, 0, 5)  # 80 % of the runs of hard tasks do it, none else
    assert exact_test(tables([(2, 43, 38, 52)])).p[0] < 1e-9
    assert exact_test(tables([hard, easy])).p[0] > 0.5
    within = [(0, 3, 2, 2)] * 12
    assert exact_test(tables(within)).p[0] == pytest.approx(2 / 10**12)


@settings(max_examples=40, deadline=None)
@given(strata())
def test_no_p_is_too_small_where_outcomes_are_dealt_at_random(tasks):
    shown = [(k + j, n, m) for k, n, j, m in tasks]
    found = {}
    for way in set(dealt(tasks)):
        one = [(k, n, s - k, m) for k, (s, n, m) in zip(way, shown, strict=True)]
        found[way] = exact_test(tables(one)).p[0], uneven_p(tables(one))[0]
    p = np.array([found[way] for way in dealt(tasks)])
    for column in p.T:
        for level in np.unique(column):
            assert (column <= level).mean() <= level + 1e-9


def test_what_is_right_in_one_task_and_wrong_in_another_is_uneven():
    tasks = tables([(0, 6, 4, 4)] * 5 + [(6, 6, 0, 4)] * 5)
    assert exact_test(tasks).p[0] == pytest.approx(1)
    assert uneven_p(tasks)[0] < 1e-8


def test_the_probability_of_a_difference_is_that_of_the_integral():
    tasks = [(0, 3, 2, 2), (1, 4, 3, 5), (2, 2, 0, 3)]
    pmf = np.ones(1)
    for k, n, j, m in tasks:
        s = k + j
        x = range(max(0, s - m), min(s, n) + 1)
        pmf = np.convolve(pmf, [comb(n, i) * comb(m, s - i) for i in x])
    at = sum(k - max(0, k + j - m) for k, n, j, m in tasks)
    steps = np.arange(len(pmf))

    def likelihood(x):
        weights = pmf * np.exp(x * (steps - at))
        return pmf[at] / weights.sum()

    def prior(x):  # the density of the difference of two logistic variables
        return quad(lambda y: logistic.pdf(y) * logistic.pdf(y + x), -40, 40)[0]

    apart = quad(lambda x: prior(x) * likelihood(x), -12, 12, limit=200)[0]
    expected = apart / (apart + likelihood(0.0))
    assert differ_within(tables(tasks))[0] == pytest.approx(expected, rel=0.01)


def test_more_of_the_same_is_believed_more_and_one_task_as_without_tasks():
    few, many = tables([(0, 2, 2, 2)] * 2), tables([(0, 2, 2, 2)] * 20)
    assert differ_within(few)[0] < 0.95 < differ_within(many)[0]
    one = (3, 9, 8, 9)
    assert differ_within(tables([one]))[0] == differ(*(np.array([x]) for x in one))[0]


@given(strata(most=9))
def test_standard_shares_are_those_of_tasks_with_both_outcomes(tasks):
    found = standard(tables(tasks))
    if len(tasks) == 1:
        assert found.k[0, 0] == tasks[0][0]
        return
    mixed = [task for task in tasks if task[1] and task[3]]
    weights = [n * m / (n + m) for _, n, _, m in mixed]
    if mixed:
        share = np.average([k / n for k, n, _, _ in mixed], weights=weights)
        assert found.k[0, 0] == pytest.approx(share * sum(n for _, n, _, _ in mixed))
        share = np.average([j / m for _, _, j, m in mixed], weights=weights)
        assert found.j[0, 0] == pytest.approx(share * sum(m for _, _, _, m in mixed))
    else:
        assert found.n[0, 0] == found.m[0, 0] == 0
