"""The cache of arrays: what is kept equals a fresh computation, whole or not at all."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from small_world import DIAMOND

from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.dataset import DamagedTrajectoryError, find_trajectories, parallel_map


def first(root):
    return find_trajectories(root)[0]


def test_what_is_cached_equals_a_fresh_read(source, tmp_path):
    cache = ArrayCache(tmp_path / "cache")
    trajectory = first(source)
    calls = []

    def make(t):
        calls.append(t.name)
        rows = np.repeat(np.arange(len(t) + 1)[:, None], 3, axis=1)
        return (rows[at : at + 100] for at in range(0, len(rows), 100))

    for _ in range(3):
        codes = cache.array(trajectory, "codes", make, (3,), np.float32)
        np.testing.assert_array_equal(codes[:, 1], np.arange(len(trajectory) + 1))
        assert codes.dtype == np.float32
        assert isinstance(codes, np.memmap)
    assert calls == [trajectory.name]
    with pytest.raises(ValueError, match=r"codes@.*npy holds float32 .*use another name"):
        cache.array(trajectory, "codes", make, (3,), np.float64)
    with pytest.raises(ValueError, match="cannot be in the name of a file"):
        cache.array(trajectory, "../codes", make, (3,), np.float32)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file; the cache needs a folder"):
        ArrayCache(tmp_path / "file")


@pytest.mark.parametrize("name", ["recording.mp4", "rendered.npz", "metadata.json"])
def test_a_changed_source_is_computed_again(root, tmp_path, name):
    cache, trajectory, calls = ArrayCache(tmp_path / "cache"), first(root), []

    def make(t):
        calls.append(t)
        return [np.full((len(t) + 1, 1), len(calls))]

    assert cache.array(trajectory, "n", make, (1,), int)[0] == 1
    assert cache.array(trajectory, "n-2", make, (1,), int)[0] == 2
    status = os.stat(trajectory.path / name)
    os.utime(trajectory.path / name, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert cache.array(trajectory, "n", make, (1,), int)[0] == 3
    files = list((tmp_path / "cache" / DIAMOND / trajectory.name).glob("n@*.npy"))
    assert len(files) == 1  # what is outdated is deleted
    (trajectory.path / name).unlink()
    with pytest.raises(DamagedTrajectoryError, match=f"it has no {name}"):
        cache.array(trajectory, "n", make, (1,), int)


def test_a_failed_computation_leaves_nothing(source, tmp_path):
    cache, trajectory = ArrayCache(tmp_path / "cache"), first(source)

    def rows(n, shape):
        return lambda t: (np.zeros((1, shape)) for _ in range(n))

    n = len(trajectory) + 1
    for make, message in [
        (rows(n - 1, 2), f"x has {n - 1} rows; {n} are needed"),
        (rows(n + 1, 2), f"x has {n + 1} rows"),
        (rows(n, 3), r"a row of x has shape \(3,\); \(2,\) is needed"),
    ]:
        with pytest.raises(ValueError, match=message):
            cache.array(trajectory, "x", make, (2,), float)
    folder = tmp_path / "cache" / DIAMOND / trajectory.name
    assert [p.name for p in folder.iterdir()] == [".x.lock"]


def test_a_kill_while_writing_leaves_nothing_half(source, tmp_path):
    script = """
        import os, signal, sys
        from align_rudder.minerl.cache import ArrayCache
        from align_rudder.minerl.dataset import find_trajectories
        trajectory = find_trajectories(sys.argv[1])[0]
        def make(t):
            for i, pictures in enumerate(t.frame_batches(100)):
                if i == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield pictures
        ArrayCache(sys.argv[2]).array(trajectory, "frames-64", make, (64, 64, 3), "uint8")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), source, tmp_path / "cache"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    trajectory = first(source)
    folder = tmp_path / "cache" / DIAMOND / trajectory.name
    assert not list(folder.glob("*.npy"))
    assert list(folder.glob(".*.tmp"))  # what the kill left, which nobody takes for an array
    cache = ArrayCache(tmp_path / "cache")
    cached = cache.array(
        trajectory, "frames-64", lambda t: t.frame_batches(100), (64, 64, 3), "uint8"
    )
    np.testing.assert_array_equal(cached, trajectory.frame_array())
    assert sorted(p.suffix for p in folder.iterdir()) == [".lock", ".npy"]


def test_two_threads_compute_an_array_once(source, tmp_path):
    cache, trajectory, calls = ArrayCache(tmp_path / "cache"), first(source), []
    start = threading.Barrier(4)

    def make(t):
        calls.append(t)
        return [np.arange(len(t) + 1.0)]

    def get(_):
        start.wait()
        return cache.array(trajectory, "x", make, (), float).sum()

    assert len(set(parallel_map(get, range(4), 4))) == 1
    assert len(calls) == 1
