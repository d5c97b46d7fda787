"""(III) Aligning again with other scores, where that has more evidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from align_rudder.agreement import agreement
from align_rudder.alignment import Alignment, align_ids, progressive
from align_rudder.branches import Guide, groups_along
from align_rudder.evidence import Kept, directed_evidence, kept_columns
from align_rudder.filling import filled
from align_rudder.groups import LEAST, Group, Part
from align_rudder.null import Null
from align_rudder.scoring import log_frequency, quantise
from align_rudder.sequences import GAP
from align_rudder.subsequence import along, central_subsequence, common_subsequence

__all__ = ["n_terms", "pruned", "with_log_scores"]

_ROUNDS = 5  # of refinement of the alignment with −ln p
_NEAR = -10.0  # nats of evidence below which an alignment is not refined further: noise has less
_FEWEST, _ALIKE = 3, 1.5  # sequences, and standard deviations beyond what the null's chain makes
_FULL = 0.8  # share of a sequence's events in kept columns with which none is looked for
_CENTRAL = 0.65  # share of the sequences that must hold what a central subsequence has
_FAINT = 1e-3  # what events that are in no kept column score when the others are aligned again


def with_log_scores(
    sequences: Sequence[np.ndarray],
    symbols: Sequence[Hashable],
    guide: Guide,
    gap: float,
    null: Null,
    engine: str,
    refine: int,
    directed: Callable[[], bool],
    progress: bool,
) -> tuple[Part | None, list[Group], Guide]:
    """Look again, with scores −ln p, where the model's scores show no strategy.

    They get a tree of their own. If that shows nothing either, but is near to it, they are
    aligned along the tree of the model's scores.

    Returns:
        All demonstrations as one strategy, or several groups of them, or neither; and what they
        were found along.
    """

    def refined(guide: Guide, first: int, then: int) -> tuple[Alignment, Kept]:
        """Align for some rounds, and for some more if that comes near to a strategy."""
        new, matrix = None, guide.matrices[-1]
        for rounds in (first, then):
            options = {"gap": gap, "engine": engine, "tree": guide.tree, "matrix": matrix}
            new = align_ids(sequences, symbols, guide.scores, refine=rounds, **options)
            matrix, kept = new.matrix, kept_columns(new.matrix, null)
            if not len(kept.columns) and kept.nearest < _NEAR:
                break
        return replace(new, scores=scores), kept

    scores = quantise(guide.scores, n_terms(sequences))[0]
    other = Guide.of(sequences, _plain(sequences, null), gap, progress)
    found = [refined(guide, 0, refine), refined(other, 1, _ROUNDS - 1)]
    found += [_in_common(found[0][0], null), _central(found[0][0], null)]
    whole = _whole(found, null, engine, refine)
    if whole is not None:
        return whole, [], other
    groups = groups_along(sequences, other, gap, null, directed)
    if groups or found[1][1].nearest < _NEAR:
        return None, groups, other if groups else guide
    matrices = progressive(sequences, guide.tree, other.scores, gap, progress)
    last = Guide(other.scores, other.pairs, guide.tree, matrices)
    whole = _whole([refined(last, _ROUNDS, 0)], null, engine, refine)
    if whole is None and _alike(sequences, other, gap, null):
        return Part(np.arange(len(sequences)), found[1][0]), [], other
    return whole, [], guide


def pruned(part: Part, null: Null, engine: str, refine: int, evident: bool) -> Part:
    """Return a strategy with the columns that are more than chance, aligned again for them.

    An alignment with scores −ln p, to which rare events matter less, takes its place where there
    is more evidence for it. That begins with the present one if the strategy is `evident` from
    it. So does one along what all sequences hold in order, if it has no fewer columns. If no column
    is more than chance, `columns` stays None, and a share decides.
    """
    alignment = part.alignment
    kept = kept_columns(alignment.matrix, null)
    if len(alignment) > 1:
        plain = _plain(alignment.sequences, null)
        matrix, rounds = (alignment.matrix, 1) if evident else (None, _ROUNDS)
        alignment, kept = _again(alignment, kept, null, engine, plain, rounds, matrix)
        if not _is_full(alignment, kept):
            other, found = _in_common(alignment, null)
            if found.evidence > kept.evidence and len(found.columns) >= len(kept.columns):
                alignment, kept = other, found
        other, found = _central(alignment, null)
        if found.evidence > kept.evidence:
            alignment, kept = other, found
    if not len(kept.columns):
        return part
    alignment, kept = _for_kept(alignment, kept, null, engine, refine)
    return Part(part.members, alignment, kept.columns)


def _alike(sequences: Sequence[np.ndarray], guide: Guide, gap: float, null: Null) -> bool:
    """Return whether sequences agree more than what the null's chain makes.

    For few of them, of which no chain of columns is evident by itself.
    """
    n = len(sequences)
    if n < _FEWEST:
        return False
    pairs = np.column_stack(np.triu_indices(n, 1))
    value, z = agreement(sequences, pairs, guide.pairs, guide.scores, gap, null, samples=64)
    return value > 0 and z >= _ALIKE


def _whole(
    found: Sequence[tuple[Alignment, Kept]], null: Null, engine: str, refine: int
) -> Part | None:
    """Return all demonstrations as one strategy if one of their alignments shows it."""
    for alignment, kept in sorted(found, key=_evidence, reverse=True):
        if not len(kept.columns):
            continue
        alignment, kept = _for_kept(alignment, kept, null, engine, refine)
        directed = directed_evidence(alignment.matrix, kept, null, enough=0.0)
        if kept.evidence >= LEAST and directed > 0:
            return Part(np.arange(len(alignment)), alignment, kept.columns)
    return None


def _in_common(alignment: Alignment, null: Null) -> tuple[Alignment, Kept]:
    """Align along what all sequences hold in the same order.

    Where none lacks an event that matters, but many events lie between, this finds more.
    """
    sequences = alignment.sequences
    matrix = along(sequences, common_subsequence(sequences, len(null.p)))
    return replace(alignment, matrix=matrix), kept_columns(matrix, null)


def _central(alignment: Alignment, null: Null) -> tuple[Alignment, Kept]:
    """Align along what most sequences hold in the same order.

    It goes by the events that matter alone, where an alignment adds up the scores of all.
    """
    sequences = alignment.sequences
    matrix = along(sequences, central_subsequence(sequences, len(null.p), _CENTRAL))
    return replace(alignment, matrix=matrix), kept_columns(matrix, null)


def _evidence(found: tuple[Alignment, Kept]) -> float:
    return found[1].evidence


def _for_kept(
    alignment: Alignment, kept: Kept, null: Null, engine: str, refine: int
) -> tuple[Alignment, Kept]:
    """Line up the events of kept columns once more; others hardly count for that."""
    for _ in range(2 if len(alignment) > 1 else 0):
        before, strong = kept, np.zeros(len(alignment.scores) + 1, bool)
        strong[alignment.matrix[:, kept.columns]] = True  # a gap is the last
        faint = np.flatnonzero(~strong[:-1])
        if len(faint):
            scores = alignment.scores.copy()
            scores[faint, faint] *= _FAINT
            alignment, kept = _again(alignment, kept, null, engine, scores, refine)
        if kept is before:
            break
    if _is_full(alignment, kept):
        return alignment, kept
    matrix, kept = filled(alignment.matrix, kept, null)
    return replace(alignment, matrix=matrix), kept


def _is_full(alignment: Alignment, kept: Kept) -> bool:
    """Return whether kept columns have so many of the events that hardly any can be missing."""
    return len(kept.columns) > _FULL * (alignment.matrix != GAP).sum(axis=1).mean()


def _again(
    alignment: Alignment,
    kept: Kept,
    null: Null,
    engine: str,
    scores: np.ndarray,
    refine: int,
    matrix: np.ndarray | None = None,
) -> tuple[Alignment, Kept]:
    """Align with other scores, from a matrix or along the tree; return what has more evidence."""
    new = align_ids(
        alignment.sequences,
        alignment.symbols,
        scores,
        gap=alignment.gap,
        engine=engine,
        refine=refine,
        tree=alignment.tree,
        matrix=matrix,
    )
    found = kept_columns(new.matrix, null)
    if found.evidence <= kept.evidence:
        return alignment, kept
    return replace(new, scores=alignment.scores, gap=alignment.gap), found


def _plain(sequences: Sequence[np.ndarray], null: Null) -> np.ndarray:
    """Return the scores −ln p of events."""
    return quantise(log_frequency(null.p), n_terms(sequences))[0]


def n_terms(sequences: Sequence[np.ndarray]) -> int:
    """Return how many scores a sum over an alignment has at most (`quantise`)."""
    return len(sequences) * max(sum(len(s) for s in sequences), 1)
