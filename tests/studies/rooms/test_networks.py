"""The networks of RUDDER."""

import numpy as np
import pytest

pytest.importorskip("jax")
from align_rudder.studies.rooms import networks
from align_rudder.studies.rooms.settings import Setting, environment


def test_a_network_does_not_depend_on_the_trials_that_are_missing(tmp_path):
    setting, parameters = Setting(2, 0.01, 15, 2, "rudder"), {"random_episodes": 3}
    few = networks.missing([(setting, 3)], lambda _: parameters, tmp_path)
    many = networks.missing([(setting, s) for s in range(10)], lambda _: parameters, tmp_path)
    assert few == many == [(setting, 0, parameters)]
    batch, found = networks.train(*few[0])
    networks.save(tmp_path, batch, found)
    assert networks.missing([(setting, 3)], lambda _: parameters, tmp_path) == []
    loaded = networks.load(tmp_path, setting, 3, parameters)
    assert loaded is not None
    demo = environment(2, 0.01).demonstrations(1, 77)[0]
    np.testing.assert_array_equal(
        loaded.redistribute(demo).rewards, found[3].redistribute(demo).rewards
    )
    assert (loaded.weights_.head != found[4].weights_.head).any()
