"""Frames of videos: those that are asked for, also where they are found by seeking."""

import numpy as np
import pytest

from align_rudder.minerl.frames import count_frames, read_frames
from align_rudder.minerl.testing.videos import frame_number, numbered_frames, write_video

av = pytest.importorskip("av")


@pytest.mark.parametrize("b_frames", [0, 2])
@pytest.mark.parametrize("index_first", [False, True])
def test_a_part_is_that_part_of_the_whole(tmp_path, b_frames, index_first):
    """Late parts are found by seeking, which starts at the key frame before."""
    path, options = tmp_path / "video.mp4", {"b_frames": b_frames, "index_first": index_first}
    write_video(path, numbered_frames(450), key_frame_every=50, **options)
    assert count_frames(path) == count_frames(path, decode=True) == 450
    whole = np.stack(list(read_frames(path)))
    assert [frame_number(p) for p in whole] == list(range(450))
    for start, stop in [(1, 3), (301, 303), (349, 351), (350, 351), (399, 445), (447, None)]:
        for known in (450, None, 449):  # with a wrong number it is not found by seeking
            found = np.stack(list(read_frames(path, start, stop, n_frames=known)))
            np.testing.assert_array_equal(found, whole[start:stop])
    with pytest.raises(ValueError, match="are no range"):
        read_frames(path, 3, 2)


@pytest.mark.parametrize("b_frames", [0, 2])
def test_frames_that_an_edit_list_hides_do_not_count(tmp_path, b_frames):
    """Videos cut without encoding hold frames from the last key frame on that are never shown."""
    frames = numbered_frames(500)
    write_video(tmp_path / "whole.mp4", frames, key_frame_every=50, b_frames=b_frames)
    path, options = tmp_path / "cut.mp4", {"avoid_negative_ts": "disabled", "use_editlist": "1"}
    with (
        av.open(str(tmp_path / "whole.mp4")) as whole,
        av.open(str(path), "w", options=options) as cut,
    ):
        stream = cut.add_stream_from_template(whole.streams.video[0])
        second = int(1 / whole.streams.video[0].time_base)
        for packet in whole.demux(video=0):
            if packet.size:
                packet.pts, packet.dts = packet.pts - second, packet.dts - second
                packet.stream = stream
                cut.mux(packet)
    with av.open(str(path)) as container:
        assert any(packet.is_discard for packet in container.demux(video=0))
    assert count_frames(path) == count_frames(path, decode=True) == 480
    numbers = [frame_number(picture) for picture in read_frames(path)]
    assert numbers == list(range(20, 500))
    for start in (329, 330, 331, 379, 380, 478):
        found = [frame_number(p) for p in read_frames(path, start, start + 2, n_frames=480)]
        assert found == numbers[start : start + 2]


def test_frames_of_another_size_are_refused(tmp_path):
    path = tmp_path / "video.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=20)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
        container.mux([*stream.encode(frame), *stream.encode(None)])
    with pytest.raises(ValueError, match="frames of 32×32; MineRL's are 64×64"):
        next(read_frames(path))
