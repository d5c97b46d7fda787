"""Samples for behavioural cloning: the 32 most recent pictures, and what the person did then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.camera import camera_targets
from align_rudder.minerl.convert import episode_of
from align_rudder.minerl.networks import FRAMES
from align_rudder.minerl.pictures import PICTURE_SIZE, draw_pictures
from align_rudder.minerl.spaces import BUTTONS, ENUMS
from align_rudder.minerl.trajectory import Trajectory

__all__ = ["FRAME_SKIP", "Samples", "pictures_of", "targets_of"]

FRAME_SKIP = 4
"""Frames for which an action is held; the paper says that it is constant, not how many."""
_CHUNK = 500


def pictures_of(trajectory: Trajectory, cache: ArrayCache) -> np.ndarray:
    """Return the pictures (T+1, 48, 48, 3) of a trajectory, as the networks see them."""

    def draw(trajectory: Trajectory) -> Any:
        observations: Any = episode_of(trajectory).observations
        inventory, held = observations["inventory"], observations["equipped"]
        at, frames = 0, []
        for frame in trajectory.frames():
            frames.append(frame)
            if len(frames) == _CHUNK or at + len(frames) == len(held):
                part = slice(at, at + len(frames))
                yield from draw_pictures(np.stack(frames), inventory[part], held[part])
                at, frames = part.stop, []

    shape = (PICTURE_SIZE, PICTURE_SIZE, 3)
    return cache.array(trajectory, "pictures-1", draw, shape, np.uint8)


def targets_of(trajectory: Trajectory, skip: int = FRAME_SKIP) -> dict[str, np.ndarray]:
    """Return for every step what is done if its action is held for `skip` frames.

    A button is held if it is pressed in at least half of these frames; the camera turns by all of
    their angles together; of what is placed, equipped or made among them the first counts. Heads
    that the task lacks are -1: not known.
    """
    given = trajectory.actions()
    out: dict[str, np.ndarray] = {}
    for button in BUTTONS:
        pressed = _windows(np.asarray(given[button], float), skip, 0.0).mean(axis=1)
        out[button] = (pressed >= 0.5).astype(np.int32)
    turned = _windows(np.asarray(given["camera"], float), skip, 0.0).sum(axis=1)
    out["pitch"], out["yaw"] = camera_targets(turned[:, 0]), camera_targets(turned[:, 1])
    for head, values in ENUMS.items():
        if head not in given:
            out[head] = np.full(len(trajectory), -1, np.int32)
            continue
        none = values.index("none")
        some = _windows(np.asarray(given[head]), skip, none)
        first = (some != none).argmax(axis=1)
        out[head] = some[np.arange(len(some)), first].astype(np.int32)
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

    Example:
        ::

            observations, targets = samples.batch(rng.integers(len(samples), size=256))
    """

    def __init__(
        self,
        segments: Sequence[tuple[Trajectory, int, int]],
        cache: ArrayCache,
        skip: int = FRAME_SKIP,
    ) -> None:
        if not segments:
            raise ValueError("no segment reaches this sub-goal; there is nothing to clone")
        if skip < 1:
            raise ValueError(f"skip={skip}: at least 1 frame")
        self.skip = skip
        names: dict[str, int] = {}
        self._pictures: list[np.ndarray] = []
        targets: list[dict[str, np.ndarray]] = []
        which, when = [], []
        for trajectory, start, stop in segments:
            if not 0 <= start < stop <= len(trajectory):
                raise ValueError(
                    f"steps {start} to {stop} are not a segment of {trajectory.name}, which has "
                    f"{len(trajectory)} steps"
                )
            name = str(trajectory.path)
            if name not in names:
                names[name] = len(names)
                self._pictures.append(pictures_of(trajectory, cache))
                targets.append(targets_of(trajectory, skip))
            which.append(np.full(stop - start, names[name]))
            when.append(np.arange(start, stop))
        self.which, self.when = np.concatenate(which), np.concatenate(when)
        self._targets = {
            head: np.concatenate([targets[w[0]][head][t] for w, t in zip(which, when, strict=True)])
            for head in targets[0]
        }

    def __len__(self) -> int:
        return len(self.which)

    def batch(self, indices: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return observations (B, 32, 48, 48, 3) and targets of some samples."""
        shape = (len(indices), FRAMES, PICTURE_SIZE, PICTURE_SIZE, 3)
        seen = np.empty(shape, np.uint8)
        back = np.arange(FRAMES)[::-1] * self.skip
        for row, i in enumerate(indices):
            # Before the first frame there is the first frame.
            at = np.maximum(self.when[i] - back, 0)
            seen[row] = self._pictures[self.which[i]][at]
        return seen, {head: values[indices] for head, values in self._targets.items()}
