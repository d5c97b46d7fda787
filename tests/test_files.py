"""Files are written whole and read without pickle; alignments as text lose nothing."""

import json
import os
import pickle
import re
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.files import decode_symbol, encode_symbol, load_npz, save_npz, write_whole
from align_rudder.text import (
    format_alignment,
    legend,
    letters_for,
    read_fasta,
    wrap_columns,
    write_fasta,
)

examples = settings(deadline=None, max_examples=100, derandomize=True)

# Files


class _NoDisk(Exception):
    pass


def test_a_file_is_written(tmp_path):
    write_whole(tmp_path / "f", lambda file: file.write(b"new"))
    assert (tmp_path / "f").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("failure", [_NoDisk, KeyboardInterrupt])
def test_the_old_file_stays_when_writing_fails(tmp_path, failure):
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"ne")
        raise failure

    with pytest.raises(failure):
        write_whole(path, fail)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_the_old_model_stays_when_an_array_cannot_be_saved(tmp_path):
    path = tmp_path / "m.npz"
    save_npz(path, "kind", 1, {"n": 1}, {"a": np.arange(3)})
    before = path.read_bytes()
    for header, arrays in [({"n": object()}, {}), ({}, {"a": np.array([None])})]:
        with pytest.raises((TypeError, ValueError)):
            save_npz(path, "kind", 1, header, arrays)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.npz"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_file_has_the_mode_that_open_would_give(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "ours", lambda file: file.write(b""))
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")]
    assert modes[0] == modes[1]


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist; create it"):
        write_whole(tmp_path / "nowhere" / "f", lambda file: None)
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        write_whole(tmp_path, lambda file: None)


def test_header_and_arrays_come_back(tmp_path):
    header = {"text": "λ*", "list": [1, None, 2.5], "nested": {"a": True}}
    arrays = {"x": np.eye(2, dtype=int), "words": np.array(["a", "bc"]), "empty": np.empty((0, 3))}
    save_npz(tmp_path / "m.npz", "kind", 3, header, arrays)
    loaded_header, loaded = load_npz(tmp_path / "m.npz", "kind", 3)
    assert {k: loaded_header[k] for k in header} == header
    assert loaded.keys() == arrays.keys()
    for name in arrays:
        assert loaded[name].dtype == arrays[name].dtype
        np.testing.assert_array_equal(loaded[name], arrays[name])


def test_object_arrays_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"cannot save x: .*Python objects.*numeric or string"):
        save_npz(tmp_path / "m.npz", "kind", 1, {}, {"x": np.array([{}, 1], dtype=object)})
    assert not (tmp_path / "m.npz").exists()


class _Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("how", ["npz", "npy", "pickle"])
def test_no_pickle_is_loaded(tmp_path, how):
    mark, path = tmp_path / "exploded", tmp_path / "evil.npz"
    content = np.array([_Bomb(mark)], dtype=object)
    with open(path, "wb") as file:
        if how == "npz":
            np.savez(file, header=content)
        elif how == "npy":
            np.save(file, content, allow_pickle=True)
        else:
            pickle.dump(content, file)
    with pytest.raises(ValueError, match="cannot be read as an npz file"):
        load_npz(path, "kind", 1)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"not JSON", "header that is not ours"),
        (b"[1, 2]", "header that is not ours"),
        (b"{}", "header that is not ours"),
        (b"\xff\xfe", "header that is not ours"),
        (b'{"format": "kind"}', "header that is not ours"),
        (b'{"format": "cake", "version": 1}', "holds 'cake'; 'kind' is needed"),
        (b'{"format": "kind", "version": 2}', "version 2 .*reads version 1; install"),
        (None, "not one of format 'kind': no header"),
    ],
)
def test_a_foreign_header_is_explained(tmp_path, header, message):
    members = {} if header is None else {"header": np.frombuffer(header, np.uint8)}
    np.savez(tmp_path / "m.npz", x=np.arange(2), **members)
    with pytest.raises(ValueError, match=message):
        load_npz(tmp_path / "m.npz", "kind", 1)


# Symbols

_ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
_SYMBOLS = st.recursive(
    _ATOMS,
    lambda part: st.lists(part, max_size=3).map(tuple) | st.frozensets(part, max_size=3),
    max_leaves=6,
)


def _types(symbol):
    """Return a symbol with the types of its parts, which == does not compare (True == 1 == 1.0)."""
    if isinstance(symbol, tuple):
        return tuple(_types(part) for part in symbol)
    if isinstance(symbol, frozenset):
        return frozenset(_types(part) for part in symbol)
    return type(symbol), symbol


@given(_SYMBOLS)
@examples
def test_a_symbol_survives_json(symbol):
    loaded = decode_symbol(json.loads(json.dumps(encode_symbol(symbol))))
    assert _types(loaded) == _types(symbol)


@pytest.mark.parametrize("value", [np.int32(3), np.float64(0.5), np.str_("a"), np.bool_(True)])
def test_a_numpy_scalar_is_its_value(value):
    assert _types(decode_symbol(encode_symbol(value))) == _types(value.item())
    assert _types(decode_symbol(encode_symbol((value,)))) == _types((value.item(),))


@pytest.mark.parametrize("symbol", [object(), 1j, ("a", (1, object())), frozenset([1j]), range(3)])
def test_a_symbol_that_cannot_be_stored_is_named(symbol):
    with pytest.raises(ValueError, match=r"of type (object|complex|range) cannot be stored.*use"):
        encode_symbol(symbol)


# Letters

_ANY_SYMBOLS = st.one_of(
    st.lists(st.characters(), max_size=70, unique=True),
    st.lists(st.text(max_size=3), max_size=20, unique=True),
    st.integers(0, 130).map(lambda n: list(range(n))),
)


@given(_ANY_SYMBOLS)
@examples
def test_letters_are_different_and_equally_wide(symbols):
    letters = letters_for(symbols)
    assert len(letters) == len(set(letters)) == len(symbols)
    assert len({len(x) for x in letters}) <= 1
    assert all(x.isprintable() and not set(x) & set("-> ") for x in letters)


def test_single_characters_stand_for_themselves():
    assert letters_for(list("zé*9")) == list("zé*9")
    for symbols in (["a", "-"], ["a", " "], ["a", ">"], ["a", "bc"], ["a", "\n"], [0, 1]):
        assert letters_for(symbols) == ["A", "B"]
    assert letters_for(range(62))[-1] == "9"
    assert letters_for(range(101))[:2] == ["000", "001"]


def test_the_legend_names_every_symbol_within_the_width():
    symbols = [f"+thing {i}" for i in range(30)]
    text = legend(symbols, letters_for(symbols), width=40)
    assert max(len(line) for line in text.splitlines()) <= 40
    entries = re.split(", |\n", text)
    assert entries == [f"{a} = {s}" for a, s in zip(letters_for(symbols), symbols, strict=True)]
    assert legend(["a", "b"], ["a", "b"]) == ""


@given(st.integers(0, 50), st.integers(1, 4), st.integers(0, 10), st.integers(1, 60))
@examples
def test_wrapped_columns_cover_all_once_and_fit(n, cell, indent, width):
    blocks = list(wrap_columns(n, cell, indent, width))
    assert [c for block in blocks for c in range(n)[block]] == list(range(n))
    assert all((b.stop - b.start) * cell + indent <= width or b.stop - b.start <= 1 for b in blocks)


# FASTA


@st.composite
def _rows(draw, max_symbols=62):
    """Draw symbols and an alignment over them."""
    if draw(st.booleans()):
        visible = st.characters(max_codepoint=0x2FF, categories="LNPS", exclude_characters="->")
        symbols = draw(st.lists(visible, min_size=1, max_size=9, unique=True))
    else:
        symbols = list(range(draw(st.integers(1, max_symbols))))
    n, length = draw(st.integers(1, 5)), draw(st.integers(0, 90))
    seed = draw(st.integers(0, 2**32 - 1))
    matrix = np.random.default_rng(seed).integers(-1, len(symbols), (n, length)).astype(np.int32)
    if length and draw(st.booleans()):
        matrix[:, :: draw(st.integers(1, 5))] = 0
    return symbols, matrix


@given(_rows())
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


# Alignments as text


def _read_back(text, n, length):
    """Return the ids of the rows, and the conserved columns, from what a person sees."""
    lines = text.split("\n")
    n_symbols = int(re.search(r"(\d+) symbols", lines[0]).group(1))
    rows, starred = [[] for _ in range(n)], []
    cell = 1 if n_symbols <= 62 else len(str(n_symbols - 1)) + 1
    letters = None
    for line in lines[1:]:
        if match := re.match(r" *(\d+)  (.*)$", line[: 5 + len(line)]):
            rows[int(match.group(1))].append(match.group(2))
        elif re.fullmatch(r" {5}[* ]*", line) and line.strip():
            starred.append((len(rows[0]) - 1, line[5:]))
        elif " = " in line:
            letters = (letters or []) + [entry.split(" = ") for entry in line.split(", ")]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    widths = [-(-w // cell) * cell for w in widths]
    cells = [
        [
            row[k].ljust(widths[k])[i : i + cell].strip()
            for k in range(len(row))
            for i in range(0, widths[k], cell)
        ]
        for row in rows
    ]
    stars = {
        (sum(widths[:k]) + i) // cell for k, text in starred for i, c in enumerate(text) if c == "*"
    }
    return cells, stars, dict(letters) if letters else None


@given(_rows(max_symbols=120), st.integers(20, 120))
@examples
def test_an_alignment_is_read_back_from_its_text(case, width):
    symbols, matrix = case
    n, length = matrix.shape
    text = format_alignment(matrix, symbols, width=width, score=12.5)
    assert text.startswith(
        f"{n} sequences, {length} columns, {len(symbols)} symbols, sum of pairs 12.5"
    )
    assert all(len(line) <= width for line in text.split("\n")[1:])
    cells, stars, key = _read_back(text, n, length)
    for i in range(n):
        seen = [c for c in cells[i] if c.strip("-")]
        if key is not None:
            seen = [int(key[c]) for c in seen]
        assert seen == [symbols[e] for e in matrix[i] if e >= 0]
        assert [bool(c.strip("-")) for c in cells[i]] == (matrix[i] >= 0).tolist()
    assert stars == {t for t in range(length) if len(set(matrix[:, t])) == 1 and matrix[0, t] >= 0}


def test_what_an_alignment_looks_like():
    matrix = np.array([[0, 1, -1, 2], [0, -1, 3, 2]])
    assert format_alignment(matrix, ["key", "door", "chest", "door 2"]) == (
        "2 sequences, 4 columns, 4 symbols\n"
        "  0  AB-C\n"
        "  1  A-DC\n"
        "     *  *\n"
        "A = key, B = door, C = chest, D = door 2"
    )


def test_more_rows_than_asked_for_are_counted():
    text = format_alignment(np.zeros((7, 3), int), ["a"], max_rows=4)
    assert [line[:3] for line in text.split("\n")[1:5]] == ["  0", "  1", "  2", "  3"]
    assert "… and 3 more sequences" in text


@pytest.mark.parametrize("event", [2, 5, -2])
def test_an_event_without_a_symbol_is_not_shown_as_a_gap(event):
    with pytest.raises(ValueError, match="2 symbols"):
        format_alignment(np.array([[0, 1, event]]), ["a", "b"])


def test_very_long_names_and_alignments_are_cut_in_a_terminal():
    assert max(map(len, legend(["a" * 5000, "b"], ["A", "B"]).splitlines())) <= 100
    assert legend(["", "b b"], ["A", "B"]) == "A = '', B = b b"
    matrix = np.zeros((150, 5000), int)
    shown = format_alignment(matrix, ["ab"]).splitlines()
    assert len(shown) < 1100
    columns = sum(len(line) - 5 for line in shown if line.startswith("  0  "))
    assert f"… and {5000 - columns} more columns" in "\n".join(shown)
