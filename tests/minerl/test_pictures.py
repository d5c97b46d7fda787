"""Pictures as the networks see them: border, inventory, smaller."""

import numpy as np
import pytest

from align_rudder.minerl.pictures import BORDER_COLORS, draw_pictures, shrink
from align_rudder.minerl.spaces import HELD, ITEMS


def blank(n=1, value=100):
    return np.full((n, 64, 64, 3), value, np.uint8)


def test_the_inventory_is_a_bar_of_grey_squares():
    counts = np.zeros((4, len(ITEMS)), int)
    counts[:, ITEMS.index("cobblestone")] = [0, 48, 95, 500]
    held = np.full(4, HELD.index("air"))
    small = draw_pictures(blank(4), counts, held)
    assert small.shape == (4, 48, 48, 3)
    # In the frame before shrinking: squares of three pixels from column 5, rows 59 to 61.
    x = round((5 + 3 * ITEMS.index("cobblestone") + 1.5) * 48 / 64 - 0.5)
    y = round((59 + 1.5) * 48 / 64 - 0.5)
    found = small[:, y, x, 0].astype(int)
    np.testing.assert_allclose(found, [255, 128, 3, 0], atol=3)
    other = round((5 + 3 * ITEMS.index("log") + 1.5) * 48 / 64 - 0.5)
    assert (small[:, y, other] == 255).all()


def test_the_held_item_is_the_color_of_the_border():
    held = np.arange(len(HELD))
    small = draw_pictures(blank(len(HELD)), np.zeros((len(HELD), 18), int), held)
    np.testing.assert_array_equal(small[:, 0, 24], BORDER_COLORS)
    np.testing.assert_array_equal(small[:, 24, -1], BORDER_COLORS)
    assert len(np.unique(BORDER_COLORS, axis=0)) == len(HELD)
    assert (small[:, 24, 24] == 100).all()


def test_shrinking_takes_means_of_areas():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (2, 64, 64, 3)).astype(np.uint8)
    found = shrink(frames, 48).astype(float)
    fine = np.repeat(np.repeat(frames, 3, axis=1), 3, axis=2).reshape(2, 48, 4, 48, 4, 3)
    np.testing.assert_allclose(found, fine.mean(axis=(2, 4)), atol=0.51)


def test_wrong_pictures_are_refused():
    with pytest.raises(ValueError, match=r"float64 of shape \(1, 64, 64, 3\)"):
        draw_pictures(blank().astype(float), np.zeros((1, 18), int), np.zeros(1, int))
    with pytest.raises(ValueError, match=r"inventory is \(1, 17\)"):
        draw_pictures(blank(), np.zeros((1, 17), int), np.zeros(1, int))
