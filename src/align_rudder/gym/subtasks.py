"""The wrapper for sub-tasks: each sub-goal is paid when it is reached, the next one observed."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.gym.cautions import UnknownSymbols
from align_rudder.gym.checks import begun, stepped
from align_rudder.gym.logs import EventFunction
from align_rudder.gym.spaces import ProgressSpace
from align_rudder.gym.wrapper import Redistributing, check_single, copied
from align_rudder.model import AlignRudder
from align_rudder.settlement import Account
from align_rudder.streams import Stream

__all__ = ["SubTaskReward"]


class SubTaskReward(gym.Wrapper, Redistributing):
    """Pays the reward of a sub-goal on the step that reaches it, and shows which one is next.

    The redistributed reward of a sub-task depends on how it was done; at its end it is due, as that
    of an option is. All redistributed reward since the sub-goal before is paid then, and none of it
    between; the environment's own reward stays at its step. With the sub-goal in the observation a
    learner without memory knows what is to be done.

    `info` holds "original_reward", "subgoal" (index of the next sub-goal, their number when none is
    left), "reached" (whether the step reached a sub-goal) and "strategy".

    Args:
        env: The environment.
        model: A fitted `AlignRudder`, or the path of a saved one, which `env.spec` can then store.
        settlement: "annealed" (shares are paid less with each success, in the end the environment's
            reward alone), "even" and "mean" (what is too much is taken back over the steps: the sum
            is the return), "potential" (keeps the best policies exactly), "last" (on the last step)
            or "beside" (nothing is taken back: not return-equivalent).
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".
        successes: After how many successes of this environment "annealed" pays no shares any more.
        observe_subgoal: Whether to add the next sub-goal to the observation: a one-hot at the end
            of a vector; a number becomes number × sub-goals + sub-goal; a dict gets an entry
            "subgoal" (one-hot); anything else becomes a dict of "observation" and "subgoal". That
            none is left is a place of its own; with several strategies each has its places.
        events: For a model of event logs, and for the path of a model whose events come from a
            function: what happened in a step, as for `align_rudder.RedistributeReward`.

    Notes:
        With R_t the redistributed reward and t_1 < t_2 < … the steps that reach sub-goals, the
        share of step t_k is Σ_{t_{k−1} < t ≤ t_k} R_t, that of all others 0. They are settled as
        those of `align_rudder.RedistributeReward`.

    Example:
        >>> import align_rudder as ar
        >>> lake = gym.make("FrozenLake-v1", is_slippery=False)
        >>> ways = iter([1, 1, 2, 2, 1, 2, 1, 1, 0, 2, 2, 1, 2])
        >>> demos, _ = ar.record(lake, lambda obs: next(ways), 2)
        >>> env = SubTaskReward(lake, ar.AlignRudder().fit(demos))
        >>> env.reset(seed=0)[1]["subgoal"]
        0
        >>> _, reward, *_, info = env.step(1)
        >>> reward > 0, info["original_reward"], info["subgoal"]
        (True, 0.0, 1)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        model: AlignRudder | str | os.PathLike[str],
        settlement: str = "annealed",
        gamma: float = 0.99,
        fade: float = 0.01,
        successes: float = 100,
        observe_subgoal: bool = True,
        events: EventFunction | None = None,
    ) -> None:
        check_single(env, "SubTaskReward")
        gym.Wrapper.__init__(self, env)
        named = self._set_up(
            model, settlement, gamma, fade, successes, events, observe_subgoal=observe_subgoal
        )
        fitted = self.model
        if not isinstance(fitted, AlignRudder):
            raise ValueError(
                f"the model is a {type(fitted).__name__}, which has no sub-goals; give a fitted "
                "AlignRudder"
            )
        self._fitted, self._account = fitted, Account(self.settlement, fitted.return_range_)
        self._past = self._account.past
        stream = named.stream()
        assert isinstance(stream, Stream)
        self._stream, self._symbols = stream, UnknownSymbols(named)
        self._space = env.observation_space
        self._stream.check_space(self._space)
        self._first = self._places()
        self._observed_space: ProgressSpace | None = None
        if observe_subgoal:
            space = ProgressSpace(env.observation_space, int(self._first[-1]), "subgoal")
            self._observed_space, self.observation_space = space, space.space
        self._running, self._due = False, 0.0

    def _places(self) -> np.ndarray:
        """Return where the places of each strategy begin, and their number."""
        counts = [len(strategy.subgoals) for strategy in self._fitted.strategies_]
        if not any(counts):
            raise ValueError(
                "the model has no sub-goals, so there is nothing to pay; look at model.summary(): "
                "other events or demonstrations are needed, or a lower subgoal_threshold"
            )
        return np.cumsum([0, *(count + 1 for count in counts)])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = begun(self._space, self.env.reset(seed=seed, options=options))
        self._stream.reset(obs)
        self._first = self._places()  # of a model that was aligned again
        if self._observed_space is not None:
            self._observed_space.check(int(self._first[-1]))
        self._obs, self._running = copied(obs), True
        self._due = 0.0
        self._begin()
        self._account.reset()
        return self._observed(obs), {**info, "subgoal": self._stream.subgoal}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is that of the sub-goals it reaches."""
        if not self._running:
            raise gym.error.ResetNeeded(
                "the wrapper was stepped before reset, or after the episode had ended; call reset()"
            )
        obs, reward, terminated, truncated, info = stepped(self._space, self.env.step(action))
        stream = self._stream
        self._due += stream.step(self._obs, action, reward, obs, info)
        self._symbols.see([stream.event], [terminated or truncated])
        goals = self._fitted.strategies_[stream.strategy].subgoals
        reached = any(goal.column == stream.column for goal in goals)
        share = 0.0
        if reached:
            share, self._due = self._due, 0.0
        paid = self._account.pay(reward, share, bool(terminated), bool(truncated))
        self._running = not (terminated or truncated)
        self._obs = copied(obs)
        info = {
            **info,
            "original_reward": reward,
            "subgoal": stream.subgoal,
            "reached": reached,
            "strategy": stream.strategy,
            "weight": self._account.weight,
        }
        return self._observed(obs), paid, terminated, truncated, info

    @property
    def _place(self) -> int:
        return int(self._first[self._stream.strategy]) + self._stream.subgoal

    def _observed(self, obs: Any) -> Any:
        space = self._observed_space
        return obs if space is None else space.append(obs, self._place)
