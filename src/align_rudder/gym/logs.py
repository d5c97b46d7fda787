"""Models of event logs on environments: a function says what happens in a step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from align_rudder.episodes import Episode
from align_rudder.events import DoneEvents, FunctionEvents, SymbolEvents
from align_rudder.model import AlignRudder
from align_rudder.redistribution import Redistribution
from align_rudder.streams import RewardModel, Stream, VectorStream
from align_rudder.tracking import TrackerTables, track

__all__ = ["EventFunction", "LogModel", "with_events"]

EventFunction = Callable[..., Hashable | None]
"""What happened in a step: `(obs, action, reward, next_obs, info) -> symbol or None`."""


class LogModel:
    """A model that was fitted to event logs, for environments in which a function names events.

    Args:
        model: A model fitted with `fit_events`; it may be aligned again (`update_events`).
        function: What happens in a step.
    """

    def __init__(self, model: AlignRudder, function: EventFunction) -> None:
        self.model, self._function = model, function
        self._source: TrackerTables | None = None
        self._tables = self.tables_

    @property
    def tables_(self) -> TrackerTables:
        """The model's tables as they are now, with an encoder that calls the function."""
        tables = self.model.tables_
        if tables is not self._source:
            base = FunctionEvents(self._function)
            base._set_symbols(tables.encoder.base.symbols_)
            done = tables.encoder
            encoder = done.on(base) if isinstance(done, DoneEvents) else base
            self._source, self._tables = tables, replace(tables, encoder=encoder)
        return self._tables

    @property
    def return_range_(self) -> tuple[float, float]:
        """What an episode returns that fails, and one that is as good as the logs."""
        return self.model.return_range_

    def redistribute(self, episode: Episode) -> Redistribution:
        """Return the share of every step in the episode's return."""
        tables = self.tables_
        steps = track(tables, tables.encoder.encode(episode))
        return Redistribution.from_steps(steps, episode.rewards, episode.terminated)

    def stream(self) -> Stream:
        """Return a stream for one running episode at a time."""
        return Stream(self)

    def vector_stream(self, n: int) -> VectorStream:
        """Return a stream for n running episodes at once."""
        return VectorStream(self, n)


def with_events(model: RewardModel, events: EventFunction | None) -> RewardModel:
    """Return the model itself, or, with a function, a model of event logs that calls it."""
    if events is None:
        return model
    base = model.events_.base if isinstance(model, AlignRudder) else None
    if isinstance(base, FunctionEvents):
        if base.function == events:
            return model
        raise ValueError(
            f"events={_name(events)} was given, but the model has an event function of its own, "
            f"{_name(base.function)}; leave events=… out, or fit a model with the other function: "
            f"AlignRudder({_name(events)}).fit(demos)"
        )
    if not isinstance(model, AlignRudder) or not isinstance(base, SymbolEvents):
        kind = type(model if base is None else base).__name__
        raise ValueError(
            f"events=… needs a model of event logs, fitted with fit_events; this one has {kind}, "
            "which names events by itself: leave events=… out"
        )
    return LogModel(model, events)


def _name(function: EventFunction) -> str:
    return getattr(function, "__name__", repr(function))
