"""What agents observe and are paid beside the level itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.gym.spaces import ProgressSpace
from align_rudder.settlement import Account, Settlement

__all__ = ["Inventory", "LastEvent", "Observing", "Unordered", "happened"]


def happened(
    obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
) -> Hashable | None:
    """Return the item that was picked in a step, for `RedistributeReward(events=…)`."""
    return info["happened"] or None


class Observing(gym.Wrapper):
    """Appends a number to the observation, as positions are appended: a block for each value.

    Args:
        env: The level.
        n: How many values the number has; an episode begins with 0.

    Attributes:
        known: The number.
    """

    def __init__(self, env: gym.Env[Any, Any], n: int) -> None:
        super().__init__(env)
        self.n, self.known = n, 0
        self._space = ProgressSpace(env.observation_space, n)
        self.observation_space = self._space.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self.known = 0
        return self._space.append(obs, 0), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.known = self._known(info)
        return self._space.append(obs, self.known), reward, terminated, truncated, info

    def _known(self, info: Mapping[str, Any]) -> int:
        raise NotImplementedError


class LastEvent(Observing):
    """The agent remembers what happened last: 0 before anything did, then 1 + the event."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        level: Any = env.unwrapped
        self._index = {symbol: i for i, symbol in enumerate(level.symbols, 1)}
        super().__init__(env, len(self._index) + 1)

    def _known(self, info: Mapping[str, Any]) -> int:
        return self._index.get(info["happened"], self.known)


class Inventory(Observing):
    """The agent is told how many items are right, which the level hides."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._level: Any = env.unwrapped
        super().__init__(env, self._level.length + 1)

    def _known(self, info: Mapping[str, Any]) -> int:
        return self._level.stage


class Unordered(Observing):
    """Events without aligning: each kind that most logs hold is paid once, in any order.

    What a kind is paid is settled as the shares of `RedistributeReward` are by default. How many of
    the kinds were seen is observed.

    Args:
        env: The level.
        logs: The logs.
        share: A kind is paid if this share of the logs holds it.
    """

    def __init__(
        self, env: gym.Env[Any, Any], logs: Sequence[Sequence[str]], share: float = 0.8
    ) -> None:
        kinds = {symbol for log in logs for symbol in log}
        self.kinds = {k for k in kinds if np.mean([k in log for log in logs]) >= share}
        held = np.mean([len(self.kinds & {*log}) for log in logs])
        self._share = float(1 / held) if held else 0.0
        self._seen: set[str] = set()
        self._account = Account(Settlement("annealed"))
        super().__init__(env, len(self.kinds) + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._seen = set()
        self._account.reset()
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; a kind that is new is paid."""
        before = len(self._seen)
        obs, reward, terminated, truncated, info = super().step(action)
        share = self._share * (len(self._seen) - before)
        paid = self._account.pay(float(reward), share, terminated, truncated)
        return obs, paid, terminated, truncated, info

    def _known(self, info: Mapping[str, Any]) -> int:
        self._seen |= {info["happened"]} & self.kinds
        return len(self._seen)
