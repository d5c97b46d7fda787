"""Several devices, two processes, processes that are killed: it is the same training."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
from align_rudder.runs.rows import read_rows

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "two_processes.py"
TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
QUICK = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # most of the time goes into compiling
AGENTS = ("cloned.npz", "agent.npz", "manager.npz")
LOGS = ("updates.csv", "evaluations.csv")
LOSSES = ("policy_loss", "value_loss", "entropy")


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return str(one.getsockname()[1])


def start(folder, *options, **environment):
    plain = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *map(str, options)],
        env={**plain, "JAX_PLATFORMS": "cpu", **QUICK, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(runs):
    """Return what processes said, by their names, when all have ended well."""
    try:
        said = {name: run.communicate(timeout=1200) for name, run in runs.items()}
    finally:
        for run in runs.values():
            run.kill()
    for name, run in runs.items():
        assert run.returncode == 0, f"{name}: {said[name][1][-3000:]}"
    return {name: out.strip().splitlines() for name, (out, _) in said.items()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folders of the same training: on one device, on two, and on those of two processes.

    The second process is interrupted after the first update.
    """
    base, port = tmp_path_factory.mktemp("trained"), free_port()
    stop = ("--signal", int(signal.SIGINT), "agents", 1)
    runs = {
        "one": start(base / "one"),
        "devices": start(base / "devices", **TWO_DEVICES),
        "first": start(base / "processes", "--port", port, "--index", 0),
        "second": start(base / "processes", "--port", port, "--index", 1, *stop),
    }
    return base, finish(runs)


def test_the_trainings_ran_where_they_should(trained):
    assert {name: lines[-1] for name, lines in trained[1].items()} == {
        "one": "devices=1 first=True",
        "devices": "devices=2 first=True",
        "first": "devices=2 first=True",
        "second": "devices=2 first=False",
    }


@pytest.mark.parametrize("where", ["devices", "processes"])
def test_the_same_numbers_are_logged(trained, where):
    """Counts are equal; losses as equal as sums in another order are."""
    base, _ = trained
    for name in LOGS:
        one, many = read_rows(base / "one" / name), read_rows(base / where / name)
        assert {row["phase"] for row in one} == {"agents", "manager"}
        for a, b in zip(one, many, strict=True):
            losses = [(float(a.pop(n)), float(b.pop(n))) for n in LOSSES if n in a]
            np.testing.assert_allclose(*zip(*losses) if losses else (0, 0), rtol=1e-4, atol=3e-6)
            assert a == b


@pytest.mark.parametrize("where", ["devices", "processes"])
def test_the_same_agents_are_learned(trained, where):
    base, _ = trained
    for name in AGENTS:
        with np.load(base / "one" / name) as one, np.load(base / where / name) as many:
            assert set(one.files) == set(many.files)
            for leaf in set(one.files) - {"header"}:
                np.testing.assert_allclose(many[leaf], one[leaf], rtol=1e-4, atol=1e-5)
    with np.load(base / "one" / "cloned.npz") as before, np.load(base / "one" / "agent.npz") as now:
        leaves = set(before.files) - {"header"}
        assert any((before[leaf] != now[leaf]).any() for leaf in leaves)


def test_only_one_process_writes(trained):
    """The files of two processes are those of one: each row once, nothing half-written."""
    base, _ = trained
    files = {path.name for path in (base / "processes").iterdir()}
    assert files == {path.name for path in (base / "one").iterdir()}
    assert files >= {"checkpoint.npz", "training.json", "cloning.csv", *AGENTS}


def test_ctrl_c_in_any_process_stops_all_after_the_same_update(trained):
    """And then they go on to the end, as the tests above show."""
    said = trained[1]
    assert said["first"][-2] == said["second"][-2] == "stopped after 1 updates"
    assert len(said["one"]) == len(said["devices"]) == 1


def test_a_training_that_is_killed_ends_as_if_it_had_not_been(trained, tmp_path):
    """With SIGKILL, after an update that was logged and not saved, in both phases."""
    undisturbed = trained[0] / "one"
    for phase in ("agents", "manager"):
        last = max(
            int(r["updates"]) for r in read_rows(undisturbed / "updates.csv") if r["phase"] == phase
        )
        assert last >= 2
        run = start(tmp_path, "--signal", int(signal.SIGKILL), phase, last - 1)
        run.communicate(timeout=1200)
        assert run.returncode == -signal.SIGKILL
        killed = read_rows(tmp_path / "updates.csv")[-1]
        assert (killed["phase"], killed["updates"]) == (phase, str(last - 1))
    finish({"again": start(tmp_path)})
    for name in (*LOGS, "cloning.csv", "training.json", *AGENTS):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes(), name
