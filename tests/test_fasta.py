"""FASTA comes back as it was written; what is none is explained."""

import numpy as np
import pytest
from drawn import alignments
from hypothesis import given, settings

from align_rudder.fasta import read_fasta, write_fasta
from align_rudder.text import letters_for

examples = settings(deadline=None, max_examples=100, derandomize=True)


@given(alignments())
@examples
def test_fasta_comes_back(tmp_path_factory, case):
    symbols, matrix = case
    path = tmp_path_factory.mktemp("fasta") / "a.fasta"
    names = [f"demo {i} of {len(matrix)}" for i in range(len(matrix))]
    write_fasta(path, list(matrix), symbols, names)
    assert max(len(line) for line in path.read_text("utf-8").split("\n")) <= 80
    loaded_names, rows = read_fasta(path)
    assert loaded_names == names
    id_of = {letter: i for i, letter in enumerate(letters_for(symbols))} | {"-": -1}
    assert [[id_of[c] for c in row] for row in rows] == matrix.tolist()


def test_fasta_without_names_counts(tmp_path):
    write_fasta(tmp_path / "a.fasta", [np.array([0, 1, -1]), np.array([], int)], ["x", "y"])
    assert (tmp_path / "a.fasta").read_text() == ">0\nxy-\n>1\n\n"
    assert read_fasta(tmp_path / "a.fasta") == (["0", "1"], ["xy-", ""])


def test_fasta_as_others_write_it_is_read(tmp_path):
    (tmp_path / "a.fasta").write_bytes(b"\r\n>one  \r\nAC\r\n\r\n-G\r\n> two\r\nT\r\n")
    assert read_fasta(tmp_path / "a.fasta") == (["one", "two"], ["AC-G", "T"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ACGT\n>a\n", r"a\.fasta, line 1: .*begins with a line '>name', got 'ACGT'"),
        (b"\n\n  x\n", "line 3"),
        (b"", "holds no sequence; a FASTA file has lines '>name'"),
        (b">a\n\xff\xfe\n", "not a text file"),
    ],
)
def test_what_is_not_fasta_is_explained(tmp_path, content, message):
    (tmp_path / "a.fasta").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_fasta(tmp_path / "a.fasta")


def test_fasta_has_one_letter_for_each_symbol(tmp_path):
    with pytest.raises(ValueError, match=r"there are 63 symbols; .*62"):
        write_fasta(tmp_path / "a.fasta", [np.arange(63)], list(range(63)))


@pytest.mark.parametrize("row", [[0, 1, 2], [0, 3], [0, -2]])
def test_an_event_without_a_symbol_is_not_written_as_a_gap(tmp_path, row):
    with pytest.raises(ValueError, match="2 symbols"):
        write_fasta(tmp_path / "a.fasta", [np.array(row)], ["a", "b"])


def test_a_name_does_not_become_a_part_of_the_sequence(tmp_path):
    with pytest.raises(ValueError, match="name"):
        write_fasta(tmp_path / "a.fasta", [np.array([0, 1])], ["a", "b"], names=["x\nb"])


def test_as_many_names_as_rows_are_needed(tmp_path):
    with pytest.raises(ValueError, match="names"):
        write_fasta(tmp_path / "a.fasta", [np.array([0]), np.array([1])], ["a", "b"], names=["x"])
