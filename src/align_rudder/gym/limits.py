"""Time limits as ends of the task: for learners that bootstrap where an episode is cut off."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from align_rudder.gym.checks import parts_of
from align_rudder.gym.spaces import TimeSpace

__all__ = ["TerminalTimeLimit"]


class TerminalTimeLimit(gym.Wrapper, RecordConstructorArgs):
    """Ends an episode for good where the environment cuts it off, and shows the time left.

    A learner takes a truncated episode as one that would have gone on, and counts the value of its
    last state. Where what is left of the return is settled on the last step, that counts it twice.
    Behind this wrapper every truncation is a termination (`info["time_limit"]` is then True), and
    since the end now depends on the time, the time left is observed: 1 at the beginning, 0 at the
    end. A vector gets it at its end, a number becomes number × (steps + 1) + steps left, a dict
    gets an entry "time", anything else becomes a dict of "observation" and "time".

    Args:
        env: The environment; if it pays the redistributed reward, wrap it with this afterwards,
            as events need the observations that the model was fitted to.
        max_steps: Steps of an episode; None for the limit that the environment was made with.
        observe_time: Whether to add the time left to the observation. Without it the task is only
            nearly Markov: the agent cannot know when the end comes.

    Example:
        >>> lake = gym.make("FrozenLake-v1", max_episode_steps=2, is_slippery=False)
        >>> env = TerminalTimeLimit(lake, observe_time=False)
        >>> _ = env.reset(), env.step(0)
        >>> _, _, terminated, truncated, info = env.step(0)
        >>> terminated, truncated, info["time_limit"]
        (True, False, True)
    """

    def __init__(
        self, env: gym.Env[Any, Any], max_steps: int | None = None, observe_time: bool = True
    ) -> None:
        RecordConstructorArgs.__init__(self, max_steps=max_steps, observe_time=observe_time)
        gym.Wrapper.__init__(self, env)
        own = None if env.spec is None else env.spec.max_episode_steps
        if max_steps is not None and (max_steps < 1 or (own is not None and max_steps > own)):
            limit = "" if own is None else f", at most the {own} of the environment"
            raise ValueError(f"max_steps={max_steps}; a whole number from 1 on is needed{limit}")
        self.max_steps = own if max_steps is None else int(max_steps)
        if self.max_steps is None and observe_time:
            raise ValueError(
                "the environment does not say how long an episode is, so the time left is not "
                "known; give max_steps=…, or leave the time out with observe_time=False"
            )
        self._time: TimeSpace | None = None
        if observe_time and self.max_steps is not None:
            self._time = TimeSpace(env.observation_space, self.max_steps)
            self.observation_space = self._time.space
        self._t = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = parts_of("reset", self.env.reset(seed=seed, options=options))
        self._t = 0
        return self._observed(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment; an episode that is cut off has ended."""
        obs, reward, terminated, truncated, info = parts_of("step", self.env.step(action))
        self._t += 1
        over = self.max_steps is not None and self._t >= self.max_steps
        cut = not terminated and (truncated or over)
        info = {**info, "time_limit": bool(cut)}
        return self._observed(obs), reward, bool(terminated or cut), False, info

    def _observed(self, obs: Any) -> Any:
        if self._time is None:
            return obs
        return self._time.append(obs, max(self._time.steps - self._t, 0))
