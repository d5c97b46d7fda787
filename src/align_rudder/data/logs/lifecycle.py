"""Which events of a trace are its activities, where XES says how far each activity has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["happened"]

_OPENS = ("schedule", "start")
_GOES_ON = ("assign", "reassign", "suspend", "resume")
_ENDS = ("complete", "ate_abort", "pi_abort", "withdraw", "autoskip", "manualskip")


def happened(events: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the events that are the activities of a trace, each activity once.

    Events of one activity with transitions of the standard lifecycle are one instance until it
    ends: the one with the same `concept:instance`, else the oldest of that name that is open. An
    instance is where it completes; one that never does, as it was aborted or is still running, is
    where it began. A second start (or schedule) while one is open opens another. Events without a
    transition, or with one that the standard does not know, stand for themselves.

    Args:
        events: The attributes of each event.

    Example:
        >>> def event(name, transition):
        ...     return {"concept:name": name, "lifecycle:transition": transition}
        >>> happened([event("ask", "start"), event("ask", "complete"), event("pay", "start")])
        [1, 2]
        >>> happened([event("ask", "start"), event("pay", "start"), event("ask", "ate_abort")])
        [0, 1]
    """
    places: list[int] = []
    # Of each activity the open instances, the oldest first: where it is placed, and what it has.
    running: dict[tuple[str, str], list[tuple[int, set[str]]]] = {}
    for i, event in enumerate(events):
        transition = str(event.get("lifecycle:transition", "")).strip().lower()
        if transition not in (*_OPENS, *_GOES_ON, *_ENDS):
            places.append(i)
            continue
        key = str(event["concept:name"]), str(event.get("concept:instance", ""))
        instances = running.setdefault(key, [])
        again = transition in _OPENS and all(transition in seen for _, seen in instances)
        if not instances or again:
            instances.append((len(places), {transition}))
            places.append(i)
        else:
            _go_on(instances, transition)
        if transition in _ENDS:
            place, _ = instances.pop(0)
            places[place] = i if transition == "complete" else places[place]
    return sorted(places)


def _go_on(instances: list[tuple[int, set[str]]], transition: str) -> None:
    """Note a transition at the oldest instance that has not had it."""
    seen = next((seen for _, seen in instances if transition not in seen), instances[0][1])
    seen.add(transition)
