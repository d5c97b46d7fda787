"""Undo: events that take back others, so that progress can be lost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from align_rudder.events import Encoded, EventEncoder, Vocabulary
from align_rudder.sequences import NO_EVENT

__all__ = ["check_undo", "undo_table", "with_symbols", "without_undone"]

Undo = Mapping[Hashable, Hashable]
"""From the symbol of an event to that of the event that it takes back."""


def check_undo(undo: Undo | None) -> None:
    """Raise a `ValueError` unless this says which event takes back which."""
    if undo is None:
        return
    if not isinstance(undo, Mapping) or not undo:
        raise ValueError(
            f"undo={undo!r}; a dict from the event that undoes to the one undone is needed, as in "
            '{"drop key": "key"}'
        )
    if both := [symbol for symbol in undo if symbol in set(undo.values())]:
        raise ValueError(f"undo has {both[0]!r} both as what undoes and as what is undone")


def with_symbols(encoder: EventEncoder, undo: Undo | None) -> EventEncoder:
    """Return the encoder with the symbols of `undo`, which good demonstrations may not hold."""
    if undo is None or not isinstance(encoder, Vocabulary):
        return encoder
    return encoder.extended([[*undo, *undo.values()]])


def undo_table(encoder: EventEncoder, undo: Undo | None) -> np.ndarray | None:
    """Return for each event (n + 1,) the one that it takes back, -1 for none."""
    if undo is None:
        return None
    ids = {symbol: i for i, symbol in enumerate(encoder.symbols_)}
    if missing := [s for pair in undo.items() for s in pair if s not in ids]:
        raise ValueError(
            f"undo names {missing[0]!r}, which is no event of the demonstrations; there are "
            f"{', '.join(map(repr, list(ids)[:20]))}"
        )
    table = np.full(encoder.n_events + 1, -1, np.int64)
    for undoing, undone in undo.items():
        table[ids[undoing]] = ids[undone]
    return table


def without_undone(encoded: Encoded, undoes: np.ndarray | None) -> Encoded:
    """Return an episode without the events that were taken back, and those that took them back."""
    if undoes is None:
        return encoded
    events = encoded.events.copy()
    for t, event in enumerate(encoded.events):
        if event != NO_EVENT and undoes[min(event, len(undoes) - 1)] >= 0:
            events[t] = NO_EVENT
            past = np.flatnonzero(events[:t] == undoes[event])
            if len(past):
                events[past[-1]] = NO_EVENT
    return Encoded(encoded.start, events)
