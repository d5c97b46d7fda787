"""(III) Multiple sequence alignment: pairs, guide tree, progressive alignment, refinement."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from align_rudder import kernels
from align_rudder._display import RichDisplay
from align_rudder.fasta import read_fasta, write_fasta
from align_rudder.files import Choice, Number
from align_rudder.scoring import Scoring, background, on_grid, quantise, scoring_matrix
from align_rudder.sequences import GAP, index_symbols
from align_rudder.text import format_alignment, letters_for

__all__ = [
    "ENGINES",
    "GAP_COST",
    "Alignment",
    "align",
    "align_ids",
    "check_options",
    "guide_tree",
    "match_groups",
    "pairwise_scores",
    "progressive",
]

ENGINES = Choice(("native", "clustalw"))
GAP_COST = Number(0)
_WHOLE = 2**20  # cells of a table that is kept in memory; of larger ones, only the edges of tiles
_MAX_BYTES = 2**32  # what aligning two groups may take; a table with gap costs is refused above


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(RichDisplay):
    """Aligned sequences: a matrix of event ids with -1 for gaps, a row for each sequence.

    Attributes:
        matrix: Event ids (N, L), gap -1.
        symbols: The symbol of each event id.
        scores: The scoring matrix used.
        gap: The gap cost used.
        tree: The guide tree as a SciPy linkage matrix; None for an alignment that was read.

    Example:
        >>> print(align(["ABCD", "ABD", "XACD"]))
        3 sequences, 5 columns, 5 symbols, sum of pairs 33
          0  -ABCD
          1  -AB-D
          2  XA-CD
              *  *
    """

    matrix: np.ndarray
    symbols: Sequence[Hashable]
    scores: np.ndarray
    gap: float = 0.0
    tree: np.ndarray | None = field(default=None)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def n_columns(self) -> int:
        """Number of columns L."""
        return self.matrix.shape[1]

    @property
    def score(self) -> float:
        """The sum-of-pairs score, the MSA score of the paper less the gap costs."""
        columns = kernels.columns_of(self.matrix, len(self.symbols))
        return float(kernels.sum_of_pairs(*columns, len(self.matrix), self.scores, self.gap))

    @property
    def sequences(self) -> list[np.ndarray]:
        """The sequences of event ids without gaps."""
        return [row[row != GAP] for row in self.matrix]

    @property
    def letters(self) -> list[str]:
        """One character for each symbol, as printed and as written to FASTA."""
        return letters_for(self.symbols)

    def column_of(self, sequence: int) -> np.ndarray:
        """Return the column in which each event of a sequence stands."""
        return np.flatnonzero(self.matrix[sequence] != GAP)

    def appended(self, held: Sequence[bool], event: int) -> Alignment:
        """Return the alignment with one more column: `event`, in the rows that hold it."""
        column = np.where(np.asarray(held, bool), event, GAP)[:, None].astype(np.int32)
        return replace(self, matrix=np.concatenate([self.matrix, column], axis=1))

    def to_fasta(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write the aligned rows as FASTA, with the characters of `letters`."""
        write_fasta(path, list(self.matrix), self.symbols, names)

    @classmethod
    def from_fasta(cls, path: str | os.PathLike[str], scoring: Scoring = "inverse") -> Alignment:
        """Read an alignment from FASTA, where all rows are equally long and "-" is a gap."""
        _, rows = read_fasta(path)
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            raise ValueError(
                f"{path} is not an alignment: its rows have {min(lengths)} to {max(lengths)} "
                "letters; equally long rows are needed (align() aligns sequences)"
            )
        ids, symbols = index_symbols([row.replace("-", "") for row in rows])
        matrix = np.full((len(rows), lengths.pop()), GAP, np.int32)
        for i, row in enumerate(rows):
            matrix[i, [k for k, letter in enumerate(row) if letter != "-"]] = ids[i]
        return cls(matrix, symbols, scoring_matrix(scoring, background(ids, len(symbols))))

    def __str__(self) -> str:
        return format_alignment(self.matrix, self.symbols, score=self.score)

    def __repr__(self) -> str:
        return (
            f"Alignment({len(self)} sequences, {self.n_columns} columns, "
            f"{len(self.symbols)} symbols)"
        )


def _bar(items: Any, name: str, progress: bool) -> Any:
    """Return what to go through, with a progress bar if one is asked for."""
    return tqdm(items, desc=name, leave=False) if progress else items


def pairwise_scores(
    sequences: Sequence[np.ndarray], scores: np.ndarray, gap: float = 0.0, *, progress: bool = False
) -> np.ndarray:
    """Return the score of the best alignment of every pair (N, N), each with itself included."""
    places, distinct = _distinct(sequences)
    if len(distinct) < len(sequences):
        return pairwise_scores(distinct, scores, gap, progress=progress)[np.ix_(places, places)]
    n = len(sequences)
    if n > 1:
        *_, second, longest = sorted(len(s) for s in sequences)
        check_memory(second, longest, len(scores), gap)  # before the time is spent
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    flat = (
        np.concatenate([np.asarray(s, np.int32) for s in sequences]) if n else np.empty(0, np.int32)
    )
    pairs, out = np.column_stack(np.tril_indices(n))[:, ::-1], np.zeros((n, n))
    parts = np.array_split(pairs, max(n, 1)) if progress else [pairs]
    for some in _bar(parts, "pairs", progress):
        found = kernels.pair_scores(flat, offsets, np.ascontiguousarray(some), scores, gap)
        out[some[:, 0], some[:, 1]] = out[some[:, 1], some[:, 0]] = found
    return out


def _distinct(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return for each sequence which of the different ones it is, and those."""
    seen: dict[bytes, int] = {}
    places, distinct = np.empty(len(sequences), int), []
    for i, sequence in enumerate(sequences):
        places[i] = seen.setdefault(np.asarray(sequence, np.int32).tobytes(), len(distinct))
        if places[i] == len(distinct):
            distinct.append(sequence)
    return places, distinct


def guide_tree(pair_scores: np.ndarray) -> np.ndarray:
    """Return the UPGMA tree over d_ij = 1 − s_ij / min(s_ii, s_jj) as a linkage matrix."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    own = np.diag(pair_scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        similarity = pair_scores / np.minimum.outer(own, own)
    distance = 1.0 - np.clip(np.nan_to_num(similarity, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    return linkage(squareform(distance, checks=False), method="average")


def check_memory(length_a: int, length_b: int, n_symbols: int, gap: float) -> None:
    """Refuse to align groups of so many columns if that takes too much memory."""
    needed = n_symbols * length_b * 8 + ((length_a + 1) * (length_b + 1) if gap else 0)
    if needed > _MAX_BYTES:
        raise MemoryError(
            f"aligning {length_a} with {length_b} columns of {n_symbols} symbols at gap cost "
            f"{gap:g} needs {needed / 2**30:.3g} GB, allowed are {_MAX_BYTES / 2**30:.3g}; use "
            "gap=0, fewer or shorter sequences (top_n), or fewer kinds of event"
        )


def match_groups(
    a: np.ndarray, b: np.ndarray, scores: np.ndarray, gap: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Align two groups, each an alignment matrix; return the score and the columns that match."""
    columns_a = kernels.columns_of(a, len(scores))
    columns_b = kernels.columns_of(b, len(scores))
    check_memory(a.shape[1], b.shape[1], len(scores), gap)
    cells = (a.shape[1] + 1) * (b.shape[1] + 1)
    if gap == 0.0 and cells <= _WHOLE:
        return kernels.whole_chain(*columns_a, *columns_b, scores)
    if gap == 0.0:
        tile = 64
        while 16 * cells / tile > _MAX_BYTES / 4:
            tile *= 2
        return kernels.chain(*columns_a, *columns_b, scores, tile)
    return kernels.table(*columns_a, len(a), *columns_b, len(b), scores, gap)


def _join(a: np.ndarray, b: np.ndarray, scores: np.ndarray, gap: float) -> tuple[float, np.ndarray]:
    """Align two groups, each an alignment matrix; return the score between them and both as one."""
    if gap == 0.0 and (a.shape[1] + 1) * (b.shape[1] + 1) <= _WHOLE:
        return kernels.join(a, b, scores)
    score, match_a, match_b = match_groups(a, b, scores, gap)
    return score, kernels.interleave(a, b, match_a, match_b)


def progressive(
    sequences: Sequence[np.ndarray],
    tree: np.ndarray,
    scores: np.ndarray,
    gap: float,
    progress: bool = False,
) -> list[np.ndarray]:
    """Align along a guide tree; return the alignment of the sequences below each inner node."""
    groups = [
        (np.ascontiguousarray(sequence, np.int32)[None, :], np.array([i]))
        for i, sequence in enumerate(sequences)
    ]
    for left, right in _bar(tree[:, :2].astype(int).tolist(), "progressive", progress):
        (a, rows_a), (b, rows_b) = groups[left], groups[right]
        if gap == 0.0 and (a.shape[1] + 1) * (b.shape[1] + 1) <= _WHOLE:
            groups.append(kernels.join_in_order(a, rows_a, b, rows_b, scores))
        else:
            rows = np.concatenate([rows_a, rows_b])
            order = np.argsort(rows)
            groups.append((_join(a, b, scores, gap)[1][order], rows[order]))
    return [matrix for matrix, _ in groups[len(sequences) :]]


def _refine(
    matrix: np.ndarray, scores: np.ndarray, gap: float, rounds: int, progress: bool
) -> np.ndarray:
    """Take out each sequence and align it again with the rest, while the sum of pairs grows."""
    if not rounds:
        return matrix
    n, still, totals = len(matrix), 0, None
    lengths = (matrix != GAP).sum(axis=1)
    longest = int(lengths.max(initial=0))
    if gap == 0.0 and n > 2 and not progress and lengths.sum() * longest <= _WHOLE:
        return kernels.refine(np.ascontiguousarray(matrix), rounds, scores)
    rows = [k for _ in range(rounds if n > 2 else 0) for k in range(n)]
    for k in _bar(rows, "refinement", progress):
        if still == n:  # nothing has moved since each of them was looked at
            break
        if gap == 0.0 and matrix.shape[1] * longest <= _WHOLE:
            if totals is None:
                totals = kernels.against(*kernels.columns_of(matrix, len(scores)), scores)
            better, matrix = kernels.improve_row(matrix, k, totals, scores)
        else:
            sequence = matrix[k][matrix[k] != GAP][None, :]
            new, joined = _join(kernels.without_row(matrix, k)[0], sequence, scores, gap)
            better = new > kernels.cross_score(matrix, k, scores, gap)
            if better:
                matrix = np.insert(joined[:-1], k, joined[-1], axis=0)
        still = 1 if better else still + 1
        totals = None if better else totals
    return matrix


def check_options(engine: str, gap: float) -> None:
    """Raise an error for an unknown engine or a gap cost that is none."""
    ENGINES.check(engine, "engine")
    GAP_COST.check(gap, "gap")


def align_ids(
    sequences: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    scores: np.ndarray,
    *,
    gap: float = 0.0,
    engine: str = "native",
    refine: int = 1,
    tree: np.ndarray | None = None,
    matrix: np.ndarray | None = None,
    progress: bool = False,
) -> Alignment:
    """Align sequences of event ids under a scoring matrix; see `align`.

    A guide tree may be given, and with it the `matrix` that aligning along it gave.
    """
    n = len(sequences)
    check_options(engine, gap)
    # A pair of rows has at most as many columns with an event as it has events.
    steps = sum(len(s) for s in sequences)
    scores, step = quantise(scores, n * max(steps, 1))
    gap = on_grid(gap, step)
    if n == 1:
        return Alignment(np.asarray(sequences[0], np.int32)[None, :], symbols, scores, gap)
    if tree is None:
        tree = guide_tree(pairwise_scores(sequences, scores, gap, progress=progress))
    if engine == "clustalw":
        from align_rudder.clustalw import clustalw_align

        matrix = clustalw_align(sequences, scores, tree, gap)
    else:
        if matrix is None:
            matrix = progressive(sequences, tree, scores, gap, progress)[-1]
        matrix = _refine(matrix, scores, gap, refine, progress)
    return Alignment(matrix, symbols, scores, gap, tree)


def align(
    sequences: Sequence[Iterable[Hashable]],
    scoring: Scoring = "inverse",
    *,
    gap: float = 0.0,
    engine: str = "native",
    refine: int = 1,
    alpha: float = -1.0,
    epsilon: float = 0.0,
    progress: bool = False,
) -> Alignment:
    """Align two or more sequences of any hashable symbols.

    Args:
        sequences: The sequences; an empty one becomes a row of gaps.
        scoring: "inverse" (1/p_i on the diagonal), "log", "karlin-altschul", or a symmetric matrix
            over the symbols in sorted order.
        gap: Cost of each event that stands beside a gap, for each pair of sequences.
        engine: "native", or "clustalw" for the program of that name, where it is installed.
        refine: Rounds in which every sequence is taken out and aligned again.
        alpha: Score of a mismatch ("inverse", "log").
        epsilon: ε of the Karlin–Altschul scores.
        progress: Whether to show progress bars.

    Returns:
        The alignment; `print` shows it.
    """
    ids, symbols = index_symbols(sequences)
    if len(ids) < 2:
        raise ValueError(f"got {len(ids)} sequence(s); at least two are needed to align")
    p = background(ids, len(symbols))
    scores = scoring_matrix(scoring, p, alpha=alpha, epsilon=epsilon)
    return align_ids(ids, symbols, scores, gap=gap, engine=engine, refine=refine, progress=progress)
