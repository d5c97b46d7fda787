"""Done: the step at which an episode is paid, as an event of its own for any encoder."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder._warnings import warn
from align_rudder.episodes import Episode, Tree
from align_rudder.events.base import Encoded, EventEncoder
from align_rudder.sequences import NO_EVENT

__all__ = ["DONE", "DoneEvents", "pay_level", "with_done"]

DONE = "done"
_MARGIN = 0.1  # of the way from what other steps earn to what the paid step earns
_LONG = 0.1  # of an episode, and ten steps: so much may follow the step that is paid


class DoneEvents(EventEncoder):
    """The events of another encoder, and one more: the step was paid.

    A step that earns at least `level` is the event "done", whatever else it may be.

    Args:
        base: A fitted encoder.
        level: From which reward on a step is the one that success pays.
        name: The symbol of the event.
    """

    def __init__(self, base: EventEncoder, level: float, name: str = DONE) -> None:
        self._base, self.level, self.name = base, float(level), name
        self._done = base.n_events
        while name in base.symbols_:
            name += "!"
        self.symbols_ = [*base.symbols_, name]

    @property
    def base(self) -> EventEncoder:
        """The encoder without "done"."""
        return self._base

    if not TYPE_CHECKING:

        @property
        def collapse_runs(self) -> bool:
            """Whether events of the base happen when they are entered."""
            return self.base.collapse_runs

    @property
    def keys(self) -> Any:
        """The entries of dict observations that the encoder uses, None for all."""
        return getattr(self._base, "keys", None)

    @property
    def done(self) -> int:
        """The event "done"."""
        return self._done

    def on(self, base: EventEncoder) -> DoneEvents:
        """Return the same around another encoder, one that learned more symbols."""
        return DoneEvents(base, self.level, self.name)

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Any:
        """Fit the encoder inside."""
        base = copy.copy(self.base)
        base.fit(episodes, random_episodes)
        self.__init__(base, self.level, self.name)
        return self

    def _seen(self, events: Any) -> Any:
        """Return events of the base as events of this; its unknown event is one further."""
        return np.where(np.asarray(events) >= self.done, self.done + 1, events)

    def start_event(self, obs: Any) -> int:
        return int(self._seen(self.base.start_event(obs)))

    def start_events(self, obs: Tree) -> np.ndarray:
        return self._seen(self.base.start_events(obs))

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        if reward >= self.level:
            return self._done
        event = self._base.transition_event(obs, action, reward, next_obs, info)
        return event if event < self._done else self._done + 1

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        events = self.base.transition_events(obs, actions, rewards, next_obs, infos)
        return np.where(np.asarray(rewards) >= self.level, self.done, self._seen(events))

    def _check_shapes(self, episode: Episode) -> None:
        self.base._check_shapes(episode)  # which knows what parts of observations it looks at

    def encode(self, episode: Episode) -> Encoded:
        try:
            return super().encode(episode)
        except ValueError:
            self.base.encode(episode)  # which knows better what is wrong
            raise

    def add_to(self, encoded: Encoded, rewards: np.ndarray) -> Encoded:
        """Return an episode of the base's events with the steps that are paid as "done"."""
        events = np.where(np.asarray(rewards) >= self.level, self.done, self._seen(encoded.events))
        return Encoded(int(self._seen(encoded.start)), events)

    def closed(self, encoded: Encoded) -> Encoded:
        """Return an episode that ends with "done": nothing after the last one, none before it."""
        events = encoded.events.copy()
        at = np.flatnonzero(events == self.done)
        if len(at):
            events[at[:-1]] = NO_EVENT
            events[at[-1] + 1 :] = NO_EVENT
        return Encoded(encoded.start, events)

    def without(self, encoded: Encoded) -> Encoded:
        """Return an episode without "done"."""
        return Encoded(encoded.start, np.where(encoded.events == self.done, -1, encoded.events))

    def observation_shapes(self) -> dict[str, list[int]] | None:
        return self.base.observation_shapes()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self.base.state()


def pay_level(rewards: Sequence[np.ndarray]) -> tuple[float | None, list[int]]:
    """Return from which reward on a step is the one that is paid, and that step of each episode.

    Args:
        rewards: The rewards (T,) of each demonstration.

    Returns:
        The level, None where what is paid cannot be told from what other steps earn, or nothing
        is; the last step with the largest reward of each.
    """
    steps = [
        len(r) - 1 - int(np.argmax(r[::-1])) if len(r) else -1 for r in map(np.asarray, rewards)
    ]
    if not steps or min(steps) < 0:
        return None, steps
    paid = min(float(r[t]) for r, t in zip(rewards, steps, strict=True))
    others = [np.delete(r, t) for r, t in zip(rewards, steps, strict=True)]
    most = max((float(r.max()) for r in others if len(r)), default=0.0)
    if paid > 0:  # else the step that ends a cost for every step
        most = max(most, 0.0)
    return (most + _MARGIN * (paid - most) if paid > most else None), steps


def with_done(
    encoder: EventEncoder,
    encoded: Sequence[Encoded],
    rewards: Sequence[np.ndarray],
    alike: bool = False,
) -> EventEncoder:
    """Return the encoder with the paid step of demonstrations as an event of its own.

    Args:
        encoder: The encoder without it.
        encoded: The demonstrations.
        rewards: Their rewards.
        alike: Whether only a step that is the same event in all of them becomes one: in logs, which
            have no rewards, the last event may be any.

    Where it already is one (a chest that is opened at the end of every demonstration, and never
    elsewhere), or cannot be told from others, nothing changes.
    """
    level, steps = pay_level(rewards)
    if level is None:
        return encoder
    late = [len(r) - 1 - t for r, t in zip(rewards, steps, strict=True)]
    if sum(n > max(10, _LONG * len(r)) for n, r in zip(late, rewards, strict=True)) > len(late) / 2:
        warn(
            f"demonstrations go on for {int(np.median(late))} steps after the last one that is "
            "paid; what they do there does not count. Cut them at that step",
            stacklevel=6,  # of who calls `fit`
        )
    paid = [int(e.events[t]) for e, t in zip(encoded, steps, strict=True)]
    elsewhere = {e.start for e in encoded}
    for e, t in zip(encoded, steps, strict=True):
        elsewhere |= set(np.delete(e.events, t).tolist())
    if NO_EVENT not in paid and not elsewhere & set(paid):
        return encoder
    if len(set(paid)) == 1 and paid[0] not in (NO_EVENT, encoder.n_events):
        return DoneEvents(encoder, level, f"{encoder.symbols_[paid[0]]}, paid")
    return encoder if alike else DoneEvents(encoder, level)
