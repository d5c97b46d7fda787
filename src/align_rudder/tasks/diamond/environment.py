"""Diamond: Craftax-Classic for Gymnasium's learners, paid 1 for the diamond and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax_classic.constants import BLOCK_PIXEL_SIZE_HUMAN
from gymnasium import spaces

from align_rudder.tasks.diamond.pictures import painter
from align_rudder.tasks.diamond.task import (
    ACHIEVEMENTS,
    ACTIONS,
    FEATURES,
    ITEMS,
    VITALS,
    DiamondState,
    DiamondTask,
    vitals_of,
)

__all__ = ["ACTIONS", "DiamondEnv", "DiamondSnapshot"]


class DiamondSnapshot(NamedTuple):
    """All that the rest of an episode depends on, as NumPy arrays.

    Attributes:
        state: The world and what was seen of it; its step number is `state.world.timestep`.
        key: The key of the episode's random numbers (2,). With the step number it decides what
            happens by chance at that step, so it stays the same throughout an episode.
    """

    state: DiamondState
    key: np.ndarray


class _Programs(NamedTuple):
    """The compiled functions of one map size, shared by all environments of that size.

    The last two results of each are the observation as a vector, and whole numbers: features,
    vitals, place, time, whether terminated, whether solved.
    """

    task: DiamondTask
    begin: Callable[..., Any]  # key -> state, key, vector, numbers
    step: Callable[..., Any]  # key, state, action -> state, vector, numbers
    look: Callable[..., Any]  # state -> vector, numbers


@cache
def _programs(map_size: int) -> _Programs:
    # Without a time limit, `over` means dead or solved. The limit is kept in Python, where every
    # max_steps can use the same programs.
    task = DiamondTask(map_size, max_steps=np.iinfo(np.int32).max)

    def look(state: DiamondState) -> tuple[jax.Array, jax.Array]:
        world = state.world
        others = [*world.player_position, world.timestep, task.over(state), task.solved(state)]
        others = jnp.stack([jnp.asarray(x, jnp.int32) for x in others])
        numbers = jnp.concatenate([task.report(state), vitals_of(state), others])
        return task.encode(task.observe(state)), numbers

    def fixed(state: DiamondState) -> DiamondState:
        # Weak types, which differ between a new world and a later one, would compile twice.
        return jax.tree.map(lambda x, y: jax.lax.convert_element_type(x, y.dtype), state, task.like)

    def begin(key: jax.Array) -> Any:
        for_world, for_steps = jax.random.split(_key(key))
        state = fixed(task.new_world(for_world))
        return state, jax.random.key_data(for_steps), *look(state)

    def step(key: jax.Array, state: DiamondState, action: jax.Array) -> Any:
        now = jax.random.fold_in(_key(key), state.world.timestep)
        state = fixed(task.step(now, state, action))
        return state, *look(state)

    return _Programs(task, jax.jit(begin), jax.jit(step), jax.jit(look))


@cache
def _part_shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parts of the vector, in order."""
    task, shapes = DiamondTask(), {}

    def note(state: DiamondState) -> None:
        parts = task.parts(task.observe(state))
        shapes.update({name: part.shape for name, part in parts.items()})

    jax.eval_shape(note, task.like)
    return shapes


def _key(data: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def _random_key(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(2**32, size=2, dtype=np.uint32)


def _placed(tree: Any) -> Any:
    """Return arrays on the CPU, where one small world runs fastest; computations follow them."""
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to use another platform only
        device = jax.local_devices()[0]
    return jax.device_put(jax.tree.map(np.array, tree), device)  # a copy: it may keep the memory


class DiamondEnv(gym.Env[Any, Any]):
    """Find a diamond in a new world of Craftax-Classic.

    The step that collects the diamond pays 1 and terminates the episode; death terminates it with
    0; after `max_steps` it is truncated. Nothing else is paid. Wood, a table, a wooden pickaxe,
    stone, a stone pickaxe, coal, iron, a furnace and an iron pickaxe are needed before.

    Actions are 0 noop, 1 left, 2 right, 3 up, 4 down, 5 do (take, hit, eat, drink what is in
    front), 6 sleep, 7 to 10 place stone, table, furnace, plant, 11 to 13 make a wooden, stone, iron
    pickaxe, 14 to 16 make a wooden, stone, iron sword (`ACTIONS`).

    The observation is a dict:

    - each of the 12 items by its name ("wood", …, "iron_sword"): how many, 0 to 9;
    - each of the 22 achievements as `did_…` (`did_collect_wood`, …): whether it was made;
    - "vector": what the player sees, feels and remembers of the map, for networks (`parts` takes it
      apart):

      ============= ========== =================================================================
      blocks        (7, 9, 17) which block lies there, one-hot; rows from north, the player at
                               (3, 4)
      mobs          (7, 9, 4)  whether a zombie, cow, skeleton, arrow is there
      nearest       (12, 8)    of the nearest place that was never seen and the nearest grass,
                               water, stone, tree, path, coal, iron, diamond, table, furnace, lava
                               that was: rows and columns to it / 16, their signs, whether each is
                               below 2, 1 / (1 + steps), whether there is any
      around        (9, 9, 3)  the map as remembered, in squares of 7 × 7 cells with the player in
                               the middle: shares never seen, rock, and tunnel
      numbers       (18,)      items, health, food, drink, energy / 10, light, asleep / 10
      has           (12,)      whether there is one of the item
      has_several   (12,)      whether there are two
      direction     (4,)       looks left, right, up, down
      ============= ========== =================================================================

    With `flat=True` it is that vector alone. Events are found in items and achievements, so
    redistribute the reward of the dict, then flatten it:
    `gym.wrappers.FlattenObservation(ar.RedistributeReward(env, model, observe_progress=True))`.

    `info` holds "inventory" and "achievements" (dicts), "health", "food", "drink", "energy" (9 is
    full), "position" (row, column), "time" (steps made) and "is_success".

    Args:
        flat: Whether to observe the vector alone.
        map_size: Side of the world, a multiple of 16 up to 112; 64 upstream.
        max_steps: Time limit; 10,000 upstream.
        render_mode: "rgb_array" or None; `gym.wrappers.HumanRendering` shows it in a window.

    Notes:
        It runs on the CPU. A step takes about a millisecond and a new world not much more; the
        first step compiles for some ten seconds, once for all environments of a process. For
        thousands of worlds at once on a GPU use `align_rudder.tasks.diamond.task.DiamondTask` with
        `jax.vmap`. JAX should not be forked: with `AsyncVectorEnv`, give `context="spawn"`.

    Example:
        >>> env = gym.make("AlignRudder/Diamond-v0", flat=True)
        >>> env.observation_space.dtype, env.action_space
        (dtype('float32'), Discrete(17))
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["rgb_array"],
        "render_fps": 10,
    }

    def __init__(
        self,
        flat: bool = False,
        map_size: int = 64,
        max_steps: int = 10_000,
        render_mode: str | None = None,
    ) -> None:
        if map_size not in range(16, 113, 16):
            raise ValueError(
                f"map_size={map_size}; a multiple of 16 from 16 to 112 is needed (64 upstream)"
            )
        if max_steps != max_steps // 1 or max_steps < 1:
            raise ValueError(f"max_steps={max_steps}; a whole number of at least 1 is needed")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode={render_mode!r} is not known; use one of "
                f"{self.metadata['render_modes']}, with gym.wrappers.HumanRendering for a window"
            )
        self.flat, self.map_size, self.max_steps = flat, map_size, max_steps
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(ACTIONS))
        bound = max(1.0, (map_size - 1) / 16)  # that of "nearest", the widest
        size = sum(int(np.prod(shape)) for shape in _part_shapes().values())
        vector = spaces.Box(-bound, bound, (size,))
        self.observation_space: spaces.Space[Any] = vector
        if not flat:
            entries: dict[str, spaces.Space[Any]] = {name: spaces.Discrete(10) for name in ITEMS}
            entries |= {name: spaces.Discrete(2) for name in FEATURES[len(ITEMS) :]}
            self.observation_space = spaces.Dict({**entries, "vector": vector})
        self._state: DiamondState | None = None
        self._key: Any = None
        self._ended = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in a new world, or at `options={"state": …}`.

        Unlike `restore_state`, this lets wrappers know that an episode begins. The state is what
        `save_state` returned, or one of a demonstration; that has no random numbers of its own and
        gets new ones.
        """
        unknown = sorted(str(name) for name in {*(options or {})} - {"state"})
        if unknown:
            raise ValueError(f'there is no option {", ".join(unknown)}; "state" is the only one')
        super().reset(seed=seed)
        key = _random_key(self.np_random)
        given = (options or {}).get("state")
        if given is None:
            self._state, self._key, *seen = _programs(self.map_size).begin(_placed(key))
            obs, info, self._ended, _ = self._observed(*seen)
            return obs, info
        obs, info = self.restore_state(
            DiamondSnapshot(given, key) if isinstance(given, DiamondState) else given
        )
        if self._ended:
            raise ValueError(
                "the state is the end of an episode, which cannot begin there; give an earlier one"
            )
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        if self._state is None or self._ended:
            raise gym.error.ResetNeeded(
                "the environment was stepped before reset, or after the episode had ended; call "
                "reset()"
            )
        if not self.action_space.contains(action):
            raise ValueError(
                f"action={action!r} is not known; give an integer from 0 to {len(ACTIONS) - 1}, "
                f"one of {dict(enumerate(ACTIONS))}"
            )
        self._state, *seen = _programs(self.map_size).step(self._key, self._state, np.int32(action))
        obs, info, self._ended, terminated = self._observed(*seen)
        return obs, float(info["is_success"]), terminated, self._ended and not terminated, info

    def _observed(
        self, vector: jax.Array, numbers: jax.Array
    ) -> tuple[Any, dict[str, Any], bool, bool]:
        """Return observation, info, and whether the episode has ended and has terminated."""
        values = np.asarray(numbers).tolist()
        features, others = values[: len(FEATURES)], values[len(FEATURES) :]
        *vitals, row, column, time, terminated, solved = others
        info = {
            "inventory": dict(zip(ITEMS, features)),
            "achievements": {
                name: bool(made) for name, made in zip(ACHIEVEMENTS, features[len(ITEMS) :])
            },
            **dict(zip(VITALS, vitals)),
            "position": np.array([row, column]),
            "time": time,
            "is_success": bool(solved),
        }
        obs: Any = np.array(vector)
        if not self.flat:
            obs = {**dict(zip(FEATURES, map(np.int64, features))), "vector": obs}
        return obs, info, bool(terminated or time >= self.max_steps), bool(terminated)

    @staticmethod
    def parts(vector: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parts of a vector by name, or of a batch of vectors (last axis)."""
        shapes, vector = _part_shapes(), np.asarray(vector)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        if vector.shape[-1:] != (ends[-1],):
            raise ValueError(
                f"the vector has shape {vector.shape}, {ends[-1]} numbers are needed; give an "
                'observation of flat=True or the entry "vector" of the dict'
            )
        found = np.split(vector, ends[:-1], axis=-1)
        return {
            name: part.reshape(*vector.shape[:-1], *shape)
            for part, (name, shape) in zip(found, shapes.items(), strict=True)
        }

    def save_state(self) -> DiamondSnapshot:
        """Return all that the rest of the episode depends on, random numbers included."""
        if self._state is None:
            raise gym.error.ResetNeeded("there is no state to save before reset; call reset()")
        return DiamondSnapshot(jax.tree.map(np.array, self._state), np.array(self._key))

    def restore_state(
        self, snapshot: DiamondSnapshot | DiamondState, seed: int | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Go on from a state; return its observation and info.

        The same actions then lead to the same observations, in any environment of the same
        `map_size`. Which worlds come after the episode is not part of the state. Wrappers that
        remember the episode do not notice: for them use `reset(options={"state": …})`.

        Args:
            snapshot: What `save_state` returned, or a state of a demonstration with a seed.
            seed: Seed of new random numbers for the rest of the episode; None for those saved.
        """
        if isinstance(snapshot, DiamondState) and seed is not None:
            snapshot = DiamondSnapshot(snapshot, np.zeros(2, np.uint32))
        if not isinstance(snapshot, DiamondSnapshot):
            raise ValueError(
                f"the state is a {type(snapshot).__name__}; give what save_state() returned, or a "
                "DiamondState with seed=… for the random numbers of the rest of the episode"
            )
        if seed is not None:
            snapshot = snapshot._replace(key=_random_key(np.random.default_rng(seed)))
        state, key = jax.tree.map(np.asarray, tuple(snapshot))
        task, *_, look = _programs(self.map_size)
        state = task.checked_state(state)
        if key.shape != (2,) or key.dtype != np.uint32:
            raise ValueError(
                f"the key has shape {key.shape} and type {key.dtype}; (2,) and uint32 are needed, "
                "as save_state() returns them"
            )
        self._state, self._key = _placed((state, key))
        obs, info, self._ended, _ = self._observed(*look(self._state))
        return obs, info

    def render(self) -> Any:
        """Return the view and the inventory with Craftax's textures (576, 576, 3).

        The first picture ever takes Craftax half a minute, to prepare its textures.
        """
        if self.render_mode is None:
            gym.logger.warn("render() was called without render_mode; give it to gym.make")
            return None
        if self._state is None:
            raise gym.error.ResetNeeded("there is nothing to render before reset; call reset()")
        return np.array(painter(BLOCK_PIXEL_SIZE_HUMAN)(self._state.world))
