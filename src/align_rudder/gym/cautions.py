"""What is warned of, once: symbols and states that the model does not know, odd recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder._warnings import warn
from align_rudder.episodes import Episode
from align_rudder.events import FunctionEvents, StateEvents
from align_rudder.events.observations import NoNumberError, leaf_names, leaves
from align_rudder.files import LARGEST, shown
from align_rudder.sequences import NO_EVENT
from align_rudder.streams import RewardModel
from align_rudder.text import short
from align_rudder.tracking import TrackerTables

__all__ = ["ForeignActions", "UnknownStates", "UnknownSymbols", "UnusableNumbers"]

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


class UnusableNumbers:
    """Sees whether recorded observations hold numbers that no model is fitted to."""

    def __init__(self) -> None:
        self._said = False

    def see(self, episode: Episode, number: int) -> None:
        """Look at the observations of an episode, which is of that number."""
        names = [f" ({name})" if name else "" for name in leaf_names(episode.observations)]
        for name, leaf in zip(names, leaves(episode.observations), strict=True):
            if self._said or leaf.dtype.kind != "f":
                continue
            usable = (np.abs(leaf) <= np.float64(LARGEST)).reshape(len(leaf), -1).all(axis=1)
            if not usable.all():
                self._said = True
                where = NoNumberError.at(int(np.flatnonzero(~usable)[0]), f"episode {number}{name}")
                warn(
                    f"{where}. It is recorded as it is, but models are not fitted to such "
                    "observations",
                    stacklevel=4,
                )


class ForeignActions:
    """Sees whether a policy returns actions that the action space has not.

    Args:
        space: The action space of the environment; None if it has none.
    """

    def __init__(self, space: spaces.Space[Any] | None) -> None:
        self._space = space

    def watched(self, act: Callable[[Any, bool], Any]) -> Callable[[Any, bool], Any]:
        """Return the policy, each action of which is looked at until one is of another space."""

        def acting(obs: Any, first: bool) -> Any:
            action = act(obs, first)
            if self._space is not None and not has_action(self._space, action):
                warn(
                    f"the policy returned {shown(action)}, which is no action of {self._space}; it "
                    "is played and recorded as it is",
                    stacklevel=6,
                )
                self._space = None
            return action

        return acting


def has_action(space: spaces.Space[Any], action: Any) -> bool:
    """Return whether a space has an action, of whatever precision its numbers are.

    Example:
        >>> space = spaces.Box(-1, 1, (2,), np.float32)
        >>> has_action(space, [0.5, 1.0]), has_action(space, [0.5, 1.5]), has_action(space, 0.5)
        (True, False, False)
    """
    if isinstance(space, spaces.Dict):
        return isinstance(action, Mapping) and all(
            key in action and has_action(part, action[key]) for key, part in space.items()
        )
    if isinstance(space, spaces.Tuple):
        return (
            isinstance(action, tuple | list)
            and len(action) == len(space)
            and all(has_action(part, a) for part, a in zip(space, action, strict=True))
        )
    if not isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
        return space.contains(action)
    try:
        found = np.asarray(action)
    except ValueError:  # ragged
        return False
    kinds = "biuf" if isinstance(space, spaces.Box) else "biu"
    if found.shape != space.shape or found.dtype.kind not in kinds:
        return False
    if isinstance(space, spaces.Box):
        found = found.astype(space.dtype)
        return bool(((space.low <= found) & (found <= space.high)).all())
    count = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return bool(((space.start <= found) & (found < space.start + count)).all())
