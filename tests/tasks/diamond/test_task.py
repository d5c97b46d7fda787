"""The diamond task: what is seen, and its symmetries."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import jax.numpy as jnp  # noqa: E402
from diamond_training import setup  # noqa: E402

from align_rudder.tasks.diamond.task import DiamondTask  # noqa: E402

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
