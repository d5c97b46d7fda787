"""The same wrapper for vector environments, in all three autoreset modes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from align_rudder.episodes import tree_index
from align_rudder.gym.cautions import UnknownStates, UnknownSymbols
from align_rudder.gym.checks import paid_to_each, parts_of
from align_rudder.gym.logs import EventFunction
from align_rudder.gym.spaces import batch_tree, check_observation
from align_rudder.gym.wrapper import Redistributing, copied
from align_rudder.settlement import Accounts
from align_rudder.streams import RewardModel

__all__ = ["RedistributeReward"]


class RedistributeReward(VectorWrapper, Redistributing):
    """Pays every step of every sub-environment its reward and redistributed share, online.

    As `align_rudder.RedistributeReward`, with arrays in `infos` as Gymnasium has them ("event" and
    the mask "_event", …). With autoreset on the next step, the reset step is no transition and pays
    nothing; with autoreset on the same step, the final observation is scored and the infos of a
    sub-environment that ended belong to its last transition; without autoreset, `reset` with
    `options={"reset_mask": …}` begins only the episodes of the mask. A model that was aligned again
    (`update`) is used from the next reset of all sub-environments on.

    Args:
        env: The vector environment.
        model: A fitted model, or the path of a saved one.
        settlement: "annealed", "even", "mean", "potential", "last" or "beside". Successes, and the
            mean rate that "even" and "mean" take back, are those of all sub-environments.
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".
        successes: After how many successes of each sub-environment, on average, "annealed" pays no
            shares any more.
        observe_progress: Whether to append the position on the profile to the observation.
        events: For a model of event logs: what happened in a step, as for the single wrapper.
    """

    def __init__(
        self,
        env: VectorEnv,
        model: RewardModel | str | os.PathLike[str],
        settlement: str = "annealed",
        gamma: float = 0.99,
        fade: float = 0.01,
        successes: float = 100,
        observe_progress: bool = True,
        events: EventFunction | None = None,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise ValueError(
                f"env is a {type(env).__name__}; align_rudder.vector.RedistributeReward is for "
                "vector environments (gymnasium.make_vec): for a single one use "
                "align_rudder.RedistributeReward(env, model)"
            )
        VectorWrapper.__init__(self, env)
        named = self._set_up(
            model, settlement, gamma, fade, successes, events, observe_progress=observe_progress
        )
        self._stream = named.vector_stream(env.num_envs)
        self._accounts = Accounts(self.settlement, env.num_envs, self.model.return_range_)
        self._past = self._accounts.past
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._mode = AutoresetMode(mode)
        space = env.single_observation_space
        self._progress = self._progress_of(self._stream, space, observe_progress)
        if self._progress is not None:
            self.single_observation_space = self._progress.space
            self.observation_space = batch_space(self._progress.space, env.num_envs)
        self._symbols = UnknownSymbols(named, env.num_envs)
        self._states = UnknownStates(named, space)
        self._ended = np.zeros(env.num_envs, bool)

    def _restart(self, obs: Any, mask: np.ndarray | None) -> None:
        if self._progress is not None and (mask is None or mask.all()):
            self._progress.check(self._stream.n_cells)
        self._stream.reset(obs, mask)
        self._begin()
        self._accounts.reset(mask)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, or those of `options["reset_mask"]`."""
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            mask = np.array(mask, bool)
            options = dict(options or {})
        obs, infos = parts_of(
            "reset",
            self.env.reset(seed=seed, options=options),  # pyright: ignore[reportArgumentType]
        )
        if mask is None:
            self._ended[:] = False
        elif self._obs is None:
            raise gym.error.ResetNeeded("the first reset must be of all sub-environments: no mask")
        else:
            self._ended[mask] = False
        seen = self._seen(obs)
        self._restart(seen, mask)
        self._obs = copied(seen)
        self._note(infos, "subgoal", self._stream.subgoals.copy(), mask)
        return self._observed(obs), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all sub-environments; the rewards are the settled ones."""
        if self._obs is None:
            raise gym.error.ResetNeeded("the wrapper was stepped before reset; call reset()")
        if self._mode == AutoresetMode.DISABLED and self._ended.any():
            raise gym.error.ResetNeeded(
                f"sub-environments {np.flatnonzero(self._ended).tolist()} have ended and autoreset "
                'is disabled; call reset(options={"reset_mask": …}) first'
            )
        obs, rewards, terminated, truncated, infos = parts_of("step", self.env.step(actions))
        done = np.logical_or(terminated, truncated)
        rewards = paid_to_each(rewards, self.num_envs)
        self._look_at(infos)
        same_step = self._mode == AutoresetMode.SAME_STEP
        fresh = self._ended if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(done)
        stepped = ~fresh if fresh.any() else None
        seen = self._seen(obs)
        reached = self._final_obs(seen, infos, done) if same_step and done.any() else seen
        stream = self._stream
        share = stream.step(
            self._obs, actions, rewards, reached, _Infos(infos, done, same_step), stepped
        )
        self._symbols.see(stream.events, done)
        self._states.see(reached)
        for key, values in (
            ("original_reward", rewards),
            ("redistributed", stream.given.copy()),
            ("event", stream.events.copy()),
            ("score", stream.scores.copy()),
            ("subgoal", stream.subgoals.copy()),
            ("strategy", stream.strategies),
            ("weight", self._accounts.weights),
        ):
            self._note(infos, key, values, stepped)
        if done.any():
            corrections = np.where(done, stream.corrections, 0.0)
            self._note(infos, "correction", corrections, done)
        terminated, truncated = np.asarray(terminated, bool), np.asarray(truncated, bool)
        paid = self._accounts.pay(rewards, share, terminated, truncated, stepped)
        restarted = done if same_step else fresh
        if restarted.any():
            if same_step and self._progress is not None:
                self._append_to_final(infos, done)
            self._restart(seen, restarted)
        self._ended = done if not same_step else np.zeros_like(done)
        self._obs = copied(seen)
        return self._observed(obs), paid, terminated, truncated, infos

    def _seen(self, obs: Any) -> Any:
        """Return a batch of observations as arrays, seen to be of their space."""
        space = self.env.single_observation_space
        seen = batch_tree(space, obs)
        check_observation(space, seen, (self.num_envs,), "the batch of observations")
        return seen

    def _final_obs(self, obs: Any, infos: dict[str, Any], done: np.ndarray) -> Any:
        """Return the batch with the true last observation of every episode that ended."""
        if "final_obs" not in infos:
            raise ValueError(
                "the environment resets on the same step but infos has no 'final_obs'; it is "
                "needed to score the last transition"
            )
        reached = copied(obs)
        for i in np.flatnonzero(done):
            _assign(reached, int(i), tree_index(infos["final_obs"], i))
        return reached

    def _append_to_final(self, infos: dict[str, Any], done: np.ndarray) -> None:
        assert self._progress is not None
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(done):
            final[i] = self._progress.append(
                tree_index(infos["final_obs"], i), int(self._stream.cells[i])
            )
        infos["final_obs"] = final

    def _observed(self, obs: Any) -> Any:
        return obs if self._progress is None else self._progress.append(obs, self._stream.cells)

    def _note(
        self, infos: dict[str, Any], key: str, values: np.ndarray, mask: np.ndarray | None
    ) -> None:
        infos[key] = values
        infos[f"_{key}"] = np.ones(self.num_envs, bool) if mask is None else mask.copy()


def _assign(tree: Any, i: int, value: Any) -> None:
    if isinstance(tree, dict):
        for key, part in tree.items():
            _assign(part, i, value[key])
    elif isinstance(tree, tuple):
        for part, new in zip(tree, value, strict=True):
            _assign(part, i, new)
    else:
        tree[i] = value


class _Infos(Sequence[Mapping[str, Any]]):
    """The infos of a vector environment, one dict for each sub-environment, made when asked for."""

    def __init__(self, infos: Mapping[str, Any], done: np.ndarray, same_step: bool) -> None:
        self._infos, self._done, self._same_step = infos, done, same_step

    def __len__(self) -> int:
        return len(self._done)

    def __getitem__(self, i: Any) -> Any:
        if self._same_step and self._done[i]:
            return _pick(self._infos.get("final_info", {}), i)
        return _pick(self._infos, i)


def _pick(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    out = {}
    for key, value in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        if mask is None or mask[i]:
            out[key] = _pick(value, i) if isinstance(value, Mapping) else value[i]
    return out
