"""(I) Events: from episodes to sequences of few, recurring events."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.episodes import Episode
from align_rudder.events.base import Encoded, EventEncoder
from align_rudder.events.candidates import by_type, candidates
from align_rudder.events.combined import CombinedEvents
from align_rudder.events.deltas import DeltaEvents
from align_rudder.events.done import DoneEvents, with_done
from align_rudder.events.encoders import FunctionEvents, NoEvents, SymbolEvents, Vocabulary
from align_rudder.events.features import FeatureEvents
from align_rudder.events.states import StateEvents
from align_rudder.events.successor import successor_features, successor_representation
from align_rudder.files import Choice

if TYPE_CHECKING:
    from align_rudder.events.clusters import EventClustering

__all__ = [
    "NAMES",
    "CombinedEvents",
    "DeltaEvents",
    "DoneEvents",
    "Encoded",
    "EventClustering",
    "EventEncoder",
    "FeatureEvents",
    "FunctionEvents",
    "NoEvents",
    "StateEvents",
    "SymbolEvents",
    "Vocabulary",
    "candidates",
    "choose_encoder",
    "encoder_from_state",
    "given_encoder",
    "named_encoder",
    "successor_features",
    "successor_representation",
    "with_done",
]

_ENCODERS: dict[str, type[EventEncoder]] = {
    c.__name__: c
    for c in (DeltaEvents, FeatureEvents, FunctionEvents, NoEvents, StateEvents, SymbolEvents)
}
_ELSEWHERE = {"InventoryEvents": "align_rudder.minerl.events"}
_REGIONS: dict[str, type[StateEvents | DeltaEvents | FeatureEvents]] = {
    "state": StateEvents,
    "delta": DeltaEvents,
    "feature": FeatureEvents,
}
NAMES = ("auto", *_REGIONS, "observation", "action")
"""Names of the encoders, for `named_encoder`."""


def __getattr__(name: str) -> Any:
    if name == "EventClustering":  # scikit-learn takes a second to import
        from align_rudder.events.clusters import EventClustering

        return EventClustering
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def choose_encoder(
    events: EventEncoder | Callable[..., Any] | None, episodes: Sequence[Episode]
) -> EventEncoder:
    """Return the encoder asked for, or the one that the type of the observations suggests.

    A model asks for more (`align_rudder.choice`): which of the `candidates` tells held-out
    demonstrations from chance.
    """
    given = given_encoder(events)
    return by_type(episodes) if given is None else given


def given_encoder(events: EventEncoder | Callable[..., Any] | None) -> EventEncoder | None:
    """Return the encoder asked for, None if it is to be found; a `ValueError` for anything else."""
    if isinstance(events, EventEncoder):
        return events
    if isinstance(events, type) and issubclass(events, EventEncoder):
        raise ValueError(
            f"events is the class {events.__name__}; give one of it: {events.__name__}()"
        )
    if callable(events):
        return FunctionEvents(events)
    if events is not None:
        named = events if isinstance(events, str) else ""
        meant = _REGIONS.get(named.removesuffix("s").lower())
        hint = f" {events!r} is {meant.__name__}() here." if meant else ""
        raise ValueError(
            f"events={events!r} is neither an encoder nor a function.{hint} Give "
            "StateEvents(), DeltaEvents(), FeatureEvents() or SymbolEvents(), a sum of them, a "
            "function (obs, action, reward, next_obs, info) -> symbol or None, or None to choose "
            "by the demonstrations"
        )
    return None


def named_encoder(
    name: str, *, max_events: int | None = None, keys: Sequence[str] | None = None
) -> EventEncoder | None:
    """Return the encoder of a name, as the command line has them; None for "auto".

    Args:
        name: "auto", "state", "delta", "feature", or for symbols "observation" or "action".
        max_events: The most events, of states, changes or features.
        keys: Entries of dict observations to use, of states, changes or features.
    """
    Choice(NAMES).check(name, "events")
    given = {"max_events": max_events, "keys": keys}
    options = {option: value for option, value in given.items() if value is not None}
    if name in _REGIONS:
        encoder = _REGIONS[name](**options)
        encoder.check_parameters()
        return encoder
    if options:
        raise ValueError(f"{' and '.join(options)} need events of states, changes or features")
    return None if name == "auto" else SymbolEvents(name)  # pyright: ignore[reportArgumentType]


def encoder_from_state(
    kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> EventEncoder:
    """Return a fitted encoder from what its `state` returned.

    Encoders of other parts of the package are imported when a file names them.
    """
    combined = CombinedEvents.__name__
    known = Choice((*_ENCODERS, *_ELSEWHERE, combined)).check(kind, "the kind of events")
    if known == combined:
        parts = CombinedEvents.stored_parts(header, arrays)
        return CombinedEvents.of_fitted([encoder_from_state(*part) for part in parts])
    if known in _ENCODERS:
        return _ENCODERS[known].from_state(header, arrays)
    Choice((_ELSEWHERE[known],)).check(header.get("module"), "the module of the events")
    return getattr(importlib.import_module(_ELSEWHERE[known]), known).from_state(header, arrays)
