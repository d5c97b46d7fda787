"""The Gymnasium wrapper that pays the redistributed reward."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from align_rudder._warnings import warn
from align_rudder.gym.spaces import ProgressSpace
from align_rudder.tracking import RewardModel

__all__ = ["RedistributeReward", "check_correction", "check_progress", "copied", "resolve_model"]


def resolve_model(model: RewardModel | str | os.PathLike[str]) -> RewardModel:
    """Return a fitted model, loaded from a path if need be."""
    if isinstance(model, (str, os.PathLike)):
        from align_rudder.baselines.lstm import LstmRudder
        from align_rudder.model import AlignRudder

        return LstmRudder.load(model) if LstmRudder.wrote(model) else AlignRudder.load(model)
    if not hasattr(model, "stream"):
        raise ValueError(
            f"model is a {type(model).__name__}; give a fitted AlignRudder or its path (or an "
            "LstmRudder)"
        )
    model.stream()  # says so if it is not fitted
    return model


def check_correction(correction: str) -> None:
    """Raise an error unless the correction goes to a known place."""
    if correction not in ("last", "info"):
        raise ValueError(
            f'correction={correction!r} is not known; use "last" (added to the last reward, so '
            'that the return is unchanged) or "info" (left out of the reward, put into info)'
        )


def check_progress(n_cells: int) -> None:
    """Raise an error if a model has no positions that could be observed."""
    if n_cells == 0:
        raise ValueError(
            "observe_progress=True needs a model with positions on a profile; an LSTM has none"
        )


def copied(tree: Any) -> Any:
    """Return a copy of an observation that an environment may overwrite."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {key: copied(part) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(copied(part) for part in tree)
    return tree


_KEYS = (
    "original_reward",
    "redistributed",
    "event",
    "score",
    "subgoal",
    "strategy",
    "correction",
)


def warn_of_keys(info: Mapping[str, Any]) -> None:
    """Warn where the environment's own info has entries that the wrapper writes."""
    if taken := [key for key in _KEYS if key in info]:
        warn(f"the environment's info has {taken}, which this wrapper replaces", stacklevel=4)


DENSE = (
    "the environment pays reward before the end of the episode; redistribution replaces the whole "
    "reward, so this one is delayed into the correction at the end. Use it for rewards that come "
    "at the end, or redistribute only that part"
)


class RedistributeReward(gym.Wrapper, RecordConstructorArgs):
    """Pays each step its redistributed reward, online.

    On the last step the correction is added, so that the rewards of an episode sum to the original
    return. `info` holds "original_reward", "redistributed" (the redistributed reward of the episode
    so far, without the correction), "event" (-1: none), "score" S(τ_t), "subgoal" (index of the
    next sub-goal), "strategy" (the one that the episode follows best) and, on the last step,
    "correction". An LSTM (RUDDER) has no events and no sub-goals: "event" is -1, "subgoal" and
    "strategy" 0. `align_rudder.gym.live.Tracker` makes curves for TensorBoard of them.

    Args:
        env: The environment.
        model: A fitted model, or the path of a saved one, which `env.spec` can then store.
        correction: "last", or "info" to leave it out of the reward: no longer return-equivalent,
            but sometimes easier to learn from.
        observe_progress: Whether to append the position on the profile to the observation. The
            redistributed reward depends on what was done before; the position stands for it, so
            that the reward is Markov again, but for episodes that came there by alignments of
            different worth.

    Notes:
        Equivalence is for undiscounted returns. When an episode is truncated, the correction
        settles the account as if it had ended there; a learner that bootstraps from the value of
        the last state then counts what might have come as well. Either treat time limits as
        terminal, or use correction="info".
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        model: RewardModel | str | os.PathLike[str],
        correction: Literal["last", "info"] = "last",
        observe_progress: bool = False,
    ) -> None:
        if isinstance(model, os.PathLike):
            model = os.fspath(model)
        RecordConstructorArgs.__init__(
            self,
            model=model,
            correction=correction,
            observe_progress=observe_progress,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        check_correction(correction)
        self.model = resolve_model(model)
        self._stream = self.model.stream()
        self._stream.check_space(env.observation_space)
        self.correction: Literal["last", "info"] = correction
        self.observe_progress = observe_progress
        self._progress: ProgressSpace | None = None
        if observe_progress:
            check_progress(self._stream.n_cells)
            self._progress = ProgressSpace(env.observation_space, self._stream.n_cells)
            self.observation_space = self._progress.space
        self._obs: Any = None
        self._running = False
        self._warned = self._seen_info = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._stream.reset(obs)
        if self._progress is not None:
            self._progress.check(self._stream.n_cells)
        self._obs, self._running = copied(obs), True
        info = {**info, "subgoal": self._stream.subgoal_of[self._stream.cell]}
        return self._observed(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is the redistributed one."""
        if not self._running:
            raise gym.error.ResetNeeded(
                "the wrapper was stepped before reset, or after the episode had ended; call reset()"
            )
        obs, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        stream = self._stream
        if not self._seen_info:
            self._seen_info = True
            warn_of_keys(info)
        share = stream.step(self._obs, action, reward, obs, info)
        info = {
            **info,
            "original_reward": reward,
            "redistributed": stream.given,
            "event": stream.event,
            "score": stream.score,
            "subgoal": stream.subgoal_of[stream.cell],
            "strategy": stream.strategy_of[stream.cell],
        }
        if terminated or truncated:
            info["correction"] = stream.correction
            if self.correction == "last":
                share += stream.correction
            self._running = False
        elif reward != 0.0 and not self._warned:
            self._warned = True
            warn(DENSE)
        self._obs = copied(obs)
        return self._observed(obs), share, terminated, truncated, info

    def _observed(self, obs: Any) -> Any:
        return obs if self._progress is None else self._progress.append(obs, self._stream.cell)
