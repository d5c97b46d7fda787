"""Videos of any pictures, and pictures whose colour tells the number of the frame, modulo 512."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from align_rudder.minerl.frames import import_av
from align_rudder.minerl.spaces import FRAME_RATE, FRAME_SIZE

__all__ = ["cut_video", "frame_color", "frame_number", "numbered_frames", "write_video"]

_CODES = 512  # three digits of base 8, one for each channel


def frame_color(number: int) -> tuple[int, int, int]:
    """Return the colour of a frame, counted from the beginning of its video.

    Example:
        >>> frame_color(0), frame_color(1), frame_color(8)
        ((16, 16, 16), (48, 16, 16), (16, 48, 16))
    """
    code = number % _CODES
    return 16 + code % 8 * 32, 16 + code // 8 % 8 * 32, 16 + code // 64 * 32


def frame_number(picture: np.ndarray) -> int:
    """Return the number of a frame modulo 512 from its picture, of any size.

    Example:
        >>> frame_number(np.full((64, 64, 3), frame_color(1000), np.uint8)), 1000 % 512
        (488, 488)
    """
    red, green, blue = (np.asarray(picture, float).reshape(-1, 3).mean(0) // 32).astype(int)
    return int(red + 8 * green + 64 * blue)


def numbered_frames(n: int) -> Iterator[np.ndarray]:
    """Yield n pictures (64, 64, 3) of one colour each, that of their number."""
    for number in range(n):
        yield np.full((FRAME_SIZE, FRAME_SIZE, 3), frame_color(number), np.uint8)


def write_video(
    path: str | os.PathLike[str],
    pictures: Iterable[np.ndarray],
    *,
    b_frames: int = 0,
    key_frame_every: int = 250,
    index_first: bool = False,
) -> None:
    """Write pictures (64, 64, 3), uint8, as a video (H.264, 20 frames/s).

    Args:
        path: The file.
        pictures: The pictures, such as `numbered_frames(100)`.
        b_frames: How many frames in a row may refer to later ones, so that the order in the file
            is not that of display.
        key_frame_every: Frames from one key frame to the next.
        index_first: Whether the index stands at the beginning of the file ("faststart").
    """
    av = import_av()
    from av.video.reformatter import VideoReformatter

    convert = VideoReformatter()
    options = {"movflags": "faststart"} if index_first else {}
    with av.open(os.fspath(path), "w", format="mp4", options=options) as container:
        stream = container.add_stream("libx264", rate=FRAME_RATE)
        stream.width, stream.height, stream.pix_fmt = FRAME_SIZE, FRAME_SIZE, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.options = {
            "preset": "veryfast" if b_frames else "ultrafast",
            "crf": "18",
            "bf": str(b_frames),
            "b-adapt": "0",
            "g": str(key_frame_every),
        }
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame = convert.reformat(frame, format="yuv420p", threads=1)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def cut_video(source: str | os.PathLike[str], path: str | os.PathLike[str], n_frames: int) -> None:
    """Copy the first frames of a video without encoding them again."""
    av = import_av()
    with (
        av.open(os.fspath(source)) as given,
        av.open(os.fspath(path), "w", format="mp4") as container,
    ):
        stream = container.add_stream_from_template(given.streams.video[0])
        for packet in islice(given.demux(video=0), n_frames):
            packet.stream = stream
            container.mux(packet)
