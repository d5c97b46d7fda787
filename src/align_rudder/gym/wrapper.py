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
from align_rudder.tracking import AnyStream, AnyVectorStream, RewardModel

__all__ = [
    "INFO_KEYS",
    "RedistributeReward",
    "Redistributing",
    "check_correction",
    "copied",
    "resolve_model",
    "warn_of_keys",
]


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


def copied(tree: Any) -> Any:
    """Return a copy of an observation that an environment may overwrite."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {key: copied(part) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(copied(part) for part in tree)
    return tree


INFO_KEYS = (
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
    if taken := [key for key in INFO_KEYS if key in info]:
        warn(f"the environment's info has {taken}, which this wrapper replaces", stacklevel=5)


class Redistributing(RecordConstructorArgs):
    """What the wrapper of one environment and that of many share."""

    def _set_up(
        self,
        model: RewardModel | str | os.PathLike[str],
        correction: Literal["last", "info"],
        observe_progress: bool,
    ) -> None:
        """Keep the arguments, from which `env.spec` makes the wrapper again."""
        RecordConstructorArgs.__init__(
            self,
            model=os.fspath(model) if isinstance(model, os.PathLike) else model,
            correction=correction,
            observe_progress=observe_progress,
            _disable_deepcopy=True,
        )
        check_correction(correction)
        self.model = resolve_model(model)
        self.correction: Literal["last", "info"] = correction
        self._obs: Any = None
        self._warned = self._seen_info = False

    def _progress_of(
        self, stream: AnyStream | AnyVectorStream, space: gym.Space[Any], observed: bool
    ) -> ProgressSpace | None:
        """Return how the position is appended to observations of that space, if it is."""
        stream.check_space(space)
        if not observed:
            return None
        if stream.n_cells == 0:
            raise ValueError(
                "observe_progress=True needs a model with positions on a profile; an LSTM has none"
            )
        return ProgressSpace(space, stream.n_cells)

    def _look_at(self, info: Mapping[str, Any], paid_early: bool) -> None:
        """Warn, once, of what the environment does that a user may not expect."""
        if not self._seen_info:
            self._seen_info = True
            warn_of_keys(info)
        if paid_early and not self._warned:
            self._warned = True
            warn(
                "the environment pays reward before the end of the episode; redistribution "
                "replaces the whole reward, so this one is delayed into the correction at the "
                "end. Use it for rewards that come at the end, or redistribute only that part",
                stacklevel=4,
            )


class RedistributeReward(gym.Wrapper, Redistributing):
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
        gym.Wrapper.__init__(self, env)
        self._set_up(model, correction, observe_progress)
        self._stream = self.model.stream()
        space = env.observation_space
        self._progress = self._progress_of(self._stream, space, observe_progress)
        if self._progress is not None:
            self.observation_space = self._progress.space
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._stream.reset(obs)
        if self._progress is not None:
            self._progress.check(self._stream.n_cells)
        self._obs, self._running = copied(obs), True
        info = {**info, "subgoal": self._stream.subgoal}
        return self._observed(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is the redistributed one."""
        if not self._running:
            raise gym.error.ResetNeeded(
                "the wrapper was stepped before reset, or after the episode had ended; call reset()"
            )
        obs, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        stream, ended = self._stream, terminated or truncated
        self._look_at(info, reward != 0.0 and not ended)
        share = stream.step(self._obs, action, reward, obs, info)
        info = {
            **info,
            "original_reward": reward,
            "redistributed": stream.given,
            "event": stream.event,
            "score": stream.score,
            "subgoal": stream.subgoal,
            "strategy": stream.strategy,
        }
        if ended:
            info["correction"] = stream.correction
            if self.correction == "last":
                share += stream.correction
            self._running = False
        self._obs = copied(obs)
        return self._observed(obs), share, terminated, truncated, info

    def _observed(self, obs: Any) -> Any:
        return obs if self._progress is None else self._progress.append(obs, self._stream.cell)
