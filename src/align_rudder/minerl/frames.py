"""Frames of a video: how many there are, all of them, or a part found by seeking."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.minerl.spaces import FRAME_SIZE

if TYPE_CHECKING:
    from av.video.stream import VideoStream

__all__ = ["count_frames", "import_av", "read_frames"]

_WORTH_SEEKING = 300
"""Frames that are decoded and thrown away rather than looking for a key frame."""


def import_av() -> Any:
    """Return PyAV, or say how to install it."""
    try:
        import av
    except ImportError as error:
        raise ImportError(
            "MineRL's videos need PyAV; in a clone: pip install '.[minerl]'"
        ) from error
    return av


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[Any, VideoStream]]:
    """Open a video; whatever a damaged one makes PyAV raise becomes a `ValueError`."""
    av = import_av()
    try:
        with av.open(os.fspath(path)) as container:
            if not container.streams.video:
                raise ValueError(f"{path} holds no video")
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1  # frames are tiny; parallelism is over files
            yield container, stream
    except av.FFmpegError as error:
        raise ValueError(f"{path} is no readable video, or truncated ({error})") from error


def count_frames(path: str | os.PathLike[str], *, decode: bool = False) -> int:
    """Return how many frames a video has.

    Args:
        path: The video.
        decode: Whether to decode every frame; otherwise the packets in the file are counted,
            about ten times as fast, each of which is a frame if it is whole.
    """
    if decode:
        with _opened(path) as (container, stream):
            return sum(1 for _ in container.decode(stream))
    return len(_timestamps(path))


def _timestamps(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the presentation times of all frames in order of display, -1 where there is none."""
    status = os.stat(path)
    return _read_timestamps(os.fspath(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _read_timestamps(path: str, mtime: int, size: int) -> np.ndarray:
    with _opened(path) as (container, stream):
        times = [
            -1 if packet.pts is None else packet.pts
            for packet in container.demux(stream)
            # What an edit list hides is in the file but never shown; the last packet is empty.
            if packet.size and not packet.is_discard and not packet.is_corrupt
        ]
    return np.sort(np.array(times, np.int64))


def read_frames(
    path: str | os.PathLike[str],
    start: int = 0,
    stop: int | None = None,
    *,
    size: int | None = None,
    n_frames: int | None = None,
) -> Iterator[np.ndarray]:
    """Yield frames `start` to `stop` (exclusive) of a video, RGB, uint8, one at a time.

    Args:
        path: The video.
        start: First frame, counted from the beginning of the file.
        stop: Frame to stop before; None for the end of the file.
        size: Side of the pictures that are returned, 64 if None.
        n_frames: How many frames the video is known to have. With it, a late `start` is reached
            from the key frame before it rather than from the beginning.

    Returns:
        An iterator over arrays (size, size, 3); it ends early if the file does.
    """
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(f"frames {start}:{stop} are no range; give 0 <= start <= stop")
    if start > _WORTH_SEEKING and n_frames is not None:
        times = _timestamps(path)
        # Only if every frame has a time of its own does the time tell which one it is.
        if len(times) == n_frames > start and times[0] >= 0 and (np.diff(times) > 0).all():
            return _sought(path, start, stop, int(times[start]), size)
    return _decoded(path, start, stop, size)


def _decoded(
    path: str | os.PathLike[str], start: int, stop: int | None, size: int | None
) -> Iterator[np.ndarray]:
    with _opened(path) as (container, stream):
        yield from _pictures(path, islice(container.decode(stream), start, stop), size)


def _sought(
    path: str | os.PathLike[str], start: int, stop: int | None, time: int, size: int | None
) -> Iterator[np.ndarray]:
    with _opened(path) as (container, stream):
        container.seek(time, stream=stream)
        decoded = container.decode(stream)
        first = next((frame for frame in decoded if frame.pts is None or frame.pts >= time), None)
        if first is not None and first.pts == time:
            wanted = islice(chain([first], decoded), None if stop is None else stop - start)
            yield from _pictures(path, wanted, size)
            return
    yield from _decoded(path, start, stop, size)  # the seek went past it


def _pictures(
    path: str | os.PathLike[str], frames: Iterable[Any], size: int | None
) -> Iterator[np.ndarray]:
    """Yield decoded frames as RGB arrays."""
    from av.video.reformatter import VideoReformatter

    side, convert = size or FRAME_SIZE, VideoReformatter()  # once: it costs more than a frame
    for frame in frames:
        if (frame.width, frame.height) != (FRAME_SIZE, FRAME_SIZE):
            raise ValueError(
                f"{path} has frames of {frame.width}×{frame.height}; MineRL's are "
                f"{FRAME_SIZE}×{FRAME_SIZE}"
            )
        yield convert.reformat(
            frame,
            width=side,
            height=side,
            format="rgb24",
            interpolation=None if side == FRAME_SIZE else "AREA",
            threads=1,
        ).to_ndarray()
