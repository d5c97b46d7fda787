"""Intervals and tests of shares, against SciPy and numerical integrals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, binomtest, fisher_exact

from align_rudder.logs.shares import differ, fisher, fisher_more, least_p, wilson


@st.composite
def tables(draw):
    n, m = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    return draw(st.integers(0, n)), n, draw(st.integers(0, m)), m


@given(tables())
def test_wilson_is_that_of_scipy(table):
    k, n, *_ = table
    found = binomtest(k, n).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson(k, n), (found.low, found.high), atol=1e-12)


@given(tables())
def test_fisher_is_that_of_scipy(table):
    k, n, j, m = table
    square = [[k, n - k], [j, m - j]]
    more, less = (fisher_exact(square, alternative=a).pvalue for a in ("greater", "less"))
    arrays = [np.array([x]) for x in table]
    assert fisher(*arrays)[0] == pytest.approx(min(1, 2 * min(more, less)))
    assert fisher_more(*table) == pytest.approx(more)


@given(tables())
def test_no_table_with_as_many_shown_has_a_smaller_p(table):
    k, n, j, m = table
    shown = k + j
    ks = np.arange(max(0, shown - m), min(shown, n) + 1)
    everyone = [fisher(*(np.array([x]) for x in (a, n, shown - a, m)))[0] for a in ks]
    assert least_p(*(np.array([x]) for x in table))[0] == pytest.approx(min(everyone))


@pytest.mark.parametrize("table", [(0, 60, 2, 40), (1, 60, 38, 40), (3, 5, 2, 7), (0, 3, 0, 9)])
def test_the_probability_that_shares_differ_is_that_of_the_integrals(table):
    k, n, j, m = table
    apart = (
        quad(lambda q: binom.pmf(k, n, q), 0, 1)[0] * quad(lambda q: binom.pmf(j, m, q), 0, 1)[0]
    )
    same = quad(lambda q: binom.pmf(k, n, q) * binom.pmf(j, m, q), 0, 1)[0]
    found = differ(*(np.array([x]) for x in table))[0]
    assert found == pytest.approx(apart / (apart + same), rel=1e-6)
