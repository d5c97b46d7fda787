"""What the networks see of the environment is what they were cloned from."""

import numpy as np
import pytest
from small_world import DIAMOND

pytest.importorskip("jax")
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.dataset import find_trajectories
from align_rudder.minerl.networks import HEAD_SIZES
from align_rudder.minerl.samples import Samples
from align_rudder.minerl.spaces import BUTTONS, ENUMS, HELD
from align_rudder.minerl.view import PictureFeatures, PictureView


def test_samples_and_view_show_as_many_frames_as_asked_for(source, tmp_path):
    """What an agent is cloned from is what it will see, down to the first frames."""
    trajectory = find_trajectories(source, [DIAMOND])[0]
    samples = Samples([(trajectory, 0, 9)], ArrayCache(tmp_path), skip=1, frames=3)
    seen, _ = samples.batch(np.arange(9))
    assert seen.shape == (9, 3, 48, 48, 3)
    view = PictureView(3)
    view.begin()
    inventory, held = trajectory.inventory(), trajectory.mainhand()["type"]
    for t, frame in enumerate(trajectory.frames(0, 9)):
        hand = HELD.index("air") if held[t] == "none" else HELD.index(held[t])
        shown = view.see({"pov": frame, "inventory": inventory[t], "equipped": hand})
        np.testing.assert_array_equal(shown, seen[t])


def test_the_view_keeps_32_pictures_and_does_what_is_chosen():
    view = PictureView()
    view.begin()

    def obs(value):
        return {
            "pov": np.full((64, 64, 3), value, np.uint8),
            "inventory": np.zeros(18, int),
            "equipped": 0,
        }

    first = view.see(obs(0))
    assert first.shape == (32, 48, 48, 3)
    assert (first[:, 24, 24] == 0).all()
    for value in range(1, 40):
        seen = view.see(obs(value))
    np.testing.assert_array_equal(seen[:, 24, 24, 0], np.arange(8, 40))
    view.begin()
    assert (view.see(obs(7))[:, 24, 24] == 7).all()
    choice = dict.fromkeys(HEAD_SIZES, 0) | {"attack": 1, "yaw": 10, "pitch": 5, "craft": 2}
    action = view.do(choice)
    assert action["attack"] == 1
    assert action["craft"] == 2
    np.testing.assert_array_equal(action["camera"], [0, 60])
    assert set(action) == {*BUTTONS, "camera", *ENUMS}


def test_features_are_those_of_the_recording(encoder, filmed, shared, tmp_path):
    """An agent's model reads in the game what it was fitted to in the data."""
    encoder.save(tmp_path / "encoder.npz")
    env = PictureFeatures(shared[3], str(tmp_path / "encoder.npz"))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    trajectory = filmed.trajectories[0]
    picture = next(trajectory.frames())
    shown = env.observation({**observation, "pov": picture})["features"]
    np.testing.assert_allclose(shown, encoder.features(trajectory)[0], atol=0.05)
