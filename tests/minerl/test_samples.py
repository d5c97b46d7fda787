"""Samples for cloning: the frames up to a step, and what was done for the next ones."""

import os

import numpy as np
import pytest
from small_world import DIAMOND, TREECHOP

pytest.importorskip("jax")
import jax.numpy as jnp

from align_rudder import AlignRudderWarning
from align_rudder.hierarchy import actions
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.camera import camera_targets
from align_rudder.minerl.dataset import find_trajectories
from align_rudder.minerl.networks import FRAMES, HEAD_SIZES
from align_rudder.minerl.samples import Samples, targets_of
from align_rudder.minerl.spaces import BUTTONS, DO_NOTHING, ENUMS
from align_rudder.minerl.testing.videos import frame_number


@pytest.fixture
def trajectory(source):
    return find_trajectories(source, [DIAMOND])[0]


def test_targets_hold_an_action_for_some_frames(trajectory):
    given, found = trajectory.actions(), targets_of(trajectory, skip=4)
    rng, none = np.random.default_rng(0), DO_NOTHING
    n = len(trajectory)
    for t in (*rng.integers(0, n, 50), n - 1):
        window = slice(t, min(t + 4, n))
        for button in BUTTONS:
            assert found[button][t] == (given[button][window].sum() / 4 >= 0.5)
        turned = np.asarray(given["camera"][window], float).sum(axis=0)
        np.testing.assert_allclose(found["pitch"][t], camera_targets(turned[0]), atol=1e-6)
        np.testing.assert_allclose(found["yaw"][t], camera_targets(turned[1]), atol=1e-6)
        # Of what is made, placed or equipped, that of the first frame with any of it.
        busy = [s for s in range(t, window.stop) if any(given[h][s] != none[h] for h in ENUMS)]
        for head in ENUMS:
            assert found[head][t] == (given[head][busy[0]] if busy else none[head])


def test_heads_that_a_task_lacks_are_not_known(source):
    treechop = find_trajectories(source, [TREECHOP])[0]
    found = targets_of(treechop)
    logits = {head: jnp.zeros((len(treechop), n)) for head, n in HEAD_SIZES.items()}
    for head in ENUMS:
        assert (found[head] == -1).all()
    buttons = {head: x for head, x in found.items() if head not in ENUMS}
    whole = actions.cross_entropy(logits, {h: jnp.asarray(x) for h, x in found.items()})
    part = actions.cross_entropy({h: logits[h] for h in buttons}, buttons)
    np.testing.assert_allclose(whole, part, rtol=1e-6)


def test_samples_are_the_frames_up_to_their_step(trajectory, tmp_path):
    """Flat colours tell which frame of the recording a picture is."""
    samples = Samples([(trajectory, 40, 60), (trajectory, 0, 5)], ArrayCache(tmp_path), skip=2)
    assert len(samples) == 25
    seen, targets = samples.batch(np.array([7, 20, 24]))
    middle = seen[:, :, 20:28, 20:28].reshape(3 * FRAMES, 8, 8, 3)
    whole = np.stack(list(trajectory.frames()))
    hidden = frame_number(whole[0])  # frames that the recording has before the first
    numbers = np.array([frame_number(picture) - hidden for picture in middle]).reshape(3, FRAMES)
    for row, t in enumerate((47, 0, 4)):
        expected = np.maximum(t - 2 * np.arange(FRAMES)[::-1], 0)
        np.testing.assert_array_equal(numbers[row], expected)
    assert targets["attack"][0] == targets_of(trajectory, 2)["attack"][47]


def test_bad_segments_are_named(trajectory, tmp_path):
    with pytest.raises(ValueError, match="nothing to clone"):
        Samples([], ArrayCache(tmp_path))
    with pytest.raises(ValueError, match=r"steps 5 to 999999 are not a segment of v3_"):
        Samples([(trajectory, 5, 999_999)], ArrayCache(tmp_path))


def test_damaged_trajectories_are_named_and_left_out(root, tmp_path):
    """As it shows only when frames are decoded, checking by packets does not find it."""
    victim, other = find_trajectories(root, [DIAMOND])[:2]
    os.truncate(victim.video, victim.video.stat().st_size // 2)
    cache, parts = ArrayCache(tmp_path / "cache"), [(victim, 0, 9), (other, 0, 7)]
    with pytest.warns(AlignRudderWarning, match=rf"does without a damaged .*{victim.name}"):
        assert len(Samples(parts, cache, frames=2)) == 7
    with pytest.raises(ValueError, match=r"all 1 trajectories .* damaged"), pytest.warns():
        Samples(parts[:1], cache)


def test_a_cache_that_cannot_be_written_is_named(trajectory, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot keep pictures-1 of v3_.* MB\) in the cache"):
        Samples([(trajectory, 0, 9)], ArrayCache(tmp_path / "file" / "cache"))
