"""Many jobs at once: all are done, each result comes when it is there, and no process stays."""

import os
import signal
import subprocess
import sys
import time

import pytest

from align_rudder.runs.workers import Workers


def square(x):
    return x * x


def fail(x):
    raise ValueError(f"{x} is not wanted")


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_job_is_done_once(jobs):
    found = list(Workers(jobs).results((square, (x,)) for x in range(20)))
    assert sorted(found) == [x * x for x in range(20)]
    assert list(Workers(jobs).results([])) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_job_is_raised(jobs):
    with pytest.raises(ValueError, match="3 is not wanted"):
        list(Workers(jobs).results([(fail, (3,))]))


def test_results_come_as_they_are_there():
    results = Workers(2).results([(time.sleep, (3,)), (square, (2,))])
    began = time.monotonic()
    assert next(results) == 4
    assert time.monotonic() - began < 2.5
    assert next(results) is None


def killed(x):
    os.kill(os.getpid(), signal.SIGKILL)


def test_of_a_killed_worker_it_is_said_that_what_is_finished_is_kept():
    with pytest.raises(RuntimeError, match=r"killed.*kept, the same command goes on.*--jobs 1"):
        list(Workers(2).results([(killed, (0,)), (killed, (1,))]))


def test_wrong_workers_are_explained():
    with pytest.raises(ValueError, match="number of trials at once"):
        Workers(0)
    with pytest.raises(ValueError, match="jobs=-5: give the number of trials at once"):
        Workers(-5)
    with pytest.raises(ValueError, match="add backend ray"):
        Workers(1, address="1.2.3.4:6379")
    with pytest.raises(ValueError, match="no Ray cluster answers"):
        Workers(1, "ray", "127.0.0.1:1")


WORK = """
import os, sys, time
from align_rudder.runs.workers import Workers

def job(x):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    list(Workers(int(sys.argv[1])).results((job, (x,)) for x in range(int(sys.argv[2]))))
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    """Return the processes that a process started, and those that they started."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            direct = [int(x) for x in file.read().split()]
    except FileNotFoundError:
        return []
    return [*direct, *(below for child in direct for below in children(child))]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("jobs", [2, 1])
def test_workers_end_with_their_parent_busy_or_idle(tmp_path, number, jobs):
    """With one job for two workers, the second waits for work, which never comes."""
    script = tmp_path / "work.py"
    script.write_text(WORK)
    process = subprocess.Popen(
        [sys.executable, str(script), "2", str(jobs)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(jobs)]
    family = children(process.pid)
    assert set(said) <= set(family)
    assert len(family) >= 2
    process.send_signal(number)
    process.wait()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in family if alive(pid)] == []


@pytest.mark.slow
def test_ray_does_every_job_as_it_comes_and_raises_the_error_itself():
    ray = pytest.importorskip("ray")
    try:
        workers = Workers(2, "ray")
        assert sorted(workers.results((square, (x,)) for x in range(9))) == [
            x * x for x in range(9)
        ]
        assert list(workers.results([])) == []
        with pytest.raises(ValueError, match=r"^3 is not wanted$"):
            list(workers.results([(square, (1,)), (fail, (3,))]))
        results = workers.results([(time.sleep, (3,)), (square, (2,))])
        assert [next(results), next(results)] == [4, None]
    finally:
        ray.shutdown()
