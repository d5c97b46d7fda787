"""Stable-Baselines3: replay buffers that hold the redistributed reward, and a live display.

On-policy learners need no buffer from here: give the wrapper to
`make_vec_env(…, wrapper_class=align_rudder.RedistributeReward, wrapper_kwargs={"model": …})`; the
`Monitor` that it puts inside logs the true return, `LiveCallback` the sub-goals reached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder.episodes import Episode, tree_index
from align_rudder.gym.live import Tracker
from align_rudder.gym.logs import EventFunction, with_events
from align_rudder.gym.sb3_cloning import ValueBurnIn, clone
from align_rudder.gym.wrapper import copied, resolve_model
from align_rudder.settlement import Accounts, Settlement
from align_rudder.streams import RewardModel

try:
    from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise ImportError('this needs Stable-Baselines3; in a clone: pip install ".[sb3]"') from error

__all__ = [
    "LiveCallback",
    "RedistributedDictReplayBuffer",
    "RedistributedNStepReplayBuffer",
    "RedistributedReplayBuffer",
    "ValueBurnIn",
    "clone",
    "fill_replay_buffer",
]


class LiveCallback(BaseCallback):
    """Logs redistributed reward, κ and the sub-goals reached while a learner trains.

    The numbers of `align_rudder.gym.live.LiveCurves` go to the learner's own logger: to the table
    that it prints, and to TensorBoard with `PPO(…, tensorboard_log="runs")`. The environment
    must be wrapped with `align_rudder.RedistributeReward`:
    `PPO("MlpPolicy", venv, tensorboard_log="runs").learn(100_000, callback=LiveCallback(model))`.

    Args:
        model: The model that the environment redistributes with, or its path.
        window: Over how many of the last episodes to average.

    Attributes:
        tracker: The tracker; `tracker.numbers()` are the numbers.
    """

    def __init__(
        self, model: RewardModel | str | os.PathLike[str] | None = None, window: int = 100
    ) -> None:
        super().__init__()
        self.tracker = Tracker(model, window)

    def _on_training_start(self) -> None:
        if self.model.num_timesteps == 0:  # otherwise the running episodes go on
            self.tracker.restart()

    def _on_step(self) -> bool:
        before = self.tracker.episodes
        self.tracker.add(self.locals["infos"])
        if self.tracker.episodes > before:  # off-policy learners write their log just after this
            for name, value in self.tracker.numbers().items():
                self.logger.record(name, value)
        return True


class _Redistributing:
    """Replaces the rewards of transitions on their way into a buffer."""

    n_envs: int
    rewards: np.ndarray
    pos: int
    buffer_size: int
    handle_timeout_termination: bool

    def __init__(
        self,
        *args: Any,
        model: RewardModel | str | os.PathLike[str],
        settlement: Settlement | str = "annealed",
        events: EventFunction | None = None,
        wrapped: bool = False,
        **kwargs: Any,
    ) -> None:
        space: Any = args[1] if len(args) > 1 else kwargs.get("observation_space")
        if isinstance(space, spaces.Dict) and not isinstance(self, DictReplayBuffer):
            raise ValueError(
                f"observations are a dict of {[*space]}; use RedistributedDictReplayBuffer for "
                "them (Stable-Baselines3 has none for returns of several steps: n_steps=1)"
            )
        super().__init__(*args, **kwargs)
        self.model, self.settlement = resolve_model(model, events), Settlement.of(settlement)
        self._logs = with_events(self.model, events)
        self._wrapped = wrapped
        self._stream = self._logs.vector_stream(self.n_envs)
        if not wrapped:
            self._stream.check_space(space)
        self._accounts = Accounts(self.settlement, self.n_envs, self.model.return_range_)
        self._written = 0  # transitions of each environment so far, also those overwritten
        self.restart()

    def restart(self) -> None:
        """Take the next transition of every environment as the first of an episode.

        Call it when environments were reset in the middle of an episode, as each `learn` does. A
        transition that does not begin where the last one ended is noticed by itself; only a reset
        to the very same observation is not.
        """
        self._fresh, self._given = np.ones(self.n_envs, bool), np.zeros(self.n_envs)
        self._reached: Any = None
        # Of each step: how many were written before it, its place in the buffer, reward and share.
        self._episodes: list[list[tuple[int, int, float, float]]] = [[] for _ in range(self.n_envs)]

    def _redistributed(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> np.ndarray:
        """Return the rewards to store; `_settle` then goes over episodes that have ended."""
        if self._reached is not None:
            self._fresh = self._fresh | ~_same(obs, self._reached, self.n_envs)
        if self._fresh.any():
            if not self._wrapped:
                self._stream.reset(obs, self._fresh)
            self._given[self._fresh] = 0.0
            self._accounts.reset(self._fresh)
            for i in np.flatnonzero(self._fresh):
                self._episodes[i] = []
        ended, own = np.asarray(done, bool), np.asarray(reward, np.float64)
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos]) & ended
        if not self.handle_timeout_termination:  # to the learner, time limits are terminal
            cut = np.zeros_like(cut)
        if self._wrapped:
            own, share = self._told(infos)
        elif infos and {"original_reward", "redistributed"} <= infos[0].keys():
            raise ValueError(
                "the environments are wrapped with RedistributeReward already, so that their "
                "rewards would be redistributed twice; give wrapped=True, or leave the wrapper out"
            )
        else:
            share = self._stream.step(obs, action, own, next_obs, infos)
        paid = self._accounts.pay(own, share, ended & ~cut, cut)
        if self.settlement.spreads:
            for i, steps in enumerate(self._episodes):
                steps.append((self._written, self.pos, own[i], share[i]))
        self._written += 1
        self._fresh, self._reached = ended, copied(next_obs)
        return paid

    def _told(self, infos: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the environment's rewards and the shares, as the wrapper tells them."""
        try:
            own = np.array([info["original_reward"] for info in infos], np.float64)
            given = np.array([info["redistributed"] for info in infos], np.float64)
        except KeyError as missing:
            raise ValueError(
                f"wrapped=True, but infos have no {missing}; wrap the environments with "
                "align_rudder.RedistributeReward, or leave wrapped=True out"
            ) from None
        share, self._given = given - self._given, given
        return own, share

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Add a transition of each environment with its redistributed reward."""
        reward = self._redistributed(obs, next_obs, action, reward, done, infos)
        super().add(obs, next_obs, action, reward, done, infos)  # pyright: ignore[reportAttributeAccessIssue]
        self._settle()

    def _settle(self) -> None:
        """Spread the rest of each episode that has ended over those of its steps still here."""
        if not self.settlement.spreads:
            return
        for i in np.flatnonzero(self._fresh):
            if steps := self._episodes[i]:
                count, at, own, shares = (np.array(values) for values in zip(*steps, strict=True))
                rewards = self.settlement.rewards(own, shares)
                held = count >= self._written - self.buffer_size
                self.rewards[at[held], i] = rewards[held]
            self._episodes[i] = []


def _same(a: Any, b: Any, n: int) -> np.ndarray:
    """Return for each environment whether two batches of observations are equal."""
    if isinstance(a, dict):
        return np.all([_same(a[key], b[key], n) for key in a], axis=0)
    a, b = np.asarray(a).reshape(n, -1), np.asarray(b).reshape(n, -1)
    return ((a == b) | ((a != a) & (b != b))).all(axis=1)  # NaN is as good as NaN


class RedistributedReplayBuffer(_Redistributing, ReplayBuffer):
    """A replay buffer whose rewards are the redistributed ones, settled.

    They are those that the wrapper would pay. With "even" and "mean" a transition has that reward
    at first; when its episode has ended, the rest of the return is spread over all its steps.

    For off-policy learners on the unwrapped environment, whose logs then show the true rewards:
    `DQN("MlpPolicy", env, replay_buffer_class=RedistributedReplayBuffer,
    replay_buffer_kwargs={"model": model})`.

    Args:
        *args: As for `ReplayBuffer`.
        model: A fitted model or the path of a saved one.
        settlement: "annealed", "even", "mean", "last", "beside" or, with the learner's γ,
            `Settlement("potential", gamma=…)`.
        events: For a model of event logs: what happened in a step, as for the wrapper.
        wrapped: Whether the environments are wrapped with `RedistributeReward`. Then the agent
            observes the position, and the buffer takes rewards and shares from `info` and settles
            them its own way.
        **kwargs: As for `ReplayBuffer`.
    """


class RedistributedNStepReplayBuffer(_Redistributing, NStepReplayBuffer):
    """The same for returns of n steps; give `n_steps` and `gamma` as for `NStepReplayBuffer`."""


class RedistributedDictReplayBuffer(_Redistributing, DictReplayBuffer):
    """The same for dict observations."""


def fill_replay_buffer(
    buffer: ReplayBuffer,
    episodes: Sequence[Episode],
    model: RewardModel | str | os.PathLike[str] | None = None,
    settlement: Settlement | str | None = None,
    events: EventFunction | None = None,
) -> int:
    """Put demonstrations into a replay buffer with their redistributed rewards.

    Args:
        buffer: Any replay buffer of Stable-Baselines3.
        episodes: The demonstrations.
        model: The model; None for that of a redistributed buffer.
        settlement: How rewards are settled; None for the buffer's own way, or
            "annealed", as the wrapper pays.
        events: For a model of event logs: what happened in a step; None for the function of a
            redistributed buffer.

    Returns:
        How many transitions were added. In a buffer for n environments each has whole episodes;
        where one has less than another, its own come again.
    """
    if model is None:
        if not isinstance(buffer, _Redistributing):
            raise ValueError("the buffer has no model of its own; give model=…")
        fitted = buffer._logs if events is None else with_events(buffer.model, events)
    else:
        fitted = with_events(resolve_model(model, events), events)
    if isinstance(buffer, _Redistributing) and buffer._wrapped:
        raise ValueError(
            "a buffer with wrapped=True gets what agents observe, with their position, from the "
            "wrapped environments; demonstrations cannot be put into it. Clone them instead "
            "(align_rudder.gym.sb3.clone)"
        )
    own = buffer.settlement if isinstance(buffer, _Redistributing) else "annealed"
    settlement = own if settlement is None else settlement
    cut = [buffer.handle_timeout_termination and not e.terminated for e in episodes]
    rewards = [
        replace(fitted.redistribute(episode), terminated=not goes_on).settled(settlement)
        for episode, goes_on in zip(episodes, cut, strict=True)
    ]
    columns = _columns([len(episode) for episode in episodes], buffer.n_envs)
    rows = len(columns[0])
    if rows > buffer.buffer_size:
        raise ValueError(
            f"{sum(map(len, episodes))} transitions do not fit into a buffer of "
            f"{buffer.buffer_size * buffer.n_envs}; make it larger or give fewer episodes"
        )
    add = DictReplayBuffer.add if isinstance(buffer, DictReplayBuffer) else ReplayBuffer.add
    by_steps = isinstance(buffer, NStepReplayBuffer)
    for row in range(rows):
        chosen = [column[row] for column in columns]
        parts = [(episodes[i], t) for i, t in chosen]
        over = [t == len(e) - 1 for e, t in parts]
        # What comes after the last row belongs to other episodes; n-step returns end there.
        ends = [end or (by_steps and row == rows - 1) for end in over]
        add(
            buffer,  # pyright: ignore[reportArgumentType]
            _batch([tree_index(e.observations, t) for e, t in parts]),
            _batch([tree_index(e.observations, t + 1) for e, t in parts]),
            np.stack([np.asarray(tree_index(e.actions, t)) for e, t in parts]),
            np.array([rewards[i][t] for i, t in chosen]),
            np.array(ends),
            [
                {"TimeLimit.truncated": end and not (last and e.terminated)}
                for (e, _), end, last in zip(parts, ends, over, strict=True)
            ],
        )
        if isinstance(buffer, _Redistributing):
            buffer._written += 1
    return rows * buffer.n_envs


def _columns(lengths: Sequence[int], n: int) -> list[list[tuple[int, int]]]:
    """Return the steps (episode, t) that each of n environments is said to have played.

    Each plays whole episodes, one after the other, the next where least was played so far; all
    play as long as the longest, by playing theirs again from the beginning.
    """
    columns: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for i, length in enumerate(lengths):
        min(columns, key=len).extend((i, t) for t in range(length))
    rows = max(map(len, columns))
    known = [column or columns[0] for column in columns]
    return [(column * -(-rows // max(len(column), 1)))[:rows] for column in known]


def _batch(observations: list[Any]) -> Any:
    if isinstance(observations[0], dict):
        return {k: np.stack([o[k] for o in observations]) for k in observations[0]}
    return np.stack([np.asarray(o) for o in observations])
