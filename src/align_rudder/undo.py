"""Undo: events that take back others, so that progress can be lost.

Which do is said by hand, or found by encoders that see what is held (`events.losses`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from align_rudder.episodes import Episode
from align_rudder.events import Encoded, EventEncoder, Vocabulary
from align_rudder.sequences import NO_EVENT

__all__ = ["FOUND", "check_undo", "undo_table", "with_undo", "without_undone"]

Undo = Mapping[Hashable, Hashable] | str
"""From the symbol of an event to that of the event that it takes back; or "auto"."""
FOUND = "auto"


def check_undo(undo: Undo | None) -> None:
    """Raise a `ValueError` unless this says which event takes back which."""
    if undo is None or (isinstance(undo, str) and undo == FOUND):
        return
    if not isinstance(undo, Mapping):
        raise ValueError(
            f'undo={undo!r}; "auto" to find losses in what is held, None for none, or a dict from '
            'the event that undoes to the one undone is needed, as in {"drop key": "key"}'
        )
    for pair in undo.items():
        for symbol in pair:
            if not isinstance(symbol, Hashable):
                raise ValueError(
                    f"undo={undo!r} has {symbol!r}, which is no symbol; each event that undoes "
                    "takes back one other"
                )
    if both := [symbol for symbol in undo if symbol in set(undo.values())]:
        raise ValueError(f"undo has {both[0]!r} both as what undoes and as what is undone")


def with_undo(
    encoder: EventEncoder, undo: Undo | None, episodes: Sequence[Episode] = ()
) -> EventEncoder:
    """Return the encoder with the events that undo, which good demonstrations may not hold."""
    if isinstance(undo, str):
        return encoder.with_losses(episodes) if episodes else encoder
    if not undo or not isinstance(encoder, Vocabulary):
        return encoder
    return encoder.extended([[*undo, *undo.values()]])


def undo_table(encoder: EventEncoder, undo: Undo | None) -> np.ndarray | None:
    """Return for each event those that it takes back (n + 1, w), filled up with -1; None: none."""
    if isinstance(undo, str):
        losses = encoder.base.losses_
        return None if losses is None else _padded(losses.table(), encoder.n_events + 1)
    if not undo:
        return None
    ids = {symbol: i for i, symbol in enumerate(encoder.symbols_)}
    if missing := [s for pair in undo.items() for s in pair if s not in ids]:
        raise ValueError(
            f"undo names {missing[0]!r}, which is no event of the demonstrations; there are "
            f"{', '.join(map(repr, list(ids)[:20]))}"
        )
    table = np.full((encoder.n_events + 1, 1), -1, np.int64)
    for undoing, undone in undo.items():
        table[ids[undoing], 0] = ids[undone]
    return table


def _padded(table: np.ndarray, n: int) -> np.ndarray:
    """Return a table with rows for "done" and the unknown event, which take back nothing."""
    return np.vstack([table[:-1], np.full((n - len(table) + 1, table.shape[1]), -1)])


def without_undone(encoded: Encoded, undoes: np.ndarray | None) -> Encoded:
    """Return an episode without the events that were taken back, and those that took them back."""
    if undoes is None:
        return encoded
    events = encoded.events.copy()
    for t, event in enumerate(encoded.events):
        taken = undoes[min(event, len(undoes) - 1)]
        if event != NO_EVENT and taken[0] >= 0:
            events[t] = NO_EVENT
            past = np.flatnonzero(np.isin(events[:t], taken[taken >= 0]))
            if len(past):
                events[past[-1]] = NO_EVENT
    return Encoded(encoded.start, events)
