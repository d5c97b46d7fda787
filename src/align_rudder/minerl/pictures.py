"""Frames as the networks see them: held item as a border, inventory as a bar, 48×48 pixels.

As in the paper's appendix. Where it is silent: the border is two pixels wide, with one colour for
each kind of item; the bar of 18 squares of 3×3 pixels lies inside the border at the lower edge,
items in the order of `ITEMS` from left to right. A square is white for no item and gets darker
evenly, to black above 95. Pictures are made smaller by averaging areas.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from align_rudder.minerl.spaces import FRAME_SIZE, HELD, ITEMS

__all__ = ["BORDER_COLORS", "FULL", "PICTURE_SIZE", "check_frames", "draw_pictures", "shrink"]

PICTURE_SIZE = 48
FULL = 96  # items from which on a square is black
_BORDER, _SQUARE = 2, 3
_LEFT = (FRAME_SIZE - len(ITEMS) * _SQUARE) // 2
_TOP = FRAME_SIZE - _BORDER - _SQUARE

BORDER_COLORS = np.array(
    [
        (0, 0, 0),  # air
        (230, 159, 0),  # iron_axe
        (86, 180, 233),  # iron_pickaxe
        (40, 40, 40),  # none
        (255, 255, 255),  # other
        (0, 158, 115),  # stone_axe
        (240, 228, 66),  # stone_pickaxe
        (0, 114, 178),  # wooden_axe
        (213, 94, 0),  # wooden_pickaxe
    ],
    np.uint8,
)
"""Colour of the border for each of `HELD`."""
assert len(BORDER_COLORS) == len(HELD)


def draw_pictures(frames: np.ndarray, inventory: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return frames with border and inventory bar, made smaller (T, 48, 48, 3).

    Args:
        frames: Frames (T, 64, 64, 3), uint8.
        inventory: Counts of `ITEMS` (T, 18).
        held: Index in `HELD` of the item in the main hand (T,).
    """
    check_frames(frames, FRAME_SIZE)
    if inventory.shape != (len(frames), len(ITEMS)):
        raise ValueError(f"inventory is {inventory.shape}; {(len(frames), len(ITEMS))} is needed")
    if held.shape != (len(frames),):
        raise ValueError(f"held is {held.shape}; {(len(frames),)} is needed")
    drawn = frames.copy()
    color = BORDER_COLORS[held][:, None, None, :]
    drawn[:, :_BORDER] = drawn[:, -_BORDER:] = color
    drawn[:, :, :_BORDER] = drawn[:, :, -_BORDER:] = color
    grey = np.rint(255 * (1 - np.clip(inventory, 0, FULL) / FULL)).astype(np.uint8)
    bar = np.repeat(grey, _SQUARE, axis=1)[:, None, :, None]
    drawn[:, _TOP : _TOP + _SQUARE, _LEFT : _LEFT + len(ITEMS) * _SQUARE] = bar
    return shrink(drawn, PICTURE_SIZE)


def check_frames(frames: np.ndarray, size: int) -> np.ndarray:
    """Return frames that are (n, size, size, 3), uint8; others are refused."""
    frames = np.asarray(frames)
    if frames.dtype != np.uint8 or frames.shape[1:] != (size, size, 3):
        raise ValueError(
            f"the frames are {frames.dtype} of shape {frames.shape}; uint8 of shape "
            f"(n, {size}, {size}, 3) is needed"
        )
    return frames


def shrink(frames: np.ndarray, size: int) -> np.ndarray:
    """Return pictures (T, h, w, c) of that size, each pixel the mean of the area it covers."""
    rows = _areas(frames.shape[1], size)
    columns = _areas(frames.shape[2], size)
    small = np.einsum("ij,tjkc->tikc", rows, frames.astype(np.float32), optimize=True)
    small = np.einsum("lk,tikc->tilc", columns, small, optimize=True)
    return np.rint(small).astype(np.uint8)


@cache
def _areas(before: int, after: int) -> np.ndarray:
    """Return how much of each pixel before belongs to each after (after, before)."""
    edges = np.arange(after + 1) * before / after
    pixels = np.arange(before)
    low = np.maximum(edges[:-1, None], pixels)
    high = np.minimum(edges[1:, None], pixels + 1)
    return (np.clip(high - low, 0, None) * after / before).astype(np.float32)
