"""(III) Alignment: scores against other programs and brute force, and what must hold for all."""

import os
import subprocess
import sys
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import Alignment, align, alignment, kernels
from align_rudder.alignment import align_ids, guide_tree, index_symbols, pairwise_scores

prop = settings(max_examples=80, deadline=None, derandomize=True)
GAPS = st.sampled_from([0.0, 0.25, 1.0, 2.5])


@st.composite
def problems(draw, n=(2, 4), length=8, max_events=4):
    """Draw a symmetric scoring matrix on a grid of quarters, and sequences of event ids."""
    k = draw(st.integers(1, max_events))
    values = draw(st.lists(st.integers(-12, 20), min_size=k * k, max_size=k * k))
    upper = np.triu(np.array(values, float).reshape(k, k) / 4)
    sequence = st.lists(st.integers(0, k - 1), max_size=length)
    sequences = draw(st.lists(sequence, min_size=n[0], max_size=n[1]))
    return upper + np.triu(upper, 1).T, [np.array(s, np.int32) for s in sequences]


def naive_sum_of_pairs(matrix, scores, gap):
    total = 0.0
    for a, b in combinations(range(len(matrix)), 2):
        for e, f in zip(matrix[a], matrix[b]):
            if e >= 0 and f >= 0:
                total += scores[e, f]
            elif e >= 0 or f >= 0:
                total -= gap
    return total


def biopython_score(a, b, scores, gap):
    align_module = pytest.importorskip("Bio.Align")
    from Bio.Align import substitution_matrices

    if len(a) == 0 or len(b) == 0:  # Biopython refuses empty sequences
        return -gap * (len(a) + len(b))
    letters = "ABCDEFGHIJ"[: len(scores)]
    aligner = align_module.PairwiseAligner(mode="global")
    aligner.substitution_matrix = substitution_matrices.Array(letters, dims=2, data=scores)
    aligner.gap_score = -gap
    return aligner.score(*("".join(letters[e] for e in s) for s in (a, b)))


def optimum(sequences, scores, gap):
    """Return the best sum of pairs over all multiple alignments: a table over all sequences."""
    n = len(sequences)
    moves = [move for move in product((0, 1), repeat=n) if any(move)]

    @cache
    def best(at):
        if not any(at):
            return 0.0
        values = []
        for move in moves:
            if all(i >= m for i, m in zip(at, move)):
                column = [[s[i - 1] if m else -1] for s, i, m in zip(sequences, at, move)]
                before = best(tuple(i - m for i, m in zip(at, move)))
                values.append(before + naive_sum_of_pairs(column, scores, gap))
        return max(values)

    return best(tuple(len(s) for s in sequences))


def do_align(sequences, scores, **options):
    return align_ids(sequences, list(range(len(scores))), scores, **options)


# Pairs


@prop
@given(problems(n=(2, 4), length=12), GAPS)
def test_pairwise_scores_are_those_of_biopython(problem, gap):
    scores, sequences = problem
    found = pairwise_scores(sequences, scores, gap)
    np.testing.assert_array_equal(found, found.T)
    for i, j in combinations(range(len(sequences)), 2):
        assert found[i, j] == biopython_score(sequences[i], sequences[j], scores, gap)


@prop
@given(problems(n=(2, 2), length=12), GAPS)
def test_alignment_of_a_pair_reaches_the_score_of_biopython(problem, gap):
    scores, sequences = problem
    result = do_align(sequences, scores, gap=gap)
    found = naive_sum_of_pairs(result.matrix, scores, gap)
    assert found == biopython_score(*sequences, scores, gap)


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_score_with_itself_is_the_best_one(gap):
    """Event 1 is better left unmatched, even with itself, and 2 is best matched with 3."""
    scores = np.array([[1, 0, 0, 0], [0, -9, 0, 0], [0, 0, 1, 5], [0, 0, 5, 1]], float)
    sequences = [np.array([0, 1, 2, 3]), np.array([0])]
    found = pairwise_scores(sequences, scores, gap)
    assert found[0, 0] == biopython_score(sequences[0], sequences[0], scores, gap)


def test_random_long_pairs_score_as_scikit_bio_aligns_them():
    skbio = pytest.importorskip("skbio")
    from skbio.alignment import multi_align

    rng = np.random.default_rng(0)
    for _ in range(10):
        k = int(rng.integers(2, 12))
        scores = np.diag(rng.integers(1, 20, k).astype(float)) - 1.0
        letters = [chr(0x4E00 + e) for e in range(k)]
        sequences = [rng.integers(0, k, rng.integers(20, 90)) for _ in range(2)]
        path = multi_align(
            ["".join(letters[e] for e in s) for s in sequences],
            skbio.SubstitutionMatrix("".join(letters), scores),
            gap_cost=0.0,
        ).path
        theirs = np.full(path.shape, -1)
        for row, bits, sequence in zip(theirs, path.to_bits(expand=True), sequences):
            row[bits == 0] = sequence
        assert do_align(sequences, scores).score == naive_sum_of_pairs(theirs, scores, 0.0)


def test_sets_score_at_least_what_scikit_bio_reaches_on_the_whole():
    skbio = pytest.importorskip("skbio")
    from skbio.alignment import multi_align

    rng = np.random.default_rng(1)
    k, ours, theirs = 6, 0.0, 0.0
    letters = "ABCDEF"
    for _ in range(12):
        base = rng.integers(0, k, 25)
        sequences = [base[rng.random(25) > 0.3] for _ in range(6)]
        scores = np.diag(rng.integers(2, 12, k).astype(float)) - 1.0
        path = multi_align(
            ["".join(letters[e] for e in s) for s in sequences],
            skbio.SubstitutionMatrix(letters, scores),
            gap_cost=0.0,
        ).path
        rows = np.full(path.shape, -1)
        for row, bits, sequence in zip(rows, path.to_bits(expand=True), sequences):
            row[bits == 0] = sequence
        theirs += naive_sum_of_pairs(rows, scores, 0.0)
        ours += do_align(sequences, scores).score
    assert ours >= theirs


# Several sequences


@prop
@given(problems(n=(3, 3), length=4, max_events=3), GAPS)
def test_three_sequences_never_exceed_the_optimum_and_pairs_reach_it(problem, gap):
    scores, sequences = problem
    best = optimum([tuple(s.tolist()) for s in sequences], scores, gap)
    assert do_align(sequences, scores, gap=gap).score <= best
    pair = [tuple(s.tolist()) for s in sequences[:2]]
    assert do_align(sequences[:2], scores, gap=gap).score == optimum(pair, scores, gap)


def test_three_similar_sequences_mostly_reach_the_optimum():
    rng = np.random.default_rng(0)
    scores = 5 * np.eye(4) - 1
    reached = 0
    for _ in range(30):
        base = rng.integers(0, 4, 7)
        sequences = [base[rng.random(7) > 0.25] for _ in range(3)]
        best = optimum([tuple(s.tolist()) for s in sequences], scores, 0.0)
        reached += do_align(sequences, scores).score == best
    assert reached >= 27


@prop
@given(problems(n=(2, 6)), GAPS, st.integers(0, 2))
def test_rows_without_gaps_are_the_sequences_and_no_column_is_empty(problem, gap, refine):
    scores, sequences = problem
    result = do_align(sequences, scores, gap=gap, refine=refine)
    assert (result.matrix >= 0).any(axis=0).all()
    assert len(result) == len(sequences)
    for i, sequence in enumerate(sequences):
        np.testing.assert_array_equal(result.sequences[i], sequence)
        np.testing.assert_array_equal(result.matrix[i, result.column_of(i)], sequence)


@prop
@given(problems(n=(2, 5)), GAPS)
def test_score_is_the_sum_over_pairs_and_columns(problem, gap):
    scores, sequences = problem
    result = do_align(sequences, scores, gap=gap)
    assert result.score == naive_sum_of_pairs(result.matrix, scores, gap)


def test_score_by_hand():
    matrix = np.array([[0, 1, -1], [0, -1, 1], [1, 1, -1]])
    scores = np.array([[3.0, -1.0], [-1.0, 2.0]])
    # Column 0: 3 − 1 − 1; column 1: 2 and two events beside a gap; column 2: two beside a gap.
    assert Alignment(matrix, "ab", scores).score == 3.0
    assert Alignment(matrix, "ab", scores, gap=0.5).score == 1.0


@prop
@given(problems(n=(3, 6), length=9), GAPS)
def test_refinement_never_lowers_the_sum_of_pairs(problem, gap):
    scores, sequences = problem
    by_rounds = [do_align(sequences, scores, gap=gap, refine=k).score for k in range(4)]
    assert by_rounds == sorted(by_rounds)


def test_refinement_can_raise_the_sum_of_pairs():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 4, 25) for _ in range(6)]
    scores = 5 * np.eye(4) - 1
    assert do_align(sequences, scores, refine=1).score > do_align(sequences, scores, refine=0).score


@prop
@given(problems(n=(2, 4)), problems(n=(1, 3)), st.sampled_from([1, 2, 3, 5, 64]))
def test_chain_and_table_agree_at_zero_gap_cost(problem, other, tile):
    scores, first = problem
    k = len(scores)
    second = [np.minimum(s, k - 1) for s in other[1]]
    a, b = do_align(first, scores).matrix, do_align(second, scores).matrix
    columns_a, columns_b = kernels.columns_of(a, k), kernels.columns_of(b, k)
    by_chain, chain_a, chain_b = kernels.chain(*columns_a, *columns_b, scores, tile)
    by_table, table_a, table_b = kernels.table(*columns_a, len(a), *columns_b, len(b), scores, 0.0)
    assert by_chain == by_table
    for match_a, match_b in [(chain_a, chain_b), (table_a, table_b)]:
        assert (np.diff(match_a) > 0).all()
        assert (np.diff(match_b) > 0).all()
        crossed = sum(
            scores[e, f]
            for i, j in zip(match_a, match_b)
            for e in a[:, i]
            for f in b[:, j]
            if min(e, f) >= 0
        )
        assert crossed == by_chain


@prop
@given(problems(n=(2, 4)), problems(n=(1, 3)), st.sampled_from([1, 3, 64]))
def test_a_whole_table_gives_the_matches_that_tiles_give(problem, other, tile):
    """The same of equally good ones, so that what is found does not depend on the size."""
    scores, first = problem
    k = len(scores)
    second = [np.minimum(s, k - 1) for s in other[1]]
    a, b = do_align(first, scores).matrix, do_align(second, scores).matrix
    columns = *kernels.columns_of(a, k), *kernels.columns_of(b, k)
    whole, tiled = kernels.whole_chain(*columns, scores), kernels.chain(*columns, scores, tile)
    assert whole[0] == tiled[0]
    np.testing.assert_array_equal(whole[1], tiled[1])
    np.testing.assert_array_equal(whole[2], tiled[2])


@prop
@given(problems(n=(3, 5)), st.integers(0, 2))
def test_a_row_is_moved_to_the_place_that_aligning_it_anew_gives(problem, row):
    scores, sequences = problem
    matrix = alignment.progressive(
        sequences, alignment.guide_tree(alignment.pairwise_scores(sequences, scores)), scores, 0.0
    )[-1]
    totals = kernels.against(*kernels.columns_of(matrix, len(scores)), scores)
    before = totals.copy()
    better, moved = kernels.improve_row(matrix, row, totals, scores)
    rest = np.delete(matrix, row, axis=0)
    rest = rest[:, (rest >= 0).any(axis=0)]
    sequence = matrix[row][matrix[row] >= 0][None]
    columns = *kernels.columns_of(rest, len(scores)), *kernels.columns_of(sequence, len(scores))
    best, *match = kernels.chain(*columns, scores)
    assert better == (best > kernels.cross_score(matrix, row, scores, 0.0))
    if better:
        joined = kernels.interleave(rest, sequence, *match)
        np.testing.assert_array_equal(moved, np.insert(joined[:-1], row, joined[-1], axis=0))
        assert kernels.cross_score(moved, row, scores, 0.0) == best
    else:
        np.testing.assert_array_equal(moved, matrix)
        np.testing.assert_array_equal(totals, before)


@prop
@given(problems(n=(2, 6)), st.integers(0, 3))
def test_rows_one_by_one_give_what_the_compiled_loops_give(problem, rounds):
    """With a progress bar, pairs and rows are done one by one."""
    scores, sequences = problem
    pairs = pairwise_scores(sequences, scores)
    np.testing.assert_array_equal(pairs, pairwise_scores(sequences, scores, progress=True))
    matrix = alignment.progressive(sequences, guide_tree(pairs), scores, 0.0)[-1]
    at_once = alignment._refine(matrix, scores, 0.0, rounds, progress=False)
    one_by_one = alignment._refine(matrix, scores, 0.0, rounds, progress=True)
    np.testing.assert_array_equal(at_once, one_by_one)


@prop
@given(problems(n=(2, 6)), GAPS)
def test_each_node_of_the_tree_has_its_sequences_in_order(problem, gap):
    scores, sequences = problem
    tree = guide_tree(pairwise_scores(sequences, scores, gap))
    below = [[i] for i in range(len(sequences))]
    for matrix, (left, right) in zip(
        alignment.progressive(sequences, tree, scores, gap), tree[:, :2].astype(int)
    ):
        below.append(sorted(below[left] + below[right]))
        for row, i in zip(matrix, below[-1], strict=True):
            np.testing.assert_array_equal(row[row >= 0], sequences[i])


@prop
@given(problems(n=(2, 3), length=6), problems(n=(1, 2), length=6), st.sampled_from([0.25, 1.0]))
def test_table_scores_what_its_matches_give_with_gap_costs(problem, other, gap):
    scores, first = problem
    second = [np.minimum(s, len(scores) - 1) for s in other[1]]
    a, b = (do_align(s, scores, gap=gap).matrix for s in (first, second))
    crossed, joined = alignment._join(a, b, scores, gap)
    inside = naive_sum_of_pairs(a, scores, gap) + naive_sum_of_pairs(b, scores, gap)
    columns = [kernels.columns_of(m, len(scores)) for m in (a, b)]
    score, _, _ = kernels.table(*columns[0], len(a), *columns[1], len(b), scores, gap)
    assert crossed == score
    assert naive_sum_of_pairs(joined, scores, gap) == inside + score


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_identical_sequences_have_no_gaps(gap):
    sequence = np.random.default_rng(0).integers(0, 5, 40)
    result = do_align([sequence] * 6, 4 * np.eye(5) - 1, gap=gap)
    np.testing.assert_array_equal(result.matrix, np.tile(sequence, (6, 1)))


def test_gap_cost_forbids_matches_that_cost_more_than_they_bring():
    """One match of 3 needs six events beside gaps."""
    sequences = [np.array([0, 1, 1, 1]), np.array([2, 2, 2, 0])]
    scores = np.diag([3.0, 1.0, 1.0])
    assert do_align(sequences, scores, gap=0.49).score == pytest.approx(3 - 6 * 0.49, abs=1e-5)
    # Above 0.5 the sequences are laid over each other instead: mismatches score 0.
    assert do_align(sequences, scores, gap=0.51).score == 0.0
    assert do_align(sequences, scores, gap=0.51).n_columns == 4


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**-10, 2.0**10, 2.0**30])
@pytest.mark.parametrize("gap", [0.0, 0.25])
def test_the_unit_of_the_scores_does_not_matter(factor, gap):
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 4, 15).tolist() for _ in range(4)]
    scores = np.diag([3.0, 4.0, 5.0, 6.0]) - 1
    expected = align(sequences, scores, gap=gap)
    found = align(sequences, scores * factor, gap=gap * factor)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert found.score == pytest.approx(expected.score * factor)


def test_the_gap_cost_is_kept_where_all_scores_are_zero():
    result = do_align([np.array([0]), np.empty(0, np.int32)], np.zeros((1, 1)), gap=0.25)
    assert (result.gap, result.score) == (0.25, -0.25)


# The guide tree


def naive_average_linkage(distance):
    """Return the merged groups and their mean distance, from pairs to all."""
    groups = [frozenset([i]) for i in range(len(distance))]
    merges = []
    while len(groups) > 1:
        height, a, b = min(
            (np.mean([distance[i, j] for i in a for j in b]), x, y)
            for (x, a), (y, b) in combinations(enumerate(groups), 2)
        )
        joined = groups[a] | groups[b]
        groups = [g for k, g in enumerate(groups) if k not in (a, b)] + [joined]
        merges.append((joined, height))
    return merges


def test_guide_tree_is_upgma_over_normalised_scores():
    rng = np.random.default_rng(2)
    for _ in range(10):
        sequences = [rng.integers(0, 8, rng.integers(10, 30)) for _ in range(7)]
        pairs = pairwise_scores(sequences, np.diag(np.arange(3.0, 11.0)) - 1)
        own = np.diag(pairs)
        distance = 1 - pairs / np.minimum(own[:, None], own[None])
        groups = {i: frozenset([i]) for i in range(7)}
        found = []
        for k, (left, right, height, _) in enumerate(guide_tree(pairs)):
            groups[7 + k] = groups[int(left)] | groups[int(right)]
            found.append((groups[7 + k], height))
        expected = naive_average_linkage(distance)
        assert [g for g, _ in found] == [g for g, _ in expected]
        np.testing.assert_allclose([h for _, h in found], [h for _, h in expected])


def test_sequences_that_are_alike_are_joined_first():
    a, b = list("ABCDEFGH"), list("HGFEDCBA")
    result = align([a, b, a[:-1], b[1:]])
    assert {frozenset(pair) for pair in result.tree[:2, :2].astype(int).tolist()} == {
        frozenset({0, 2}),
        frozenset({1, 3}),
    }


# Determinism and symbols


def test_same_input_same_alignment():
    rng = np.random.default_rng(3)
    sequences = [rng.integers(0, 3, 30).tolist() for _ in range(8)]
    for gap in (0.0, 0.3):
        first = align(sequences, gap=gap).matrix
        for _ in range(3):
            np.testing.assert_array_equal(align(sequences, gap=gap).matrix, first)


_HASHED = """
from align_rudder import align
words = ["log", "plank", ("stick", 1), "stone", b"coal", frozenset({"iron", "tin"}), 7, None]
result = align([[words[(k * i * i + i) % 8] for i in range(20)] for k in range(2, 7)])
order = [words.index(symbol) for symbol in result.symbols]
"""


def test_alignment_does_not_depend_on_the_hash_seed():
    here = {}
    exec(_HASHED, here)
    there = subprocess.run(
        [sys.executable, "-c", _HASHED + "print(result.matrix.tolist(), order)"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == f"{here['result'].matrix.tolist()} {here['order']}"


def test_symbols_of_one_type_are_numbered_in_sorted_order():
    ids, symbols = index_symbols([["pear", "fig"], ["apple", "pear"]])
    assert symbols == ["apple", "fig", "pear"]
    assert [s.tolist() for s in ids] == [[2, 1], [0, 2]]


def test_symbols_of_any_types_are_aligned_like_numbers():
    rng = np.random.default_rng(4)
    numbers = [rng.integers(0, 7, 20).tolist() for _ in range(5)]
    in_order = list(dict.fromkeys(e for s in numbers for e in s))
    things = ["word", 3, ("a", 1), None, frozenset({1, 2}), b"raw", 2.5]
    named = dict(zip(in_order, things))
    place = {e: i for i, e in enumerate(in_order)}
    result = align([[named[e] for e in s] for s in numbers])
    assert list(result.symbols) == [named[e] for e in in_order]
    expected = align([[place[e] for e in s] for s in numbers])
    np.testing.assert_array_equal(result.matrix, expected.matrix)
    for row, sequence in zip(result.sequences, numbers):
        assert [result.symbols[e] for e in row] == [named[e] for e in sequence]


def test_numpy_scalars_are_the_numbers_they_hold():
    mixed = align([np.array([1, 2, 3]), [1, 3], np.array([1.0, 2.0, 3.0])])
    assert list(mixed.symbols) == [1, 2, 3]
    np.testing.assert_array_equal(mixed.matrix, align([[1, 2, 3], [1, 3], [1, 2, 3]]).matrix)


def test_rows_keep_the_order_of_the_input():
    sequences = ["ABCD", "DCBA", "ABC", "DCB", "BCD"]
    result = align(sequences)
    for i in np.random.default_rng(0).permutation(5):
        assert "".join(result.symbols[e] for e in result.sequences[i]) == sequences[i]


# Empty and bad input


def test_an_empty_sequence_is_a_row_of_gaps():
    result = align(["ABC", "", "ABC"])
    assert result.matrix.tolist() == [[0, 1, 2], [-1, -1, -1], [0, 1, 2]]
    costly = align(["ABC", "", "ABC"], gap=1.0)
    np.testing.assert_array_equal(costly.matrix, result.matrix)
    assert costly.score == 9 - 2 * 3


@pytest.mark.parametrize("scoring", ["inverse", "log", "karlin-altschul"])
def test_only_empty_sequences_give_no_columns(scoring):
    result = align([[], [], []], scoring)
    assert result.matrix.shape == (3, 0)
    assert result.score == 0.0
    assert "3 sequences, 0 columns" in str(result)


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([], r"got 0 sequence\(s\); at least two"),
        (["ABC"], r"got 1 sequence\(s\); at least two"),
        ("ABC", r"got one sequence \('ABC'\); a list of sequences"),
        ([["A"], 5], r"sequence 1 is 5; a sequence of hashable symbols"),
        ([["A"], [["B"]]], r"sequence 1 holds \['B'\] of type list, which is not hashable"),
    ],
)
def test_bad_sequences_are_refused(sequences, message):
    with pytest.raises(ValueError, match=message):
        align(sequences)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": -0.5}, r"gap is -0.5; a number at least 0"),
        ({"gap": float("nan")}, r"gap is nan; a number"),
        ({"gap": float("inf")}, r"gap is inf; a number"),
        ({"engine": "muscle"}, r"engine is 'muscle'; one of 'native', 'clustalw'"),
        ({"scoring": "blosum"}, r"scoring='blosum' is not known; use one of .*karlin"),
        ({"scoring": np.eye(2)}, r"shape \(2, 2\); for 3 events it must be \(3, 3\)"),
        ({"scoring": np.triu(np.ones((3, 3)))}, r"not symmetric"),
        ({"scoring": np.diag([1.0, np.nan, 1.0])}, r"NaN or infinite"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        align(["ABC", "AB"], **options)


# Memory


def _must_not_run(*args):
    raise AssertionError("the table was filled")


def test_gap_costs_refuse_a_table_above_the_limit_before_it_is_made(monkeypatch):
    monkeypatch.setattr(kernels, "table", _must_not_run)
    needed = 30 * 31 + 30 * 30 * 8  # cells, and 30 symbols against 30 columns
    monkeypatch.setattr(alignment, "_MAX_BYTES", needed - 1)
    sequences = [list(range(29)), list(range(30))]
    with pytest.raises(MemoryError, match=r"aligning 29 with 30 columns.*gap cost 0.5.*use gap=0"):
        align(sequences, gap=0.5)
    monkeypatch.setattr(alignment, "_MAX_BYTES", needed)
    with pytest.raises(AssertionError, match="the table was filled"):
        align(sequences, gap=0.5)


def test_zero_gap_cost_needs_no_table(monkeypatch):
    monkeypatch.setattr(kernels, "table", _must_not_run)
    assert align(["ABCD", "ABD", "XACD"]).score == pytest.approx(33)


def test_with_little_memory_the_alignment_is_as_good(monkeypatch):
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 3, 300) for _ in range(4)]
    scores = 4 * np.eye(3) - 1
    expected = do_align(sequences, scores).score
    monkeypatch.setattr(alignment, "_MAX_BYTES", 3 * 8 * 1200)
    assert do_align(sequences, scores).score == expected


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_zero_gap_cost_takes_far_less_memory_than_a_table():
    """A table of one byte a cell for two sequences of 24 000 events would be 576 MB."""
    import resource

    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 20, 24_000) for _ in range(2)]
    scores = 2.0 * np.eye(20) - 1
    do_align([s[:50] for s in sequences], scores)  # compiles
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 288 * 2**20, limits[1]))
    try:
        result = do_align(sequences, scores)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert result.score == pairwise_scores(sequences, scores)[0, 1]


# Files and text


@prop
@given(problems(n=(2, 5), max_events=4))
def test_fasta_brings_the_alignment_back(tmp_path_factory, problem):
    letters = "QbZ7"
    original = align([[letters[e] for e in s] for s in problem[1]])
    path = tmp_path_factory.mktemp("fasta") / "a.fasta"
    original.to_fasta(path)
    again = Alignment.from_fasta(path)
    np.testing.assert_array_equal(again.matrix, original.matrix)
    assert list(again.symbols) == list(original.symbols)
    assert again.score == pytest.approx(original.score, rel=1e-5, abs=1e-4)


def test_fasta_of_long_rows_and_of_symbols_that_are_words(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"word {k:02}" for k in range(60)]
    original = align([[words[e] for e in rng.integers(0, 60, 150)] for _ in range(3)])
    original.to_fasta(tmp_path / "a.fasta", names=["x", "y", "z"])
    text = (tmp_path / "a.fasta").read_text()
    assert [line for line in text.splitlines() if line.startswith(">")] == [">x", ">y", ">z"]
    assert max(len(line) for line in text.splitlines()) == 80
    again = Alignment.from_fasta(tmp_path / "a.fasta")
    assert [[again.symbols[e] if e >= 0 else "-" for e in row] for row in again.matrix] == [
        [original.letters[e] if e >= 0 else "-" for e in row] for row in original.matrix
    ]


def test_fasta_is_read_by_biopython(tmp_path):
    sequence_io = pytest.importorskip("Bio.SeqIO")
    original = align(["ABCD", "ABD", "XACD"])
    original.to_fasta(tmp_path / "a.fasta")
    rows = [str(record.seq) for record in sequence_io.parse(tmp_path / "a.fasta", "fasta")]
    assert rows == ["-ABCD", "-AB-D", "XA-CD"]


def test_too_many_symbols_for_fasta_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there are 63 symbols.*62"):
        align([range(63), range(63)]).to_fasta(tmp_path / "a.fasta")
    assert not list(tmp_path.iterdir())


def test_fasta_needs_a_name_for_each_sequence(tmp_path):
    with pytest.raises(ValueError, match=r"1 name.*2"):
        align(["AB", "AB"]).to_fasta(tmp_path / "a.fasta", names=["only"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b">a\nAB\n>b\nABC\n", r"not an alignment: its rows have 2 to 3 letters"),
        (b"AB\n", r"line 1: a FASTA file begins with a line '>name', got 'AB'"),
        (b"\n", r"holds no sequence"),
        (b"\xff\xfe\x00", r"not a text file"),
    ],
)
def test_files_that_are_no_alignment_are_refused(tmp_path, content, message):
    (tmp_path / "a.fasta").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Alignment.from_fasta(tmp_path / "a.fasta")


def test_the_printed_rows_are_the_alignment():
    rng = np.random.default_rng(0)
    result = align([rng.integers(0, 30, 90).tolist() for _ in range(4)])
    rows = [""] * 4
    for line in str(result).splitlines():
        number, _, row = line.strip().partition("  ")
        if number.isdigit():
            rows[int(number)] += row
    letters = [*result.letters, "-"]
    assert rows == ["".join(letters[e] for e in row) for row in result.matrix]
    assert f"sum of pairs {result.score:.6g}" in str(result)
