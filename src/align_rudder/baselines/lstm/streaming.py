"""Streams of the LSTM: the redistributed reward of running episodes, one or many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from align_rudder.baselines.lstm.weights import advance_many
from align_rudder.episodes import Tree
from align_rudder.events.spaces import check_space
from align_rudder.sequences import NO_EVENT

if TYPE_CHECKING:
    from align_rudder.baselines.lstm.model import LstmRudder

__all__ = ["LstmStream", "LstmVectorStream"]


class LstmVectorStream:
    """Many running episodes, in arrays with one entry for each.

    Attributes:
        events: Always -1: an LSTM has no events.
        scores: The predictions less those before the first step.
        cells: Always 0, as subgoals and strategies are: an LSTM has no profile, no sub-goals.
        n_cells: 0: there are no positions to observe.
        rets: The environments' returns so far.
        given: The redistributed rewards so far.
    """

    n_cells = 0

    def __init__(self, model: LstmRudder, n: int) -> None:
        self.model, self.n = model, n
        self.events = np.full(n, NO_EVENT)
        self.cells = self.subgoals = self.strategies = np.zeros(n, np.int64)
        self._begin()

    def _begin(self) -> None:
        # Taken anew, so that a model fitted again is used from the next episodes on.
        self._inputs, self._weights = self.model.inputs_, self.model.weights_
        self._scale, self._zero = self.model.scale_, float(self._weights.head[-1])
        shape = (self.n, self._weights.hidden)
        self._c, self._h = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._g = np.full(self.n, self._weights.head[-1], np.float32)
        self.scores, self.rets, self.given = (np.zeros(self.n) for _ in range(3))

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        encoder: Any = self._inputs
        check_space(encoder, space)
        found = self._inputs.value_range()
        if found is not None and isinstance(space, spaces.Discrete):
            low, high = found
            if low < space.start or high >= space.start + space.n:
                raise ValueError(
                    f"the model was fitted on states {low} to {high}, the environment has {space}; "
                    "wrap the environment the model was fitted for"
                )

    def reset(self, obs: Tree, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask` (default: all).

        A model that was fitted again is used from the next reset of all on.
        """
        if mask is None or mask.all():
            self._begin()
            return
        self._g[mask] = self._weights.head[-1]
        for values in (self._c, self._h, self.scores, self.rets, self.given):
            values[mask] = 0.0

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
        stepped = np.ones(self.n, bool) if mask is None else mask
        weights = self._weights
        z, gate = weights.inputs(*self._inputs.encode(obs, actions, self.n))
        advance_many(z, gate, weights.recurrent, weights.head, self._c, self._h, self._g, stepped)
        scores = (self._g.astype(np.float64) - self._zero) * self._scale
        share = scores - self.scores
        self.scores = scores
        self.given += share
        self.rets += np.where(stepped, rewards, 0.0)
        return share

    @property
    def corrections(self) -> np.ndarray:
        """R_{T+2} of each episode if it ended now."""
        return self.rets - self.given


class LstmStream:
    """One running episode: the only one of a `LstmVectorStream`.

    Attributes:
        event: Always -1: an LSTM has no events.
        score: The prediction less that before the first step.
        cell: Always 0, as subgoal and strategy are: an LSTM has no profile and no sub-goals.
        n_cells: 0: there are no positions to observe.
        ret: The environment's return so far.
        given: The redistributed reward so far.
    """

    n_cells = 0

    def __init__(self, model: LstmRudder) -> None:
        self.model = model
        self.event = NO_EVENT
        self.cell = self.subgoal = self.strategy = 0
        self._episodes = LstmVectorStream(model, 1)
        self.reset()

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Raise an error if the model was fitted on other observations than the space has."""
        self._episodes.check_space(space)

    def reset(self, obs: Any = None) -> None:
        """Begin an episode; a model that was fitted again is used from then on."""
        self._episodes.reset(obs)
        self.score = self.ret = self.given = 0.0

    def step(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> float:
        """Add a transition; return its redistributed reward R_{t+1} (without the correction)."""
        one = self._episodes
        (share,) = one.step(obs, action, np.array([reward]), next_obs, [info]).tolist()
        self.score, self.ret, self.given = (float(x[0]) for x in (one.scores, one.rets, one.given))
        return share

    @property
    def correction(self) -> float:
        """What of the return was not given yet, R_{T+2} if the episode ended now."""
        return self.ret - self.given
