"""The wrapper for environments in JAX, as gymnax has them: redistribution inside a jitted step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from align_rudder.events.encoders_jax import EventFunction
from align_rudder.gym.spaces import fits_in_blocks
from align_rudder.gym.wrapper import INFO_KEYS, warn_of_keys
from align_rudder.model import AlignRudder
from align_rudder.settlement import ENOUGH, FAILURE, MEMORY, Settlement
from align_rudder.tracking_jax import HISTORY, Stream, StreamState

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError('this needs JAX; in a clone: pip install ".[jax]"') from error

__all__ = ["AccountState", "RedistributeReward", "TrackedState"]


class AccountState(NamedTuple):
    """What `align_rudder.settlement.Account` knows of an episode.

    Attributes:
        level: The potential.
        steps: Steps so far.
        charge: What each step pays back.
        surplus: What was to be taken back of the episodes before, older ones counting less.
        lengths: Their steps, likewise.
        repaid: Successes among them.
    """

    level: jax.Array
    steps: jax.Array
    charge: jax.Array
    surplus: jax.Array
    lengths: jax.Array
    repaid: jax.Array

    @classmethod
    def new(cls, surplus: Any = 0.0, lengths: Any = 0.0, repaid: Any = 0.0) -> AccountState:
        """Return the account of an episode that begins, with what is known of those before."""
        zero, surplus, lengths = jnp.float32(0), jnp.float32(surplus), jnp.float32(lengths)
        charge = surplus / jnp.maximum(lengths, 1.0)
        return cls(zero, zero, charge, surplus, lengths, jnp.float32(repaid))


class TrackedState(NamedTuple):
    """A state of the environment, and where its episode stands.

    Attributes:
        env_state: The environment's state.
        stream: The episode so far, as the tracker knows it.
        obs: The last observation, as the environment gave it.
        account: What was paid, and is to be taken back.
    """

    env_state: Any
    stream: StreamState
    obs: Any
    account: AccountState


class RedistributeReward:
    """Pays each step its reward and redistributed share, in an environment as gymnax has them.

    `reset(key, params) -> (obs, state)` and `step(key, state, action, params)` are pure functions
    of one environment, for `jit`, `vmap` and `scan`, with the same worlds and random numbers as
    without the wrapper. `step` returns what the environment's own does: (obs, state, reward, done,
    info) or, from gymnax 1.0 on, (obs, state, reward, terminated, truncated, info). When an
    episode ends the next one begins, as gymnax does it; the last transition is scored with the
    true last observation.

    `info` holds what that of `align_rudder.RedistributeReward` holds: "original_reward",
    "redistributed" (the redistributed reward of the episode so far, without the correction),
    "event" (-1: none), "score" S(τ_t), "subgoal" (index of the next sub-goal), "strategy",
    "weight" and "correction", which is 0 before the last step, as all steps have the same entries
    in JAX.

    Args:
        env: The environment, with `reset_env` and `step_env`, which do not begin the next episode,
            and `default_params`, unless `params` are given to `reset` and `step`. Wrap it before
            others do: `LogWrapper(RedistributeReward(env, model))`.
        model: A fitted `AlignRudder`. If it is aligned again, make a new wrapper.
        settlement: "annealed", "even", "mean", "potential", "last" or "beside", as in
            `align_rudder.settlement`. Successes, and what episodes gave, are remembered from one to
            the next in the state, for each environment of a batch its own.
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".
        successes: After how many successes "annealed" pays no shares any more.
        observe_progress: Whether to append the position on the profile to the observation, as
            `align_rudder.gym.spaces.ProgressSpace` does: blocks to a vector; a number becomes
            number × positions + position; a dict gets an entry "progress"; all else becomes a dict
            of "observation" and "progress".
        function: The event function in JAX, where the model's events come from a function or are
            symbols; see `align_rudder.tracking_jax.Stream`.
        history: Where events undo others, how many an episode remembers; `info["history_full"]`
            says when it had more, from where on nothing is earned or lost.
    """

    def __init__(
        self,
        env: Any,
        model: AlignRudder,
        settlement: str = "annealed",
        gamma: float = 0.99,
        fade: float = 0.01,
        successes: float = 100,
        observe_progress: bool = True,
        function: EventFunction | None = None,
        history: int = HISTORY,
    ) -> None:
        # Wrappers pass on what they do not have: only the class tells what is an environment's own.
        if not (hasattr(type(env), "step_env") and hasattr(type(env), "reset_env")):
            raise ValueError(
                f"{type(env).__name__} has no step_env and reset_env of its own. `step` hides the "
                "last observation of an episode behind the first of the next; these two do not "
                "begin the next one, so that the last transition can be scored. If it is a "
                "wrapper, wrap the environment itself and put other wrappers around this one; if "
                "it is an environment, give it reset_env(key, params) -> (obs, state) and "
                "step_env(key, state, action, params) -> (obs, state, reward, done, info)"
            )
        if not hasattr(model, "tables_"):
            raise ValueError(f"model is a {type(model).__name__}; give a fitted AlignRudder")
        self.settlement = Settlement(settlement, gamma, fade, successes)
        self._returns = model.return_range_
        self.env = env
        self.observe_progress = observe_progress
        self.stream = Stream(model, function, history)
        self._ends_in_two_ways = hasattr(type(env), "is_truncated")  # from gymnax 1.0 on

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not set yet
            raise AttributeError(name)
        return getattr(self.env, name)

    def observation_space(self, params: Any) -> Any:
        """Return the space of the observations, position included if it is observed."""
        space = self.env.observation_space(params)
        if not self.observe_progress:
            return space
        n = self.stream.tables.n_cells
        if hasattr(space, "n"):
            return type(space)(space.n * n)
        if not fits_in_blocks(tuple(getattr(space, "shape", ())), n):
            raise ValueError(f"the space of {space} with its progress is a dict; gymnax has none")
        low, high = (jnp.broadcast_to(x, space.shape) for x in (space.low, space.high))
        low = jnp.append(low, jnp.tile(jnp.append(jnp.minimum(low, 0), 0), n))
        high = jnp.append(high, jnp.tile(jnp.append(jnp.maximum(high, 0), 1), n))
        return type(space)(low, high, low.shape, space.dtype)

    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, TrackedState]:
        """Return observation and state at the beginning of an episode."""
        return self.reset_env(key, self._default_params() if params is None else params)

    def step(self, key: jax.Array, state: TrackedState, action: Any, params: Any = None) -> Any:
        """Step the environment; the reward is the redistributed one."""
        params = self._default_params() if params is None else params
        key_step, key_reset = jax.random.split(key)
        last, after, reward, *ends, info = self._step(key_step, state, action, params)
        done = ends[0] | ends[-1]
        first, fresh = self.reset_env(key_reset, params)
        past = after.account
        account = AccountState.new(past.surplus, past.lengths, past.repaid)
        fresh = fresh._replace(account=account)
        obs, state = jax.tree.map(
            lambda new, old: jnp.where(done, new, old), (first, fresh), (last, after)
        )
        if self._ends_in_two_ways:
            info |= {"terminated": ends[0], "truncated": ends[1], "final_observation": last}
        return obs, state, reward, *ends, info

    def _default_params(self) -> Any:
        if not hasattr(self.env, "default_params"):
            raise ValueError(
                f"{type(self.env).__name__} has no default_params; give params to reset and step, "
                "or give the environment default_params (anything but None, if it needs none)"
            )
        return self.env.default_params

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, TrackedState]:
        """Return observation and state at the beginning of an episode."""
        obs, env_state = self.env.reset_env(key, params)
        state = TrackedState(env_state, self.stream.reset(obs), obs, AccountState.new())
        return self._observed(state), state

    def step_env(
        self, key: jax.Array, state: TrackedState, action: Any, params: Any
    ) -> tuple[Any, TrackedState, jax.Array, jax.Array, dict[str, Any]]:
        """Step the environment without beginning the next episode at the end of one."""
        obs, after, reward, ended, *_, info = self._step(key, state, action, params)
        return obs, after, reward, ended, info

    def _step(self, key: jax.Array, state: TrackedState, action: Any, params: Any) -> Any:
        found = self.env.step_env(key, state.env_state, action, params)
        obs, env_state, reward, ended, info = found
        ends = [jnp.asarray(ended)]
        if self._ends_in_two_ways:
            ends.append(jnp.asarray(self.env.is_truncated(env_state, params)))
        stream, step = self.stream.step(state.stream, state.obs, action, reward, obs, info)
        correction = jnp.where(ends[0] | ends[-1], stream.correction, 0.0)
        strategy = self.stream.tables.strategy_of[step.cell]
        warn_of_keys(info)  # when it is compiled
        weight = self._weight(state.account.repaid)
        own = (reward, stream.given, step.event, step.score, step.subgoal, strategy, weight)
        info = {**info, **dict(zip(INFO_KEYS, (*own, correction), strict=True))}
        if self.stream.tables.undoes is not None:
            info["history_full"] = stream.tracker.full
        terminated, truncated = ends[0], ends[-1] if self._ends_in_two_ways else False
        account, paid = self._pay(state.account, reward, step.reward, stream, terminated, truncated)
        after = TrackedState(env_state, stream, obs, account)
        return self._observed(after), after, paid, *ends, info

    def _pay(
        self,
        account: AccountState,
        own: Any,
        share: Any,
        stream: StreamState,
        terminated: Any,
        truncated: Any,
    ) -> tuple[AccountState, jax.Array]:
        """Return the account after a step and its reward; as `align_rudder.settlement.Account`."""
        kind, gamma, fade = self.settlement.kind, self.settlement.gamma, self.settlement.fade
        own = jnp.asarray(own, jnp.float32)
        if kind == "potential":
            level = jnp.where(terminated, 0.0, (1.0 - fade) * account.level + share)
            return account._replace(level=level), own + gamma * level - account.level
        steps = account.steps + 1
        charge = account.charge if self.settlement.spreads else jnp.float32(0)
        ended = terminated | truncated
        paid = own + share - charge
        if kind == "annealed":
            paid = own + self._weight(account.repaid) * share
        elif kind != "beside":
            paid += jnp.where(ended, charge * steps - stream.given, 0.0)
        low, high = self._returns
        part = (stream.ret - low) / (high - low) if high > low else jnp.float32(0)
        success = jnp.where(part >= ENOUGH, jnp.minimum(part, 1.0), FAILURE)
        surplus = stream.given - (own if kind == "even" else 0.0)
        past = (MEMORY * account.surplus + surplus, MEMORY * account.lengths + steps)
        return AccountState(
            account.level,
            steps,
            account.charge,
            jnp.where(ended, past[0], account.surplus),
            jnp.where(ended, past[1], account.lengths),
            account.repaid + jnp.where(ended, success, 0.0),
        ), paid

    def _weight(self, repaid: jax.Array) -> jax.Array:
        """Return what is paid of a share: 1, less with each success of "annealed"."""
        if self.settlement.kind != "annealed":
            return jnp.float32(1)
        left = 1.0 - repaid / max(self.settlement.successes, 1e-30)
        return jnp.maximum(0.0, left) if self.settlement.successes else jnp.float32(0)

    def _observed(self, state: TrackedState) -> Any:
        obs, cell = state.obs, state.stream.tracker.cell
        if not self.observe_progress:
            return obs
        n = self.stream.tables.n_cells
        one_hot = jax.nn.one_hot(cell, n)
        if isinstance(obs, Mapping):
            return {**obs, "progress": one_hot}
        if isinstance(obs, jax.Array) and fits_in_blocks(obs.shape, n):
            own = jnp.append(obs, jnp.ones(1, obs.dtype))
            return jnp.append(obs, jnp.outer(one_hot.astype(obs.dtype), own))
        if isinstance(obs, jax.Array) and obs.ndim == 0 and obs.dtype.kind in "iu":
            return obs * n + cell
        return {"observation": obs, "progress": one_hot}
