"""Samples for behavioural cloning: the most recent pictures, and what the person did then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from align_rudder._warnings import warn
from align_rudder.files import Whole, check_values
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.camera import camera_targets
from align_rudder.minerl.convert import episode_of
from align_rudder.minerl.networks import FRAMES
from align_rudder.minerl.pictures import PICTURE_SIZE, draw_pictures
from align_rudder.minerl.spaces import BUTTONS, DO_NOTHING, ENUMS
from align_rudder.minerl.trajectory import DamagedTrajectoryError, Trajectory

__all__ = ["FRAME_SKIP", "Samples", "pictures_of", "targets_of"]

FRAME_SKIP = 4
"""Frames for which an action is held; the paper says that it is constant, not how many."""
_CHUNK = 500


def pictures_of(trajectory: Trajectory, cache: ArrayCache) -> np.ndarray:
    """Return the pictures (T+1, 48, 48, 3) of a trajectory, as the networks see them."""

    def draw(trajectory: Trajectory) -> Iterator[np.ndarray]:
        observations: Any = episode_of(trajectory).observations
        inventory, held, at = observations["inventory"], observations["equipped"], 0
        for frames in trajectory.frame_batches(_CHUNK):
            part = slice(at, at + len(frames))
            yield draw_pictures(frames, inventory[part], held[part])
            at = part.stop

    shape = (PICTURE_SIZE, PICTURE_SIZE, 3)
    return cache.array(trajectory, "pictures-1", draw, shape, np.uint8)


def targets_of(trajectory: Trajectory, skip: int = FRAME_SKIP) -> dict[str, np.ndarray]:
    """Return for every step what is done if its action is held for `skip` frames.

    A button is held if it is pressed in at least half of these frames; the camera turns by all of
    their angles together. Of what is placed, equipped or made, only what comes first counts, in
    whichever head that is: the rest is for the next action, as two changes of the inventory at once
    would be one event. Heads that the task lacks are -1: not known.
    """
    given = trajectory.actions()
    out: dict[str, np.ndarray] = {}
    for button in BUTTONS:
        pressed = _windows(np.asarray(given[button], float), skip, 0.0).mean(axis=1)
        out[button] = (pressed >= 0.5).astype(np.int32)
    turned = _windows(np.asarray(given["camera"], float), skip, 0.0).sum(axis=1)
    out["pitch"], out["yaw"] = camera_targets(turned[:, 0]), camera_targets(turned[:, 1])
    busy = np.zeros(len(trajectory), bool)
    for head in set(ENUMS) & set(given):
        busy |= np.asarray(given[head]) != DO_NOTHING[head]
    first = np.arange(len(trajectory)) + _windows(busy, skip, False).argmax(axis=1)
    for head in ENUMS:
        values = given[head][first] if head in given else np.full(len(trajectory), -1)
        out[head] = values.astype(np.int32)
    return out


def _windows(array: np.ndarray, size: int, filler: Any) -> np.ndarray:
    """Return for each step the entries of it and the following ones (T, size, …)."""
    padding = np.full((size - 1, *array.shape[1:]), filler, array.dtype)
    longer = np.concatenate([array, padding])
    windows = np.lib.stride_tricks.sliding_window_view(longer, size, axis=0)
    return np.moveaxis(windows, -1, 1)


class Samples:
    """The steps of segments of trajectories.

    Args:
        segments: Trajectory, first step, and the step after the last.
        cache: Where pictures are kept; they are read as memory maps.
        skip: Frames for which an action is held; the frames seen are as far apart.
        frames: Number of most recent frames that are seen.

    Example:
        ::

            observations, targets = samples.batch(rng.integers(len(samples), size=256))
    """

    def __init__(
        self,
        segments: Sequence[tuple[Trajectory, int, int]],
        cache: ArrayCache,
        skip: int = FRAME_SKIP,
        frames: int = FRAMES,
    ) -> None:
        if not segments:
            raise ValueError("no segment reaches this sub-goal; there is nothing to clone")
        check_values(skip=(skip, Whole(1)), frames=(frames, Whole(1)))
        self.skip, self.frames = skip, frames
        read: dict[Trajectory, tuple[dict[str, np.ndarray], np.ndarray] | None] = {}
        for trajectory, start, stop in segments:
            if not 0 <= start < stop <= len(trajectory):
                raise ValueError(
                    f"steps {start} to {stop} are not a segment of {trajectory.name}, which has "
                    f"{len(trajectory)} steps"
                )
            if trajectory not in read:
                try:
                    read[trajectory] = targets_of(trajectory, skip), pictures_of(trajectory, cache)
                except DamagedTrajectoryError as error:
                    warn(f"cloning does without a damaged trajectory: {error}")
                    read[trajectory] = None
        kept = [(*found, slice(*steps)) for t, *steps in segments if (found := read[t]) is not None]
        if not kept:
            raise ValueError(
                f"all {len(read)} trajectories that reach this sub-goal are damaged; download "
                "them again, or see align-rudder minerl check"
            )
        self._pictures = [pictures for _, pictures, _ in kept]
        self._which = np.repeat(np.arange(len(kept)), [at.stop - at.start for *_, at in kept])
        self._when = np.concatenate([np.arange(at.start, at.stop) for *_, at in kept])
        self._targets = {
            head: np.concatenate([targets[head][at] for targets, _, at in kept])
            for head in kept[0][0]
        }

    def __len__(self) -> int:
        return len(self._when)

    def batch(self, indices: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return observations (B, frames, 48, 48, 3) and targets of some samples."""
        shape = (len(indices), self.frames, PICTURE_SIZE, PICTURE_SIZE, 3)
        seen = np.empty(shape, np.uint8)
        back = np.arange(self.frames)[::-1] * self.skip
        for row, i in enumerate(indices):
            # Before the first frame there is the first frame.
            seen[row] = self._pictures[self._which[i]][np.maximum(self._when[i] - back, 0)]
        return seen, {head: values[indices] for head, values in self._targets.items()}
