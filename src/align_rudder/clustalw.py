"""The real ClustalW 2.1 as an alignment engine, to cross-check the native one (step III).

ClustalW was written for proteins; what the paper asks of it, a multiple alignment of events with
zero gap cost, lies at the edge of what it can do. The limits below were measured on ClustalW 2.1
and are refused or avoided here, because ClustalW itself passes them in silence:

- Events are spelled with the 25 letters A-Z without J, which is deleted without a word.
- Matrix entries become 16-bit integers, one per tenth of a score, and sums of scores 32-bit
  integers, one per thousandth. Both wrap around on overflow.
- A gap penalty of zero is raised to the smallest integer, a thousandth of a score per skipped
  event. Scores are therefore scaled up as far as they fit, which makes it negligible.
- End gaps are free and columns that have gaps cost half, so no other gap cost is linear.
- Branch lengths of the guide tree delay distant sequences, so all are written as zero.
- ``-NOVGAP``, as used in the paper, switches variable gap penalties *on* in its source: it is
  left out, which changes nothing at zero gap cost.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

__all__ = ["clustalw_align", "clustalw_path"]

LETTERS = "ABCDEFGHIKLMNOPQRSTUVWXYZ"
MAX_SCORE = 3276.0  # (short)(10 x) must not wrap around
MAX_TOTAL = 2_147_000.0  # 1000 x, summed in an int, must not wrap around
OPTIONS = [
    "-INFILE=events.fasta",
    "-USETREE=tree.nwk",
    "-MATRIX=scores.txt",
    "-OUTFILE=aligned.gde",
    "-OUTPUT=GDE",
    "-OUTORDER=INPUT",
    "-CASE=UPPER",
    "-TYPE=PROTEIN",
    "-NEGATIVE",
    "-NOWEIGHTS",
    "-GAPOPEN=0",
    "-GAPEXT=0",
    "-NOPGAP",
    "-NOHGAP",
    "-ENDGAPS",
    "-MAXDIV=0",
    "-QUIET",
]


def clustalw_path() -> str | None:
    """Return the path of the ClustalW executable, or None if it is not installed."""
    return shutil.which("clustalw2") or shutil.which("clustalw")


def clustalw_align(
    sequences: Sequence[np.ndarray], matrix: np.ndarray, tree: np.ndarray, gap: float = 0.0
) -> np.ndarray:
    """Align sequences of events with ClustalW along a given guide tree.

    Args:
        sequences: N >= 2 non-empty arrays of event ids in 0..n-1, at most 25 different ones.
        matrix: Symmetric (n, n) scoring matrix, no score beyond ±3276.
        tree: SciPy linkage matrix, (N - 1, 4), over the sequences. Only its topology counts.
        gap: Cost of a gap; only 0 is possible.

    Returns:
        (N, L) int32 matrix of event ids, rows in input order, -1 for a gap.

    Raises:
        ValueError: If ClustalW cannot align the input faithfully.
        RuntimeError: If ClustalW is not installed or fails.

    Notes:
        A positive factor does not change which zero-gap alignment is best, so scores are
        multiplied by the largest power of ten that fits before they are rounded to tenths. In
        profiles ClustalW counts events in tenths of the smaller group: an event in less than a
        tenth of its rows does not contribute.

    Example:
        >>> events = [np.array([0, 1, 2]), np.array([0, 2])]
        >>> tree = np.array([[0.0, 1.0, 1.0, 2.0]])
        >>> clustalw_align(events, 4 * np.eye(3) - 1, tree)  # doctest: +SKIP
        array([[ 0,  1,  2],
               [ 0, -1,  2]], dtype=int32)
    """
    sequences = [np.asarray(sequence) for sequence in sequences]
    matrix, tree = np.asarray(matrix, dtype=float), np.asarray(tree, dtype=float)
    if gap != 0:
        raise ValueError(
            f"gap={gap} is not possible with ClustalW, whose gap costs are not linear (end gaps "
            'are free, columns that have gaps cost half): use gap=0 or engine="native"'
        )
    _check_scores(matrix)
    _check_sequences(sequences, len(matrix))
    _check_tree(tree, len(sequences))
    symbols = np.unique(np.concatenate(sequences))
    if len(symbols) > len(LETTERS):
        raise ValueError(
            f"{len(symbols)} different events occur, but ClustalW has letters for {len(LETTERS)}: "
            'merge events into fewer clusters or use engine="native"'
        )
    codes = [np.searchsorted(symbols, sequence) for sequence in sequences]
    scores = _scale_scores(codes, matrix[np.ix_(symbols, symbols)])
    rows = _run(codes, scores, tree)
    if any(not np.array_equal(row[row >= 0], code) for row, code in zip(rows, codes, strict=True)):
        raise RuntimeError("ClustalW returned other events than it was given: not an alignment")
    return np.where(rows >= 0, symbols[rows], -1).astype(np.int32)


def _check_scores(matrix: np.ndarray) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix has shape {matrix.shape}; a square scoring matrix is needed")
    if n_bad := np.sum(~np.isfinite(matrix)):
        raise ValueError(
            f"{n_bad} entries of the matrix are not finite; ClustalW needs a finite score for "
            "every pair of events: set a floor on event frequencies"
        )
    if not np.allclose(matrix, matrix.T):
        raise ValueError("matrix is not symmetric as it must be: pass (matrix + matrix.T) / 2")


def _check_sequences(sequences: list[np.ndarray], n_events: int) -> None:
    if len(sequences) < 2:
        raise ValueError(f"got {len(sequences)} sequence(s); at least two are needed to align")
    for i, sequence in enumerate(sequences):
        if sequence.ndim != 1 or len(sequence) == 0:
            raise ValueError(
                f"sequence {i} has shape {sequence.shape}; ClustalW needs a row of at least one "
                'event: leave out empty sequences or use engine="native"'
            )
        integers = np.issubdtype(sequence.dtype, np.integer)
        if not integers or sequence.min() < 0 or sequence.max() >= n_events:
            raise ValueError(
                f"sequence {i} has {sequence.dtype} event ids {sequence.min()} to "
                f"{sequence.max()}; integers from 0 to {n_events - 1} are needed, as in the matrix"
            )


def _check_tree(tree: np.ndarray, n: int) -> None:
    """Raise unless every node but the root is the child of exactly one later node."""
    if tree.shape == (n - 1, 4):
        children = tree[:, :2]
        once = np.array_equal(np.sort(children, axis=None), np.arange(2 * n - 2))
        if once and (children.max(axis=1) < n + np.arange(n - 1)).all():
            return
    raise ValueError(
        f"tree of shape {tree.shape} is not a guide tree over {n} sequences; pass a linkage "
        f"matrix of shape ({n - 1}, 4) as scipy.cluster.hierarchy.linkage returns it"
    )


def _scale_scores(codes: list[np.ndarray], scores: np.ndarray) -> np.ndarray:
    """Return the scores times the largest power of ten with which nothing overflows."""
    n, largest = len(codes), np.abs(scores).max()
    if largest > MAX_SCORE:
        raise ValueError(
            f"the largest absolute score is {largest:g}, but ClustalW wraps around above "
            f"{MAX_SCORE:g}: divide the matrix by {largest / MAX_SCORE:.3g} or more, which does "
            'not change the best zero-gap alignment, or use engine="native"'
        )
    # A cell of a profile sums up to n - 1 sequences, each with the integer weight 1000 // n.
    cell = largest * (n - 1) * max(1000 // n, 1)
    # No two sequences can score more than the second best does when all its events are matched.
    best_match = np.maximum(scores.max(axis=1), 0.0)
    total = np.sort([best_match[code].sum() for code in codes])[-2]
    load = max(largest / MAX_SCORE, cell / MAX_TOTAL, total / MAX_TOTAL)
    if load > 1:
        raise ValueError(
            f"scores of up to {largest:g}, in {n} sequences that can reach a total of {total:g}, "
            f"overflow ClustalW's integers: divide the matrix by {load:.3g} or more, which does "
            'not change the best zero-gap alignment, or use engine="native"'
        )
    return scores * 10.0 ** np.floor(-np.log10(load)) if load > 0 else scores


def _run(codes: list[np.ndarray], scores: np.ndarray, tree: np.ndarray) -> np.ndarray:
    """Return the rows that ClustalW makes of the codes, -1 for a gap."""
    executable = clustalw_path()
    if executable is None:
        raise RuntimeError(
            "neither clustalw2 nor clustalw is on the PATH: install ClustalW 2.1 (Debian and "
            'Ubuntu: apt install clustalw) or use engine="native"'
        )
    alphabet = np.frombuffer(LETTERS.encode(), dtype=np.uint8)
    texts = [alphabet[code].tobytes().decode() for code in codes]
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        fasta = "".join(f">s{i}\n{text}\n" for i, text in enumerate(texts))
        (files / "events.fasta").write_text(fasta)
        (files / "scores.txt").write_text(_matrix_file(scores))
        (files / "tree.nwk").write_text(_newick(tree))
        done = subprocess.run(
            [executable, *OPTIONS], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True
        )
        output = (done.stdout + done.stderr).decode(errors="replace")
        aligned = files / "aligned.gde"
        # A tree it cannot use ends with status 0 and an empty file.
        if done.returncode != 0 or "ERROR" in output or not aligned.exists():
            raise RuntimeError(
                f"ClustalW ended with status {done.returncode} and no alignment; its output "
                f"ended with:\n{output[-2000:].strip()}"
            )
        entries = aligned.read_text().split("%")[1:]
    index = np.full(256, -1, dtype=np.int32)
    index[alphabet] = np.arange(len(alphabet))
    rows = {}
    for entry in entries:
        name, *lines = entry.split()
        rows[name] = index[np.frombuffer("".join(lines).encode(), dtype=np.uint8)]
    names = [f"s{i}" for i in range(len(codes))]
    if sorted(rows) != sorted(names) or len({len(row) for row in rows.values()}) != 1:
        raise RuntimeError(f"ClustalW returned {len(rows)} rows for {len(codes)} sequences")
    return np.stack([rows[name] for name in names])


def _matrix_file(scores: np.ndarray) -> str:
    """Return the matrix with the row of '*' that must end it; 3 without a dot would mean 0.3."""
    full = np.zeros((len(LETTERS) + 1, len(LETTERS) + 1))
    full[: len(scores), : len(scores)] = scores
    lines = [" ".join(LETTERS + "*")]
    for letter, row in zip(LETTERS + "*", full, strict=True):
        lines.append(" ".join([letter, *(f"{score:.1f}" for score in row)]))
    return "\n".join(lines) + "\n"


def _newick(tree: np.ndarray) -> str:
    nodes = [f"s{i}:0.0" for i in range(len(tree) + 1)]
    for left, right in tree[:, :2].astype(int):
        nodes.append(f"({nodes[left]},{nodes[right]}):0.0")
        nodes[left] = nodes[right] = ""
    return nodes[-1].removesuffix(":0.0") + ";\n"
