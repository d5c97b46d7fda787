"""The fuzzer in small: damaged files are refused or used correctly, odd command lines explained."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("craftax")
pytest.importorskip("minari")

from fuzzing import mutations
from fuzzing.__main__ import failures, supervise

TESTS = Path(__file__).parents[1]


@pytest.fixture
def fuzzed(tmp_path, monkeypatch):
    """Return what became of some cases, run in another process as `tools/fuzz.py` does."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))

    def run(kind, first, n):
        rows = supervise(kind, first, n, tmp_path / "out.tsv")
        assert [row[0] for row in rows] == list(range(first, first + n))
        assert not failures(rows)
        return Counter(row[2] for row in rows)

    return run


def test_damaged_files_are_refused_or_used_correctly(fuzzed):
    counts = fuzzed("files", 0, 400)
    assert counts["refused"] > 200
    assert counts["used"] > 40


def test_odd_command_lines_are_explained_or_done(fuzzed):
    counts = fuzzed("lines", 0, 30)
    assert counts["refused"] > 15
    assert counts["done"] > 0


def test_a_case_that_kills_its_process_is_found_and_the_others_are_run(tmp_path, monkeypatch):
    (tmp_path / "fuzzing_files_that_kill.py").write_text(
        "import os, sys, fuzzing.__main__ as main\n"
        "class Cases:\n"
        "    def __init__(self, folder): pass\n"
        "    def make(self, case): return 'kind', case\n"
        "    def judge(self, case):\n"
        "        if case == 3: os.kill(os.getpid(), 11)\n"
        "        return ('wrong' if case == 5 else 'used'), ''\n"
        "main._KINDS['files'] = Cases\n"
        "sys.exit(main.main())\n"
    )
    run = [sys.executable, str(tmp_path / "fuzzing_files_that_kill.py")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **rest: popen([*run, *command[3:]], **rest)
    )
    rows = supervise("files", 0, 8, tmp_path / "out.tsv")
    assert [(row[0], row[2]) for row in failures(rows)] == [(3, "killed"), (5, "wrong")]
    assert "signal 11" in rows[3][3]
    assert len(rows) == 8


@pytest.mark.parametrize("seed", range(3))
def test_damage_changes_something_and_is_the_same_again(seed):
    whole = bytes(range(256)) * 4
    first, again = (mutations.damage(whole, np.random.default_rng(seed)) for _ in range(2))
    assert first == again != whole
