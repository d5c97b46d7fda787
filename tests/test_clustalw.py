"""ClustalW as an engine: is what comes back the alignment that was asked for?"""

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from align_rudder import clustalw
from align_rudder.clustalw import clustalw_align, clustalw_path

needs_clustalw = pytest.mark.skipif(clustalw_path() is None, reason="ClustalW is not installed")
PAIR = np.array([[0.0, 1.0, 1.0, 2.0]])


def _tree(n, seed=0):
    return linkage(np.random.default_rng(seed).normal(size=(n, 3)), "average")


def _symmetric(rng, n):
    upper = np.triu(np.round(rng.normal(0.0, 2.0, (n, n)), 2))
    return upper + np.triu(upper, 1).T


def _noisy_copies(rng, n, n_events=8, length=40):
    """Return n copies of a random sequence, each with a quarter of its events deleted."""
    base = rng.integers(0, n_events, length)
    return [base[rng.random(length) > 0.25] for _ in range(n)]


def _best_pair_score(a, b, matrix):
    """Weighted longest common subsequence: the optimum when gaps cost nothing."""
    best = np.zeros((len(a) + 1, len(b) + 1))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j], best[i, j] + matrix[x, y])
    return best[-1, -1]


def _pair_score(rows, matrix):
    both = rows[:, (rows >= 0).all(axis=0)]
    return matrix[both[0], both[1]].sum()


def _script(folder, monkeypatch, body):
    """Put a stand-in for ClustalW on the path."""
    program = folder / "clustalw2"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@needs_clustalw
@pytest.mark.parametrize("n", [2, 3, 7, 30])
def test_rows_without_gaps_are_the_sequences(n):
    rng = np.random.default_rng(n)
    sequences = _noisy_copies(rng, n)
    rows = clustalw_align(sequences, _symmetric(rng, 8), _tree(n))
    assert rows.dtype == np.int32
    assert rows.min() >= -1
    assert (rows >= 0).any(axis=0).all()
    assert len(rows) == n
    for row, sequence in zip(rows, sequences):
        np.testing.assert_array_equal(row[row >= 0], sequence)


@needs_clustalw
def test_more_than_a_thousand_sequences():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 4, rng.integers(1, 6)) for _ in range(1100)]
    rows = clustalw_align(sequences, 4 * np.eye(4) - 1, _tree(1100))
    for row, sequence in zip(rows, sequences):
        np.testing.assert_array_equal(row[row >= 0], sequence)


@needs_clustalw
def test_long_sequences():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 25, 3000), rng.integers(0, 25, 2900)]
    matrix = 26 * np.eye(25) - 1
    rows = clustalw_align(sequences, matrix, PAIR)
    for row, sequence in zip(rows, sequences):
        np.testing.assert_array_equal(row[row >= 0], sequence)


@needs_clustalw
@pytest.mark.parametrize("n_events", [1, 2, 25])
def test_identical_sequences_have_no_gaps(n_events):
    sequence = np.random.default_rng(0).integers(0, n_events, 60)
    rows = clustalw_align([sequence] * 5, 4 * np.eye(n_events) - 1, _tree(5))
    np.testing.assert_array_equal(rows, np.tile(sequence, (5, 1)))


@needs_clustalw
@pytest.mark.parametrize("seed", range(20))
def test_pair_reaches_the_optimum(seed):
    rng = np.random.default_rng(seed)
    matrix = _symmetric(rng, 6) * rng.choice([0.01, 1.0, 100.0])
    a, b = (rng.integers(0, 6, rng.integers(1, 50)) for _ in range(2))
    rows = clustalw_align([a, b], matrix, PAIR)
    best = _best_pair_score(a, b, matrix)
    assert _pair_score(rows, matrix) == pytest.approx(best, rel=1e-9, abs=1e-9)


@needs_clustalw
@pytest.mark.parametrize(("score", "largest"), [(0.01, 0.01), (3.0, 3000.0)])
def test_long_gaps_are_free(score, largest):
    """A literal -GAPEXT=0 costs 0.001 per event; ClustalW's default would cost far more."""
    matrix = 2 * score * np.eye(5) - score
    matrix[4, 4] = largest
    left, right = [4, 0, *[1] * 500, 3], [4, 0, *[2] * 500, 3]
    rows = clustalw_align([np.array(left), np.array(right)], matrix, PAIR)
    assert _pair_score(rows, matrix) == pytest.approx(largest + 2 * score)


@needs_clustalw
@pytest.mark.parametrize("scores", [(3.0, 2.5), (3.0, 4.0), (3.0, 29.0), (0.04, 0.05), (31.0, 3.2)])
def test_scores_are_read_as_written(scores):
    """Only one of two crossed events can be matched: the one with the higher score."""
    rows = clustalw_align([np.array([0, 1]), np.array([1, 0])], np.diag(scores), PAIR)
    matched = rows[0, (rows[0] == rows[1]) & (rows[0] >= 0)]
    assert matched.tolist() == [np.argmax(scores)]


@needs_clustalw
@pytest.mark.parametrize("event", range(25))
def test_every_letter_is_usable(event):
    """All 25 events occur, and of crossed ones the only match can be the one worth most."""
    matrix = np.eye(25)
    matrix[event, event] = 2.0
    rows = clustalw_align([np.arange(25), np.arange(25)[::-1]], matrix, PAIR)
    matched = rows[0, (rows[0] == rows[1]) & (rows[0] >= 0)]
    assert matched.tolist() == [event]


@needs_clustalw
def test_only_events_that_occur_need_a_letter():
    matrix = 4 * np.eye(1000) - 1
    sequences = [np.array([7, 500, 999]), np.array([7, 999])]
    rows = clustalw_align(sequences, matrix, PAIR)
    assert rows.tolist() == [[7, 500, 999], [7, -1, 999]]


@needs_clustalw
def test_key_events_are_put_in_columns():
    rng = np.random.default_rng(1)
    keys = np.arange(6)
    sequences = []
    for _ in range(12):
        places = np.sort(rng.choice(30, len(keys), replace=False))
        sequence = rng.integers(6, 20, 30)
        sequence[places] = keys
        sequences.append(sequence)
    matrix = np.full((20, 20), -1.0)
    np.fill_diagonal(matrix, np.where(np.arange(20) < 6, 60.0, 15.0))
    rows = clustalw_align(sequences, matrix, _tree(12))
    columns = [np.flatnonzero((rows == key).all(axis=0)) for key in keys]
    assert [len(column) for column in columns] == [1] * len(keys)
    assert (np.diff(np.concatenate(columns)) > 0).all()


@needs_clustalw
def test_tree_decides_which_sequences_are_joined_first():
    """What is joined first stays as it was: a pair at its optimum, which not all can be."""
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 4, 30) for _ in range(4)]
    matrix = _symmetric(rng, 4)
    loss = {}
    for first in combinations(range(4), 2):
        third, fourth = sorted(set(range(4)) - set(first))
        tree = np.array([[*first, 1, 2], [third, 4, 2, 3], [fourth, 5, 3, 4]], float)
        rows = clustalw_align(sequences, matrix, tree)
        for a, b in combinations(range(4), 2):
            best = _best_pair_score(sequences[a], sequences[b], matrix)
            loss[first, (a, b)] = best - _pair_score(rows[[a, b]], matrix)
    joined = [value for (first, pair), value in loss.items() if first == pair]
    others = [value for (first, pair), value in loss.items() if first != pair]
    assert joined == pytest.approx([0.0] * 6, abs=1e-9)
    assert np.median(others) > 0


@needs_clustalw
def test_heights_of_the_tree_do_not_matter():
    """ClustalW delays sequences that are far apart in the tree."""
    rng = np.random.default_rng(3)
    sequences, matrix, tree = _noisy_copies(rng, 8), _symmetric(rng, 8), _tree(8)
    far = tree.copy()
    far[:, 2] *= 1000.0
    np.testing.assert_array_equal(
        clustalw_align(sequences, matrix, tree), clustalw_align(sequences, matrix, far)
    )


@needs_clustalw
def test_same_input_same_alignment():
    rng = np.random.default_rng(5)
    sequences, matrix, tree = _noisy_copies(rng, 10), _symmetric(rng, 8), _tree(10)
    first = clustalw_align(sequences, matrix, tree)
    for _ in range(3):
        np.testing.assert_array_equal(clustalw_align(sequences, matrix, tree), first)


EVENTS = [np.array([0, 1, 2]), np.array([0, 2])]
SCORES = 4 * np.eye(3) - 1


@pytest.mark.parametrize("gap", [0.1, -1.0, float("nan")])
def test_gap_cost_is_refused(gap):
    with pytest.raises(ValueError, match=r'gap=.*not linear.*engine="native"'):
        clustalw_align(EVENTS, SCORES, PAIR, gap)


def test_too_many_events_are_refused():
    with pytest.raises(ValueError, match=r'26 different events.*letters for 25.*engine="native"'):
        clustalw_align([np.arange(26), np.arange(26)], np.eye(26), PAIR)


@pytest.mark.parametrize("score", [3276.1, -4000.0])
def test_large_scores_are_refused(score):
    with pytest.raises(ValueError, match=r"wraps around above 3276.*divide the matrix"):
        clustalw_align(EVENTS, np.diag([1.0, score, 1.0]), PAIR)


def test_large_scores_of_events_that_do_not_occur_are_accepted(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="on the PATH"):
        clustalw_align(EVENTS, np.diag([1.0, 1.0, 1.0, 9999.0]), PAIR)


@pytest.mark.parametrize(("n", "length", "score"), [(2, 700, 3276.0), (4, 20, 3000.0)])
def test_overflow_of_sums_is_refused(n, length, score):
    """ClustalW would pull these identical sequences apart."""
    with pytest.raises(ValueError, match=r"overflow ClustalW's integers: divide the matrix"):
        clustalw_align([np.zeros(length, int)] * n, np.full((1, 1), score), _tree(n))


@needs_clustalw
@pytest.mark.parametrize(("n", "length", "score"), [(2, 655, 3276.0), (4, 20, 2860.0)])
def test_just_below_overflow_is_aligned(n, length, score):
    sequence = np.arange(length) % 25
    matrix = np.full((25, 25), -1.0)
    np.fill_diagonal(matrix, score)
    rows = clustalw_align([sequence] * n, matrix, _tree(n))
    np.testing.assert_array_equal(rows, np.tile(sequence, (n, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match=r"1 entries of the matrix are not finite"):
        clustalw_align(EVENTS, np.diag([1.0, 1.0, bad]), PAIR)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [(np.ones((3, 4)), r"shape \(3, 4\)"), (np.triu(np.ones((3, 3))), "not symmetric")],
)
def test_matrix_must_be_square_and_symmetric(matrix, message):
    with pytest.raises(ValueError, match=message):
        clustalw_align(EVENTS, matrix, PAIR)


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([], r"got 0 sequence"),
        (EVENTS[:1], r"got 1 sequence"),
        ([EVENTS[0], np.array([], int)], r'sequence 1 has shape \(0,\).*engine="native"'),
        ([EVENTS[0], np.zeros((2, 2), int)], r"sequence 1 has shape \(2, 2\)"),
        ([np.array([0.5, 1.0]), EVENTS[0]], r"sequence 0 has float64 event ids"),
        ([EVENTS[0], np.array([1, 3])], r"ids 1 to 3; integers from 0 to 2"),
        ([EVENTS[0], np.array([-1, 0])], r"ids -1 to 0; integers from 0 to 2"),
    ],
)
def test_bad_sequences_are_refused(sequences, message):
    with pytest.raises(ValueError, match=message):
        clustalw_align(sequences, SCORES, PAIR)


@pytest.mark.parametrize(
    "tree",
    [_tree(3), PAIR[:, :3], np.array([[0.0, 0, 1, 2]]), np.array([[0.0, 2, 1, 2]])],
    ids=["too many leaves", "too few columns", "a leaf twice", "its own child"],
)
def test_bad_trees_are_refused(tree):
    with pytest.raises(ValueError, match=r"not a guide tree over 2 sequences.*\(1, 4\)"):
        clustalw_align(EVENTS, SCORES, tree)


def test_missing_program_says_how_to_install_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert clustalw_path() is None
    with pytest.raises(RuntimeError, match="apt install clustalw"):
        clustalw_align(EVENTS, SCORES, PAIR)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo out of luck; exit 3", r"status 3 (.|\n)*out of luck"),
        ("kill -SEGV $$", r"status -11 "),
        ("echo 'ERROR: no tree' >&2; echo > aligned.gde", r"status 0 (.|\n)*no tree"),
        ("exit 0", r"no alignment"),
        (r"printf '%%s0\nAC\n%%s1\nAC\n' > aligned.gde", r"other events than it was given"),
        (r"printf '%%s0\nABC\n%%s1\nAC\n' > aligned.gde", r"2 rows for 2 sequences"),
        (r"printf '%%s0\nABC\n' > aligned.gde", r"1 rows for 2 sequences"),
    ],
)
def test_failures_of_the_program_are_reported(tmp_path, monkeypatch, body, message):
    _script(tmp_path, monkeypatch, body)
    with pytest.raises(RuntimeError, match=message):
        clustalw_align(EVENTS, SCORES, PAIR)


def test_every_score_is_written_with_a_dot():
    lines = clustalw._matrix_file(np.array([[3.0, -1.0], [-1.0, 1000.25]])).splitlines()
    assert lines[0].split() == list(clustalw.LETTERS + "*")
    assert len(lines) == 27
    numbers = [word for line in lines[1:] for word in line.split()[1:]]
    assert len(numbers) == 26 * 26
    assert all("." in number for number in numbers)
