"""MAFFT beside the native alignment: is what comes back what was given?"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from align_rudder.scoring import background, scoring_matrix

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks folder is not part of this copy", allow_module_level=True)


@pytest.fixture(scope="module")
def mafft():
    """The module, with its sibling importable for as long as it is loaded."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(
            "benchmarks_rivals_mafft", BENCHMARKS / "rivals_mafft.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def test_every_letter_is_read_as_it_was_written(mafft):
    rows = [np.arange(248), np.arange(248)[::-1]]
    assert len(mafft.LETTERS) == 248
    np.testing.assert_array_equal(mafft.read_rows(mafft.write_rows(rows)), rows)


def test_gaps_and_broken_lines_are_read(mafft):
    a, b = mafft.LETTERS[:1], mafft.LETTERS[247:]
    fasta = b">0\n-" + a + b"\n" + b + b"\n>1\n" + b + b"-\n-\n"
    np.testing.assert_array_equal(mafft.read_rows(fasta), [[-1, 0, 247], [247, -1, -1]])


@pytest.mark.parametrize("strategy", ["mafft_nw_ns_i", "mafft_g_ins_i"])
def test_all_symbols_come_back_from_mafft(mafft, strategy, rng):
    if mafft.mafft_program() is None:
        pytest.skip("MAFFT is not installed")
    order = 2 * rng.permutation(248)  # every second id only, so that ids are no letter numbers
    sequences = [np.delete(order, rng.integers(248, size=20)).astype(np.int32) for _ in range(3)]
    sequences.append(order.astype(np.int32))
    scores = scoring_matrix("inverse", background(sequences, 496))
    aligned = getattr(mafft, strategy)(sequences, scores)
    for row, sequence in zip(aligned, sequences, strict=True):
        np.testing.assert_array_equal(row[row >= 0], sequence)
    assert aligned.shape == (4, 248)  # each is a part of the last, so nothing else is needed
    np.testing.assert_array_equal(aligned[3], order)


def test_more_symbols_than_letters_are_refused(mafft, monkeypatch):
    monkeypatch.setattr(mafft, "mafft_program", lambda: "mafft")
    with pytest.raises(RuntimeError, match="249 symbols, it has 248 letters"):
        mafft.mafft_nw_ns_i([np.arange(249), np.arange(249)], np.eye(249))
