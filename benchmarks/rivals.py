"""The same job by other programs: scikit-bio, ClustalW and Biopython; more in `rivals_*.py`.

An aligner takes sequences of event ids and a scoring matrix (n, n) and returns the alignment as a
matrix of ids (N, L) with gaps -1, at zero gap cost.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

__all__ = [
    "GAP",
    "Unable",
    "biopython_prefix_scores",
    "clustalw_full",
    "clustalw_on_tree",
    "clustalw_program",
    "scikit_bio",
]

GAP = -1
_LETTERS = "ACDEFGHIKLMNPQRSTVWYBZX"  # amino acids and wildcards; ClustalW deletes J


class Unable(RuntimeError):
    """Why an aligner cannot do a job, for its row in the table."""


def scikit_bio(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with scikit-bio's `multi_align`: all pairs, UPGMA, progressive, no refinement."""
    from skbio import SubstitutionMatrix
    from skbio.alignment import multi_align

    # Letters outside ASCII: an alphabet of any size, and no letter is taken for a gap.
    letters = [chr(0x4E00 + e) for e in range(len(matrix))]
    substitution = SubstitutionMatrix("".join(letters), np.asarray(matrix, float))
    rows = ["".join(letters[e] for e in sequence) for sequence in sequences]
    path = multi_align(rows, substitution, gap_cost=0.0).path
    present = path.to_bits(expand=True) == 0
    out = np.full(present.shape, GAP, np.int32)
    for i, sequence in enumerate(sequences):
        out[i, present[i]] = sequence
    return out


def clustalw_program() -> str | None:
    """Return the path of ClustalW, or None where it is not installed."""
    return shutil.which("clustalw") or shutil.which("clustalw2")


def clustalw_on_tree(
    sequences: Sequence[np.ndarray], matrix: np.ndarray, tree: np.ndarray | None = None
) -> np.ndarray:
    """Align with ClustalW along a guide tree (SciPy linkage), by default the native one."""
    from align_rudder.alignment import guide_tree, pairwise_scores
    from align_rudder.clustalw import clustalw_align

    if tree is None:
        tree = guide_tree(pairwise_scores(sequences, matrix))
    return clustalw_align(sequences, matrix, tree, 0.0)


def clustalw_full(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with ClustalW's own full run: its pairs, its tree, its sequence weights.

    The options are the paper's, less `-CLUSTERING=UPGMA`, with which Debian's build crashes (the
    tree is by neighbour joining), and with FASTA in the order of the input as output.
    """
    program = clustalw_program()
    if program is None:
        raise Unable("not installed: apt-get install clustalw")
    if len(matrix) > len(_LETTERS):
        raise Unable(f"{len(matrix)} symbols, it has {len(_LETTERS)} letters")
    # ClustalW keeps (short)(10·x) of each score and sums in 32 bits; as an alignment depends on
    # ratios only, scaling the largest to 320 keeps both rounding and sums harmless.
    scaled = np.pad(matrix * (320.0 / max(np.abs(matrix).max(), 1e-12)), ((0, 1), (0, 1)))
    letters = _LETTERS[: len(matrix)]
    lines = ["  " + " ".join(letters) + " *"]
    lines += [f"{a} " + " ".join(f"{x:.1f}" for x in row) for a, row in zip(letters + "*", scaled)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scores").write_text("\n".join(lines) + "\n")
        Path(folder, "in.fasta").write_text(
            "".join(
                f">s{i}\n{''.join(letters[e] for e in sequence)}\n"
                for i, sequence in enumerate(sequences)
            )
        )
        run = subprocess.run(
            [
                program,
                "-ALIGN",
                "-NEGATIVE",
                "-INFILE=in.fasta",
                "-OUTFILE=out.fasta",
                "-PWMATRIX=scores",
                "-PWGAPOPEN=0",
                "-PWGAPEXT=0",
                "-MATRIX=scores",
                "-GAPOPEN=0",
                "-GAPEXT=0",
                "-CASE=UPPER",
                "-NOPGAP",
                "-NOHGAP",
                "-MAXDIV=0",
                "-ENDGAPS",
                "-NOVGAP",
                "-NEWTREE=tree.dnd",
                "-TYPE=PROTEIN",
                "-OUTPUT=FASTA",
                "-OUTORDER=INPUT",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        written = Path(folder, "out.fasta")
        if run.returncode or not written.exists():
            raise RuntimeError(f"ClustalW failed ({run.returncode}): {run.stdout}{run.stderr}")
        rows = ["".join(part.split("\n")[1:]) for part in written.read_text().split(">")[1:]]
    ids = {letter: e for e, letter in enumerate(letters)} | {"-": GAP}
    out = np.array([[ids[letter] for letter in row] for row in rows], np.int32)
    for i, sequence in enumerate(sequences):
        if not np.array_equal(out[i][out[i] != GAP], sequence):
            raise RuntimeError(f"ClustalW changed sequence {i}")
    return out


def biopython_prefix_scores(sequence: np.ndarray, pssm: np.ndarray) -> np.ndarray:
    """Score every prefix of a sequence against a profile with Biopython's `PairwiseAligner`.

    Args:
        sequence: Event ids (T,).
        pssm: Score of each event in each column (n, L); −∞ is allowed.

    Returns:
        S(τ_t) for t = 1, …, T: the best score of the first t events at zero gap cost.
    """
    from Bio.Align import PairwiseAligner
    from Bio.Align.substitution_matrices import Array

    # The columns of the profile are letters of their own, after those of the events.
    n, length = pssm.shape
    lowest = -1.0 - np.abs(pssm[np.isfinite(pssm)]).sum()
    scores = np.zeros((n + length, n + length))
    scores[:n, n:] = np.where(np.isfinite(pssm), pssm, lowest)
    letters = Array(tuple(range(n + length)), data=scores)
    aligner = PairwiseAligner(mode="global", substitution_matrix=letters)
    aligner.gap_score = 0.0
    events = np.asarray(sequence, np.int32)
    columns = np.arange(n, n + length, dtype=np.int32)
    return np.array([aligner.score(events[:t], columns) for t in range(1, len(events) + 1)])
