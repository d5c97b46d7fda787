"""Events of several encoders together: `FeatureEvents(…) + DeltaEvents(…)`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder.episodes import Episode, Tree
from align_rudder.events.base import EventEncoder
from align_rudder.events.done import DoneEvents
from align_rudder.events.encoders import FunctionEvents
from align_rudder.events.names import apart
from align_rudder.files import Anything, Each, Many, Table
from align_rudder.sequences import NO_EVENT

__all__ = ["CombinedEvents"]


class CombinedEvents(EventEncoder):
    """The events of several encoders, those of the first one first.

    Where several have an event at the same step, that of the first of them counts, so that what
    matters most should come first. A region is entered if the observation before was not in it.

    Args:
        parts: The encoders; `a + b` is the same as `CombinedEvents([a, b])`.

    Example:
        >>> from align_rudder import DeltaEvents, StateEvents
        >>> demos = [Episode({"room": [0, 0, 1, 1], "key": [0, 1, 1, 1]}, [0] * 3, [0, 0, 1])] * 2
        >>> events = (DeltaEvents(keys=["key"]) + StateEvents(keys=["room"])).fit(demos)
        >>> events.symbols_
        ['key+1', 0, 1]
        >>> events.encode(demos[0])
        Encoded(start=1, events=array([ 0,  2, -1]))
    """

    HEADER: ClassVar = {"parts": Many(Each(Anything()), 2)}

    def __init__(self, parts: Sequence[EventEncoder]) -> None:
        flat: list[EventEncoder] = []
        for part in parts:
            if not isinstance(part, EventEncoder) or isinstance(part, FunctionEvents | DoneEvents):
                raise ValueError(
                    f"{part!r} cannot be combined; combine encoders of states, changes, features "
                    "or symbols. A function may call what it needs itself"
                )
            flat += part.parts if isinstance(part, CombinedEvents) else [part]
        if len(flat) < 2:
            raise ValueError(f"{len(flat)} encoder(s) given; at least two are combined")
        self.parts = flat

    @property
    def keys(self) -> list[str] | None:
        """The entries of dict observations that the encoders use, None for all."""
        found = [getattr(part, "keys", None) for part in self.parts]
        named = [keys for keys in found if keys is not None]
        if len(named) < len(found):
            return None
        return list(dict.fromkeys(key for keys in named for key in keys))

    def check_parameters(self) -> None:
        for part in self.parts:
            part.check_parameters()

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Fit each of the encoders."""
        self.parts = [copy.copy(part) for part in self.parts]
        for part in self.parts:
            part.fit(episodes, random_episodes)
        self._set()
        self.warn_if_many()
        return self

    def _set(self) -> None:
        sizes = [part.n_events for part in self.parts]
        self._first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        symbols = [symbol for part in self.parts for symbol in part.symbols_]
        same = len(set(symbols)) < len(symbols)
        self.symbols_ = apart([str(s) for s in symbols]) if same else symbols

    def _merged(self, found: Sequence[np.ndarray]) -> np.ndarray:
        """Return one event for each step: the first that is known, else an unknown one."""
        out = np.full(len(found[0]), NO_EVENT, np.int64)
        unknown = np.zeros(len(out), bool)
        for part, first, events in zip(self.parts, self._first, found, strict=False):
            known = (events >= 0) & (events < part.n_events)
            out = np.where((out == NO_EVENT) & known, events + first, out)
            unknown |= events >= part.n_events
        return np.where((out == NO_EVENT) & unknown, self.n_events, out)

    def _first_of(self, found: Sequence[int]) -> int:
        """Return the event of one step: the first that is known, else an unknown one."""
        unknown = False
        for part, first, event in zip(self.parts, self._first, found, strict=False):
            if 0 <= event < part.n_events:
                return int(first) + event
            unknown |= event >= part.n_events
        return self.n_events if unknown else NO_EVENT

    def start_event(self, obs: Any) -> int:
        return self._first_of([part.start_event(obs) for part in self.parts])

    def start_events(self, obs: Tree) -> np.ndarray:
        return self._merged([part.start_events(obs) for part in self.parts])

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        found = []
        for part in self.parts:
            event = part.transition_event(obs, action, reward, next_obs, info)
            if part.collapse_runs and event == part.start_event(obs):
                event = NO_EVENT
            found.append(event)
        return self._first_of(found)

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        found = []
        for part in self.parts:
            events = part.transition_events(obs, actions, rewards, next_obs, infos)
            if part.collapse_runs:
                events = np.where(events == part.start_events(obs), NO_EVENT, events)
            found.append(events)
        return self._merged(found)

    def _check_shapes(self, episode: Episode) -> None:
        for part in self.parts:
            part._check_shapes(episode)  # each knows what parts of observations it looks at

    def observation_shapes(self) -> dict[str, list[int]] | None:
        found = [part.observation_shapes() for part in self.parts]
        shapes = {name: s for some in found if some is not None for name, s in some.items()}
        return shapes or None

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        headers, arrays = [], {}
        for i, part in enumerate(self.parts):
            header, own = part.state()
            headers.append({"kind": type(part).__name__, **header})
            arrays |= {f"{i}/{name}": array for name, array in own.items()}
        return {"parts": headers}, arrays

    @classmethod
    def stored_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> list[tuple[str, dict[str, Any], dict[str, np.ndarray]]]:
        """Return kind, header and arrays of each encoder that `state` described."""
        Table(cls.HEADER).check(header, "events")
        found = []
        for i, stored in enumerate(header["parts"]):
            inside = dict(stored)
            kind = inside.pop("kind", None)
            if kind in (cls.__name__, FunctionEvents.__name__):
                raise ValueError(f"encoder {i} is of {kind}, which cannot be combined")
            own = {k.partition("/")[2]: a for k, a in arrays.items() if k.startswith(f"{i}/")}
            found.append((kind, inside, own))
        if sum(len(own) for *_, own in found) < len(arrays):
            raise ValueError(f"there are arrays of more than the {len(found)} encoders")
        return found

    @classmethod
    def of_fitted(cls, parts: Sequence[EventEncoder]) -> Self:
        """Return fitted encoders together."""
        encoder = cls(parts)
        encoder._set()
        return encoder

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


EventEncoder.combination = CombinedEvents
