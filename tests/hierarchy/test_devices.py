"""Training on several devices, in one process or two, is the same training."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
from align_rudder.runs.rows import read_rows

SCRIPT = Path(__file__).parents[1] / "two_processes.py"
TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
QUICK = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # most of the time goes into compiling
AGENTS = ("cloned.npz", "agent.npz", "manager.npz")
LOSSES = ("policy_loss", "value_loss", "entropy")


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return str(one.getsockname()[1])


def start(folder, *where, **environment):
    plain = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *where],
        env={**plain, "JAX_PLATFORMS": "cpu", **QUICK, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folders of the same training: on one device, on two, and on those of two processes."""
    base, port = tmp_path_factory.mktemp("trained"), free_port()
    runs = {
        "one": start(base / "one"),
        "devices": start(base / "devices", **TWO_DEVICES),
        "first": start(base / "processes", port, "0"),
        "second": start(base / "processes", port, "1"),
    }
    try:
        said = {name: run.communicate(timeout=600) for name, run in runs.items()}
    finally:
        for run in runs.values():
            run.kill()
    for name, run in runs.items():
        assert run.returncode == 0, f"{name}: {said[name][1][-3000:]}"
    return base, {name: out.strip().splitlines()[-1] for name, (out, _) in said.items()}


def test_the_trainings_ran_where_they_should(trained):
    assert trained[1] == {
        "one": "devices=1 first=True",
        "devices": "devices=2 first=True",
        "first": "devices=2 first=True",
        "second": "devices=2 first=False",
    }


@pytest.mark.parametrize("where", ["devices", "processes"])
def test_the_same_numbers_are_logged(trained, where):
    """Counts are equal; losses as equal as sums in another order are."""
    base, _ = trained
    for name in ("updates.csv", "evaluations.csv"):
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


def test_ctrl_c_in_any_process_stops_all_after_the_same_update(tmp_path):
    port = free_port()
    runs = [start(tmp_path, port, "0"), start(tmp_path, port, "1", "interrupted")]
    try:
        said = [run.communicate(timeout=600)[1] for run in runs]
    finally:
        for run in runs:
            run.kill()
    assert all("KeyboardInterrupt" in text for text in said), said
    assert [row["updates"] for row in read_rows(tmp_path / "updates.csv")] == ["1"]
    assert (tmp_path / "checkpoint.npz").is_file()
