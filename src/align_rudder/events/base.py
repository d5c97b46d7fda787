"""What every event encoder does: transitions to event ids, for whole episodes and step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from align_rudder._warnings import warn
from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.events.losses import Losses
from align_rudder.events.observations import NoNumberError, leaves, said_shapes, shapes_of
from align_rudder.events.rows import SingleRows
from align_rudder.files import Array, Each, Kind, Many, Table, Whole, check_arrays
from align_rudder.sequences import NO_EVENT

__all__ = [
    "MAX_SENSIBLE_EVENTS",
    "SHAPES",
    "Encoded",
    "EventEncoder",
    "NumberEvents",
    "RegionEvents",
    "check_labels",
    "check_some",
]

MAX_SENSIBLE_EVENTS = 20
SHAPES = Each(Many(Whole(), most=32))
"""The shape of each part of an observation, in the header of a file."""


class Encoded(NamedTuple):
    """An episode as events: that of the start state, and one for each step (-1: none)."""

    start: int
    events: np.ndarray

    @property
    def sequence(self) -> np.ndarray:
        """The events in order, the start state's first, steps without event left out."""
        all_events = np.concatenate([[self.start], self.events])
        return all_events[all_events != NO_EVENT].astype(np.int32)


class EventEncoder(ABC):
    """Maps transitions to events 0…n−1, to -1 for "no event", to n for "an event never seen".

    A subclass says what the event of one transition is, and whether an event happens each time
    (an item collected) or when it is entered (a region of states): then runs are collapsed.
    What its parameters may be, and what it stores in a file, is declared: `PARAMETERS`, `HEADER`
    and `ARRAYS`; `LATER` names parameters that files of version 0.1 do not have.
    """

    PARAMETERS: ClassVar[Mapping[str, Kind]] = {}
    LATER: ClassVar[Sequence[str]] = ()
    HEADER: ClassVar[Mapping[str, Kind]] = {}
    ARRAYS: ClassVar[Mapping[str, Array]] = {}
    collapse_runs: ClassVar[bool] = False
    combination: ClassVar[Callable[[Sequence[EventEncoder]], EventEncoder]]
    """What `a + b` makes of encoders; `combined.py`, which knows them all, says it."""
    shapes_: dict[str, list[int]] | None = None
    losses_: Losses | None = None
    symbols_: Sequence[Hashable]

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Say that what is missing comes from fitting."""
            if name.startswith("__"):
                raise AttributeError(name)
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"{type(self).__name__} is not fitted; call fit first (it has no {name})"
            )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self.PARAMETERS}

    def check_parameters(self) -> None:
        """Raise a `ValueError` for a parameter that cannot be meant."""
        for name, value in self.parameters().items():
            self.PARAMETERS[name].check(value, name)

    @property
    def n_events(self) -> int:
        """Number of events found by `fit`."""
        return len(self.symbols_)

    @property
    def base(self) -> EventEncoder:
        """The encoder without the event "done" (`DoneEvents`): itself, but for that one."""
        return self

    @abstractmethod
    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Any:
        """Find the events of the demonstrations; returns self."""

    def with_losses(self, episodes: Sequence[Episode]) -> Self:
        """Return the encoder with events for losing what these demonstrations gain.

        Only encoders that see what is held find any; others are returned as they are.
        """
        return self

    def start_event(self, obs: Any) -> int:
        """Return the event of the start state, -1 where states are no events."""
        return NO_EVENT

    @abstractmethod
    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        """Return the event of one transition, before runs are collapsed."""

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        """Return the events of a batch of transitions (first axis), before runs are collapsed."""
        return np.array(
            [
                self.transition_event(
                    tree_index(obs, i),
                    tree_index(actions, i),
                    float(rewards[i]),
                    tree_index(next_obs, i),
                    infos[i],
                )
                for i in range(len(rewards))
            ],
            dtype=np.int64,
        )

    def start_events(self, obs: Tree) -> np.ndarray:
        """Return the events of a batch of start states."""
        n = len(leaves(obs)[0])
        return np.array([self.start_event(tree_index(obs, i)) for i in range(n)], dtype=np.int64)

    def encode(self, episode: Episode) -> Encoded:
        """Return the events of a whole episode, just as one step at a time would give them."""
        self._check_shapes(episode)
        infos = episode.infos if episode.infos is not None else [{}] * len(episode)
        raw = self.transition_events(
            tree_index(episode.observations, np.s_[:-1]),
            episode.actions,
            episode.rewards,
            tree_index(episode.observations, np.s_[1:]),
            infos,
        )
        start = self.start_event(tree_index(episode.observations, 0))
        if self.collapse_runs:
            raw = _collapse(start, raw)
        return Encoded(start, raw)

    def _check_shapes(self, episode: Episode) -> None:
        needed = self.observation_shapes()
        if needed is None:
            return
        found = shapes_of(episode, getattr(self, "keys", None))
        if found != needed:
            raise ValueError(
                f"the episode has observations of {said_shapes(found)}, the events were fitted on "
                f"{said_shapes(needed)}; give episodes of the same environment"
            )

    def warn_if_many(self) -> None:
        """Warn where there are more events than alignments can tell from chance."""
        if self.n_events > MAX_SENSIBLE_EVENTS:
            warn(
                f"{self.n_events} events: with more than about {MAX_SENSIBLE_EVENTS}, good "
                "alignments can no longer be told from random ones (inconsistency of maximum "
                "parsimony); merge events, for example with max_events",
                stacklevel=4,
            )

    def advice_on_none(self) -> str:
        """Return what to do where the demonstrations hold no event."""
        return "Choose other events, or a function that names what happens"

    def observation_shapes(self) -> dict[str, list[int]] | None:
        """Return the shape of each part of an observation fitted on; None if any will do."""
        return self.shapes_

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what to save: a JSON header and arrays."""

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the fitted encoder that `state` described, or say what cannot be.

        Args:
            header: A JSON header: the parameters, and what `HEADER` declares.
            arrays: The arrays that `ARRAYS` declares.
        """
        parameters = Table(cls.PARAMETERS, cls.LATER)
        Table({"parameters": parameters, **cls.HEADER}).check(header, "events")
        encoder = cls(**header["parameters"])
        encoder._restore(header, check_arrays(arrays, cls.ARRAYS))
        return encoder

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Set what was fitted from what a file holds, types and shapes of which were checked."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded from a file")

    def __add__(self, other: EventEncoder) -> EventEncoder:
        """Return the events of both; where both have one at a step, that of the first counts."""
        return type(self).combination([self, other])

    def __repr__(self) -> str:
        parameters = ", ".join(
            f"{k}={v!r}" for k, v in vars(self).items() if not k.endswith("_") and k[0] != "_"
        )
        return f"{type(self).__name__}({parameters})"


class RegionEvents(EventEncoder):
    """An event is a region of states, which happens when it is entered."""

    collapse_runs = True

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        return self.start_event(next_obs)

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        return self.start_events(next_obs)


class NumberEvents(EventEncoder):
    """Events of observations that are numbers, as rows of a matrix."""

    _single: tuple[Any, SingleRows] | None = None

    @abstractmethod
    def _vectors(self, tree: Tree, n: int) -> np.ndarray:
        """Return n observations as rows."""

    def _row(self, obs: Any) -> np.ndarray:
        """Return a single observation as rows (1, d); the same as `_vectors`, faster."""
        if self._single is None or self._single[0] is not self.shapes_:  # fitted anew
            rows = SingleRows(self.shapes_ or {}, getattr(self, "keys", None))
            self._single = self.shapes_, rows
        row = self._single[1].read(obs)
        return self._vectors(obs, 1) if row is None else row[None]

    def _vectors_of(
        self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()
    ) -> list[np.ndarray]:
        """Return the observations of each episode as rows, or say which one cannot be used."""
        named = [(e, f"demonstration {i}") for i, e in enumerate(episodes)]
        named += [(e, f"random episode {i}") for i, e in enumerate(random_episodes)]
        return [self._named_vectors(episode, name) for episode, name in named]

    def _named_vectors(self, episode: Episode, name: str) -> np.ndarray:
        try:
            return self._vectors(episode.observations, len(episode) + 1)
        except NoNumberError as error:
            raise NoNumberError.at(error.row, name) from None

    def encode(self, episode: Episode) -> Encoded:
        try:
            return super().encode(episode)
        except NoNumberError:
            self._named_vectors(episode, "the episode")
            raise


def _collapse(start: int, raw: np.ndarray) -> np.ndarray:
    """Keep an event only where it is entered; no event does not end a run."""
    events = np.concatenate([[start], raw])
    last_at = np.maximum.accumulate(np.where(events != NO_EVENT, np.arange(len(events)), 0))
    before = events[last_at[:-1]]
    return np.where(raw == before, NO_EVENT, raw)


def check_labels(labels: np.ndarray, n_events: int) -> np.ndarray:
    """Return the events of exemplars as a file has them, or say which event there is not."""
    if labels.max(initial=NO_EVENT) >= n_events:
        raise ValueError(f"an exemplar is of event {labels.max()}; there are {n_events} events")
    return labels


def check_some(array: np.ndarray, name: str) -> None:
    """Raise a `ValueError` for an array of a file that is empty and must not be."""
    if not array.size:
        raise ValueError(f"there are no {name} (shape {array.shape}); at least one is needed")
