"""Sequences and alignments as FASTA, in and out."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence

import numpy as np

from align_rudder.files import read_text, write_text
from align_rudder.text import LETTERS, check_ids, letters_for

__all__ = ["read_fasta", "write_fasta"]


def read_fasta(path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Read a FASTA file: the names, and the sequences with their gaps ("-")."""
    text = read_text(path)
    names: list[str] = []
    sequences: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith(">"):
            names.append(line[1:].strip())
            sequences.append([])
        elif line:
            if not sequences:
                raise ValueError(
                    f"{path}, line {number}: a FASTA file begins with a line '>name', got "
                    f"{line[:40]!r}"
                )
            sequences[-1].append("".join(line.split()))
    if not names:
        raise ValueError(f"{path} holds no sequence; a FASTA file has lines '>name' and letters")
    return names, ["".join(parts) for parts in sequences]


def write_fasta(
    path: str | os.PathLike[str],
    rows: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    names: Sequence[str] | None = None,
) -> None:
    """Write sequences or rows of an alignment (ids, gap -1) as FASTA, 80 letters a line."""
    letters = letters_for(symbols)
    if any(len(letter) > 1 for letter in letters):
        raise ValueError(
            f"there are {len(symbols)} symbols; FASTA has one letter for each, which gives out at "
            f"{len(LETTERS)}"
        )
    check_ids(rows, len(symbols))
    if names is not None and any("\n" in name or "\r" in name for name in names):
        raise ValueError("a name holds a line break; FASTA names are one line")
    if names is not None and len(names) != len(rows):
        raise ValueError(f"got {len(names)} names for {len(rows)} sequences; give one each")
    codes = [*letters, "-"]
    lines: list[str] = []
    for i, row in enumerate(rows):
        lines.append(f">{names[i] if names else i}")
        text = "".join(codes[e] for e in row)
        lines += [text[k : k + 80] for k in range(0, len(text), 80)] or [""]
    write_text(path, "\n".join(lines) + "\n")
