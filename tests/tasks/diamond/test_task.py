"""The diamond task: what is seen, its symmetries, and how episodes end."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import jax.numpy as jnp  # noqa: E402
from craftax.craftax_classic.constants import BlockType  # noqa: E402
from diamond_training import setup  # noqa: E402

from align_rudder.tasks.diamond.task import (  # noqa: E402
    ACTIONS,
    ENDINGS,
    FEATURES,
    ITEMS,
    DiamondTask,
)

task = DiamondTask()
observe = jax.jit(jax.vmap(task.observe))
mirror = jax.jit(jax.vmap(task.mirror, (0, None)))


@pytest.fixture(scope="module")
def states():
    """The first states of a demonstration."""
    return jax.tree.map(lambda x: jnp.asarray(x[:66]), setup().demos[0].states)


def test_the_memory_holds_what_was_in_view(states):
    """Every state's memory agrees with the map wherever the player can see."""
    seen = observe(states)
    for t in (0, 30, 65):
        y, x = np.asarray(states.world.player_position[t])
        world = np.pad(np.asarray(states.world.map[t]), 9, constant_values=1)
        view = world[y + 9 - 3 : y + 9 + 4, x + 9 - 4 : x + 9 + 5]
        np.testing.assert_array_equal(seen.blocks[t], view)
        memory = np.pad(np.asarray(states.seen[t]), 9, constant_values=1)
        np.testing.assert_array_equal(memory[y + 6 : y + 13, x + 5 : x + 14], view)
    known = (np.asarray(states.seen) > 0).sum(axis=(1, 2))
    assert (np.diff(known) >= 0).all()
    assert known[-1] > known[0]


def test_the_nearest_block_is_the_nearest_of_the_memory(states):
    nearest = np.asarray(observe(states).nearest)
    for t in (0, 40):
        y, x = np.asarray(states.world.player_position[t])
        memory = np.asarray(states.seen[t])
        for kind, offset in ((5, nearest[t, 4]), (10, nearest[t, 8])):
            at = np.argwhere(memory == kind)
            if not len(at):
                assert (offset == 127).all()
                continue
            distance = np.abs(at - [y, x]).sum(axis=1).min()
            assert np.abs(offset.astype(int)).sum() == distance
            assert memory[y + offset[0], x + offset[1]] == kind


@pytest.mark.parametrize("which", range(4))
def test_mirroring_twice_is_nothing(states, which):
    seen = observe(states)
    once = mirror(seen, jnp.int32(which))
    twice = mirror(once, jnp.int32(which))
    for a, b in zip(seen, twice):
        np.testing.assert_array_equal(a, b)
    actions = np.asarray(task.mirrored_actions)[which]
    np.testing.assert_array_equal(actions[actions], np.arange(17))
    if which:
        assert (np.asarray(once.blocks) != np.asarray(seen.blocks)).any()


def test_events_are_of_items_alone_unless_achievements_are_asked_for(states):
    flags = DiamondTask(flags=True)
    last = jax.tree.map(lambda x: x[-1], states)
    assert (flags.feature_names, task.feature_names) == (FEATURES, ITEMS)
    np.testing.assert_array_equal(task.features(last), flags.features(last)[: len(ITEMS)])
    np.testing.assert_array_equal(task.report(last), flags.features(last))


# How episodes end

HERE, BESIDE = (32, 32), (32, 33)
GRASS, LAVA, DIAMOND = (BlockType[name].value for name in ("GRASS", "LAVA", "DIAMOND"))
WEAK = {"player_recover": -15.0, "player_health": 1}
AT_LAST = {"timestep": task.max_steps - 1}
SLEEPING = {"is_sleeping": True, "player_energy": 3}


def block(kind):
    """Return what puts a block on the right."""
    return lambda world: {"map": world.map.at[BESIDE].set(kind)}


def zombie(cooldown=0):
    """Return what puts a zombie on the right."""
    return lambda world: {
        "zombies": world.zombies.replace(
            position=world.zombies.position.at[0].set(jnp.array(BESIDE)),
            attack_cooldown=world.zombies.attack_cooldown.at[0].set(cooldown),
            mask=world.zombies.mask.at[0].set(True),
        ),
        "mob_map": world.mob_map.at[BESIDE].set(True),
    }


def arrow(world):
    """Put an arrow on the right that flies to the left."""
    return {
        "arrows": world.arrows.replace(
            position=world.arrows.position.at[0].set(jnp.array(BESIDE)),
            mask=world.arrows.mask.at[0].set(True),
        ),
        "arrow_directions": world.arrow_directions.at[0].set(jnp.array([0, -1])),
    }


DIG = {"player_direction": ACTIONS.index("right")}
BLOWS = [  # what ends it, what the player does, and what the world is like
    ("diamond", "do", [block(DIAMOND)], DIG),
    ("diamond", "do", [block(DIAMOND)], {**DIG, **WEAK, **AT_LAST, "player_food": 0}),
    ("lava", "right", [block(LAVA)], {}),
    ("lava", "right", [block(LAVA)], {**WEAK, **AT_LAST, "player_drink": 0}),
    ("zombie", "noop", [zombie()], {"player_health": 1}),
    ("zombie", "noop", [zombie()], {"player_health": 2, **AT_LAST}),
    ("zombie", "sleep", [zombie()], {"player_health": 2, "player_energy": 3}),
    ("zombie", "noop", [zombie(-3), arrow], {"player_health": 4}),
    ("zombie, asleep", "noop", [zombie()], {"player_health": 1, **SLEEPING}),
    ("zombie, asleep", "noop", [zombie()], {"player_health": 2, **SLEEPING}),
    ("zombie, asleep", "noop", [zombie()], {"player_health": 7, **SLEEPING}),
    ("arrow", "noop", [arrow], {"player_health": 1}),
    ("arrow", "noop", [arrow], {"player_health": 2, "player_food": 0}),
    ("arrow", "noop", [arrow], {"player_health": 2, **SLEEPING}),
    ("arrow", "noop", [zombie(5), arrow], {"player_health": 2}),  # it has hit before
    ("hunger", "noop", [], {**WEAK, "player_food": 0}),
    ("hunger", "noop", [zombie(3)], {**WEAK, "player_food": 0, "player_drink": 0}),
    ("thirst", "noop", [], {**WEAK, "player_drink": 0}),
    ("thirst", "noop", [], {**WEAK, **SLEEPING, "player_recover": -15.5, "player_drink": 0}),
    ("fatigue", "noop", [], {**WEAK, "player_energy": 0}),
    ("time", "noop", [], AT_LAST),
    ("time", "noop", [arrow], {**AT_LAST, "player_health": 3}),
]
GOES_ON = [
    ("", "noop", [zombie()], {"player_health": 3}),
    ("", "noop", [zombie()], {"player_health": 8, **SLEEPING}),
    ("", "noop", [arrow], {"player_health": 3}),
    ("", "noop", [], {**WEAK, "player_health": 2, "player_food": 0}),
    ("", "noop", [], {**WEAK, "player_recover": -14.0, "player_food": 0}),
    ("", "noop", [block(LAVA)], {"timestep": task.max_steps - 2}),
]


def crafted(state, things, values):
    """Return a state on a meadow without mobs, with these things and values."""
    world = state.world
    mobs = {name: getattr(world, name) for name in ("zombies", "cows", "skeletons", "arrows")}
    world = world.replace(
        map=jnp.full_like(world.map, GRASS),
        mob_map=jnp.zeros_like(world.mob_map),
        player_position=jnp.array(HERE, world.player_position.dtype),
        inventory=world.inventory.replace(iron_pickaxe=jnp.ones_like(world.inventory.iron_pickaxe)),
        is_sleeping=jnp.zeros_like(world.is_sleeping),
        **{name: kind.replace(mask=jnp.zeros_like(kind.mask)) for name, kind in mobs.items()},
    )
    for thing in things:
        world = world.replace(**thing(world))
    old = {name: getattr(world, name) for name in values}
    new = {name: jnp.asarray(value, old[name].dtype) for name, value in values.items()}
    return state._replace(world=world.replace(**new))


def test_each_way_to_end_has_its_name(states, compiled_quickly):
    first = jax.tree.map(lambda x: x[0], states)
    cases = [*BLOWS, *GOES_ON]
    before = [crafted(first, things, values) for *_, things, values in cases]
    before = jax.tree.map(lambda *x: jnp.stack(x), *before)
    actions = jnp.array([ACTIONS.index(action) for _, action, *_ in cases])

    @jax.jit
    def step(before, keys):
        after = jax.vmap(task.step)(keys, before, actions)
        return jax.vmap(task.over)(after), jax.vmap(task.ending)(before, after)

    for seed in range(4):  # what else lives there moves at random
        over, ending = step(before, jax.random.split(jax.random.key(seed), len(cases)))
        found = [ENDINGS[i] if end else "" for i, end in zip(ending, over)]
        assert found == [name for name, *_ in cases]
    assert {name for name, *_ in BLOWS} == {*ENDINGS}
