"""The task: Craftax-Classic, paid 1 for the diamond and nothing for anything else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax_classic.constants import OBS_DIM, Achievement, Action, BlockType
from craftax.craftax_classic.envs.craftax_state import EnvParams, EnvState, StaticEnvParams
from craftax.craftax_classic.game_logic import craftax_step, is_game_over
from craftax.craftax_classic.world_gen import generate_world

from align_rudder.files import Array, array_like, check_arrays
from align_rudder.runs.checkpoint import named_leaves
from align_rudder.tasks.diamond.names import DID

__all__ = [
    "ACHIEVEMENTS",
    "ACTIONS",
    "ENDINGS",
    "FEATURES",
    "ITEMS",
    "VITALS",
    "DiamondState",
    "DiamondTask",
    "Observation",
    "items_of",
    "marked",
    "vitals_of",
]

ACTIONS = tuple(a.name.lower() for a in sorted(Action, key=lambda a: a.value))
"""Names of the actions."""
ITEMS = (
    *("wood", "stone", "coal", "iron", "diamond", "sapling"),
    *("wood_pickaxe", "stone_pickaxe", "iron_pickaxe"),
    *("wood_sword", "stone_sword", "iron_sword"),
)
ACHIEVEMENTS = tuple(a.name.lower() for a in sorted(Achievement, key=lambda a: a.value))
FEATURES = (*ITEMS, *(DID + name for name in ACHIEVEMENTS))
"""Names of the numbers whose changes are events: items, and whether each achievement was made."""
ENDINGS = (
    *("diamond", "lava", "zombie", "zombie, asleep", "arrow"),
    *("hunger", "thirst", "fatigue", "time"),
)
"""How an episode ends: what it found, the blow that was one too many, or the time limit."""
VITALS = ("health", "food", "drink", "energy")
UNSEEN = BlockType.INVALID.value
_STONE, _PATH = BlockType.STONE.value, BlockType.PATH.value
_COAL, _IRON = BlockType.COAL.value, BlockType.IRON.value
_ROWS, _COLUMNS = OBS_DIM
_SQUARE, _SQUARES = 7, 9
N_BLOCKS = len(BlockType)
# What the memory of the map is asked for: where is the nearest of these that was seen?
_SOUGHT = tuple(
    BlockType[name].value
    for name in (
        *("INVALID", "GRASS", "WATER", "STONE", "TREE", "PATH"),  # invalid: not seen yet
        *("COAL", "IRON", "DIAMOND", "CRAFTING_TABLE", "FURNACE", "LAVA"),
    )
)


class DiamondState(NamedTuple):
    """A world and what the player has seen of it.

    Attributes:
        world: The state of Craftax.
        seen: Blocks as they were when last in view, 0 where the player has not been (64, 64).
    """

    world: EnvState
    seen: jax.Array


class Observation(NamedTuple):
    """What the player sees and remembers, in bytes.

    Attributes:
        blocks: Blocks in view (7, 9).
        mobs: Mobs in view, a bit for each kind (7, 9).
        nearest: Offset of the nearest seen block of each kind sought (K, 2), 127 if none was seen.
        around: The memory of the map in squares of 7 × 7 cells, the player in the middle: how many
            of their cells are unseen, rock, and free of rock inside mountains (9, 9, 3).
        numbers: Inventory, health, food, drink, energy, ten times the light, whether asleep (18,).
        direction: Where the player looks: 0 left, 1 right, 2 up, 3 down.
    """

    blocks: jax.Array
    mobs: jax.Array
    nearest: jax.Array
    around: jax.Array
    numbers: jax.Array
    direction: jax.Array


class DiamondTask:
    """Craftax-Classic-Symbolic as a `hierarchy.Task`; only the diamond is paid.

    Args:
        map_size: Side of the world; 64 upstream.
        max_steps: Time limit; 10,000 upstream.
        flags: Whether events come from items alone, or from achievements too, which Craftax itself
            counts and nobody should need to be told.
    """

    def __init__(self, map_size: int = 64, max_steps: int = 10_000, flags: bool = False) -> None:
        self.map_size, self.max_steps = map_size, max_steps
        self.feature_names = FEATURES if flags else ITEMS
        self.params = EnvParams(max_timesteps=max_steps)
        self.static = StaticEnvParams(map_size=(map_size, map_size))

    n_actions = len(ACTIONS)

    @cached_property
    def like(self) -> DiamondState:
        """Shapes and types of a state."""
        return jax.eval_shape(self.new_world, jax.random.key(0))

    def new_world(self, key: jax.Array) -> DiamondState:
        """Return the start of a new world."""
        world = _without_key(generate_world(key, self.params, self.static))
        seen = jnp.full((self.map_size, self.map_size), UNSEEN, jnp.uint8)
        return DiamondState(world, self._look(world, seen))

    def step(self, key: jax.Array, state: DiamondState, action: jax.Array) -> DiamondState:
        """Return the next state."""
        world, _ = craftax_step(key, state.world, action, self.params, self.static)
        world = _without_key(world)
        return DiamondState(world, self._look(world, state.seen))

    def dense_reward(self, before: DiamondState, after: DiamondState) -> jax.Array:
        """Return upstream's reward: 1 for each new achievement, 0.1 for each point of health."""
        made = after.world.achievements.sum() - before.world.achievements.sum()
        health = after.world.player_health - before.world.player_health
        return made.astype(jnp.float32) + 0.1 * health

    def over(self, state: DiamondState) -> jax.Array:
        """Return whether the player is dead, out of time, or has the diamond."""
        return jnp.asarray(is_game_over(state.world, self.params)) | self.solved(state)

    def solved(self, state: DiamondState) -> jax.Array:
        """Return whether the diamond was collected."""
        return state.world.achievements[Achievement.COLLECT_DIAMOND.value].astype(bool)

    def features(self, state: DiamondState) -> jax.Array:
        """Return inventory and achievements, whose changes are events."""
        return self.report(state)[: len(self.feature_names)]

    def report(self, state: DiamondState) -> jax.Array:
        """Return inventory and achievements, as `FEATURES` names them."""
        return jnp.concatenate([items_of(state), state.world.achievements.astype(jnp.int32)])

    endings = ENDINGS

    def ending(self, before: DiamondState, after: DiamondState) -> jax.Array:
        """Return how the last step of an episode ended it, as an index of `ENDINGS`.

        Of several blows in one step the first of the list counts, an arrow's last of all: of it
        nothing is left to be seen.
        """
        old, new = before.world, after.world
        here = new.map[new.player_position[0], new.player_position[1]]
        # Who has just hit waits for five steps. Needs take health when their count falls below -15,
        # which sets it back to 0. Mobs move before the player falls asleep.
        hit = jnp.any(new.zombies.mask & (new.zombies.attack_cooldown == 5))
        weak = (old.player_recover < -14) & (new.player_recover == 0)
        gone = jnp.stack([new.player_food, new.player_drink, new.player_energy]) <= 0
        dead = new.player_health <= 0
        causes = jnp.stack(
            [
                self.solved(after),
                dead & (here == BlockType.LAVA.value),
                dead & hit & ~old.is_sleeping,
                dead & hit & old.is_sleeping,
                dead & ~(weak & gone.any()),  # nothing but arrows is left that takes health
                *(dead & weak & gone),
                jnp.bool_(True),
            ]
        )
        return causes.argmax().astype(jnp.int32)

    # What is seen

    def _corner(self, world: EnvState) -> jax.Array:
        return world.player_position - jnp.array([_ROWS // 2, _COLUMNS // 2])

    def _view(self, world: EnvState) -> jax.Array:
        """Return the blocks in view (7, 9); beyond the edge they are out of bounds."""
        outside = BlockType.OUT_OF_BOUNDS.value
        padded = jnp.pad(world.map, _COLUMNS, constant_values=outside)
        view = jax.lax.dynamic_slice(padded, self._corner(world) + _COLUMNS, OBS_DIM)
        return view.astype(jnp.uint8)

    def _look(self, world: EnvState, seen: jax.Array) -> jax.Array:
        """Return the memory of the map with what is in view now."""
        padded = jnp.pad(seen, _COLUMNS)
        padded = jax.lax.dynamic_update_slice(
            padded, self._view(world), self._corner(world) + _COLUMNS
        )
        inner = slice(_COLUMNS, _COLUMNS + self.map_size)
        return padded[inner, inner]

    def observe(self, state: DiamondState) -> Observation:
        """Return view, memory and numbers."""
        world = state.world
        mobs = jnp.zeros(OBS_DIM, jnp.uint8)
        for bit, kind in enumerate((world.zombies, world.cows, world.skeletons, world.arrows)):
            at = kind.position - self._corner(world)
            inside = ((at >= 0) & (at < jnp.array(OBS_DIM))).all(axis=1) & kind.mask
            mobs = mobs | (marked(OBS_DIM, at, inside).astype(jnp.uint8) << bit)
        others = jnp.stack([jnp.round(world.light_level * 10), world.is_sleeping])
        numbers = jnp.concatenate([items_of(state), vitals_of(state), others.astype(jnp.int32)])
        return Observation(
            self._view(world),
            mobs,
            self._nearest(state),
            self._around(state),
            jnp.clip(numbers, 0, 255).astype(jnp.uint8),
            jnp.asarray(world.player_direction - 1).astype(jnp.uint8),
        )

    def _nearest(self, state: DiamondState) -> jax.Array:
        """Return the offset of the nearest block of each kind sought, as the memory has it."""
        size = self.map_size
        y, x = jnp.arange(size)[:, None], jnp.arange(size)[None, :]
        py, px = state.world.player_position
        far = 2 * size
        distance = jnp.abs(y - py) + jnp.abs(x - px)
        packed = distance * size * size + y * size + x

        def of(kind: jax.Array) -> jax.Array:
            best = jnp.where(state.seen == kind, packed, far * size * size).min()
            at = best % (size * size)
            offset = jnp.stack([at // size - py, at % size - px])
            return jnp.where(best < far * size * size, offset, 127)

        return jax.vmap(of)(jnp.array(_SOUGHT)).astype(jnp.int8)

    def _around(self, state: DiamondState) -> jax.Array:
        """Return how much of the surroundings is unseen, rock and tunnel."""
        half = _SQUARE * _SQUARES // 2
        outside = jnp.uint8(BlockType.OUT_OF_BOUNDS.value)
        padded = jnp.pad(state.seen, half, constant_values=outside)
        here = jax.lax.dynamic_slice(padded, state.world.player_position, (2 * half + 1,) * 2)
        squares = here.reshape(_SQUARES, _SQUARE, _SQUARES, _SQUARE)
        rock = (squares == _STONE) | (squares == _COAL) | (squares == _IRON)
        kinds = jnp.stack([squares == UNSEEN, rock, squares == _PATH], axis=-1)
        return kinds.sum(axis=(1, 3)).astype(jnp.uint8)

    def parts(self, observation: Observation) -> dict[str, jax.Array]:
        """Return an observation as numbers for a network; `DiamondEnv` says what each part is."""
        bits = (observation.mobs[..., None] >> jnp.arange(4, dtype=jnp.uint8)) & 1
        nearest = observation.nearest.astype(jnp.float32)
        known = (nearest[:, 0] != 127)[:, None]
        distance = jnp.abs(nearest).sum(axis=1, keepdims=True)
        places = [nearest / 16, jnp.sign(nearest), jnp.abs(nearest) < 2, 1 / (1 + distance)]
        places = jnp.where(known, jnp.concatenate(places, axis=1), 0.0)
        numbers = observation.numbers.astype(jnp.float32)
        items = numbers[: len(ITEMS)]
        return {
            "blocks": jax.nn.one_hot(observation.blocks, N_BLOCKS),
            "mobs": bits.astype(jnp.float32),
            "nearest": jnp.concatenate([places, known.astype(jnp.float32)], axis=1),
            "around": observation.around / _SQUARE**2,
            "numbers": numbers / 10,
            "has": (items > 0).astype(jnp.float32),
            "has_several": (items > 1).astype(jnp.float32),
            "direction": jax.nn.one_hot(observation.direction, 4),
        }

    def encode(self, observation: Observation) -> jax.Array:
        """Return an observation as one vector for a network: its parts, one after the other."""
        return jnp.concatenate([part.ravel() for part in self.parts(observation).values()])

    # Symmetry: as it is, mirrored left to right, top to bottom, both

    def mirror(self, observation: Observation, which: jax.Array) -> Observation:
        """Return the observation in a world that is mirrored: 1 left–right, 2 up–down, 3 both."""
        sideways, upright = (which & 1).astype(bool), (which & 2).astype(bool)

        def grid(g: jax.Array) -> jax.Array:
            g = jnp.where(sideways, g[:, ::-1], g)
            return jnp.where(upright, g[::-1], g)

        sign = jnp.stack([jnp.where(upright, -1, 1), jnp.where(sideways, -1, 1)]).astype(jnp.int8)
        known = (observation.nearest != 127).all(axis=1, keepdims=True)
        d = observation.direction
        turned = jnp.where(d < 2, d ^ sideways.astype(d.dtype), d ^ upright.astype(d.dtype))
        return observation._replace(
            blocks=grid(observation.blocks),
            mobs=grid(observation.mobs),
            around=grid(observation.around),
            nearest=jnp.where(known, observation.nearest * sign, observation.nearest),
            direction=turned,
        )

    @property
    def mirrored_actions(self) -> jax.Array:
        """For each symmetry, what each action is in the mirrored world (4, 17)."""
        table = np.tile(np.arange(self.n_actions), (4, 1))
        table[1::2, [1, 2]] = [2, 1]  # left and right
        table[2:, [3, 4]] = [4, 3]  # up and down
        return jnp.asarray(table, jnp.int32)

    # States from elsewhere

    def state_kinds(self, *steps: int | str) -> dict[str, Array]:
        """Return what each array of a state may be, or of a stack of states, by its name.

        Args:
            steps: Shape of the stack; none for one state.
        """
        kinds = {name: array_like(x, *steps) for name, x in named_leaves(self.like).items()}
        highest = {".world.player_position": self.map_size - 1}
        highest |= dict.fromkeys((".world.map", ".seen"), N_BLOCKS - 1)
        highest |= dict.fromkeys((f".world.inventory.{item}" for item in ITEMS), 9)
        for name, high in highest.items():
            kinds[name].low, kinds[name].high = 0, high
        return kinds

    def state_of(self, arrays: Mapping[str, np.ndarray]) -> DiamondState:
        """Return the state, or the stack of states, that these arrays are by their names."""
        found = [arrays[name] for name in named_leaves(self.like)]
        return jax.tree.unflatten(jax.tree.structure(self.like), found)

    def checked_state(self, state: Any) -> DiamondState:
        """Return a state from elsewhere in the types of this task; `ValueError` if it is none."""
        if jax.tree.structure(state) != jax.tree.structure(self.like):
            raise ValueError(
                "the state has other parts than a state of this task; it is of another version of "
                "Craftax, or no state at all"
            )
        try:
            return self.state_of(check_arrays(named_leaves(state), self.state_kinds()))
        except ValueError as error:
            raise ValueError(
                f"{error}: one state of a world with map_size={self.map_size}"
            ) from error


def _without_key(world: EnvState) -> EnvState:
    """Return the world without its key, which only the noise of night pictures uses.

    All leaves are then plain arrays, to be stored and stacked.
    """
    plain = world.replace(state_rng=jnp.zeros(2, jnp.uint32))  # pyright: ignore[reportAttributeAccessIssue]
    return jax.tree.map(jnp.asarray, plain)


def marked(shape: tuple[int, ...], cells: jax.Array, mask: jax.Array) -> jax.Array:
    """Return a map that is true at those of the cells (N, 2) that the mask keeps."""
    rows = jnp.where(mask, cells[:, 0], shape[0])  # the others are dropped, as out of bounds
    return jnp.zeros(shape, bool).at[rows, cells[:, 1]].set(True, mode="drop")


def items_of(state: DiamondState) -> jax.Array:
    """Return how many there are of each item (12,)."""
    found = [getattr(state.world.inventory, name) for name in ITEMS]
    return jnp.stack(found).astype(jnp.int32)


def vitals_of(state: DiamondState) -> jax.Array:
    """Return health, food, drink and energy (4,)."""
    found = [getattr(state.world, f"player_{name}") for name in VITALS]
    return jnp.stack(found).astype(jnp.int32)
