"""Episodes that run: the tracker of one (`Stream`) or many (`VectorStream`), step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.events import DoneEvents, Encoded, SymbolEvents
from align_rudder.events.spaces import check_space
from align_rudder.redistribution import Redistribution
from align_rudder.sequences import NO_EVENT
from align_rudder.tracking import TrackedModel, follow, follow_many, take_back

__all__ = ["AnyStream", "AnyVectorStream", "RewardModel", "Stream", "VectorStream"]


class AnyStream(Protocol):
    """What the wrapper needs of a running episode; `n_cells` is 0 without positions to observe."""

    event: int
    score: float
    cell: int
    subgoal: int
    given: float

    @property
    def strategy(self) -> int:
        """The strategy that the episode follows best."""
        ...

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
    subgoals: np.ndarray
    given: np.ndarray

    @property
    def strategies(self) -> np.ndarray:
        """The strategy that each episode follows best."""
        ...

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

    @property
    def return_range_(self) -> tuple[float, float]:
        """What an episode returns that fails, and one that is as good as the demonstrations."""
        ...

    def redistribute(self, episode: Episode) -> Redistribution:
        """Return the share of every step in the episode's return."""
        ...

    def stream(self) -> AnyStream:
        """Return a stream for one running episode at a time."""
        ...

    def vector_stream(self, n: int) -> AnyVectorStream:
        """Return a stream for n running episodes at once."""
        ...


class _History:
    """The events of a running episode that still count, where some undo others."""

    def __init__(self) -> None:
        self.events = np.empty(64, np.int64)
        self.count = 0

    def add(self, event: int) -> None:
        """Add an event."""
        if self.count == len(self.events):
            self.events = np.concatenate([self.events, np.empty_like(self.events)])
        self.events[self.count] = event
        self.count += 1


class _Running:
    """What one and many running episodes share: a model, and the tables it had when they began."""

    def __init__(self, model: TrackedModel) -> None:
        self.model = model
        self._begin()

    def _begin(self) -> None:
        # Taken anew for each episode, so that a model aligned again is used from the next one on.
        self._tables = self.model.tables_
        self._arrays = (*self._tables.scorer.tables, self._tables.places)

    @property
    def n_cells(self) -> int:
        """Number of positions on the profiles, those of the model as it is now."""
        return self.model.tables_.scorer.n_cells

    @property
    def subgoal_of(self) -> np.ndarray:
        """For each cell, the index of the first sub-goal behind it."""
        return self._tables.subgoal_of

    @property
    def strategy_of(self) -> np.ndarray:
        """For each cell, the strategy to which it belongs."""
        return self._tables.strategy_of

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        check_space(self.model.tables_.encoder.base, space)


class Stream(_Running):
    """One running episode.

    Attributes:
        event: The event of the last step, -1 for none.
        score: S(τ_t), zero after the start state.
        cell: Where on the profiles the episode stands.
        column: The profile column to which the last step is matched, -1 for none.
        subgoal: Index of the next sub-goal.
        ret: The environment's return so far.
        given: The redistributed reward so far.
    """

    def _begin(self) -> None:
        super()._begin()
        self._encoder = self._tables.encoder
        self._collapse = self._encoder.collapse_runs
        self._last_known = self._tables.scorer.n_events
        self._row = np.zeros(self._tables.scorer.n_cells)
        self._undoes, self._history = self._tables.undoes, _History()
        self._last, self._raw, self._zero = NO_EVENT, 0.0, 0.0
        self.event, self.score, self.cell = NO_EVENT, 0.0, 0
        self.column, self.subgoal = -1, 0
        self.ret = self.given = 0.0

    @property
    def strategy(self) -> int:
        """The strategy that the episode follows best."""
        return self._tables.places.item(self.cell, 0)

    def reset(self, obs: Any = None) -> None:
        """Begin an episode; without an observation, one of events only."""
        self._begin()
        if obs is not None:
            self._last = self._encoder.start_event(obs)
            self._add(self._last, 0.0)
            self._zero, self.score, self.given = self._raw, 0.0, 0.0
            self.event, self.column = NO_EVENT, -1

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
        base = self._encoder.base
        if not isinstance(base, SymbolEvents):
            raise ValueError(
                f"the model was fitted to episodes with {type(base).__name__}, not to "
                "symbols; use step(…)"
            )
        encoded = Encoded(NO_EVENT, base.encode_sequence([symbol]))
        if isinstance(self._encoder, DoneEvents):
            encoded = self._encoder.add_to(encoded, np.array([reward]))
        return self._add(int(encoded.events[0]), reward)

    def _add(self, event: int, reward: float) -> float:
        self.ret += reward
        if event < 0:
            self.event, self.column = NO_EVENT, -1
            return 0.0
        self.event = min(event, self._last_known)
        if self._undoes is not None and self._undoes[self.event, 0] >= 0:
            past, before = self._history, (self._raw, self.cell, self.subgoal)
            undone = self._undoes[self.event]
            past.count, self._raw, self.cell, self.subgoal = take_back(
                self._row, past.events, past.count, undone, before, *self._arrays
            )
            self.column = -1
        else:
            if self._undoes is not None:
                self._history.add(self.event)
            self._raw, self.cell, self.column, self.subgoal = follow(
                self._row, self.event, self._raw, self.cell, self.subgoal, *self._arrays
            )
        score = self._raw - self._zero
        share = (score - self.score) * self._tables.scale
        self.score = score
        self.given += share
        return share

    @property
    def correction(self) -> float:
        """What of the return was not given yet, R_{T+2} if the episode ended now."""
        return self.ret - self.given


class _Some(Sequence[Mapping[str, Any]]):
    """Some of the infos, looked up when asked for."""

    def __init__(self, infos: Sequence[Mapping[str, Any]], where: np.ndarray) -> None:
        self._infos, self._where = infos, where

    def __len__(self) -> int:
        return len(self._where)

    def __getitem__(self, i: Any) -> Any:
        return self._infos[int(self._where[i])]


class VectorStream(_Running):
    """Many running episodes, in arrays with one entry for each.

    Attributes:
        events: The events of the last step, -1 for none.
        scores: S(τ_t), zero after the start states.
        cells: Where on the profiles the episodes stand.
        columns: The profile columns to which the last steps are matched, -1 for none.
        subgoals: Index of the next sub-goal of each.
        rets: The environments' returns so far.
        given: The redistributed rewards so far.
    """

    def __init__(self, model: TrackedModel, n: int) -> None:
        self.n = n
        super().__init__(model)

    def _begin(self) -> None:
        super()._begin()
        n = self.n
        self._rows = np.zeros((n, self._tables.scorer.n_cells))
        self._histories = [_History() for _ in range(n)]
        self._last = np.full(n, NO_EVENT)
        self._zero, self._raw = np.zeros(n), np.zeros(n)
        self.events, self.columns = np.full(n, NO_EVENT), np.full(n, -1)
        self.cells, self.subgoals = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.rets, self.given, self.scores = np.zeros(n), np.zeros(n), np.zeros(n)

    @property
    def strategies(self) -> np.ndarray:
        """The strategy that each episode follows best."""
        return self.strategy_of[self.cells]

    def reset(self, obs: Tree, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask` (default: all) at these start states (of all).

        A model that was aligned again is used from the next reset of all on.
        """
        if mask is None or mask.all():
            self._begin()
        where = slice(None) if mask is None else np.flatnonzero(mask)
        for values in (self._rows, self._raw, self.scores, self.rets, self.given):
            values[where] = 0.0
        self.cells[where] = self.subgoals[where] = 0
        if self._tables.undoes is not None:
            for i in np.arange(self.n)[where]:
                self._histories[i] = _History()
        starts = np.full(self.n, NO_EVENT)
        starts[where] = self._tables.encoder.start_events(obs)[where]
        self._last[where] = starts[where]
        columns = self.columns.copy()
        self._follow(starts)
        self._zero[where] = self._raw[where]
        self.columns = columns
        self.events[where] = self.columns[where] = NO_EVENT

    def _follow(self, events: np.ndarray) -> np.ndarray:
        """Add an event to each episode; return the events as the model knows them."""
        events = self._tables.scorer.known(events)
        undoes, followed = self._tables.undoes, events
        if undoes is not None:
            lost = (events >= 0) & (undoes[events, 0] >= 0)
            followed = np.where(lost, NO_EVENT, events)
            for i in np.flatnonzero(lost):
                past = self._histories[i]
                before = (self._raw[i], self.cells[i], self.subgoals[i])
                found = take_back(
                    self._rows[i],
                    past.events,
                    past.count,
                    undoes[events[i]],
                    before,
                    *self._arrays,
                )
                past.count, self._raw[i], self.cells[i], self.subgoals[i] = found
            for i in np.flatnonzero(followed >= 0):
                self._histories[i].add(events[i])
        follow_many(
            self._rows,
            followed,
            self._raw,
            self.cells,
            self.columns,
            self.subgoals,
            *self._arrays,
        )
        return events

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
        encoder = self._tables.encoder
        if mask is None:
            events = encoder.transition_events(obs, actions, rewards, next_obs, infos)
        else:  # for the others there is no transition that a function could be asked about
            where, events = np.flatnonzero(mask), np.full(self.n, NO_EVENT)
            acted: Any = np.asarray(actions) if isinstance(actions, list) else actions
            before, acted, after = (tree_index(tree, where) for tree in (obs, acted, next_obs))
            some = _Some(infos, where)
            if len(where):
                own = rewards[where]
                events[where] = encoder.transition_events(before, acted, own, after, some)
            rewards = np.where(mask, rewards, 0.0)
        if encoder.collapse_runs:
            events = np.where(events == self._last, NO_EVENT, events)
            self._last = np.where(events == NO_EVENT, self._last, events)
        self.events = self._follow(events)
        scores = self._raw - self._zero
        share = (scores - self.scores) * self._tables.scale
        self.scores = scores
        self.given += share
        self.rets += rewards
        return share

    @property
    def corrections(self) -> np.ndarray:
        """R_{T+2} of each episode if it ended now."""
        return self.rets - self.given
