"""The Gymnasium wrapper that pays the redistributed reward."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from align_rudder._warnings import warn
from align_rudder.files import Number, check_values
from align_rudder.gym.cautions import UnknownStates, UnknownSymbols
from align_rudder.gym.checks import begun, stepped
from align_rudder.gym.logs import EventFunction, with_events
from align_rudder.gym.spaces import ProgressSpace
from align_rudder.settlement import Account, Past, Settlement
from align_rudder.storage import needs_function
from align_rudder.streams import AnyStream, AnyVectorStream, RewardModel

__all__ = [
    "INFO_KEYS",
    "RedistributeReward",
    "Redistributing",
    "check_single",
    "copied",
    "resolve_model",
    "warn_of_keys",
]


def resolve_model(
    model: RewardModel | str | os.PathLike[str], events: EventFunction | None = None
) -> RewardModel:
    """Return a fitted model, loaded from a path if need be, with its event function if it has one.

    Args:
        model: A model, or the path of one.
        events: What happened in a step; a model of event logs does without (see `with_events`).
    """
    if isinstance(model, (str, os.PathLike)):
        from align_rudder.baselines.lstm import LstmRudder
        from align_rudder.model import AlignRudder

        if LstmRudder.wrote(model):
            return LstmRudder.load(model)
        return AlignRudder.load(model, events if needs_function(model) else None)
    if not hasattr(model, "stream"):
        raise ValueError(
            f"model is a {type(model).__name__}; give a fitted AlignRudder or its path (or an "
            "LstmRudder)"
        )
    model.stream()  # says so if it is not fitted
    return model


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
    "weight",
    "correction",
)


def warn_of_keys(info: Mapping[str, Any]) -> None:
    """Warn where the environment's own info has entries that the wrapper writes."""
    if taken := [key for key in INFO_KEYS if key in info]:
        warn(f"the environment's info has {taken}, which this wrapper replaces", stacklevel=5)


def check_single(env: Any, wrapper: str) -> None:
    """Raise a `ValueError` unless it is one environment whose rewards are not redistributed yet.

    Args:
        env: The environment.
        wrapper: The name of the wrapper, of one environment.
    """
    if isinstance(env, gym.vector.VectorEnv) and wrapper == "RedistributeReward":
        raise ValueError(
            f"{type(env).__name__} is a vector environment; RedistributeReward is for a single "
            "one: use align_rudder.vector.RedistributeReward(env, model)"
        )
    if not isinstance(env, gym.Env):
        many = f" Of a vector of environments, wrap each: {wrapper}(env_i, model)"
        raise ValueError(
            f"env is a {type(env).__name__}; {wrapper} needs a Gymnasium environment, such as "
            f"gymnasium.make(…) returns.{many * hasattr(env, 'num_envs')}"
        )
    while isinstance(env, gym.Wrapper):
        if isinstance(env, Redistributing):
            raise ValueError(
                f"the environment is wrapped with {type(env).__name__} already, so that its "
                "rewards would be redistributed twice; wrap it once"
            )
        env = env.env


class Redistributing(RecordConstructorArgs):
    """What the wrapper of one environment, that of many and that of sub-tasks share."""

    _past: Past

    @property
    def repaid(self) -> float:
        """How many successes there were; keep it with a training, and set it to go on with one."""
        return self._past.repaid

    @repaid.setter
    def repaid(self, successes: float) -> None:
        check_values(repaid=(successes, Number(0)))
        self._past.repaid = float(successes)

    def _set_up(
        self,
        model: RewardModel | str | os.PathLike[str],
        settlement: str,
        gamma: float,
        fade: float,
        successes: float,
        events: EventFunction | None,
        **others: Any,
    ) -> RewardModel:
        """Keep the arguments, from which `env.spec` makes the wrapper again.

        Returns:
            The model, with its event function where it is one of event logs.
        """
        others["events"] = events
        RecordConstructorArgs.__init__(
            self,
            model=os.fspath(model) if isinstance(model, os.PathLike) else model,
            settlement=settlement,
            gamma=gamma,
            fade=fade,
            successes=successes,
            **{name: value for name, value in others.items() if value is not None},
            _disable_deepcopy=True,
        )
        self.settlement = Settlement(settlement, gamma, fade, successes)
        self.model = resolve_model(model, events)
        self._obs: Any = None
        self._seen_info = self._seen_unfinished = False
        return with_events(self.model, events)

    def _begin(self) -> None:
        """Take what episodes return from the model, which may have been aligned again."""
        self._past.low, self._past.high = self.model.return_range_

    def _progress_of(
        self, stream: AnyStream | AnyVectorStream, space: gym.Space[Any], observed: bool
    ) -> ProgressSpace | None:
        """Return how the position is appended to observations of that space, if it is."""
        stream.check_space(space)
        if not observed or stream.n_cells == 0:  # an LSTM has no positions
            return None
        return ProgressSpace(space, stream.n_cells)

    def _warn_of_unfinished(self) -> None:
        """Warn, once, of an episode that was left before it was settled."""
        if self.settlement.kind in ("even", "mean", "last") and not self._seen_unfinished:
            self._seen_unfinished = True
            warn(
                "an episode was left before its end, so that its rewards do not sum to its "
                "return. A time limit around this wrapper does that: put TimeLimit inside, "
                "RedistributeReward(TimeLimit(env, n), model)",
                stacklevel=4,
            )

    def _look_at(self, info: Mapping[str, Any]) -> None:
        """Warn, once, of entries of the environment's info that are replaced."""
        if not self._seen_info:
            self._seen_info = True
            warn_of_keys(info)


class RedistributeReward(gym.Wrapper, Redistributing):
    """Pays each step the environment's reward and its share of the redistribution, online.

    Shares are a loan that successes pay back: after as many as `successes` the reward is the
    environment's own again (`align_rudder.settlement` has this and the other ways).

    `info` holds "original_reward", "redistributed" (the shares of the episode so far), "event" (-1:
    none; the number of the model's events: one that it does not know), "score" S(τ_t), "subgoal"
    (index of the next sub-goal), "strategy" (the one that the episode follows best), "weight" (what
    "annealed" pays of a share) and, on the last step, "correction", what of the return was not
    redistributed. An LSTM (RUDDER) has no events and no sub-goals: "event" is -1, "subgoal" and
    "strategy" 0. `align_rudder.gym.live.LiveCurves` makes curves for TensorBoard of them.

    Args:
        env: The environment.
        model: A fitted model, or the path of a saved one. Both are in `env.spec`, of which only a
            path can be written as JSON: save the model before, and give the path.
        settlement: "annealed" (shares are paid less with each success, in the end the environment's
            reward alone), "even" and "mean" (what is too much is taken back over the steps: the sum
            is the return), "potential" (keeps the best policies exactly), "last" (on the last step)
            or "beside" (nothing is taken back: not return-equivalent).
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".
        successes: After how many successes of this environment "annealed" pays no shares any more.
        observe_progress: Whether to append the position on the profile to the observation. The
            redistributed reward depends on what was done before; the position stands for it, so
            that the reward is Markov again, but for episodes that came there by alignments of
            different worth. A model without positions (an LSTM) has nothing to append.
        events: For a model of event logs (`fit_events`), and for the path of a model whose events
            come from a function: what happened in a step, as a function
            `(obs, action, reward, next_obs, info) -> symbol or None`.

    Notes:
        When an episode is truncated, "even", "mean" and "last" settle the account as if it had
        ended there; a learner that bootstraps from the value of the last state then counts what
        might have come as well. `align_rudder.gym.limits.TerminalTimeLimit` makes time limits part
        of the task. With "annealed" and "potential" a learner that bootstraps is right as it is.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        model: RewardModel | str | os.PathLike[str],
        settlement: str = "annealed",
        gamma: float = 0.99,
        fade: float = 0.01,
        successes: float = 100,
        observe_progress: bool = True,
        events: EventFunction | None = None,
    ) -> None:
        check_single(env, "RedistributeReward")
        gym.Wrapper.__init__(self, env)
        named = self._set_up(
            model, settlement, gamma, fade, successes, events, observe_progress=observe_progress
        )
        self._stream = named.stream()
        self._account = Account(self.settlement, self.model.return_range_)
        self._past = self._account.past
        self._space = space = env.observation_space
        self._progress = self._progress_of(self._stream, space, observe_progress)
        if self._progress is not None:
            self.observation_space = self._progress.space
        self._symbols, self._states = UnknownSymbols(named), UnknownStates(named, space)
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = begun(self._space, self.env.reset(seed=seed, options=options))
        if self._running and self._stream.given:
            self._warn_of_unfinished()
        self._stream.reset(obs)
        self._begin()
        self._account.reset()
        if self._progress is not None:
            self._progress.check(self._stream.n_cells)
        self._obs, self._running = copied(obs), True
        info = {**info, "subgoal": self._stream.subgoal}
        return self._observed(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is the settled one."""
        if not self._running:
            raise gym.error.ResetNeeded(
                "the wrapper was stepped before reset, or after the episode had ended; call reset()"
            )
        obs, reward, terminated, truncated, info = stepped(self._space, self.env.step(action))
        stream = self._stream
        self._look_at(info)
        share = stream.step(self._obs, action, reward, obs, info)
        info = {
            **info,
            "original_reward": reward,
            "redistributed": stream.given,
            "event": stream.event,
            "score": stream.score,
            "subgoal": stream.subgoal,
            "strategy": stream.strategy,
            "weight": self._account.weight,
        }
        self._symbols.see([stream.event], [terminated or truncated])
        self._states.see(obs)
        if terminated or truncated:
            info["correction"] = stream.correction
            self._running = False
        self._obs = copied(obs)
        paid = self._account.pay(reward, share, bool(terminated), bool(truncated))
        return self._observed(obs), paid, terminated, truncated, info

    def _observed(self, obs: Any) -> Any:
        return obs if self._progress is None else self._progress.append(obs, self._stream.cell)
