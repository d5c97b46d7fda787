"""The door of the command line: light to open, and no mistake ends in a traceback."""

import json
import os
import signal
import subprocess
import sys

import pytest

import align_rudder as ar
from align_rudder.cli import model as commands
from align_rudder.cli.main import main

HEAVY = ["matplotlib", "scipy", "sklearn", "numba", "jax", "joblib", "torch", "minari"]
HEAVY += ["align_rudder.baselines", "align_rudder.model", "align_rudder.events"]


@pytest.mark.parametrize(
    "code",
    [
        "import align_rudder",
        "from align_rudder.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    ],
)
def test_importing_and_help_load_nothing_heavy_and_are_quick(code):
    code += (
        "\nimport json, resource, sys\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, list(sys.modules)]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(shown.stdout.splitlines()[-1])
    assert not set(loaded) & set(HEAVY)
    assert seconds < 2 * 0.6  # twice what it takes at most on an idle machine


@pytest.mark.parametrize("module", ["gymnasium", "tyro"])
def test_an_interrupt_while_it_loads_is_told_in_a_line(tmp_path, module):
    """A library that takes the interrupt for a fault of its own stands for the slow imports."""
    text = "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / f"{module}.py").write_text(text + "except BaseException: raise ImportError")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def started(*command):
        program = [sys.executable, *command, "show", "x.npz"]
        return subprocess.run(
            program, capture_output=True, text=True, env=environment, preexec_fn=heard
        )

    def heard():  # what is started in the background ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    done = started("-m", "align_rudder")
    assert (done.returncode, done.stderr) == (130, "interrupted; begin again\n")
    # In other programs than ours it stays an exception.
    assert started("-c", "import align_rudder.cli.main").stderr.endswith("ImportError\n")


def test_a_mistake_of_ours_is_one_line_too_and_says_how_to_see_more(monkeypatch, capsys):
    def broken(self):
        raise TypeError("three\nlines\nof text")

    monkeypatch.setattr(commands.Show, "run", broken)
    assert main(["show", "x.npz"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("error: TypeError: three lines of text (in ")
    assert error.endswith("with ALIGN_RUDDER_TRACEBACK=1 and report it\n")
    monkeypatch.setenv("ALIGN_RUDDER_TRACEBACK", "1")
    with pytest.raises(TypeError, match="three"):
        main(["show", "x.npz"])


def test_an_error_of_several_lines_is_told_in_one(monkeypatch, capsys):
    def refused(self):
        raise ValueError("first line\n\n  second line")

    monkeypatch.setattr(commands.Show, "run", refused)
    assert main(["show", "x.npz"]) == 2
    assert capsys.readouterr().err == "error: first line second line\n"
    monkeypatch.setattr(commands.Show, "run", lambda self: (_ for _ in ()).throw(MemoryError()))
    assert main(["show", "x.npz"]) == 2
    assert capsys.readouterr().err == "error: MemoryError, without a reason\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gap", "1e308"], "--gap is 1e+308; a number at least 0 and at most 1e+06 is needed"),
        (["--gap", "nan"], "--gap is nan; a number"),
        (["--gap", "-1"], "--gap is -1.0; a number at least 0"),
        (["--baseline", "inf"], "--baseline is inf; a finite number"),
        (["--strategies", "0"], "--strategies is 0; a whole number of at least 1"),
        (["--top-n", "1"], "--top-n is 1; a whole number of at least 2"),
        (["--top-n", "9" * 20], f"--top-n is {'9' * 20}; a whole number"),
        (["--events", "state", "--max-events", "9" * 20], f"--max-events is {'9' * 20}; a whole"),
        (["--events", "state", "--max-events", "0"], "--max-events is 0; a whole number of at"),
    ],
)
def test_numbers_are_checked_with_the_names_of_their_options(tmp_path, capsys, options, message):
    demos, model = tmp_path / "demos.npz", tmp_path / "model.npz"
    ar.save_episodes(demos, [ar.Episode([0, 1, 2], [0, 0], [0.0, 1.0])] * 2)
    assert main(["fit", str(demos), "-o", str(model), *options]) == 2
    assert message in capsys.readouterr().err
    assert not model.exists()


def test_paths_without_sense_are_told(capsys):
    for path in ("a\0b.npz", "x" * 300 + ".npz"):
        assert main(["show", path]) == 2
        assert main(["fit", "none.npz", "-o", path]) == 2
        error = capsys.readouterr().err
        assert error.count("error: ") == 2
        assert "Traceback" not in error
