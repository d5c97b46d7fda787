"""Craftax's pictures of a world."""

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("craftax")
from diamond_training import at, setup

from align_rudder.tasks.diamond.pictures import painter


def test_nights_can_be_seen_where_that_is_asked_for():
    """Below half light Craftax draws noise; a picture with a least light does not go that far."""
    world = at(setup().demos[0], 0).world

    def view(light, darkest=0.5):
        found = painter(16, darkest)(world.replace(light_level=np.float32(light)))
        return np.asarray(found)[: 7 * 16, : 9 * 16]

    day, dusk, night = view(1.0), view(0.5), view(0.0)
    np.testing.assert_array_equal(dusk, night)
    assert 0.3 * day.mean() < dusk.mean() < 0.9 * day.mean()
    assert view(0.0, darkest=0.0).mean() < dusk.mean()
