"""GAIL on event logs with PPO: a discriminator pays for events that look like those of the logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.baselines.gail import REWARDS, discriminate, imitation_reward
from align_rudder.studies.networks.wrappers import Observing

__all__ = ["Discriminator", "Imitation"]

ENDS = 10
"""How often the absorbing end follows a log, or an episode of the agent that ended by itself."""


class Discriminator:
    r"""Tells events of logs from those of an agent: D(m, e) of what is known before and the event.

    Args:
        shown: Of each log what was known before each event, and the event (T, 2).
        n_known: How many values the former has.
        n_events: How many the latter has.
        rate: Learning rate of the logits.
        reward: "positive" for −log(1 − D), "negative" for log D, "difference" for the logit.
        gamma: The learner's discount.
        seed: Seed of the order of training.

    Attributes:
        scores: The logits of D; the last row is the absorbing end.

    Notes:
        A table of logits is all that a logistic regression of pairs can be. As in
        `learn_gail_events`, an episode that ended by itself stays in an absorbing state for ever,
        which is worth r_end / (1 − γ). All rewards are multiplied by 1 − γ, so that this is r_end
        and the critic has values of the size that it has with other rewards.
    """

    def __init__(
        self,
        shown: Sequence[np.ndarray],
        n_known: int,
        n_events: int,
        rate: float = 0.3,
        reward: str = "positive",
        gamma: float = 0.99,
        seed: int = 0,
    ) -> None:
        self.scores = np.zeros((n_known + 1, n_events))
        ends = np.tile([n_known, 0], (ENDS * len(shown), 1))
        self._shown = np.concatenate([*shown, ends]).astype(np.int64)
        self._rate, self._kind, self._gamma = rate, REWARDS[reward], gamma
        self._rng = np.random.default_rng(seed)
        self._played: list[tuple[int, int]] = []

    def pay(self, known: int, event: int, terminated: bool) -> float:
        """Return the reward of a step, and remember what happened for training.

        Args:
            known: What was known before the step.
            event: The event of the step, -1 for none.
            terminated: Whether the episode ended by itself.
        """
        paid = 0.0
        if event >= 0:
            self._played.append((known, event))
            paid = imitation_reward(self.scores[known, event], self._kind)
        if terminated:
            self._played += [(len(self.scores) - 1, 0)] * ENDS
            end = imitation_reward(self.scores[-1, 0], self._kind)
            return (1 - self._gamma) * paid + self._gamma * end
        return (1 - self._gamma) * paid

    def train(self) -> None:
        """Train on all that happened since the last time, and as many events of the logs."""
        n = len(self._played)
        played, shown = (self._rng.integers(m, size=n) for m in (max(n, 1), len(self._shown)))
        for i, j in zip(played.tolist(), shown.tolist(), strict=True):
            discriminate(self.scores, *self._played[i], 0.0, self._rate)
            discriminate(self.scores, *self._shown[j], 1.0, self._rate)
        self._played = []


class Imitation(gym.Wrapper):
    """Pays what a discriminator says of events; what the environment pays is not used.

    Args:
        env: The level, with what the agent knows.
        discriminator: The discriminator, which may serve several environments.
    """

    def __init__(self, env: Observing, discriminator: Discriminator) -> None:
        super().__init__(env)
        self._observing, self._discriminator = env, discriminator
        level: Any = env.unwrapped
        self._index = {symbol: i for i, symbol in enumerate(level.symbols)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step."""
        known = self._observing.known
        obs, _, terminated, truncated, info = self.env.step(action)
        event = self._index.get(info["happened"], -1)
        paid = self._discriminator.pay(known, event, terminated)
        return obs, paid, terminated, truncated, info
