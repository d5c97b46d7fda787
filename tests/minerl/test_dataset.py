"""Datasets: what is there, in order and in little memory; what is damaged is left out."""

import os
import shutil
import sys
import threading
import tracemalloc

import pytest
from small_world import DIAMOND, IRON, TREECHOP

from align_rudder import AlignRudderWarning
from align_rudder.minerl.dataset import (
    find_trajectories,
    load_pool,
    parallel_map,
    shortest_with_diamond,
)
from align_rudder.minerl.testing.synthetic import write_dataset

av = pytest.importorskip("av")


def test_order_does_not_depend_on_the_workers(source):
    names = None
    for workers in (1, 2, 7, None):
        pool = load_pool(source, workers=workers)
        got = [(t.task, t.name) for t, _ in pool.map(lambda t: t.rewards.sum(), workers=workers)]
        assert got == [(t.task, t.name) for t in pool]
        names = names or got
        assert got == names
    assert [task for task, _ in names] == [DIAMOND] * 5 + [IRON] * 2 + [TREECHOP] * 3
    assert names[:5] == sorted(names[:5])
    with pytest.raises(ValueError, match="workers=-1"):
        load_pool(source, workers=-1)


def test_few_results_wait_at_a_time():
    alive, most, lock = 0, 0, threading.Lock()

    def work(i):
        nonlocal alive, most
        with lock:
            alive += 1
            most = max(most, alive)
        return i

    for i, result in enumerate(parallel_map(work, range(50), 3)):
        assert i == result
        with lock:
            alive -= 1
    assert most <= 4  # three, and the one being looked at
    stopped = parallel_map(work, iter(range(10**9)), 2)
    assert next(stopped) == 0
    stopped.close()


def test_arrays_are_not_kept(tmp_path):
    write_dataset(tmp_path, 4, lengths=[20_000] * 4, video=False)
    pool = load_pool(tmp_path, video=None, workers=1)
    total = sum(a.nbytes for t in pool for a in t.arrays().values())
    tracemalloc.start()
    sums = [s for _, s in pool.map(lambda t: t.inventory().sum(), workers=1)]
    assert len(sums) == 4
    load_pool(tmp_path, video=None, workers=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 30e6
    assert peak < 0.15 * total


def test_the_ten_shortest_with_a_diamond(tmp_path):
    lengths = [390, 210, 250, 300, 205, 220, 230, 240, 260, 270, 280, 290, 200, 201, 202]
    write_dataset(tmp_path, 15, lengths=lengths, diamonds=12, video=False)
    pool = load_pool(tmp_path, video=None)
    chosen = shortest_with_diamond(pool)
    assert [len(t) for t in chosen] == sorted(lengths[:12])[:10]
    assert all(t.rewards.max() >= 1024 for t in chosen)
    assert all(t.metadata["success"] == "False" for t in chosen)  # which is wrong
    with pytest.raises(
        ValueError, match=r"12 of 15 trajectories mined a diamond .* 13 are needed: take fewer"
    ):
        shortest_with_diamond(pool, 13)


def test_damaged_trajectories_are_named_skipped_and_counted(root):
    victims = find_trajectories(root)[1::4]  # one of each task
    for victim, name in zip(victims, ("rendered.npz", "metadata.json", "recording.mp4")):
        os.truncate(victim.path / name, 20)
    with pytest.warns(AlignRudderWarning, match="3 of 10 trajectories in .* are damaged"):
        pool = load_pool(root)
    assert len(pool) == 7
    assert not {t.name for t in pool} & {t.name for t in victims}
    assert [(d.task, d.name) for d in pool.damaged] == [(t.task, t.name) for t in victims]
    report = pool.report()
    for damage in pool.damaged:
        assert f"{damage.name}: {damage.reason}" in report
    assert "MineRLObtainDiamond-v0: 4 trajectories" in report
    assert "1 damaged and left out" in report


def test_damage_that_shows_only_when_decoding(root):
    victim = find_trajectories(root, [TREECHOP])[1]
    with av.open(str(victim.video)) as container:
        packets = [(p.pos, p.size) for p in container.demux(video=0) if p.size]
    content = bytearray(victim.video.read_bytes())
    position, size = packets[len(packets) // 2]
    content[position : position + size] = bytes(size)
    victim.video.write_bytes(content)
    pool = load_pool(root)  # all packets are there
    assert len(pool) == 10
    with pytest.warns(AlignRudderWarning, match="left out, as it is damaged"):
        results = list(pool.map(lambda t: sum(1 for _ in t.frames()), workers=2))
    assert len(results) == len(pool) == 9
    assert [d.name for d in pool.damaged] == [victim.name]
    with pytest.warns(AlignRudderWarning, match="1 of 10"):
        assert len(load_pool(root, video="frames")) == 9


def test_stray_files_and_folders(root):
    (root / DIAMOND / ".DS_Store").touch()
    (root / DIAMOND / "notes.txt").write_text("hello")
    (root / "readme.txt").touch()
    pool = load_pool(root)
    assert len(pool) == 10
    assert not pool.damaged
    assert [path.name for path in pool.strays] == [".DS_Store", "notes.txt"]
    assert "notes.txt" in pool.report()
    (root / TREECHOP / "backup").mkdir()
    (root / TREECHOP / "v4_other_version_0-10").mkdir()
    with pytest.warns(AlignRudderWarning, match="2 of 12"):
        pool = load_pool(root)
    reasons = {d.name: d.reason for d in pool.damaged}
    assert reasons["backup"] == "its name is not vN_STREAM_START-END"
    assert "version 4; 3, as the file VERSION says" in reasons["v4_other_version_0-10"]
    (root / "VERSION").unlink()  # then names tell the version
    assert len(find_trajectories(root)) == 11


def test_folders_that_are_no_dataset(root, tmp_path):
    with pytest.raises(ValueError, match=r"missing does not exist; give the folder of the MineRL"):
        load_pool(tmp_path / "missing")
    with pytest.raises(ValueError, match="VERSION is a file"):
        load_pool(root / "VERSION")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"no trajectories in .*empty, which holds nothing; "):
        load_pool(empty)
    (empty / DIAMOND).mkdir()
    with pytest.raises(ValueError, match="which holds MineRLObtainDiamond-v0; needed are folders"):
        find_trajectories(empty)
    with pytest.raises(ValueError, match="has no folder MineRLTreechop-v0; it has MineRLObtainDia"):
        load_pool(empty, [TREECHOP])
    with pytest.raises(ValueError, match="the task 'Chess' is not known; known are MineRLObtain"):
        load_pool(root, ["Chess"])
    with pytest.raises(ValueError, match="video is 'all'; one of 'packets', 'frames', None"):
        load_pool(root, video="all")
    (root / "VERSION").write_text("2")
    with pytest.raises(ValueError, match=r"VERSION says '2'; only versions 3 and 4"):
        load_pool(root)


def test_nothing_but_damage_is_an_error(root):
    for path in (root / IRON).iterdir():
        (path / "metadata.json").unlink()
    with pytest.raises(ValueError, match=r"2 of 2 trajectories .*\n.*it has no metadata.json"):
        load_pool(root, [IRON])


def test_without_pyav_the_extra_is_named(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    for attempt in (lambda: load_pool(source), lambda: next(find_trajectories(source)[0].frames())):
        with pytest.raises(ImportError, match=r"pip install '\.\[minerl\]'"):
            attempt()
    assert len(load_pool(source, video=None)) == 10  # arrays need none


def test_bad_recordings_are_left_out(root, tmp_path):
    """What minerl itself refuses, and what is on a list: by stream or by recording."""
    first, second, third, *rest = sorted((root / DIAMOND).iterdir())
    third.rename(root / DIAMOND / "v3_tempting_capers_shapeshifter-14_0-99")
    other = root / DIAMOND / "v3_tempting_capers_shapeshifter-140_0-99"
    shutil.copytree(rest[0], other)
    listed = tmp_path / "bad.txt"
    stream = first.name.removeprefix("v3_").rpartition("_")[0]
    listed.write_text(f"# bad ones\n{stream}\n\n{second.name}\n")
    with pytest.warns(match=r"(?s)3 of .* on the list of bad recordings"):
        pool = load_pool(root, [DIAMOND], video=None, bad=listed)
    assert {t.name for t in pool} == {path.name for path in [*rest, other]}
    folder = tmp_path / "blacklist"
    folder.mkdir()
    (folder / second.name.removeprefix("v3_")).touch()
    with pytest.warns(match=r"(?s)2 of .* on the list of bad recordings"):
        assert len(load_pool(root, [DIAMOND], video=None, bad=folder)) == len(pool) + 1
    with pytest.raises(ValueError, match=r"list of bad recordings .*nowhere.*a name on each line"):
        load_pool(root, [DIAMOND], video=None, bad=tmp_path / "nowhere")
