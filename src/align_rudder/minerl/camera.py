"""Camera angles in 11 bins for each axis, shared between the two nearest."""

from __future__ import annotations

import numpy as np

__all__ = ["BINS", "camera_targets"]

BINS = np.array([-60.0, -30.0, -15.0, -7.0, -2.5, 0.0, 2.5, 7.0, 15.0, 30.0, 60.0])
"""Centres of the bins in degrees: fine near zero, where most turns are; the paper gives only their
number."""


def camera_targets(angles: np.ndarray) -> np.ndarray:
    """Return the probability of each bin (…, 11) that stands for angles (…) in degrees.

    An angle between two centres is shared between them by distance, so that the expected angle is
    the true one; beyond the last centre it is the last.

    Example:
        >>> camera_targets(np.array(5.65)).round(2).tolist()[5:9]
        [0.0, 0.30000001192092896, 0.699999988079071, 0.0]
    """
    angles = np.asarray(angles, float)
    if not np.isfinite(angles).all():
        raise ValueError("camera angles must be finite")
    shares = [np.interp(angles, BINS, bin) for bin in np.eye(len(BINS))]
    return np.stack(shares, axis=-1).astype(np.float32)
