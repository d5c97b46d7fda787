"""The same job by two more Python libraries: biotite and LingPy.

Both are given the scores that all engines are given, which serves them better than the identity.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from rivals import GAP, Unable

__all__ = ["biotite", "lingpy"]

_SCORE_BYTES = 130  # what LingPy keeps for two events, measured
_MAX_BYTES = 4e9


def biotite(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with biotite's `align_multiple`: all pairs, UPGMA, progressive, no refinement.

    Groups are joined by their two nearest sequences. Scores are whole numbers, hence scaled.
    """
    from biotite.sequence import Alphabet, GeneralSequence
    from biotite.sequence.align import SubstitutionMatrix, align_multiple

    alphabet = Alphabet(range(len(matrix)))
    scaled = np.rint(matrix * (1000.0 / max(np.abs(matrix).max(), 1e-12))).astype(np.int32)
    rows = [GeneralSequence(alphabet, sequence.tolist()) for sequence in sequences]
    try:
        found, *_ = align_multiple(
            rows, SubstitutionMatrix(alphabet, alphabet, scaled), gap_penalty=0
        )
    except ValueError as error:  # a pair that is no more alike than chance has no distance
        raise Unable(str(error)) from error
    out = np.full(found.trace.T.shape, GAP, np.int32)
    for row, places, sequence in zip(out, found.trace.T, sequences):
        row[places >= 0] = sequence[places[places >= 0]]
    return out


def lingpy(sequences: Sequence[np.ndarray], matrix: np.ndarray) -> np.ndarray:
    """Align with LingPy's `Multiple`: all pairs, UPGMA, progressive.

    Without sound classes and sonority, tokens are any strings and the scores our own. It was better
    with gaps that cost a little and count in the mean of a column, and better than by library; its
    refinement needs sonority.
    """
    from lingpy.align.multiple import Multiple

    needed = _SCORE_BYTES * float(sum(len(s) for s in sequences)) ** 2
    if needed > _MAX_BYTES:
        raise Unable(f"keeps a score for every two events, about {needed / 1e9:.0f} GB")
    logging.getLogger("lingpy").setLevel(logging.ERROR)
    names = [f"e{e}" for e in range(len(matrix))]
    scores = {(a, b): float(matrix[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)}
    found = Multiple([[names[e] for e in s] for s in sequences], unique_seqs=False)
    found.prog_align(
        classes=False,
        sonar=False,
        scoredict=scores,
        gop=-0.3,
        scale=0.5,
        gap_weight=1.0,
        tree_calc="upgma",
    )
    ids = {name: e for e, name in enumerate(names)} | {"-": GAP}
    return np.array([[ids[token] for token in row] for row in found.alm_matrix], np.int32)
