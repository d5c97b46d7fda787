"""The command line, run as a user runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import minari
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.cli.main import main
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.sequences import Lost


@pytest.fixture
def files(tmp_path):
    """Return a folder with demonstrations in every form."""
    ar.save_episodes(tmp_path / "demos.npz", crafting_demonstrations(6))
    ar.save_episodes(tmp_path / "new.npz", [crafting_episode(77), crafting_episode(78, False)])
    lines = [{"events": ["key", "door", "chest"], "return": 2.0}, ["key", "lamp", "door", "chest"]]
    (tmp_path / "logs.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    (tmp_path / "logs.fasta").write_text(">a return=0.5\nKD-C\n>b\nKL\nDC\n")
    return tmp_path


def run(*arguments):
    return main([str(a) for a in arguments])


def test_fit_show_and_redistribute(files, capsys):
    model_file, out, report = files / "m.npz", files / "rr.npz", files / "rr.json"
    assert run("fit", files / "demos.npz", "-o", model_file) == 0
    shown = capsys.readouterr().out
    assert "6 demonstrations" in shown
    assert "stone_pickaxe+1" in shown
    assert "consensus (80 %): " in shown

    assert run("show", model_file, "--json", files / "m.json") == 0
    again = capsys.readouterr().out
    assert again.strip() in shown
    data = json.loads((files / "m.json").read_text())
    model = ar.AlignRudder.load(model_file)
    assert data["strategies"][0]["alignment"] == model.alignment_.matrix.tolist()

    args = ("redistribute", model_file, files / "new.npz", "-o", out, "--json", report)
    assert run(*args) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split()[3] == "1"
    assert table[2].split()[3] == "0"
    expected = [model.redistribute(e) for e in ar.load_episodes(files / "new.npz")]
    with np.load(out) as stored:
        np.testing.assert_array_equal(
            stored["rewards"], np.concatenate([r.rewards for r in expected])
        )
        np.testing.assert_array_equal(stored["corrections"], [r.correction for r in expected])
    listed = json.loads(report.read_text())
    assert listed[1]["rewards"] == expected[1].rewards.tolist()
    assert sum(listed[0]["rewards"]) + listed[0]["correction"] == pytest.approx(1.0)
    for entry in listed:
        for number, name in zip(entry["events"], entry["event_names"], strict=True):
            assert name == (None if number < 0 else model.events_.symbols_[number])
    assert "stone_pickaxe+1 cobblestone-3 stick-2" in listed[0]["event_names"]


def test_events_that_the_model_does_not_know_are_called_so(files):
    assert run("fit", files / "logs.jsonl", "-o", files / "m.npz") == 0
    (files / "new.jsonl").write_text('["key", "dragon", "chest"]\n')
    out = files / "rr.json"
    assert run("redistribute", files / "m.npz", files / "new.jsonl", "--json", out) == 0
    assert json.loads(out.read_text())[0]["event_names"] == ["key", "unknown", "chest"]


@pytest.mark.parametrize("name", ["logs.jsonl", "logs.fasta"])
def test_symbols(files, capsys, name):
    assert run("fit", files / name, "-o", files / "m.npz") == 0
    capsys.readouterr()
    model = ar.AlignRudder.load(files / "m.npz")
    first, second = ("KDC", "KLDC") if name.endswith("fasta") else ("key door chest", "lamp")
    assert model.returns_ == ([0.5, 1.0] if name.endswith("fasta") else [2.0, 1.0])
    assert run("redistribute", files / "m.npz", files / name) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert [str(g.symbol) for g in model.subgoals_] == (
        list(first) if name.endswith("fasta") else first.split()
    )
    assert second


def test_minari_dataset(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.array([0, 1, 2, 3]),
            actions=np.array([1, 1, 1]),
            rewards=[0.0, 0.0, 1.0],
            terminations=[False, False, True],
            truncations=[False, False, False],
            infos={},
        )
        for i in range(2)
    ]
    minari.create_dataset_from_buffers(
        "walk/line-v0",
        buffer=buffers,
        observation_space=spaces.Discrete(4),
        action_space=spaces.Discrete(2),
        algorithm_name="hand",
        author="test",
        code_permalink="none",
        description="a walk",
    )
    assert run("fit", "walk/line-v0", "-o", files / "m.npz") == 0
    assert "2 demonstrations" in capsys.readouterr().out
    assert run("fit", "walk/other-v0", "-o", files / "n.npz") == 2
    assert "walk/line-v0" in capsys.readouterr().err  # says which there are


def test_options_reach_the_model(files, capsys):
    args = ("fit", files / "demos.npz", "-o", files / "m.npz", "--events", "delta")
    assert run(*args, "--max-events", 4, "--keys", "log", "plank", "--top-n", 3) == 0
    capsys.readouterr()
    model = ar.AlignRudder.load(files / "m.npz")
    assert model.events_.keys == ["log", "plank"]
    assert sum(not isinstance(s, Lost) for s in model.events_.base.symbols_) <= 4
    assert len(model.used_) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "none.npz"], "there is no file"),
        (["fit", "demos.txt"], "ending that is not known"),
        (["fit", "one.jsonl"], "at least 2"),
        (["fit", "broken.jsonl"], "line 2 is not JSON"),
        (["fit", "noreturn.jsonl"], "line 1: the return is 'much'; a finite number"),
        (["fit", "empty.jsonl"], "holds no sequence"),
        (["fit", "headless.fasta"], "begins with a line '>name'"),
        (["fit", "cut.npz"], "truncated"),
        (["fit", "folder.npz"], "is a folder; a file is needed"),
        (["fit", ""], "is empty"),
        (["fit", "nan.npz"], r"nan\.npz, episode 1: rewards\[0\] is nan"),
        (["fit", "objects.npz"], "one of its arrays holds Python objects"),
        (["fit", "twice.npz"], r"twice\.npz .* observations is there, and observations/x too"),
        (["fit", "demos.npz", "-o", "demos.npz"], "demos.npz is read, and would be overwritten"),
        (["fit", "demos.npz", "-o", "x", "--json", "x"], "x is given for two outputs"),
        (["fit", "demos.npz", "-o", "demos.txt/m.npz"], "demos.txt is a file, not a folder"),
        (["fit", "demos.npz", "--events", "delta", "--max-events", "0"], "--max-events is 0"),
        (["redistribute", "states.npz", "new.npz", "-o", "new.npz"], "new.npz is read"),
        (["report", "states.npz", "new.npz", "-o", "./states.npz"], "states.npz is read"),
        (["report", "lake.npz", "new.npz", "--env", "FrozenLake-v1"], "no state of the map|same"),
        (["fit", "demos.npz", "-o", "missing/m.npz"], "missing does not exist; create it"),
        (["fit", "demos.npz", "--json", "missing/m.json"], "missing does not exist; create it"),
        (["fit", "demos.npz", "-o", "pipe"], "device or pipe"),
        (["fit", "demos.npz", "--baseline", "nan"], "--baseline is nan; a finite number"),
        (["fit", "logs.jsonl", "--max-events", "3"], "--max-events"),
        (["fit", "demos.npz", "--max-events", "3"], "need --events"),
        (["fit", "logs.jsonl", "--events", "state"], "events already"),
        (["fit", "demos.npz", "--baseline", "2"], "not above the baseline"),
        (["show", "demos.npz"], "one of kind 'model' is needed"),
        (["redistribute", "demos.npz", "demos.npz"], "one of kind 'model' is needed"),
        (["redistribute", "symbols.npz", "new.npz"], "fit_events|SymbolEvents|not a symbol"),
        (["redistribute", "states.npz", "logs.jsonl"], "redistribute\\(episode\\)"),
    ],
)
def test_mistakes_are_told_in_one_line(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    Path("demos.txt").write_text("x")
    os.mkfifo("pipe")
    Path("folder.npz").mkdir()
    plain = {"actions": [0, 0], "lengths": [1, 1]}
    np.savez("nan.npz", observations=[0, 1, 0, 1], rewards=[1, np.nan], **plain)
    objects = np.array([None, {}, 1, 2], dtype=object)
    np.savez("objects.npz", observations=objects, rewards=[1, 1], **plain)
    both = {"observations": [0, 1, 0, 1], "observations/x": [0, 1, 0, 1]}
    np.savez("twice.npz", rewards=[1, 1], **plain, **both)
    walks = [ar.Episode([0, 4, 8, 9], [1, 1, 2], [0, 0, 1])] * 2
    ar.AlignRudder(ar.StateEvents()).fit(walks).save("lake.npz")
    Path("one.jsonl").write_text('["a", "b"]\n')
    Path("broken.jsonl").write_text('["a", "b"]\n["a",\n')
    Path("noreturn.jsonl").write_text('{"events": ["a"], "return": "much"}\n')
    Path("empty.jsonl").write_text("\n")
    Path("headless.fasta").write_text("ABC\n")
    Path("cut.npz").write_bytes(Path("demos.npz").read_bytes()[:2000])
    ar.AlignRudder().fit_events(["abc", "abc"]).save("symbols.npz")
    ar.AlignRudder().fit(crafting_demonstrations(3)).save("states.npz")
    before = sorted(p.name for p in files.iterdir())
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.strip().splitlines()) == 1
    assert re.search(message, error)
    assert sorted(p.name for p in files.iterdir()) == before  # nothing was written


def test_demo_draws_a_figure_and_says_where(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json", "demo.json"]) == 0
    shown = capsys.readouterr().out
    assert "demo/align-rudder-demo.png" in shown
    picture = matplotlib.image.imread("demo/align-rudder-demo.png")
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50
    found = json.loads(Path("demo.json").read_text())["strategies"][0]["consensus"]
    order = ["log+1", "plank+4 log-1", "table+1 plank-4", "stick+4 plank-2"]
    assert list(dict.fromkeys(found))[:4] == order
    assert main(["demo", "-o", "figure.svg"]) == 0
    assert Path("figure.svg").read_text().lstrip().startswith("<?xml")


def test_interrupt_leaves_no_half_file(files, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    assert run("fit", files / "demos.npz", "-o", files / "m.npz") == 130
    assert "interrupted" in capsys.readouterr().err
    assert not [p for p in files.iterdir() if "m.npz" in p.name]


def test_as_a_program_with_a_closed_pipe_and_help(files):
    ar.AlignRudder().fit(crafting_demonstrations(6)).save(files / "m.npz")
    program = [sys.executable, "-m", "align_rudder.cli.main"]
    shown = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True)
    for command in ("fit", "redistribute", "show", "demo"):
        assert command in shown.stdout
    pipe = subprocess.Popen(
        [*program, "show", str(files / "m.npz"), "--columns"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    pipe.stdout.close()
    assert pipe.stderr.read() == b""
    assert pipe.wait() == 141
    for unbuffered in ("", "1"):
        pipe = subprocess.Popen(
            [*program, "--help"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
        pipe.stdout.close()
        assert pipe.stderr.read() == b""
        assert pipe.wait() == 141


def test_files_are_written_even_if_nobody_reads_the_table(files):
    model = files / "m.npz"
    ar.AlignRudder().fit(crafting_demonstrations(6)).save(model)
    pipe = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "align_rudder",
            "redistribute",
            str(model),
            str(files / "new.npz"),
            "-o",
            str(files / "rr.npz"),
            "--json",
            str(files / "rr.json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pipe.stdout.close()
    pipe.wait()
    assert len(json.loads((files / "rr.json").read_text())) == 2
    with np.load(files / "rr.npz") as stored:
        assert len(stored["returns"]) == 2


def test_a_link_is_followed_and_stays_a_link(files):
    (files / "link.npz").symlink_to(files / "target.npz")
    assert run("fit", files / "logs.jsonl", "-o", files / "link.npz") == 0
    assert (files / "link.npz").is_symlink()
    assert ar.AlignRudder.load(files / "target.npz").returns_ == [2.0, 1.0]


def test_episodes_of_another_task_are_noticed(files, capsys):
    ar.AlignRudder().fit_events(["abc", "abc"]).save(files / "m.npz")
    assert run("redistribute", files / "m.npz", files / "logs.jsonl") == 0
    assert "no event that the model knows" in capsys.readouterr().err


def test_odd_text_files(files, capsys):
    (files / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + '["a\u2028b", "c"]\n'.encode() * 2)
    assert run("fit", files / "bom.jsonl", "-o", files / "m.npz") == 0
    assert ar.AlignRudder.load(files / "m.npz").events_.symbols_ == ["a\u2028b", "c"]
    (files / "spaced.fasta").write_text(">a\nAB CD\n>b\nABCD\n")
    assert run("fit", files / "spaced.fasta", "-o", files / "m.npz") == 0
    assert ar.AlignRudder.load(files / "m.npz").events_.symbols_ == list("ABCD")
    capsys.readouterr()
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"align-rudder {ar.__version__}"


def test_without_a_terminal_progress_comes_as_lines():
    code = (
        "import logging, align_rudder.runs.progress as p\n"
        "assert not p.bars_or_lines()\n"
        "logging.getLogger('align_rudder.any').info('half is done')\n"
        "logging.getLogger('others').info('not ours')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.strip().endswith("half is done")
    assert "not ours" not in found.stderr


def test_commands_start_where_folders_cannot_be_locked():
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import align_rudder.cli.main as cli; cli.main(['show', 'none.npz'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "error: there is no file none.npz" in found.stderr


def test_failures_random_episodes_and_columns_by_share(files, capsys):
    lines = [{"events": list("KADBC")}, {"events": list("KDC")}, {"events": list("KDLC")}]
    lines += [{"events": list("KLL"), "success": False}, {"events": list("KDAC"), "success": True}]
    (files / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (files / "random.jsonl").write_text('["K", "L", "A"]\n["L", "A", "B"]\n')
    random = ("--random", files / "random.jsonl", "--baseline", 0)
    options = ("--min-conservation", 0.8, "--strategies", 1)
    assert run("fit", files / "runs.jsonl", "-o", files / "m.npz", *random, *options) == 0
    said = capsys.readouterr()
    assert "sequences [3] are failures" in said.err
    assert said.out.startswith("a random policy earns ")
    model = ar.AlignRudder.load(files / "m.npz")
    assert model.returns_ == [1.0] * 4
    assert model.min_conservation == 0.8
    assert "".join(model.profile_.consensus()) == "KDC"
    assert [len(e.events) for e in model.chance_.failures] == [3]
    assert len(model.chance_.random) == 2
