"""Scoring matrices against their formulas, λ* against its equation."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from align_rudder import align
from align_rudder.scoring import (
    background,
    inverse_frequency,
    karlin_altschul,
    log_frequency,
    quantise,
    scoring_matrix,
    solve_lambda,
)

examples = settings(deadline=None, max_examples=150, derandomize=True)


@st.composite
def _frequencies(draw, min_size=2, max_size=8):
    weights = draw(st.lists(st.integers(1, 1000), min_size=min_size, max_size=max_size))
    return np.array(weights) / sum(weights)


def test_background_is_the_share_of_each_event():
    sequences = [np.array([0, 1, 1]), np.array([], int), np.array([3])]
    assert background(sequences, 5).tolist() == [0.25, 0.5, 0.0, 0.25, 0.0]
    assert background([], 2).tolist() == [0.0, 0.0]


# Matrices


@given(_frequencies(1), st.floats(-5, 0))
@examples
def test_inverse_and_log_frequency(p, alpha):
    n = len(p)
    for matrix, own in [
        (inverse_frequency(p, alpha), lambda x: 1 / x),
        (log_frequency(p, alpha), lambda x: -np.log(x)),
    ]:
        for i, j in itertools.product(range(n), repeat=2):
            if i != j:
                assert matrix[i, j] == alpha
            elif n > 1:
                assert matrix[i, i] == pytest.approx(own(p[i]))
            else:
                assert matrix[i, i] > 0
        # The rarer event scores higher.
        assert (np.diff(np.diag(matrix)[np.argsort(p)]) <= 0).all()


def test_an_event_that_never_occurs_scores_like_the_rarest():
    p = np.array([0.75, 0.25, 0.0])
    assert np.diag(inverse_frequency(p)).tolist() == [4 / 3, 4.0, 4.0]
    assert np.diag(log_frequency(p))[2] == pytest.approx(-np.log(0.25))
    assert np.isfinite(karlin_altschul(p)).all()


def _log_odds_of_pairs(p, epsilon):
    n = len(p)
    s = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        q = p[i] - epsilon if i == j else epsilon / (n - 1)
        s[i, j] = np.log(q / (p[i] * p[j]))
    own = np.diag(s)
    off = np.where(np.eye(n, dtype=bool), -np.inf, s)
    # Whether it is worth aligning each event with itself, and rather than with another.
    return s, bool((own > 1e-9).all() and (own > off.max(axis=1) + 1e-9).all())


@given(_frequencies(), st.floats(0.001, 0.999))
@examples
def test_karlin_altschul_solves_its_equation(p, share):
    epsilon = share * p.min()
    expected, sensible = _log_odds_of_pairs(p, epsilon)
    assume(sensible)
    s = karlin_altschul(p, epsilon)
    np.testing.assert_allclose(s, expected, atol=1e-9)
    assert (np.outer(p, p) * np.exp(s)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("p", "epsilon"),
    [
        ([0.5, 0.5], 0.25),  # all scores are 0
        ([0.5, 0.5], 0.3),  # a mismatch scores more than a match
        ([0.9, 0.1], 0.095),  # the first event scores less than 0 with itself
        ([0.3, 0.3, 0.4], 0.25),
        ([1.0], 0.5),
    ],
)
def test_an_epsilon_that_makes_events_avoid_themselves_is_refused(p, epsilon):
    assert len(p) == 1 or not _log_odds_of_pairs(p, epsilon)[1]
    with pytest.raises(ValueError, match="ε"):
        karlin_altschul(np.array(p), epsilon)


@given(_frequencies(1))
@examples
def test_karlin_altschul_without_mismatches(p):
    s = karlin_altschul(p)
    own = np.diag(s)
    assert (own > 0).all()
    np.testing.assert_allclose(own, np.maximum(-np.log(p), 1e-3), rtol=1e-9, atol=1e-12)
    # A mismatch costs at least as much as all matches together can bring.
    off = s[~np.eye(len(p), dtype=bool)]
    assert (off <= -own.sum() + 1e-9).all()


@pytest.mark.parametrize("epsilon", [-0.1, 0.2, 0.5, np.nan])
def test_epsilon_is_below_the_smallest_frequency(epsilon):
    with pytest.raises(ValueError, match=rf"ε = {epsilon} must be .* below .*0\.2"):
        karlin_altschul(np.array([0.2, 0.8]), epsilon)


@pytest.mark.parametrize("p", [[-0.1, 1.1], [np.nan, 1.0], [[0.5, 0.5]]])
@pytest.mark.parametrize("form", [inverse_frequency, log_frequency, karlin_altschul])
def test_frequencies_are_not_negative(form, p):
    with pytest.raises(ValueError, match=r"p must be a vector of frequencies.*got"):
        form(np.array(p))


def test_a_matrix_is_named_given_or_computed():
    p = np.array([0.5, 0.3, 0.2])
    np.testing.assert_array_equal(scoring_matrix("inverse", p, alpha=-2), inverse_frequency(p, -2))
    np.testing.assert_array_equal(scoring_matrix("log", p, alpha=-2), log_frequency(p, -2))
    np.testing.assert_array_equal(
        scoring_matrix("karlin-altschul", p, epsilon=0.01), karlin_altschul(p, 0.01)
    )
    own = [[1, 0, -1], [0, 2, 0], [-1, 0, 3]]
    np.testing.assert_array_equal(scoring_matrix(own, p), own)
    np.testing.assert_array_equal(scoring_matrix(lambda x: np.diag(x), p), np.diag(p))
    kept = np.array(own, float)
    scoring_matrix(kept, p)[:] = 9.0
    np.testing.assert_array_equal(kept, own)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("blosum", "scoring='blosum' is not known; use one of .*'inverse'"),
        (np.eye(3), r"shape \(3, 3\); for 2 events it must be \(2, 2\)"),
        (np.ones(2), r"shape \(2,\)"),
        (lambda p: np.eye(1), r"shape \(1, 1\)"),
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, np.nan], [np.nan, 0]], "NaN or infinite"),
        ([[np.inf, 0], [0, 1]], "NaN or infinite"),
    ],
)
def test_a_wrong_matrix_is_explained(scoring, message):
    with pytest.raises(ValueError, match=message):
        scoring_matrix(scoring, np.array([0.5, 0.5]))


# λ*


@st.composite
def _columns(draw):
    """Draw a background and a column of frequencies, with gaps and absent events."""
    p = draw(_frequencies())
    counts = np.array(draw(st.lists(st.integers(0, 20), min_size=len(p), max_size=len(p))))
    gaps = draw(st.integers(0, 40))
    return p, counts / max(counts.sum() + gaps, 1)


def _log_odds(p, q):
    with np.errstate(divide="ignore"):
        return np.log(q / p)[:, None]


@given(_columns())
@examples
def test_lambda_solves_its_equation(case):
    p, q = case
    scores = _log_odds(p, q)

    def excess(x):
        return (p * np.exp(x * scores[:, 0])).sum() - 1.0

    (found,) = solve_lambda(p, scores)
    if not (scores > 0).any():
        assert np.isnan(found)
        return
    assume((scores > 1e-9).any())
    assert found > 0
    assert excess(found) == pytest.approx(0.0, abs=1e-9)
    high = 1.0
    while excess(high) <= 0:
        high *= 2.0
    if excess(1e-6) < 0:
        assert found == pytest.approx(brentq(excess, 1e-6, high), rel=1e-6)


@given(_frequencies(3), st.lists(st.integers(0, 20), min_size=3, max_size=8))
@examples
def test_lambda_is_one_where_a_column_has_no_gaps(p, counts):
    q = np.zeros(len(p))
    q[: len(counts)] = counts[: len(p)]
    if q.sum() == 0 or np.allclose(q / q.sum(), p):
        return
    (found,) = solve_lambda(p, _log_odds(p, q / q.sum()))
    assert found == pytest.approx(1.0, abs=1e-9)


def test_lambda_of_one_event_in_a_column():
    # p (q/p)^λ = 1 has the root −ln p / ln(q/p).
    p, q = np.array([0.1, 0.9]), np.array([0.4, 0.0])
    (found,) = solve_lambda(p, _log_odds(p, q))
    assert found == pytest.approx(-np.log(0.1) / np.log(4.0), rel=1e-12)


def test_lambda_of_general_scores_and_none_where_there_is_none():
    p = np.array([0.25, 0.75])
    scores = np.array([[1.0, -1.0, 3.1, 0.0], [-1.0, -2.0, -1.0, 0.0]])
    found = solve_lambda(p, scores)
    assert found[0] == pytest.approx(np.log(3.0))  # 0.25 x + 0.75 / x = 1 at x = 3
    assert np.isnan(found[1])  # no score is positive
    assert np.isnan(found[2])  # the mean is positive
    assert np.isnan(found[3])


def test_scores_of_mean_zero_have_no_lambda():
    assert np.isnan(solve_lambda(np.array([0.25, 0.75]), np.array([[3.0], [-1.0]]))).all()


@pytest.mark.filterwarnings("error")
def test_lambda_of_an_only_event_is_none():
    scores = np.array([[0.5, 0.0], [-np.inf, -np.inf]])
    assert np.isnan(solve_lambda(np.array([1.0, 0.0]), scores)).all()


def test_columns_do_not_influence_each_other():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5))
    q = rng.dirichlet(np.ones(5), 9).T * rng.random(9)
    scores = np.log(q / p[:, None])
    together = solve_lambda(p, scores)
    alone = [solve_lambda(p, scores[:, [t]])[0] for t in range(9)]
    np.testing.assert_array_equal(together, alone)
    assert solve_lambda(p, np.empty((5, 0))).shape == (0,)


# Exact sums


@given(st.integers(1, 6), st.integers(1, 10**9), st.floats(1e-3, 1e6), st.integers(0, 2**32 - 1))
@examples
def test_sums_of_quantised_scores_are_exact(n, terms, size, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0.0, size, (n, n))
    rounded, step = quantise(matrix, terms)
    assert np.abs(rounded - matrix).max() <= step / 2
    assert (rounded / step == np.round(rounded / step)).all()
    # The largest sum there can be, in whole steps, has a place in float64.
    assert np.abs(rounded).max() / step * terms <= 2**53
    picked = rng.choice(rounded.ravel(), 200) * rng.choice([-1.0, 1.0], 200)
    if terms >= 200:
        exact = sum(map(Fraction, picked.tolist()))
        assert Fraction(float(picked.sum())) == Fraction(float(picked[::-1].cumsum()[-1])) == exact


def test_quantising_is_fine_enough():
    matrix = np.array([[np.pi, -1.0], [-1.0, 100.0]])
    rounded, step = quantise(matrix, 10**6)
    assert step <= 2**-19
    np.testing.assert_allclose(rounded, matrix, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1e-8, 1e8])
def test_the_unit_of_the_scores_does_not_matter(factor):
    sequences = ["ABCD", "ABD", "ACD", "BCD"]
    matrix = 3.0 * np.eye(4) - 1.0
    plain, scaled = align(sequences, matrix), align(sequences, matrix * factor)
    np.testing.assert_array_equal(plain.matrix, scaled.matrix)
    assert scaled.score == pytest.approx(plain.score * factor, rel=1e-3)
