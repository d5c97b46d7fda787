"""Streams: the redistributed reward of running episodes, one or many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces

from align_rudder.episodes import Episode, Tree
from align_rudder.events import SymbolEvents
from align_rudder.events.spaces import check_space
from align_rudder.redistribution import Redistribution
from align_rudder.sequences import NO_EVENT

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["AnyStream", "AnyVectorStream", "RewardModel", "Stream", "VectorStream"]


class AnyStream(Protocol):
    """What the wrapper needs of a running episode; `n_cells` is 0 without positions to observe."""

    event: int
    score: float
    cell: int
    given: float
    subgoal_of: Sequence[int]
    strategy_of: Sequence[int]

    @property
    def n_cells(self) -> int:
        """Number of positions."""
        ...

    @property
    def correction(self) -> float:
        """R_{T+2} if the episode ended now."""
        ...

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        ...

    def reset(self, obs: Any = None) -> None:
        """Begin an episode."""
        ...

    def step(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> float:
        """Add a transition; return its redistributed reward."""
        ...


class AnyVectorStream(Protocol):
    """What the vector wrapper and replay buffers need of many running episodes."""

    events: np.ndarray
    scores: np.ndarray
    cells: np.ndarray
    given: np.ndarray
    subgoal_of: np.ndarray
    strategy_of: np.ndarray

    @property
    def n_cells(self) -> int:
        """Number of positions."""
        ...

    @property
    def corrections(self) -> np.ndarray:
        """R_{T+2} of each episode if it ended now."""
        ...

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        ...

    def reset(self, obs: Tree, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask`."""
        ...

    def step(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Add a transition to each episode (of `mask`); return the redistributed rewards."""
        ...


class RewardModel(Protocol):
    """A fitted model that redistributes rewards: an `AlignRudder`, or an LSTM as in RUDDER."""

    def redistribute(self, episode: Episode) -> Redistribution:
        """Return the share of every step in the episode's return."""
        ...

    def stream(self) -> AnyStream:
        """Return a stream for one running episode at a time."""
        ...

    def vector_stream(self, n: int) -> AnyVectorStream:
        """Return a stream for n running episodes at once."""
        ...


class Stream:
    """One running episode.

    Attributes:
        event: The event of the last step, -1 for none.
        score: S(τ_t), zero after the start state.
        cell: Where on the profiles the episode stands.
        ret: The environment's return so far.
        given: The redistributed reward so far.
        subgoal_of: For each cell, the index of the next sub-goal.
        strategy_of: For each cell, the strategy to which it belongs.
    """

    def __init__(self, model: AlignRudder) -> None:
        self.model = model
        self._begin()

    def _begin(self) -> None:
        # Taken anew for each episode, so that a model aligned again is used from the next one on.
        self._scorer, self._encoder = self.model.scorer_, self.model.events_
        self._scale = self.model.scale_
        self.subgoal_of: Sequence[int] = self.model.subgoal_table().tolist()
        self.strategy_of: Sequence[int] = self._scorer.strategies().tolist()
        self._collapse = self._encoder.collapse_runs
        self._row = np.zeros(self._scorer.n_cells)
        self._last, self._zero = NO_EVENT, 0.0
        self.event, self.score, self.cell = NO_EVENT, 0.0, 0
        self.ret = self.given = 0.0

    @property
    def n_cells(self) -> int:
        """Number of positions on the profiles, those of the model as it is now."""
        return self.model.scorer_.n_cells

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        check_space(self.model.events_, space)

    def reset(self, obs: Any = None) -> None:
        """Begin an episode; without an observation, one of events only."""
        self._begin()
        if obs is not None:
            event = self._encoder.start_event(obs)
            if event != NO_EVENT:
                self._zero, self.cell = self._scorer.advance_one(self._row, event)
                self._last = event

    def step(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> float:
        """Add a transition; return its redistributed reward R_{t+1} (without the correction)."""
        event = self._encoder.transition_event(obs, action, reward, next_obs, info)
        if self._collapse and event != NO_EVENT:
            if event == self._last:
                event = NO_EVENT
            else:
                self._last = event
        return self._add(event, reward)

    def step_event(self, symbol: Any, reward: float = 0.0) -> float:
        """Add an event by its symbol (None for no event); return its redistributed reward."""
        if not isinstance(self._encoder, SymbolEvents):
            raise ValueError(
                f"the model was fitted to episodes with {type(self._encoder).__name__}, not to "
                "symbols; use step(…)"
            )
        (event,) = self._encoder.encode_sequence([symbol])
        return self._add(int(event), reward)

    def _add(self, event: int, reward: float) -> float:
        self.event = event
        self.ret += reward
        if event == NO_EVENT:
            return 0.0
        score, self.cell = self._scorer.advance_one(self._row, event, self.cell)
        score -= self._zero
        share = (score - self.score) * self._scale
        self.score = score
        self.given += share
        return share

    @property
    def correction(self) -> float:
        """What of the return was not given yet, R_{T+2} if the episode ended now."""
        return self.ret - self.given


class VectorStream:
    """Many running episodes, in arrays with one entry for each.

    Attributes:
        events: The events of the last step, -1 for none.
        scores: S(τ_t), zero after the start states.
        cells: Where on the profiles the episodes stand.
        rets: The environments' returns so far.
        given: The redistributed rewards so far.
        subgoal_of: For each cell, the index of the next sub-goal.
        strategy_of: For each cell, the strategy to which it belongs.
    """

    def __init__(self, model: AlignRudder, n: int) -> None:
        self.model, self.n = model, n
        self._begin()

    def _begin(self) -> None:
        model, n = self.model, self.n
        self._scorer, self._encoder = model.scorer_, model.events_
        self._scale, self.subgoal_of = model.scale_, model.subgoal_table()
        self.strategy_of = self._scorer.strategies()
        self._rows = self._scorer.new_rows(n)
        self._last = np.full(n, NO_EVENT)
        self._zero, self._raw = np.zeros(n), np.zeros(n)
        self.events, self.cells = np.full(n, NO_EVENT), np.zeros(n, np.int64)
        self.rets, self.given, self.scores = np.zeros(n), np.zeros(n), np.zeros(n)

    @property
    def n_cells(self) -> int:
        """Number of positions on the profiles, those of the model as it is now."""
        return self.model.scorer_.n_cells

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        check_space(self.model.events_, space)

    def reset(self, obs: Tree, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask` (default: all) at these start states (of all).

        A model that was aligned again is used from the next reset of all on.
        """
        if mask is None or mask.all():
            self._begin()
        where = slice(None) if mask is None else np.flatnonzero(mask)
        self._rows[where] = 0.0
        for values in (self._zero, self._raw, self.scores, self.rets, self.given):
            values[where] = 0.0
        self.cells[where] = 0
        self.events[where] = NO_EVENT
        starts = np.full(self.n, NO_EVENT)
        starts[where] = self._encoder.start_events(obs)[where]
        self._last[where] = starts[where]
        self._scorer.advance(self._rows, starts, self._raw, self.cells)
        self._zero[where] = self._raw[where]

    def step(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Add a transition to each episode (of `mask`); return the redistributed rewards (n,)."""
        events = self._encoder.transition_events(obs, actions, rewards, next_obs, infos)
        if mask is not None:
            events = np.where(mask, events, NO_EVENT)
            rewards = np.where(mask, rewards, 0.0)
        if self._encoder.collapse_runs:
            events = np.where(events == self._last, NO_EVENT, events)
            self._last = np.where(events == NO_EVENT, self._last, events)
        self.events = events
        self._scorer.advance(self._rows, events, self._raw, self.cells)
        scores = self._raw - self._zero
        share = (scores - self.scores) * self._scale
        self.scores = scores
        self.given += share
        self.rets += rewards
        return share

    @property
    def corrections(self) -> np.ndarray:
        """R_{T+2} of each episode if it ended now."""
        return self.rets - self.given
