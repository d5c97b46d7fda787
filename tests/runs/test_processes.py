"""Chains of commands: in order, several at once, ended with the process that runs them."""

import signal
import subprocess
import sys
import time

import pytest

from align_rudder.runs.processes import run_chains


def test_chains_run_in_order_and_end_where_a_command_fails(tmp_path, capfd):
    wrong = ["show", str(tmp_path / "none.npz")]
    demo = ["--version"]
    assert run_chains([[demo, wrong, demo], [demo]], jobs=2) == 1
    out, err = capfd.readouterr()
    assert out.count("align-rudder 0") == 2
    assert "none.npz" in err
    assert run_chains([], jobs=1) == 0
    with pytest.raises(ValueError, match="jobs=0: at least 1 is needed"):
        run_chains([], jobs=0)


LONG = ["reproduce", "four-rooms", "--jobs", "1", "--methods", "gail", "--out"]


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_when_the_time_is_over_what_runs_is_stopped(tmp_path):
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_chains([[[*LONG, str(tmp_path)]]], jobs=1, seconds=3)
    assert time.monotonic() - began < 60
    assert not (tmp_path / "four-rooms" / "summary.json").exists()


RUN = """
import sys
from align_rudder.runs.processes import run_chains
run_chains([[sys.argv[1:]]], jobs=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_commands_end_with_the_process_that_runs_them(tmp_path, number):
    command = [sys.executable, "-c", RUN, *LONG, str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    trials = tmp_path / "four-rooms" / "trials.csv"
    deadline = time.monotonic() + 120
    while lines(trials) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lines(trials) >= 2
    process.send_signal(number)
    assert process.stderr is not None
    said = process.stderr.read()  # to its end: when the command has ended as well
    process.wait()
    assert "interrupted; what is finished is kept" in said
    found = lines(trials)
    time.sleep(2)
    assert lines(trials) == found
