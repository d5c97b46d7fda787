"""A Gymnasium environment on top of tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from operator import index
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from align_rudder.episodes import Episode
from align_rudder.files import shown
from align_rudder.tasks.mdp import TabularMDP, optimal_policy, rollout

__all__ = ["TabularEnv"]


class TabularEnv(gym.Env[Any, Any]):
    """Steps through the tables that a subclass gives; ends at the horizon by itself.

    Attributes:
        mdp: The tables.

    Args:
        render_mode: "rgb_array", "human" or None.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["rgb_array", "human"],
        "render_fps": 10,
    }

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode={render_mode!r} is not known; use one of "
                f"{self.metadata['render_modes']}"
            )
        self.render_mode = render_mode
        self.mdp = self._tables()
        self._policy: np.ndarray | None = None
        self.observation_space = self._space()
        self.action_space = spaces.Discrete(self.mdp.n_actions)
        self._state = -1
        self._t = 0
        self._window: Any = None

    @abstractmethod
    def _tables(self) -> TabularMDP:
        """Return the tables."""

    @abstractmethod
    def _picture(self, state: int) -> np.ndarray:
        """Return an image of a state."""

    def _space(self) -> spaces.Space[Any]:
        return spaces.Discrete(self.mdp.n_states)

    def _observe(self, state: int) -> Any:
        return int(state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; `options={"start": state}` chooses the start state."""
        super().reset(seed=seed)
        start = (options or {}).get("start")
        if start is None:
            start = self.np_random.choice(self.mdp.n_states, p=self.mdp.starts)
        elif not self.mdp.starts[start] > 0:
            raise ValueError(f"state {start} is no start state")
        self._state, self._t = int(start), 0
        if self.render_mode == "human":
            self.render()
        return self._observe(self._state), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        if self._state < 0:
            raise gym.error.ResetNeeded("the environment was stepped before reset; call reset()")
        chosen = self._checked(action)
        self._t += 1
        u = self.np_random.random()
        step = self.mdp.step(self._state, chosen, self._t, u)
        self._state, reward, terminated = step
        truncated = not terminated and self._t >= self.mdp.horizon
        if self.render_mode == "human":
            self.render()
        return self._observe(self._state), reward, terminated, truncated, {}

    def _checked(self, action: Any) -> int:
        """Return an action as a number, or say which there are."""
        single = action.item() if isinstance(action, np.ndarray) and action.size == 1 else action
        try:
            chosen = index(single)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < self.mdp.n_actions:
            raise ValueError(
                f"action is {shown(action)}; a whole number from 0 to {self.mdp.n_actions - 1} is "
                "needed"
            )
        return chosen

    def optimal_policy(self) -> np.ndarray:
        """Return an optimal action for each state, computed once."""
        if self._policy is None:
            self._policy = optimal_policy(self.mdp)
        return self._policy.copy()

    def demonstrations(
        self, n: int, seed: int = 0, exploration: float = 0.2, starts: Sequence[int] | None = None
    ) -> list[Episode]:
        """Return n episodes of the optimal policy with some exploration that earned a reward.

        Args:
            n: How many.
            seed: Seed.
            exploration: Probability of a random action.
            starts: Start states to take in turn; None to draw them.
        """
        policy, rng = self.optimal_policy(), np.random.default_rng(seed)
        episodes: list[Episode] = []
        while len(episodes) < n:
            start = None if starts is None else starts[len(episodes) % len(starts)]
            episode = rollout(self.mdp, policy, rng, exploration, start)
            if episode.ret > 0:
                episodes.append(self.observed(episode))
        return episodes

    def observed(self, episode: Episode) -> Episode:
        """Return an episode of states as the episode of observations that the agent sees."""
        return replace(
            episode, observations=np.array([self._observe(s) for s in episode.observations])
        )

    def render(self) -> Any:
        """Return an image, or show it in a window (needs pygame)."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without render_mode; give it to gym.make")
            return None
        picture = self._picture(max(self._state, 0))
        if self.render_mode == "rgb_array":
            return picture
        self._show(picture)
        return None

    def _show(self, picture: np.ndarray) -> None:
        try:
            import pygame
        except ImportError as error:
            raise gym.error.DependencyNotInstalled(
                'render_mode="human" needs pygame; pip install pygame'
            ) from error
        if self._window is None:
            pygame.init()
            self._window = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
        surface = pygame.surfarray.make_surface(picture.transpose(1, 0, 2))
        self._window.blit(surface, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        pygame.time.wait(1000 // self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            import pygame

            pygame.quit()
            self._window = None
