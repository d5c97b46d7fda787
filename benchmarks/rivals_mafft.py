"""The same job by MAFFT, in its mode for text.

That mode takes 248 symbols and a scoring matrix of the user. As shipped (a match is a match, gaps
cost) it finds little of a strategy among noise; with the scores that all engines are given and
without gap costs it finds most, so these are its settings here.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rivals import GAP, Unable

__all__ = ["LETTERS", "mafft_g_ins_i", "mafft_nw_ns_i", "mafft_program", "read_rows", "write_rows"]

LETTERS = bytes(b for b in range(1, 256) if b not in b"\n\r <=>-")


def mafft_program() -> str | None:
    """Return the path of MAFFT, or None where it is not installed."""
    return shutil.which("mafft")


def mafft_nw_ns_i(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with NW-NS-i: a tree from shared words, progressive, two rounds of refinement."""
    return _mafft(sequences, matrix, ["--retree", "2", "--maxiterate", "2"])


def mafft_g_ins_i(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with G-INS-i: all pairs, consistency with them, refinement until nothing improves."""
    return _mafft(sequences, matrix, ["--globalpair", "--maxiterate", "1000"])


def write_rows(rows: Sequence[np.ndarray]) -> bytes:
    """Return sequences of letter numbers as FASTA of bytes."""
    letters = np.frombuffer(LETTERS, np.uint8)
    return b"".join(b">%d\n%s\n" % (i, letters[row].tobytes()) for i, row in enumerate(rows))


def read_rows(fasta: bytes) -> np.ndarray:
    """Return the aligned rows of FASTA as letter numbers, -1 for a gap.

    Example:
        >>> read_rows(write_rows([np.array([0, 247]), np.array([31, 40])]))
        array([[  0, 247],
               [ 31,  40]], dtype=int32)
    """
    numbers = np.full(256, GAP, np.int32)
    numbers[list(LETTERS)] = np.arange(len(LETTERS))
    parts = [part.partition(b"\n")[2].replace(b"\n", b"") for part in fasta.split(b">")[1:]]
    return np.array([numbers[np.frombuffer(part, np.uint8)] for part in parts])


def _mafft(sequences: Sequence[np.ndarray], matrix: np.ndarray, strategy: list[str]) -> np.ndarray:
    program = mafft_program()
    if program is None:
        raise Unable("not installed: apt-get install mafft")
    symbols, flat = np.unique(np.concatenate(sequences), return_inverse=True)
    if len(symbols) > len(LETTERS):
        raise Unable(f"{len(symbols)} symbols, it has {len(LETTERS)} letters")
    rows = np.split(flat, np.cumsum([len(s) for s in sequences])[:-1])
    scores = np.asarray(matrix)[np.ix_(symbols, symbols)]
    lines = [
        f"0x{a:02x} 0x{b:02x} {scores[i, j]:.6g}\n"
        for i, a in enumerate(LETTERS[: len(symbols)])
        for j, b in enumerate(LETTERS[: i + 1])
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scores").write_text("".join(lines))
        Path(folder, "in.fasta").write_bytes(write_rows(rows))
        own = ["--textmatrix", "scores", "--op", "0", "--ep", "0"]
        run = subprocess.run(
            [program, "--quiet", "--thread", "1", *own, *strategy, "in.fasta"],
            cwd=folder,
            capture_output=True,
            check=False,
        )
    if run.returncode or not run.stdout:
        raise RuntimeError(
            f"MAFFT failed ({run.returncode}): {run.stderr.decode(errors='replace')}"
        )
    aligned = read_rows(run.stdout)
    return np.where(aligned == GAP, GAP, symbols[aligned]).astype(np.int32)
