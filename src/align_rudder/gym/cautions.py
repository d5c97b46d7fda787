"""What wrappers warn of, once: symbols and states that the model does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder._warnings import warn
from align_rudder.events import FunctionEvents, StateEvents
from align_rudder.sequences import NO_EVENT
from align_rudder.streams import RewardModel
from align_rudder.text import short
from align_rudder.tracking import TrackerTables

__all__ = ["UnknownStates", "UnknownSymbols"]

_EPISODES = 5  # complete ones with events of which the model knows none
_NAMED = 5  # symbols
_PART = 2 / 3  # of the states of an environment; more than that is no map of another size


class UnknownSymbols:
    """Sees whether an event function names anything that the model knows.

    Args:
        model: The model.
        n: Number of running episodes.
    """

    def __init__(self, model: RewardModel, n: int = 1) -> None:
        self._model, self._episodes = model, 0
        self._happened = np.zeros(n, bool)
        tables = getattr(model, "tables_", None)
        self.over = not (
            isinstance(tables, TrackerTables) and isinstance(tables.encoder.base, FunctionEvents)
        )

    def see(self, events: Any, ended: Any) -> None:
        """Look at the event of a step in each running episode, and which of them end with it."""
        if self.over:
            return
        encoder, events = self._model.tables_.encoder, np.asarray(events)  # pyright: ignore[reportAttributeAccessIssue]
        # "Done", which is known by its reward, lies between the symbols and what is unknown.
        if ((events != NO_EVENT) & (events < encoder.base.n_events)).any():
            self.over = True
            return
        self._happened |= events >= encoder.n_events
        ended = np.asarray(ended, bool)
        self._episodes += int((self._happened & ended).sum())
        self._happened &= ~ended
        if self._episodes < _EPISODES:
            return
        self.over = True
        base = encoder.base
        seen, known = (
            ", ".join(short(repr(symbol), 60) for symbol in list(symbols)[:_NAMED])
            + ", …" * (len(symbols) > _NAMED)
            for symbols in (base.unknown_, base.symbols_)
        )
        warn(
            f"in {self._episodes} episodes no symbol of the event function was one that the model "
            f"knows, so that nothing was redistributed: it named {seen}; the model knows {known}. "
            "Name things as in the demonstrations, or fit the model to logs of this function",
            stacklevel=4,
        )


class UnknownStates:
    """Sees whether numbered states are met far from those of the demonstrations.

    A model does not know how many states its environment had. That its states are the first ones
    of many more, and that others are met, is what a map of another size looks like.

    Args:
        model: The model.
        space: The observation space of the environment.
    """

    def __init__(self, model: RewardModel, space: spaces.Space[Any]) -> None:
        tables = getattr(model, "tables_", None)
        base = tables.encoder.base if isinstance(tables, TrackerTables) else None
        self.over = True
        paid = isinstance(tables, TrackerTables) and tables.scale > 0  # else no state matters
        if paid and isinstance(base, StateEvents) and isinstance(space, spaces.Discrete):
            self._low, self._high = int(base.states_.min()), int(base.states_.max())
            self._space = space
            self.over = self._high - self._low + 1 > _PART * int(space.n)

    def see(self, obs: Any) -> None:
        """Look at the state of each running episode."""
        if self.over:
            return
        states = np.asarray(obs).ravel()
        if (other := states[(states < self._low) | (states > self._high)]).size:
            self.over = True
            warn(
                f"state {int(other[0])} of {self._space} was met, but the demonstrations of the "
                f"model go through states {self._low} to {self._high} only: is it a model of "
                "another environment, such as a smaller map? Then fit one to demonstrations of "
                "this environment. States that no demonstration goes through are no events",
                stacklevel=4,
            )
