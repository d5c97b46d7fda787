"""Alignments as text lose nothing."""

import re

import numpy as np
import pytest
from drawn import alignments
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.text import format_alignment, legend, letters_for, wrap_columns

examples = settings(deadline=None, max_examples=100, derandomize=True)

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


@given(alignments(max_symbols=120), st.integers(20, 120))
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
