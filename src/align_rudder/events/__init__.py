"""(I) Events: from episodes to sequences of few, recurring events."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.episodes import Episode
from align_rudder.events.base import Encoded, EventEncoder
from align_rudder.events.deltas import DeltaEvents
from align_rudder.events.encoders import FunctionEvents, SymbolEvents, Vocabulary
from align_rudder.events.observations import leaves
from align_rudder.events.states import FeatureEvents, StateEvents
from align_rudder.events.successor import successor_features, successor_representation

if TYPE_CHECKING:
    from align_rudder.events.clusters import EventClustering

__all__ = [
    "DeltaEvents",
    "Encoded",
    "EventClustering",
    "EventEncoder",
    "FeatureEvents",
    "FunctionEvents",
    "StateEvents",
    "SymbolEvents",
    "Vocabulary",
    "choose_encoder",
    "encoder_from_state",
    "successor_features",
    "successor_representation",
]

_ENCODERS: dict[str, type[EventEncoder]] = {
    c.__name__: c for c in (DeltaEvents, FeatureEvents, FunctionEvents, StateEvents, SymbolEvents)
}


def __getattr__(name: str) -> Any:
    if name == "EventClustering":  # scikit-learn takes a second to import
        from align_rudder.events.clusters import EventClustering

        return EventClustering
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def choose_encoder(
    events: EventEncoder | Callable[..., Any] | None, episodes: Sequence[Episode]
) -> EventEncoder:
    """Return the encoder asked for, or the one that fits the observations.

    Whole numbers and strings alone are states (`StateEvents`); vectors and dicts of numbers are
    taken by their changes (`DeltaEvents`).
    """
    if isinstance(events, EventEncoder):
        return events
    if isinstance(events, type) and issubclass(events, EventEncoder):
        raise ValueError(
            f"events is the class {events.__name__}; give one of it: {events.__name__}()"
        )
    if callable(events):
        return FunctionEvents(events)
    if events is not None:
        raise ValueError(f"events={events!r} is neither an encoder nor a function")
    parts = leaves(episodes[0].observations)
    whole = all(part.dtype.kind in "biuUS" for part in parts)
    named = isinstance(episodes[0].observations, dict)
    if whole and not named and sum(int(np.prod(part.shape[1:])) for part in parts) <= 4:
        return StateEvents()
    return DeltaEvents()


def encoder_from_state(
    kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> EventEncoder:
    """Return a fitted encoder from what its `state` returned.

    Encoders of other parts of the package name their `module` in the header.
    """
    module = str(header.get("module", ""))
    if kind not in _ENCODERS and module.startswith("align_rudder."):
        found = getattr(importlib.import_module(module), kind, None)
        if isinstance(found, type) and issubclass(found, EventEncoder):
            return found.from_state(header, arrays)
    if kind not in _ENCODERS:
        raise ValueError(f"the file has events of kind {kind!r}; known are {sorted(_ENCODERS)}")
    return _ENCODERS[kind].from_state(header, arrays)
