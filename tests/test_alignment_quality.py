"""The native alignment beside scikit-bio and ClustalW on data with a known truth."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from align_rudder import kernels
from align_rudder.alignment import align_ids
from align_rudder.scoring import background, scoring_matrix

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks folder is not part of this copy", allow_module_level=True)


def _load(name):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


suite, rivals = _load("suite"), _load("rivals")
SETS = suite.fixed_suite()


def _scores(data):
    return scoring_matrix("inverse", background(data.sequences, data.n_symbols))


def _sum_of_pairs(matrix, scores):
    return kernels.sum_of_pairs(*kernels.columns_of(matrix, len(scores)), len(matrix), scores, 0.0)


def _measure(aligner):
    """Return sum of pairs and column recovery of each set (sets, 2)."""
    rows = []
    for data in SETS:
        scores = _scores(data)
        matrix = aligner(data.sequences, scores)
        for row, sequence in zip(matrix, data.sequences, strict=True):
            np.testing.assert_array_equal(row[row >= 0], sequence)
        rows.append((_sum_of_pairs(matrix, scores), suite.column_recovery(matrix, data.truth)))
    return np.array(rows)


def _native(sequences, scores, refine=1):
    return align_ids(sequences, range(len(scores)), scores, refine=refine).matrix


@pytest.fixture(scope="module")
def native():
    return _measure(_native)


@pytest.fixture(scope="module", params=["scikit-bio", "ClustalW", "ClustalW on the native tree"])
def rival(request):
    if request.param == "scikit-bio":
        pytest.importorskip("skbio")
        return _measure(rivals.scikit_bio)
    if rivals.clustalw_program() is None:
        pytest.skip("ClustalW is not installed")
    own = request.param == "ClustalW"
    return _measure(rivals.clustalw_full if own else rivals.clustalw_on_tree)


def test_sum_of_pairs_is_above_the_rivals(native, rival):
    best = np.maximum(native[:, 0], rival[:, 0])
    assert (native[:, 0] / best).mean() > (rival[:, 0] / best).mean() + 0.01


def test_column_recovery_is_above_the_rivals(native, rival):
    assert native[:, 1].mean() > rival[:, 1].mean() + 0.01


def test_pairs_reach_the_optimum_that_scikit_bio_finds(native):
    pytest.importorskip("skbio")
    pairs = [i for i, data in enumerate(SETS) if len(data.sequences) == 2]
    for i in pairs:
        scores = _scores(SETS[i])
        optimum = _sum_of_pairs(rivals.scikit_bio(SETS[i].sequences, scores), scores)
        # The native engine rounds the scores to its grid of 2^-20.
        assert native[i, 0] == pytest.approx(optimum, rel=1e-5)


def test_refinement_never_lowers_the_sum_of_pairs(native):
    without = _measure(lambda sequences, scores: _native(sequences, scores, refine=0))
    # Compared with the scores before rounding to the grid, hence the tolerance.
    assert (native[:, 0] >= without[:, 0] * (1 - 1e-6)).all()
    assert native[:, 1].mean() > without[:, 1].mean()


def test_the_suite_is_as_described():
    again = suite.fixed_suite()
    assert len(SETS) == 40
    for data, same in zip(SETS, again, strict=True):
        assert data.n_symbols <= 20
        for sequence, marks, repeated in zip(
            data.sequences, data.truth, same.sequences, strict=True
        ):
            assert 20 <= len(sequence) == len(marks) <= 80
            assert 0 <= sequence.min() <= sequence.max() < data.n_symbols
            np.testing.assert_array_equal(sequence, repeated)


def test_column_recovery_of_the_truth_and_of_no_alignment():
    data = next(d for d in SETS if d.name == "plain-5")
    lengths = [len(s) for s in data.sequences]
    apart = np.full((5, sum(lengths)), -1)
    for i, (row, end) in enumerate(zip(apart, np.cumsum(lengths))):
        row[end - lengths[i] : end] = data.sequences[i]
    assert suite.column_recovery(apart, data.truth) == 0.0
    # Key events stand in the column of the strategy; noise goes behind them, to be in order is
    # not what is measured.
    n_keys = 1 + max(marks.max() for marks in data.truth)
    ideal = np.full((5, n_keys), -1)
    keys = [marks[marks >= 0] for marks in data.truth]
    for i, marks in enumerate(keys):
        ideal[i, marks] = data.sequences[i][data.truth[i] >= 0]
    assert suite.column_recovery(ideal, keys) == 1.0


def test_biopython_scores_prefixes_as_the_running_maximum():
    pytest.importorskip("Bio")
    rng = np.random.default_rng(0)
    pssm = rng.normal(size=(5, 30))
    pssm[rng.random(pssm.shape) < 0.2] = -np.inf
    sequence = rng.integers(5, size=40)
    row, expected = np.zeros(31), []
    for event in sequence:
        row[1:] = np.maximum(row[1:], row[:-1] + pssm[event])
        row = np.maximum.accumulate(row)
        expected.append(row[-1])
    np.testing.assert_allclose(rivals.biopython_prefix_scores(sequence, pssm), expected)
