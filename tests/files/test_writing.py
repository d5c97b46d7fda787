"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest

from align_rudder.files import write_whole


class _NoDisk(Exception):
    pass


def test_a_file_is_written(tmp_path):
    write_whole(tmp_path / "f", lambda file: file.write(b"new"))
    assert (tmp_path / "f").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("failure", [_NoDisk, KeyboardInterrupt])
def test_the_old_file_stays_when_writing_fails(tmp_path, failure):
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"ne")
        raise failure

    with pytest.raises(failure):
        write_whole(path, fail)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_what_a_killed_process_left_is_removed_an_hour_later(tmp_path):
    program = (
        "import os, signal, sys; from align_rudder.files import write_whole\n"
        "write_whole(sys.argv[1], lambda file: os.kill(os.getpid(), signal.SIGKILL))"
    )
    path, other = tmp_path / "f.npz", tmp_path / "f"
    for file in (path, other, path):
        assert subprocess.run([sys.executable, "-c", program, str(file)]).returncode != 0
    left = {name: tmp_path / name for name in os.listdir(tmp_path)}
    assert len(left) == 3
    stays = [name for name in left if not name.startswith(".f.npz.")]
    young, old = sorted(set(left) - set(stays))
    for name in (old, *stays):
        os.utime(left[name], (0, 0))
    write_whole(path, lambda file: file.write(b"new"))
    assert sorted(os.listdir(tmp_path)) == sorted([*stays, young, "f.npz"])
    write_whole(other, lambda file: file.write(b"new"))
    assert sorted(os.listdir(tmp_path)) == sorted([young, "f", "f.npz"])


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_file_has_the_mode_that_open_would_give(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "ours", lambda file: file.write(b""))
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")]
    assert modes[0] == modes[1]


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist; create it"):
        write_whole(tmp_path / "nowhere" / "f", lambda file: None)
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        write_whole(tmp_path, lambda file: None)
