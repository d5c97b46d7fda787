"""Camera angles as shares of the two nearest bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.minerl.camera import BINS, camera_targets


@given(st.floats(-60, 60))
def test_camera_targets_sum_to_one_and_mean_the_true_angle(angle):
    p = camera_targets(np.array(angle)).astype(float)
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert (p >= 0).all()
    assert (p > 0).sum() <= 2
    assert (p * BINS).sum() == pytest.approx(angle, abs=1e-4)


def test_eleven_bins_symmetric_and_clipped():
    assert len(BINS) == 11
    np.testing.assert_array_equal(BINS, -BINS[::-1])
    np.testing.assert_array_equal(camera_targets(np.array([-180.0, 180.0])).argmax(axis=1), [0, 10])
    np.testing.assert_array_equal(camera_targets(BINS), np.eye(11))
    with pytest.raises(ValueError, match="finite"):
        camera_targets(np.array([np.nan]))
