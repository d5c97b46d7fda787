"""A crash of the game is a pause: it is started anew, and the episode is taken up where it was.

The same seed and actions lead to the same state, so an episode that a crash cut short is played
again up to there, out of sight: whoever plays sees one whole episode, and draws no random number
more or less than without the crash. What was played twice is counted apart. Where the game does not
come back to the same state, the episode is given up, and its last step says so (`info["lost"]`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from align_rudder.files import Number, Whole, check_values
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.process import MineRLServerError

__all__ = [
    "Crash",
    "CrashCounts",
    "CrashRecovery",
    "GameLostError",
    "Restarts",
    "recovery_of",
]

_GO_ON = (
    "it is given up. What was finished is saved: see to the cause, such as too little memory or "
    "disk, a screen (xvfb) that is gone or a Java that is not 8, then run the same command again "
    "to go on"
)
_logger = logging.getLogger(__name__)


class GameLostError(MineRLServerError):
    """The game crashed again and again, and was given up."""


@dataclass(frozen=True)
class Restarts:
    """How often, and after how long, a game that crashed is started anew.

    Attributes:
        in_a_row: Crashes without one new step between them after which the game is given up; also
            episodes set aside without one that was not.
        at_one_step: Crashes at one step of an episode after which that episode is given up.
        first: Seconds before the first restart; twice as many before each further one,
        longest: but never more than that.
    """

    in_a_row: int = 8
    at_one_step: int = 3
    first: float = 1.0
    longest: float = 60.0

    def __post_init__(self) -> None:
        check_values(in_a_row=(self.in_a_row, Whole(1)), at_one_step=(self.at_one_step, Whole(1)))
        check_values(first=(self.first, Number(0)), longest=(self.longest, Number(0)))

    def pause(self, n: int) -> float:
        """Return the seconds before the n-th restart in a row.

        Example:
            >>> [Restarts().pause(n) for n in (1, 2, 3, 7, 8)]
            [1.0, 2.0, 4.0, 60.0, 60.0]
        """
        return min(self.first * 2.0 ** (min(n, 64) - 1), self.longest)


class Crash(NamedTuple):
    """One crash.

    Attributes:
        number: How many there were in this environment, with this one.
        in_a_row: How many of them since the last new step.
        seed: World of the episode.
        at: Actions of the episode that were done.
        reason: What happened, in one line.
    """

    number: int
    in_a_row: int
    seed: int
    at: int
    reason: str


class CrashRecovery(gym.Wrapper[Any, Any, Any, Any]):
    """A MineRL environment that outlives its game.

    Args:
        env: The environment; its steps raise `MineRLServerError` when the game crashes, and then
            its `reset` starts it anew.
        restarts: How often that is done.
        sleep: What waits for some seconds.

    Attributes:
        steps: Steps that were handed on; each is counted once.
        crashes: Crashes so far.
        repeated: Steps that were played again to come back to where a crash was, beside those.
        lost: Episodes that were given up.
        on_crash: Called with each `Crash`, to write it down.

    Example:
        ::

            env = CrashRecovery(MineRLEnv(python="minerl-env/bin/python"))
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        restarts: Restarts | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(env)
        if isinstance(env.unwrapped, MineRLEnv):
            env.unwrapped.again = False
        self.restarts, self._sleep = restarts or Restarts(), sleep
        self.steps = self.crashes = self.repeated = self.lost = 0
        self.on_crash: Callable[[Crash], object] | None = None
        self._in_a_row, self._lost_in_a_row, self._waited = 0, 0, 0.0
        self._world, self._actions, self._paid = 0, [], []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with a new game as often as needed."""
        if self._actions and not self._info.get("lost"):
            self._lost_in_a_row = 0
        # Drawn once, so that a crash does not shift the worlds that follow.
        self._world = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        self._actions, self._paid = [], []
        while True:
            try:
                self._seen, self._info = self.env.reset(seed=self._world, options=options)
                return self._seen, self._info
            except MineRLServerError as error:
                self._note(error)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; a crash on the way is not seen."""
        crashed = False
        for _ in range(self.restarts.at_one_step):
            try:
                if crashed and not self._come_back():
                    return self._give_up("the same seed and actions led elsewhere")
                out = self.env.step(action)
            except MineRLServerError as error:
                crashed = True
                self._note(error)
                continue
            self._in_a_row, self._waited = 0, 0.0
            self.steps += 1
            self._seen, paid, *_, self._info = out
            self._actions.append(action)
            self._paid.append(float(paid))
            return out  # pyright: ignore[reportReturnType]
        return self._give_up(f"the game crashed {self.restarts.at_one_step} times at this step")

    def _come_back(self) -> bool:
        """Play the episode again to where it was; return whether it came there."""
        seen, _ = self.env.reset(seed=self._world)
        for action, paid in zip(self._actions, self._paid, strict=True):
            seen, again, terminated, truncated, _ = self.env.step(action)
            self.repeated += 1
            if terminated or truncated or float(again) != paid:
                return False
        return _alike(seen, self._seen)

    def _give_up(self, reason: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return the end of an episode that cannot go on; the action was not done."""
        self.lost += 1
        _logger.warning(
            "the episode in world %d is set aside after %d actions: %s",
            self._world,
            len(self._actions),
            reason,
        )
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= self.restarts.in_a_row:
            raise GameLostError(
                f"{self._lost_in_a_row} episodes in a row had to be set aside, the last one as "
                f"{reason}; {_GO_ON}"
            )
        self._info = {**self._info, "game_reward": 0.0, "lost": reason}
        return self._seen, 0.0, False, True, self._info

    def _note(self, error: MineRLServerError) -> None:
        """Count a crash and wait, or give the game up."""
        self.crashes += 1
        self._in_a_row += 1
        line = str(error).splitlines()[0]
        crash = Crash(self.crashes, self._in_a_row, self._world, len(self._actions), line)
        if self.on_crash is not None:
            self.on_crash(crash)
        if self._in_a_row >= self.restarts.in_a_row:
            raise GameLostError(
                f"the game crashed {self._in_a_row} times in a row without one new step; it was "
                f"started anew each time, with {self._waited:g} s of waiting in all; {_GO_ON}"
                f"\nThe last crash: {error}"
            ) from error
        pause = self.restarts.pause(self._in_a_row)
        _logger.warning(
            "the game crashed, %d times in %d steps so far; it is started anew in %g s (try %d of "
            "%d), and the episode in world %d goes on after %d actions: %s",
            self.crashes,
            self.steps,
            pause,
            self._in_a_row,
            self.restarts.in_a_row - 1,
            self._world,
            len(self._actions),
            line,
        )
        self._waited += pause
        self._sleep(pause)


def _alike(one: Any, other: Any) -> bool:
    """Return whether two observations tell of the same state; pictures may flicker."""
    return all(np.array_equal(one[key], other[key]) for key in other if key != "pov")


def recovery_of(env: gym.Env[Any, Any]) -> CrashRecovery | None:
    """Return the `CrashRecovery` among the wrappers of an environment, or None."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, CrashRecovery):
            return env
        env = env.env
    return None


@dataclass(frozen=True)
class CrashCounts:
    """How often games crashed, and what that cost.

    Attributes:
        steps: Steps that were handed on.
        crashes: Crashes.
        repeated: Steps that were played again, beside those.
        lost: Episodes that were given up.

    Example:
        >>> print(CrashCounts(1000) + CrashCounts(500))
        the game did not crash in 1,500 steps
    """

    steps: int = 0
    crashes: int = 0
    repeated: int = 0
    lost: int = 0

    @classmethod
    def of(cls, envs: Iterable[gym.Env[Any, Any]]) -> CrashCounts:
        """Return those of some environments."""
        found = [recovery for env in envs if (recovery := recovery_of(env)) is not None]
        names = cls.__dataclass_fields__
        return cls(*(sum(getattr(recovery, name) for recovery in found) for name in names))

    def __add__(self, other: CrashCounts) -> CrashCounts:
        return CrashCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        if not self.crashes:
            return f"the game did not crash in {self.steps:,} steps"
        return (
            f"the game crashed {self.crashes:,} times in {self.steps:,} steps and was started "
            f"anew; {self.repeated:,} steps beside these were played again to go on where it was, "
            f"and {self.lost:,} episodes were set aside"
        )
