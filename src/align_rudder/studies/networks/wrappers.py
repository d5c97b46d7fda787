"""What agents observe and are paid beside the level itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.baselines.rounds import common_symbols, visits
from align_rudder.gym.spaces import ProgressSpace
from align_rudder.settlement import Account, Settlement

__all__ = ["Inventory", "LastEvent", "Observing", "Rounds", "Unordered", "happened"]


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


class Paying(Observing):
    """Pays something beside the level's reward, settled as `RedistributeReward` does by default."""

    def __init__(self, env: gym.Env[Any, Any], n: int) -> None:
        super().__init__(env, n)
        self._account = Account(Settlement("annealed"))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._account.reset()
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; what happened may be paid."""
        obs, reward, terminated, truncated, info = super().step(action)
        paid = self._account.pay(float(reward), self._share(), terminated, truncated)
        return obs, paid, terminated, truncated, info

    def _share(self) -> float:
        """Return what the last step is paid beside the reward."""
        raise NotImplementedError


class Unordered(Paying):
    """Events without aligning: each kind that most logs hold is paid once, in any order.

    How many of the kinds were seen is observed.

    Args:
        env: The level.
        logs: The logs.
        share: A kind is paid if this share of the logs holds it.
    """

    def __init__(
        self, env: gym.Env[Any, Any], logs: Sequence[Sequence[str]], share: float = 0.8
    ) -> None:
        self.kinds = {*common_symbols(logs, share)}
        held = np.mean([len(self.kinds & {*log}) for log in logs])
        self._each = float(1 / held) if held else 0.0
        self._seen: set[str] = set()
        self._before = 0
        super().__init__(env, len(self.kinds) + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._seen = set()
        return super().reset(seed=seed, options=options)

    def _known(self, info: Mapping[str, Any]) -> int:
        self._before = len(self._seen)
        self._seen |= {info["happened"]} & self.kinds
        return len(self._seen)

    def _share(self) -> float:
        return self._each * (len(self._seen) - self._before)


class Rounds(Paying):
    """Events without aligning, round and round: the next kind on a tour through all is paid.

    The tour goes through the kinds that most logs hold, in the order of their names, and then again
    from the first. Which one is next is observed.

    Args:
        env: The level.
        logs: The logs.
        share: A kind is on the tour if this share of the logs holds it.
    """

    def __init__(
        self, env: gym.Env[Any, Any], logs: Sequence[Sequence[str]], share: float = 0.8
    ) -> None:
        self.kinds = common_symbols(logs, share)
        made = np.mean([visits(log, self.kinds) for log in logs])
        self._each = float(1 / made) if made else 0.0
        self._hit = False
        super().__init__(env, max(len(self.kinds), 1))

    def _known(self, info: Mapping[str, Any]) -> int:
        self._hit = bool(self.kinds) and info["happened"] == self.kinds[self.known]
        return (self.known + self._hit) % self.n

    def _share(self) -> float:
        return self._each * self._hit
