"""(IV) The profile: column frequencies, position-specific scores, consensus."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.scoring import solve_lambda
from align_rudder.sequences import GAP
from align_rudder.text import letters_for

__all__ = ["Profile"]


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """What the aligned demonstrations have in common, column by column.

    Attributes:
        frequencies: q (n, L): share of all sequences with event i in column t; gaps count
            against a column, so a column's frequencies may sum to less than 1.
        background: p (n,): relative frequency of each event by chance, or in the demonstrations.
        pssm: s (n, L): position-specific scores, −∞ where q is 0.
        lambdas: λ*_t (L,).
        columns: The column of the alignment that each profile column comes from.
        symbols: The symbol of each event id.

    Notes:
        s_{i,t} = ln(q_{i,t} / p_i) / λ*_t, where λ*_t is the positive root of
        Σ_i p_i (q_{i,t} / p_i)^λ = 1. If a column has no gaps, λ*_t = 1. A column in which no
        event is more frequent than in the background has no positive root and no positive score:
        it can only cost and is left out of the profile.

    Example:
        >>> from align_rudder import align
        >>> profile = Profile.from_alignment(align(["ABCD", "ABD", "XACD"]))
        >>> "".join(profile.consensus(threshold=0.8))
        'AD'
        >>> profile
        Profile(5 columns, 5 events, consensus at 0.8: AD)
    """

    frequencies: np.ndarray
    background: np.ndarray
    pssm: np.ndarray
    lambdas: np.ndarray
    columns: np.ndarray
    symbols: Sequence[Hashable]

    @classmethod
    def from_alignment(
        cls,
        alignment: Alignment,
        background: np.ndarray | None = None,
        min_conservation: float = 0.0,
        *,
        columns: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Profile:
        """Count the columns of an alignment and score them against the background.

        Args:
            alignment: The alignment.
            background: Frequency of each event; None for that in the alignment.
            min_conservation: Keep only columns whose top event more than this share of the
                sequences holds; if there is none, all are kept.
            columns: Instead, the columns to keep (those of them that score).
            weights: How much each sequence counts, 1 on average; None for all the same.
        """
        matrix, n_events = alignment.matrix, len(alignment.symbols)
        n, length = matrix.shape
        counts = np.zeros((n_events, length))
        rows, at = np.nonzero(matrix != GAP)
        np.add.at(counts, (matrix[rows, at], at), 1.0)
        held = counts.max(axis=0, initial=0.0) / max(n, 1)
        if weights is not None:
            counts[:] = 0.0
            np.add.at(counts, (matrix[rows, at], at), weights[rows])
        if background is None:
            background = counts.sum(axis=1) / max(counts.sum(), 1.0)
        background = np.asarray(background, float)
        if background.shape != (n_events,) or not (background >= 0).all():
            raise ValueError(
                f"background has shape {background.shape}; a frequency for each of the {n_events} "
                "events is needed"
            )
        if ((background == 0) & (counts.sum(axis=1) > 0)).any():
            raise ValueError("background is 0 for an event that occurs; it must be positive there")
        frequencies = np.minimum(counts / max(n, 1), 1.0)
        log_odds = np.full(frequencies.shape, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(frequencies / background[:, None], where=frequencies > 0, out=log_odds)
        single = (background == 1.0).any()
        if single:
            # With one event only, q ≤ p = 1 and every score would be 0; count matches instead.
            log_odds = np.where(frequencies > 0, frequencies, -np.inf)
        useful = (log_odds > 0).any(axis=0)
        shared = useful & (held > min_conservation + 1e-12)
        if columns is not None:
            shared = useful & np.isin(np.arange(length), columns)
        kept = np.flatnonzero(shared if shared.any() else useful)
        lambdas = np.ones(len(kept)) if single else solve_lambda(background, log_odds[:, kept])
        lambdas = np.where(np.isfinite(lambdas), lambdas, 1.0)
        return cls(
            frequencies[:, kept],
            background,
            log_odds[:, kept] / lambdas,
            lambdas,
            kept,
            alignment.symbols,
        )

    def __len__(self) -> int:
        return self.pssm.shape[1]

    @property
    def conservation(self) -> np.ndarray:
        """Share of all sequences that hold the top event of each column (L,)."""
        return self.frequencies.max(axis=0, initial=0.0)

    @property
    def top_events(self) -> np.ndarray:
        """The most frequent event of each column (L,)."""
        if not len(self):
            return np.empty(0, int)
        return self.frequencies.argmax(axis=0)

    def consensus(self, threshold: float = 0.8) -> list[Hashable]:
        """Return the symbols of the columns whose top event reaches that share of all sequences."""
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold={threshold} is a share of the sequences, above 0 up to 1")
        reached = self.conservation >= threshold - 1e-12
        return [self.symbols[e] for e in self.top_events[reached]]

    def table(self, max_columns: int = 60) -> str:
        """Return a table for people: each column's top event, its share, score and λ*."""
        lines = [f"{'column':>6}  {'share':>6}  {'score':>7}  {'λ*':>6}  event"]
        top = self.top_events
        for t in range(min(len(self), max_columns)):
            lines.append(
                f"{t:>6}  {self.conservation[t]:>6.0%}  {self.pssm[top[t], t]:>7.3f}  "
                f"{self.lambdas[t]:>6.3f}  {self.symbols[top[t]]}"
            )
        if len(self) > max_columns:
            lines.append(f"… and {len(self) - max_columns} more columns")
        return "\n".join(lines)

    def __repr__(self) -> str:
        letters = dict(zip(self.symbols, letters_for(self.symbols), strict=True))
        consensus = [letters[s] for s in self.consensus()]
        shown = "".join(consensus) if all(len(c) == 1 for c in consensus) else " ".join(consensus)
        return (
            f"Profile({len(self)} columns, {len(self.symbols)} events, consensus at 0.8: "
            f"{shown or 'none'})"
        )

    def __str__(self) -> str:
        return self.table()
