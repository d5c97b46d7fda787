"""The scripted expert: it makes the demonstrations, and knows only what was seen."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import jax.numpy as jnp  # noqa: E402
from diamond_training import at, setup  # noqa: E402

from align_rudder.tasks.diamond.demos import scene_of  # noqa: E402
from align_rudder.tasks.diamond.expert import Scene, expert_action  # noqa: E402
from align_rudder.tasks.diamond.task import DiamondTask  # noqa: E402

task = DiamondTask()


@pytest.fixture(scope="module")
def scene():
    return jax.jit(lambda state: scene_of(task, state))


def test_at_every_state_of_the_demonstrations_the_expert_does_what_it_did(scene):
    for demo in sorted(setup().demos, key=lambda demo: len(demo.actions))[:5]:
        viewed = np.zeros((72, 72), np.int64)
        for t, action in enumerate(demo.actions):
            found = [np.asarray(x) for x in scene(at(demo, t))]
            now = Scene(*(x if x.ndim else x.item() for x in found))
            assert expert_action(now, viewed, t) == action


@pytest.mark.parametrize("t", [0, 20, 60])
def test_the_expert_acts_on_what_was_seen_alone(scene, t):
    """Another world beyond what was seen, with mobs out of view, changes nothing it is shown."""
    state = jax.tree.map(jnp.asarray, at(setup().demos[0], t))
    hidden = np.asarray(state.seen) == 0
    assert hidden.any()
    other = np.random.default_rng(t).integers(1, 17, hidden.shape)
    world = state.world.replace(map=jnp.where(hidden, other, state.world.map).astype(jnp.int32))
    far = state.world.player_position + jnp.array([[8, 0], [0, 8], [8, 8]])
    zombies = state.world.zombies
    here = jnp.abs(zombies.position - state.world.player_position).max(axis=1) < 6
    moved = jnp.where(here[:, None], zombies.position, far)
    world = world.replace(zombies=zombies.replace(position=moved))
    one, two = scene(state), scene(state._replace(world=world))
    for name, value in one._asdict().items():
        np.testing.assert_array_equal(value, getattr(two, name), err_msg=name)
