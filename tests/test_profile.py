"""The profile: frequencies by counting, scores by their equation, the consensus by hand."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import Alignment, Profile, align

examples = settings(deadline=None, max_examples=100, derandomize=True)


def _alignment(rows, symbols=None):
    """Make an alignment of rows of letters, "-" for gaps."""
    symbols = sorted(set("".join(rows)) - {"-"}) if symbols is None else symbols
    ids = {symbol: i for i, symbol in enumerate(symbols)} | {"-": -1}
    matrix = np.array([[ids[c] for c in row] for row in rows], np.int32)
    return Alignment(matrix, symbols, np.eye(len(symbols)))


@st.composite
def _rows(draw):
    """Draw an alignment with gaps, in which at least one event occurs."""
    n, length = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    letters = draw(st.sampled_from(["A", "A-", "AB", "AB-", "ABCDE", "ABCDE---", "AAAABBC-"]))
    rows = ["".join(rng.choice(list(letters), length)) for _ in range(n)]
    return rows if "".join(rows).strip("-") else ["A" * length, *rows[1:]]


_ROWS = _rows()


@given(_ROWS)
@examples
def test_frequencies_are_counts_over_all_sequences(rows):
    alignment = _alignment(rows)
    profile = Profile.from_alignment(alignment)
    text = "".join(rows).replace("-", "")
    for i, symbol in enumerate(alignment.symbols):
        assert profile.background[i] == pytest.approx(text.count(symbol) / len(text))
        for t, column in enumerate(profile.columns):
            count = sum(row[column] == symbol for row in rows)
            assert profile.frequencies[i, t] == pytest.approx(count / len(rows))


@given(_ROWS)
@examples
def test_scores_solve_their_equation(rows):
    alignment = _alignment(rows)
    if len(alignment.symbols) == 1:
        return
    profile = Profile.from_alignment(alignment)
    p, q = profile.background, profile.frequencies
    assert (profile.lambdas > 0).all()
    for t in range(len(profile)):
        for i in range(len(p)):
            if q[i, t] == 0:
                assert profile.pssm[i, t] == -np.inf
            else:
                score = np.log(q[i, t] / p[i]) / profile.lambdas[t]
                assert profile.pssm[i, t] == pytest.approx(score, rel=1e-9, abs=1e-12)
        if profile.pssm[:, t].max() > 1e-9:
            total = (p * (q[:, t] / p) ** profile.lambdas[t]).sum()
            assert total == pytest.approx(1.0, abs=1e-6)


@given(_ROWS)
@examples
def test_lambda_is_one_without_gaps(rows):
    alignment = _alignment(rows)
    if len(alignment.symbols) == 1:
        return
    profile = Profile.from_alignment(alignment)
    full = [all(row[c] != "-" for row in rows) for c in profile.columns]
    np.testing.assert_allclose(profile.lambdas[full], 1.0, atol=1e-6)


@given(_ROWS)
@examples
def test_columns_left_out_have_no_positive_score(rows):
    alignment = _alignment(rows)
    profile = Profile.from_alignment(alignment)
    p = profile.background
    kept = set(profile.columns.tolist())
    assert profile.columns.tolist() == sorted(kept)
    for c in range(len(rows[0])):
        shares = [sum(row[c] == s for row in rows) / len(rows) for s in alignment.symbols]
        if len(alignment.symbols) == 1:
            assert (c in kept) == (shares[0] > 0)
        elif c not in kept:
            assert all(share <= p[i] * (1 + 1e-12) for i, share in enumerate(shares))
        else:
            assert any(share > p[i] for i, share in enumerate(shares))
    assert (profile.pssm.max(axis=0, initial=-np.inf) > 0).all()


@given(_ROWS, st.integers(1, 8))
@examples
def test_consensus_is_every_column_that_reaches_the_share(rows, k):
    alignment = _alignment(rows)
    profile = Profile.from_alignment(alignment)
    threshold = k / 8
    expected = []
    for c in profile.columns:
        counts = [sum(row[c] == s for row in rows) for s in alignment.symbols]
        if max(counts) * 8 >= k * len(rows):
            expected.append(alignment.symbols[counts.index(max(counts))])
    assert profile.consensus(threshold) == expected


def test_consensus_by_hand():
    profile = Profile.from_alignment(_alignment(["ABC-D", "ABE-D", "A-CFD", "A-CFD", "AB--D"]))
    assert profile.consensus(1.0) == ["A", "D"]
    assert profile.consensus(0.6) == ["A", "B", "C", "D"]
    assert profile.consensus(0.61) == ["A", "D"]
    assert profile.consensus(0.4) == ["A", "B", "C", "F", "D"]
    np.testing.assert_allclose(profile.conservation, [1, 0.6, 0.6, 0.4, 1])
    assert profile.top_events.tolist() == [0, 1, 2, 5, 3]
    assert repr(profile) == "Profile(5 columns, 6 events, consensus at 0.8: AD)"


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.01, np.nan])
def test_a_threshold_is_a_share(threshold):
    profile = Profile.from_alignment(_alignment(["AB", "AB"]))
    with pytest.raises(ValueError, match=rf"threshold={threshold} is a share .*above 0 up to 1"):
        profile.consensus(threshold)


def test_scores_by_hand():
    # p = 1/2 each; the second column has a gap: 1/2 (q/p)^λ = 1 with q/p = 4/3.
    profile = Profile.from_alignment(_alignment(["AB-", "AB-", "A-A"]), np.array([0.5, 0.5]))
    assert profile.columns.tolist() == [0, 1]
    assert profile.pssm[0, 0] == pytest.approx(np.log(2))
    assert profile.lambdas[1] == pytest.approx(np.log(2) / np.log(4 / 3))
    assert profile.pssm[1, 1] == pytest.approx(np.log(4 / 3) ** 2 / np.log(2))
    assert profile.pssm[1, 0] == -np.inf


def test_a_given_background_is_used():
    alignment = _alignment(["AB", "AB"])
    profile = Profile.from_alignment(alignment, np.array([0.1, 0.9]))
    np.testing.assert_array_equal(profile.background, [0.1, 0.9])
    np.testing.assert_allclose(np.diag(profile.pssm), -np.log([0.1, 0.9]))


@pytest.mark.parametrize(
    ("background", "message"),
    [
        ([0.5, 0.25, 0.25], r"shape \(3,\); a frequency for each of the 2 events"),
        ([1.5, -0.5], "background"),
        ([1.0, 0.0], "background is 0 for an event that occurs"),
        ([np.nan, 0.5], "background"),
    ],
)
def test_a_wrong_background_is_explained(background, message):
    with pytest.raises(ValueError, match=message):
        Profile.from_alignment(_alignment(["AB", "AB"]), np.array(background))


def test_an_only_event_counts_its_matches():
    profile = Profile.from_alignment(_alignment(["AA-", "AAA"]))
    np.testing.assert_allclose(profile.pssm, [[1.0, 1.0, 0.5]])
    assert profile.consensus(1.0) == ["A", "A"]


def test_an_alignment_of_nothing_has_an_empty_profile():
    empty = Alignment(np.full((3, 2), -1, np.int32), ["A", "B"], np.eye(2))
    profile = Profile.from_alignment(empty)
    assert len(profile) == 0
    assert profile.consensus(0.5) == []
    assert profile.top_events.tolist() == []
    assert repr(profile) == "Profile(0 columns, 2 events, consensus at 0.8: none)"


@given(st.lists(st.text("ABCD", min_size=1, max_size=8), min_size=2, max_size=6))
@examples
def test_the_same_sequences_give_the_same_profile(sequences):
    a, b = (Profile.from_alignment(align(sequences)) for _ in range(2))
    for field in ("frequencies", "background", "pssm", "lambdas", "columns"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


@given(_ROWS, st.integers(1, 9))
@examples
def test_the_table_says_what_the_profile_holds(rows, max_columns):
    profile = Profile.from_alignment(_alignment(rows))
    lines = profile.table(max_columns).split("\n")
    assert lines[0].split() == ["column", "share", "score", "λ*", "event"]
    shown = min(len(profile), max_columns)
    for t, line in enumerate(lines[1 : shown + 1]):
        column, share, score, scale, event = line.split()
        top = profile.top_events[t]
        assert int(column) == t
        assert float(share.rstrip("%")) == pytest.approx(100 * profile.conservation[t], abs=0.5001)
        assert float(score) == pytest.approx(profile.pssm[top, t], abs=5.1e-4)
        assert float(scale) == pytest.approx(profile.lambdas[t], abs=5.1e-4)
        assert event == profile.symbols[top]
    rest = lines[shown + 1 :]
    if len(profile) > max_columns:
        assert re.fullmatch(rf"… and {len(profile) - max_columns} more columns", rest[0])
    else:
        assert rest == []
    assert str(profile) == profile.table()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_columns_of_a_minority_are_left_out(share):
    rows = ["ABCD-", "ABC-X", "AB--X", "A----"]
    whole = Profile.from_alignment(_alignment(rows))
    part = Profile.from_alignment(_alignment(rows), min_conservation=share)
    expected = [c for c, held in zip(whole.columns, whole.conservation) if held > share + 1e-9]
    assert part.columns.tolist() == (expected or whole.columns.tolist())
    same = np.isin(whole.columns, part.columns)
    np.testing.assert_array_equal(part.pssm, whole.pssm[:, same])


def test_if_no_column_is_shared_by_enough_all_are_kept():
    rows = ["A--", "-B-", "--C"]
    profile = Profile.from_alignment(_alignment(rows), np.full(3, 0.1), min_conservation=0.5)
    assert profile.columns.tolist() == [0, 1, 2]
