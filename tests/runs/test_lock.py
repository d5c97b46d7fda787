"""A folder is one process's at a time, and free again when that process is killed."""

import signal
import subprocess
import sys
import time

import pytest

from align_rudder.runs.lock import only_here

HOLD = """
import sys, time
from align_rudder.runs.lock import only_here
with only_here(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path):
    folder = tmp_path / "a" / "b"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(ValueError, match=r"another run is writing to .*--out"):
            only_here(folder).__enter__()
        assert time.monotonic() - began < 5  # it does not wait
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with only_here(folder):
        pass


def test_the_same_process_is_refused_too_until_it_is_done(tmp_path):
    for _ in range(2):
        with only_here(tmp_path), pytest.raises(ValueError, match="another run is writing"):
            only_here(tmp_path).__enter__()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match=r"cannot write into .*file.*--out"):
        only_here(tmp_path / "file").__enter__()
