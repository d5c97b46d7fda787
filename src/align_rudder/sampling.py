"""(III) Many demonstrations: a sample is aligned, and the others are added to its alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from align_rudder.alignment import match_groups
from align_rudder.groups import Part
from align_rudder.sequences import GAP

__all__ = ["attach", "attach_to_tree", "sample_of"]

_MOST = 300
_SAMPLE = 200
_LEAST_SHARE = 0.5


def sample_of(n: int) -> np.ndarray:
    """Return the indices of the demonstrations that are aligned first: all, if they are not many.

    Equal ones count as often as they are there, so that a sample shows what most do.
    """
    if n <= _MOST:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))


def attach(
    parts: Sequence[Part], chosen: np.ndarray, sequences: Sequence[np.ndarray]
) -> list[Part]:
    """Return the strategies of a sample with all demonstrations that belong to them.

    Args:
        parts: The strategies of the sample.
        chosen: The indices of the sample.
        sequences: Event ids of all demonstrations.

    Notes:
        A sequence belongs to the strategy whose alignment it matches best, if it matches half as
        well as a member does in the middle. It is put beside the alignment's columns, which stay
        as they are; what matches none stands in columns in between, in order, side by side.
    """
    found: dict[bytes, tuple[int, np.ndarray, np.ndarray] | None] = {}
    least = [_LEAST_SHARE * _typical(part) for part in parts]
    rows: list[list[tuple[int, np.ndarray, np.ndarray]]] = [[] for _ in parts]
    sampled = set(chosen.tolist())
    for i, sequence in enumerate(sequences):
        if i in sampled or not len(sequence):
            continue
        key = sequence.tobytes()
        if key not in found:
            found[key] = _best(parts, least, sequence)
        if (best := found[key]) is not None:
            rows[best[0]].append((i, *best[1:]))
    return [
        _widened(part, chosen[part.members], rows[k], sequences) for k, part in enumerate(parts)
    ]


def _typical(part: Part) -> float:
    """Return the median score of a strategy's demonstrations with its alignment."""
    alignment = part.alignment
    scores = [
        match_groups(alignment.matrix, sequence[None], alignment.scores, alignment.gap)[0]
        for sequence in alignment.sequences[:32]
    ]
    return float(np.median(scores))


def _best(
    parts: Sequence[Part], least: Sequence[float], sequence: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray] | None:
    best, most = None, 0.0
    for k, part in enumerate(parts):
        aligned = part.alignment
        score, columns, events = match_groups(
            aligned.matrix, sequence[None].astype(np.int32), aligned.scores, aligned.gap
        )
        if score >= least[k] and score / len(aligned) > most:
            best, most = (k, columns, events), score / len(aligned)
    return best


def _widened(
    part: Part,
    members: np.ndarray,
    rows: Sequence[tuple[int, np.ndarray, np.ndarray]],
    sequences: Sequence[np.ndarray],
) -> Part:
    """Return a strategy with more rows, and with columns for what they have in between."""
    base = part.alignment.matrix
    length = base.shape[1]
    extra = np.zeros(length + 1, int)
    gaps = []
    for i, columns, events in rows:
        following = np.full(len(sequences[i]), length)
        following[: events[-1] + 1 if len(events) else 0] = np.repeat(
            columns, np.diff(events, prepend=-1)
        )
        free = np.ones(len(sequences[i]), bool)
        free[events] = False
        counts = np.bincount(following[free], minlength=length + 1)
        extra = np.maximum(extra, counts)
        gaps.append((following, free))
    place = np.arange(length) + np.cumsum(extra)[:-1]
    first = np.concatenate([[0], place + 1])  # where the columns before each old one begin
    everyone = np.concatenate([members, [i for i, *_ in rows]]).astype(int)
    matrix = np.full((len(everyone), length + extra.sum()), GAP, np.int32)
    matrix[: len(members), place] = base
    for row, ((i, columns, events), (following, free)) in enumerate(
        zip(rows, gaps, strict=True), len(members)
    ):
        sequence = sequences[i]
        matrix[row, place[columns]] = sequence[events]
        before = following[free]
        nth = np.arange(len(before)) - np.searchsorted(before, before)
        matrix[row, first[before] + nth] = sequence[free]
    order = np.argsort(everyone)
    alignment = part.alignment
    tree = (
        alignment.tree
        if not rows
        else attach_to_tree(
            alignment.tree, np.searchsorted(everyone[order], members), alignment_rows(matrix[order])
        )
    )
    return part._replace(
        members=everyone[order],
        alignment=replace(alignment, matrix=matrix[order], tree=tree),
        columns=None if part.columns is None else place[part.columns],
    )


def alignment_rows(matrix: np.ndarray) -> list[np.ndarray]:
    """Return the sequences of an alignment matrix."""
    return [row[row != GAP] for row in matrix]


def attach_to_tree(
    tree: np.ndarray | None, chosen: np.ndarray, sequences: Sequence[np.ndarray]
) -> np.ndarray:
    """Return a guide tree over all sequences, made of one over a sample.

    Each other sequence joins the one of the sample that has most pairs of neighbouring events in
    common with it (k-mers of two), at distance 0: below all that the sample's tree tells.
    """
    n, m = len(sequences), len(chosen)
    tree = np.empty((0, 4)) if tree is None else tree
    profiles = _kmers(sequences)
    others = np.setdiff1d(np.arange(n), chosen)
    nearest = (profiles[others] @ profiles[chosen].T).argmax(axis=1)
    node, size = {k: int(chosen[k]) for k in range(m)}, np.ones(m)
    out = np.empty((n - 1, 4))
    for row, (i, k) in enumerate(zip(others.tolist(), nearest.tolist(), strict=True)):
        size[k] += 1
        out[row] = min(node[k], i), max(node[k], i), 0.0, size[k]
        node[k] = n + row
    sizes = list(size)
    for row, (left, right, distance, _) in enumerate(tree, len(others)):
        a, b = node[int(left)], node[int(right)]
        sizes.append(sizes[int(left)] + sizes[int(right)])
        out[row] = min(a, b), max(a, b), distance, sizes[-1]
        node[len(node)] = n + row
    return out


def _kmers(sequences: Sequence[np.ndarray], width: int = 512) -> np.ndarray:
    """Return how often sequences have pairs of neighbouring events, hashed, as unit vectors."""
    out = np.zeros((len(sequences), width), np.float32)
    for row, sequence in zip(out, sequences, strict=True):
        ids = np.asarray(sequence, np.int64)
        pairs = (ids[:-1] * 31 + ids[1:] * 7919 + 1) % width
        np.add.at(row, pairs, 1.0)
        np.add.at(row, ids % width, 0.5)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)
