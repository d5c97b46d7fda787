"""Where on the alignment an episode stands: which event a step is, and what it changes; compiled.

`events` is what `model_tables.events_of` returns, `scorer` the tables of a model's scorer.
"""

from __future__ import annotations

from align_rudder._compile import njit
from align_rudder.redistribution import advance
from align_rudder.tracking import take_back

__all__ = ["add_event", "note_kind", "step_event"]


@njit(cache=True, nogil=True)
def step_event(events, tables, s, a, k, last):
    """Return the event of a step with outcome k, -1 for none; `last` is the region before."""
    event_of, labels, level, done, _ = events
    if tables[2][s, a, k] >= level:
        return done
    if labels.size:
        label = labels[s, a, k]
        return event_of[label] if label >= 0 else -1
    entered = event_of[tables[0][s, a, k]]
    return -1 if entered == last else entered


@njit(cache=True, nogil=True)
def note_kind(row, history, count, event, score, cell, undoes, wide):
    """Add an event where each kind is paid once, in any order; return as `add_event` does.

    `row` holds how often each kind is there, and the cell is how many kinds that pay are.
    """
    change, kind = 1, event
    if len(undoes):
        if undoes[event, 0] >= 0:
            at = count - 1
            while at >= 0 and not (undoes[event] == history[at]).any():
                at -= 1
            if at < 0:
                return score, cell, count
            change, kind = -1, history[at]
            history[at : count - 1] = history[at + 1 : count].copy()
        else:
            history[count] = event
        count += change
    held = row[kind]
    row[kind] += change
    if (held == 0.0 or row[kind] == 0.0) and wide[kind, 0] > 0.0:
        return score + change * wide[kind, 0], cell + change, count
    return score, cell, count


@njit(cache=True, nogil=True)
def add_event(row, history, count, event, score, cell, events, scorer):
    """Add an event; return score, cell and the number of events that count.

    A scorer without bounds has no profile: with several places it is an automaton, whose cell is
    its state (`wide[event, cell]` is paid, `places[cell, event]` follows); else each kind of event
    is paid once.
    """
    wide, bounds, gap, skipped, places = scorer
    undoes = events[4]
    if not len(bounds):
        if len(places) > 1:
            return score + wide[event, cell], places[cell, event], count
        return note_kind(row, history, count, event, score, cell, undoes, wide)
    if len(undoes):
        if undoes[event, 0] >= 0:
            before = (score, cell, 0)
            found = take_back(
                row, history, count, undoes[event], before, wide, bounds, gap, skipped, places
            )
            return found[1], found[2], found[0]
        history[count] = event
        count += 1
    score, cell = advance(row, event, wide, bounds, gap, skipped, cell)
    return score, cell, count
