"""Trajectory: one recording of the MineRL dataset, read from its files when asked for.

A recording begins before the first observation and ends with the last one. With T steps and N
frames, observation t is frame N − (T + 1) + t. The last frame is not trusted: like the reference
loader, what is returned for observation T is the frame before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from align_rudder.files import LARGEST, Anything, Archive, Array, Each, Whole, read_json
from align_rudder.minerl.frames import count_frames, read_frames
from align_rudder.minerl.spaces import (
    BUTTONS,
    DIAMOND_REWARD,
    ENUMS,
    FORMATS,
    FRAME_SIZE,
    Format,
    Task,
    array_names,
    enum_indices,
    task_named,
)

__all__ = ["Damage", "DamagedTrajectoryError", "Trajectory"]


@dataclass(frozen=True)
class Damage:
    """A trajectory that cannot be used, and why."""

    task: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}/{self.name}: {self.reason}"


class DamagedTrajectoryError(ValueError):
    """A trajectory cannot be used; the message begins with its name."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage


@dataclass(frozen=True)
class Trajectory:
    """One recording of a person playing, read from its folder when asked for.

    Args:
        path: Its folder, with `recording.mp4`, `rendered.npz` and `metadata.json`.
        task: Name of the task, such as "MineRLObtainDiamond-v0".
        version: Version of the format, 3 or 4.
    """

    path: Path
    task: str
    version: int

    @property
    def name(self) -> str:
        """The name of its folder, such as "v3_absolute_grape_changeling-6_37339-46767"."""
        return self.path.name

    @property
    def video(self) -> Path:
        """The recording."""
        return self.path / "recording.mp4"

    @property
    def format(self) -> Format:
        """What is special to its version."""
        return FORMATS[self.version]

    @property
    def spec(self) -> Task:
        """What its task counts and which parts its actions have."""
        return task_named(self.task)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The content of `metadata.json`."""
        try:
            found = read_json(self.path / "metadata.json", Each(Anything()), constants=True)
            for key in ("duration_steps", "true_video_frame_count"):
                Whole(1).check(found.get(key), key)
        except FileNotFoundError:
            raise self.damaged("it has no metadata.json") from None
        except (OSError, ValueError) as error:
            raise self.damaged(f"metadata.json cannot be used: {error}") from error
        return found

    def __len__(self) -> int:
        """The number of steps T; there are T+1 observations."""
        return self.metadata["duration_steps"]

    @property
    def n_frames(self) -> int:
        """The number of frames of the recording, those before the first observation included."""
        return self.metadata["true_video_frame_count"]

    @property
    def lead_frames(self) -> int:
        """The number of frames of the recording before the first observation."""
        steps = len(self)
        if self.n_frames < steps + 1:
            raise self.damaged(
                f"metadata.json counts {self.n_frames} frames; {steps} steps need {steps + 1}"
            )
        return self.n_frames - (steps + 1)

    def arrays(self, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Return arrays as they are stored, all or those named (such as "action$camera")."""
        known = array_names(self.task, self.version)
        names = known if names is None else tuple(names)
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{self.task} has no arrays {unknown}; it has {', '.join(known)}")
        return dict(self._read(names))

    def _read(self, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield arrays one by one, each with the type and length that the format demands."""
        try:
            with Archive(self.path / "rendered.npz") as archive:
                if missing := [name for name in names if name not in archive.names]:
                    raise self.damaged(f"rendered.npz has no {', '.join(missing)}")
                sizes = {"steps": len(self)}
                for name in names:
                    yield name, _kind(name).check(archive.array(name), name, sizes)
        except FileNotFoundError:
            raise self.damaged("it has no rendered.npz") from None
        except DamagedTrajectoryError:
            raise
        except (OSError, ValueError) as error:
            raise self.damaged(
                f"rendered.npz is truncated or damaged, or metadata.json not its own ({error})"
            ) from error

    def damaged(self, reason: str) -> DamagedTrajectoryError:
        """Return an error that names this trajectory."""
        return DamagedTrajectoryError(Damage(self.task, self.name, reason))

    def indices(self, head: str, strings: np.ndarray) -> np.ndarray:
        """Return `spaces.enum_indices` of an array of this trajectory."""
        try:
            return enum_indices(head, strings)
        except ValueError as error:
            raise self.damaged(str(error)) from error

    @property
    def rewards(self) -> np.ndarray:
        """The rewards (T,), read from the file."""
        return self.arrays(["reward"])["reward"]

    @cached_property
    def has_diamond(self) -> bool:
        """Whether a diamond was mined, which shows only in the reward (`success` is unreliable)."""
        return bool(self.rewards.max() >= DIAMOND_REWARD)

    def inventory(self) -> np.ndarray | None:
        """Return the counts of `ITEMS` (T+1, 18), or None for a task that records none."""
        items = self.spec.items
        if not items:
            return None
        columns = self._read([f"observation$inventory${item}" for item in items])
        out = np.empty((len(self) + 1, len(items)), np.int32)
        for i, (_, column) in enumerate(columns):
            out[:, i] = column
        return out

    def mainhand(self) -> dict[str, np.ndarray] | None:
        """Return `damage`, `maxDamage` and `type` (T+1,), or None for a task that records none."""
        if not self.spec.items:
            return None
        parts = ("damage", "maxDamage", "type")
        stored = self.arrays(self.format.mainhand + part for part in parts)
        return {part: stored[self.format.mainhand + part] for part in parts}

    def actions(self) -> dict[str, np.ndarray]:
        """Return the actions: buttons 0/1, camera degrees, and enums as indices into `ENUMS`.

        Only the heads that the task has, `spec.heads`.
        """
        heads = self.spec.heads
        stored = zip(heads, self._read([f"action${head}" for head in heads]))
        return {
            head: self.indices(head, array) if head in ENUMS else array
            for head, (_, array) in stored
        }

    def frames(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        size: int | None = None,
        repeat_last: bool = True,
    ) -> Iterator[np.ndarray]:
        """Return an iterator over the pictures of observations `start` to `stop` (exclusive).

        Args:
            start: First observation.
            stop: Observation to stop before; None for all T+1.
            size: Side of the pictures, 64 if None.
            repeat_last: Whether the last observation repeats the picture before it, as in the
                reference loader.
        """
        end = len(self) + 1 if stop is None else stop
        if not self.video.is_file():
            raise self.damaged("it has no recording.mp4")
        if not 0 <= start <= end <= len(self) + 1:
            raise ValueError(
                f"observations {start}:{stop} are not a part of the {len(self) + 1} of {self.name}"
            )
        return self._frames(start, end, size, repeat_last)

    def _frames(
        self, start: int, stop: int, size: int | None, repeat_last: bool
    ) -> Iterator[np.ndarray]:
        lead, steps = self.lead_frames, len(self)
        if start == stop:
            return
        repeats = repeat_last and stop == steps + 1
        first, end = (min(start, steps - 1), steps) if repeats else (start, stop)
        t, picture = first, None
        try:
            for picture in read_frames(
                self.video, lead + first, lead + end, size=size, n_frames=self.n_frames
            ):
                if t >= start:
                    yield picture
                t += 1
        except ValueError as error:
            raise self.damaged(str(error)) from error
        if t < end or picture is None:
            raise self.damaged(
                f"{self.video} ends after {lead + t} frames; {self.n_frames} are needed: it is "
                "truncated or its metadata belong to another recording"
            )
        if repeats:
            yield picture.copy()

    def frame_batches(self, n: int, *, size: int | None = None) -> Iterator[np.ndarray]:
        """Yield the pictures of all observations, n at a time (n, size, size, 3)."""
        frames = self.frames(size=size)
        while batch := list(islice(frames, n)):
            yield np.stack(batch)

    def frame_array(
        self, start: int = 0, stop: int | None = None, *, size: int | None = None
    ) -> np.ndarray:
        """Return the pictures of observations `start` to `stop` as one array (n, size, size, 3)."""
        side = size or FRAME_SIZE
        n = (len(self) + 1 if stop is None else stop) - start
        pictures = self.frames(start, stop, size=size)
        return np.fromiter(pictures, np.dtype((np.uint8, (side, side, 3))), n)

    def check(self, video: Literal["packets", "frames"] | None = "packets") -> None:
        """Read everything once and raise `DamagedTrajectoryError` if something is wrong.

        Args:
            video: How the recording is checked: "packets" counts its packets, "frames" decodes
                every frame, None leaves it out (which needs no PyAV).
        """
        steps = len(self)
        if (duration := self.metadata.get("duration_ms")) != 50 * steps:
            raise self.damaged(
                f"metadata.json has duration_ms = {duration!r}; {steps} steps take {50 * steps}"
            )
        for name, array in self._read(array_names(self.task, self.version)):
            if array.dtype.kind == "U":
                self.indices(_part(name), array)
            elif name == "reward":
                # cached, as reading is the slow part
                self.__dict__["has_diamond"] = bool(array.max() >= DIAMOND_REWARD)
        _ = self.lead_frames  # whether there are enough frames
        if video is None:
            return
        if not self.video.is_file():
            raise self.damaged("it has no recording.mp4")
        try:
            found = count_frames(self.video, decode=video == "frames")
            if found > self.n_frames and video == "packets":
                # A packet may hold nothing that can be shown: what is decoded counts.
                found = count_frames(self.video, decode=True)
        except ValueError as error:
            raise self.damaged(str(error)) from error
        if found != self.n_frames:
            raise self.damaged(
                f"recording.mp4 has {found} frames; metadata.json counts {self.n_frames}"
            )


def _part(name: str) -> str:
    """Return what an array of `rendered.npz` tells, such as "camera" of "action$camera"."""
    return re.split(r"[$.]", name)[-1]


def _kind(name: str) -> Array:
    """Return what an array of `rendered.npz` may be."""
    if name == "action$camera":
        return Array("steps", 2, kinds="f", low=-180, high=180)
    if name.startswith("observation$inventory$"):
        return Array("steps+1", kinds="iu", low=0, high=2**31 - 1)
    if _part(name) in BUTTONS:
        return Array("steps", kinds="iu", low=0, high=1)
    if name == "reward":
        return Array("steps", kinds="f", low=-LARGEST, high=LARGEST)
    of_steps = "steps+1" if name.startswith("observation$") else "steps"
    return Array(of_steps, kinds="U" if _part(name) in (*ENUMS, "type") else "iu")
