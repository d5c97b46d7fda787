"""Events that are discrete states, or clusters of their successor representation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder.episodes import Episode, Tree
from align_rudder.events.base import SHAPES, RegionEvents, check_labels, check_some
from align_rudder.events.observations import (
    check_keys,
    check_width,
    common_shapes,
    flat,
    leaves,
)
from align_rudder.events.successor import successor_representation
from align_rudder.files import Array, Ints, Many, Maybe, Number, Text, Whole
from align_rudder.sequences import NO_EVENT

__all__ = ["StateEvents"]

_MAX_STATES = 8000
_MAX_DENSE = 2**24
_LOW_PREFERENCE = -0.5


class StateEvents(RegionEvents):
    """Discrete states, clustered by their successor representation; an event is a cluster entered.

    Only states that demonstrations visit are clustered; if there are no more than `max_events`,
    each is an event. A state in which episodes end, and that none goes on from, is an event by
    itself (unless there are many such states). A state that the demonstrations did not visit is no
    event and does not end the stay in a cluster.

    Args:
        max_events: The most events; above it, the least visited clusters are merged.
        keys: For dict observations, the entries that make up the state; None for all.
        learning_rate: Learning rate of the successor representation.
        gamma: Its discount.
        sweeps: How often each transition is used for it.
        damping: Damping of affinity propagation.
        max_iter: Its most iterations.
        preference: Its preference, a similarity; the lower, the fewer clusters. None for −0.5,
            which is below all similarities and settles quickly, and where that gives less than
            half of `max_events`, the median similarity.

    Example:
        >>> demos = [Episode([0, 1, 2, 3], [0, 0, 0], [0, 0, 1]) for _ in range(2)]
        >>> events = StateEvents(max_events=4).fit(demos)
        >>> events.encode(Episode([0, 1, 1, 2], [0, 0, 0], [0, 0, 0])).events[1]
        np.int64(-1)
    """

    PARAMETERS: ClassVar = {
        "max_events": Whole(1),
        "keys": Maybe(Many(Text())),
        "learning_rate": Number(0, 1),
        "gamma": Number(0, 1),
        "sweeps": Whole(),
        "damping": Number(0.5, below=1),
        "max_iter": Whole(1),
        "preference": Maybe(Number()),
    }
    HEADER: ClassVar = {"shapes": SHAPES}
    ARRAYS: ClassVar = {
        "states": Array("states", "width", kinds="iuUS"),
        "labels": Ints("states"),
        "visits": Ints("states"),
    }

    def __init__(
        self,
        max_events: int = 15,
        *,
        keys: Sequence[str] | None = None,
        learning_rate: float = 0.1,
        gamma: float = 0.99,
        sweeps: int = 50,
        damping: float = 0.5,
        max_iter: int = 1000,
        preference: float | None = None,
    ) -> None:
        self.max_events = max_events
        self.keys = check_keys(keys)
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.sweeps = sweeps
        self.damping = damping
        self.max_iter = max_iter
        self.preference = preference

    def _states_of(self, tree: Tree, n: int) -> np.ndarray:
        """Return observations as rows of integers or of strings."""
        rows = flat(tree, self.keys, n)
        if rows.dtype.kind == "f":
            raise ValueError(
                "StateEvents needs discrete states (integers or strings), the observations are "
                "real numbers; use FeatureEvents or DeltaEvents, or discretise them"
            )
        if rows.dtype == np.uint64 and rows.max(initial=0) > np.iinfo(np.int64).max:
            raise ValueError("a state is above 2^63; whole numbers of 63 bits are taken")
        return rows.astype(np.int64) if rows.dtype.kind in "biu" else rows

    def _known_states_of(self, tree: Tree, n: int) -> np.ndarray:
        """Return observations as rows of the type that was fitted."""
        rows = self._states_of(tree, n)
        if rows.dtype.kind != self.states_.dtype.kind:
            kinds = {"i": "whole numbers", "U": "text", "S": "bytes"}
            found, needed = (kinds.get(r.dtype.kind, r.dtype) for r in (rows, self.states_))
            raise ValueError(
                f"the observations are {found}, the events were fitted on {needed}; give episodes "
                "of the same environment"
            )
        return rows

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Learn the successor representation and cluster the states of the demonstrations."""
        self.check_parameters()
        shapes = common_shapes(episodes, self.keys, random_episodes)
        rows = [self._states_of(e.observations, len(e) + 1) for e in [*episodes, *random_episodes]]
        states, indices = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        indices = indices.ravel()
        if len(states) > _MAX_STATES:
            raise ValueError(
                f"the episodes visit {len(states)} different states, at most {_MAX_STATES} are "
                "taken; use keys=… to leave parts out, or DeltaEvents"
            )
        trajectories = np.split(indices, np.cumsum([len(r) for r in rows])[:-1])
        m = successor_representation(
            trajectories, len(states), self.learning_rate, self.gamma, self.sweeps
        )
        in_order = np.concatenate(trajectories[: len(episodes)])
        visited = np.array(list(dict.fromkeys(in_order.tolist())))
        visits = np.bincount(in_order, minlength=len(states))[visited]
        goals = _goals(episodes, trajectories, visited)
        if goals.sum() > self.max_events // 3:
            goals[:] = False
        labels = np.empty(len(visited), np.int64)
        kept = np.flatnonzero(~goals)
        labels[kept] = self._cluster(
            m[np.ix_(visited[kept], visited[kept])], visits[kept], self.max_events - goals.sum()
        )
        labels[goals] = labels[kept].max(initial=-1) + 1 + np.arange(goals.sum())
        self._set(states[visited], labels, visits, shapes)
        self.warn_if_many()
        return self

    def _cluster(self, similarity: np.ndarray, visits: np.ndarray, max_events: int) -> np.ndarray:
        if len(visits) <= max_events:
            return np.arange(len(visits))
        from align_rudder.events.clusters import EventClustering

        def run(preference: float | None) -> np.ndarray:
            clustering = EventClustering(
                max_events,
                damping=self.damping,
                max_iter=self.max_iter,
                preference=preference,
                affinity="precomputed",
            )
            return clustering.fit(similarity, visits=visits).labels_

        if self.preference is not None:
            return run(self.preference)
        labels = run(_LOW_PREFERENCE)
        if labels.max() + 1 < max_events / 2:
            finer = run(None)
            labels = finer if finer.max() > labels.max() else labels
        return labels

    def _set(
        self,
        states: np.ndarray,
        labels: np.ndarray,
        visits: np.ndarray,
        shapes: dict[str, list[int]],
    ) -> None:
        self.states_, self.labels_, self.visits_, self.shapes_ = states, labels, visits, shapes
        self._lookup: dict[Any, int] = {}
        for state, label in zip(states.tolist(), labels.tolist(), strict=True):
            self._lookup[state[0] if len(state) == 1 else tuple(state)] = label
        symbols: list[Hashable] = []
        for e in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == e)
            top = states[members[visits[members].argmax()]].tolist()
            symbols.append(top[0] if len(top) == 1 else tuple(top))
        self.symbols_ = symbols
        whole = states.dtype.kind == "i"
        self._dense = self._dense_table() if whole else None
        self._scalars = (int, np.integer) if whole else (str, np.str_)

    def _dense_table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Return lowest and highest value of each part, strides and a table, if it is small."""
        low, high = self.states_.min(axis=0), self.states_.max(axis=0)
        spans = [int(h) - int(lo) + 1 for lo, h in zip(low, high, strict=True)]
        if math.prod(spans) > _MAX_DENSE:
            return None
        strides = np.array([math.prod(spans[i + 1 :]) for i in range(len(spans))], np.int64)
        table = np.full(math.prod(spans), NO_EVENT, np.int64)
        table[(self.states_ - low) @ strides] = self.labels_
        return low, high, strides, table

    def start_event(self, obs: Any) -> int:
        if isinstance(obs, self._scalars):
            return self._lookup.get(obs.item() if isinstance(obs, np.generic) else obs, NO_EVENT)
        if isinstance(obs, np.ndarray) and obs.ndim == 1 and obs.dtype.kind == "i":
            state = obs.tolist()
            return self._lookup.get(state[0] if len(state) == 1 else tuple(state), NO_EVENT)
        row = self._known_states_of(obs, 1)[0].tolist()
        return self._lookup.get(row[0] if len(row) == 1 else tuple(row), NO_EVENT)

    def start_events(self, obs: Tree) -> np.ndarray:
        n = len(leaves(obs, self.keys)[0])
        states = self._known_states_of(obs, n)
        if self._dense is None:
            rows = (row[0] if len(row) == 1 else tuple(row) for row in states.tolist())
            return np.array([self._lookup.get(row, NO_EVENT) for row in rows], np.int64)
        low, high, strides, table = self._dense
        if states.shape[1] == 1:
            column = states[:, 0]
            inside = (column >= low[0]) & (column <= high[0])
            if inside.all():
                return table[column - low[0]]
        else:
            inside = np.all((states >= low) & (states <= high), axis=1)
        codes = np.where(inside[:, None], states - low, 0) @ strides
        return np.where(inside, table[codes], NO_EVENT)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"states": self.states_, "labels": self.labels_, "visits": self.visits_}
        return {"parameters": self.parameters(), "shapes": self.shapes_}, arrays

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        states, labels = arrays["states"], arrays["labels"]
        if states.dtype == np.uint64 and states.max(initial=0) > np.iinfo(np.int64).max:
            raise ValueError("a state is above 2^63; whole numbers of 63 bits are needed")
        check_width(header["shapes"], states.shape[1])
        check_some(states, "states")
        n = int(check_labels(labels, len(states)).max()) + 1
        if len(np.unique(labels)) < n:
            raise ValueError(f"of {n} events some are of no state; each must be of one")
        whole = states.dtype.kind in "iu"
        states = states.astype(np.int64) if whole else states
        self._set(states, labels, arrays["visits"], header["shapes"])
        if len(self._lookup) < len(states):
            raise ValueError("a state is there twice; each must be of one event")


def _goals(
    episodes: Sequence[Episode], trajectories: Sequence[np.ndarray], visited: np.ndarray
) -> np.ndarray:
    """Return which visited states only ever end episodes: the goals of the demonstrations.

    All states lead there, so all are similar to them; they are not clustered with any.
    """
    ends = {int(t[-1]) for e, t in zip(episodes, trajectories) if e.terminated and not e.truncated}
    left = {int(s) for t in trajectories for s in t[:-1]}
    return np.isin(visited, sorted(ends - left))
