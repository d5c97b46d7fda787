"""Logs on the command line: why runs fail, rewards of turns, logs as demonstrations."""

import json

import pytest
from logs.planted import planted
from show.parsed import Parsed

import align_rudder as ar
from align_rudder.cli.main import main


def run(*arguments):
    return main([str(a) for a in arguments])


def messages_of(run_):
    """Return a run as chat messages."""
    out = []
    for i, message in enumerate(run_.messages):
        calls = [entry for entry in run_.entries if entry.message == i]
        one = {"role": message.role, "content": message.text}
        if message.role == "tool":
            one["tool_call_id"] = str(i - 1)
        if calls:
            function = {"name": calls[0].name, "arguments": "{}"}
            one["tool_calls"] = [{"id": str(i), "type": "function", "function": function}]
        out.append(one)
    return out


@pytest.fixture
def files(tmp_path):
    """Return a folder with runs of agents in two files, a broken one, and cases as CSV."""
    one = planted(11, "left out")
    runs = [
        {"traj": messages_of(r), "reward": r.ret, "task_id": i % 2}
        for i, r in enumerate(one.log.runs)
    ]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").write_text(json.dumps(runs[:70]))
    (tmp_path / "runs" / "b.jsonl").write_text("\n".join(map(json.dumps, runs[70:])))
    (tmp_path / "broken.json").write_text('[{"traj": [')
    lines = ["order,step,verdict"]
    for i, r in enumerate(one.log.runs):
        lines += [f"{i},{e.name},{'yes' if r.success else 'no'}" for e in r.entries]
    (tmp_path / "cases.csv").write_text("\n".join(lines))
    return tmp_path, one


def test_why_runs_fail(files, capsys):
    folder, one = files
    out, model = folder / "out.json", folder / "m.json"
    assert run("logs", folder / "runs", "--json", out, "--model", model) == 0
    shown = capsys.readouterr().out
    assert "100 runs of 2 tasks: 60 succeeded, 40 failed" in shown
    data = json.loads(out.read_text())
    says = data["divergences"][0]["says"]
    assert f"leave out {one.step}" in says or f"stop before {one.step}" in says
    assert says.split(") ", 1)[1] in shown
    assert [group["runs"] for group in data["groups"]] == [50, 50]

    lines = folder / "turns.jsonl"
    args = ("redistribute", model, folder / "runs", "--turns", "-o", lines)
    assert run(*args) == 0
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    log = ar.read_log(folder / "runs")
    assert [row["run"] for row in rows] == [r.name for r in log.runs]
    for row, r in zip(rows, log.runs, strict=True):
        assert len(row["rewards"]) == len(r.messages)
        assert sum(x for x in row["rewards"] if x is not None) == pytest.approx(r.ret, abs=1e-9)


def test_a_page_holds_what_was_found(files, capsys):
    folder, _ = files
    page, out = folder / "report.html", folder / "out.json"
    assert run("logs", folder / "runs", folder / "broken.json", "-o", page, "--json", out) == 0
    assert f"saved to {page}; open it in a browser" in capsys.readouterr().out
    shown = json.loads(Parsed(page.read_text("utf-8")).scripts["data"])
    assert shown["log"] == json.loads(out.read_text())


def test_a_broken_file_is_named_and_the_others_are_read(files, capsys):
    folder, _ = files
    assert run("logs", folder / "broken.json", folder / "runs") == 0
    assert "left out: " in (shown := capsys.readouterr().out)
    assert "broken.json" in shown


def test_columns_and_condition_of_a_csv(files, capsys):
    folder, _ = files
    names = ("--column", "case=order", "activity=step")
    assert run("logs", folder / "cases.csv", *names, "--success", "verdict == yes") == 0
    assert "100 runs: 60 succeeded, 40 failed" in capsys.readouterr().out
    assert run("logs", folder / "cases.csv", "--column", "case") == 2
    assert "write what=NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--events", "x"], "'x' is not known"),
        (["--success", "a >"], "cannot be read"),
        (["--success", "reward > 5"], "no run succeeded"),
        (["--strategies", "0"], "--strategies is 0"),
        (["--json", "missing/x.json"], "does not exist"),
    ],
)
def test_mistakes_are_told_in_a_line_and_nothing_is_written(files, capsys, options, why):
    folder, _ = files
    out, page = folder / "model.json", folder / "report.html"
    assert run("logs", folder / "runs", "--model", out, "-o", page, *options) == 2
    assert why in capsys.readouterr().err
    assert not out.exists()
    assert not page.exists()


def test_turns_need_a_model_of_a_log(files, capsys):
    folder, _ = files
    model = folder / "m.npz"
    assert run("fit", folder / "runs", "-o", model) == 0
    capsys.readouterr()
    assert run("redistribute", model, folder / "runs", "--turns") == 2
    assert "logs RUNS --model model.json" in capsys.readouterr().err


def test_logs_are_demonstrations(files, capsys):
    folder, one = files
    model = folder / "m.npz"
    assert run("fit", folder / "runs", "-o", model) == 0
    assert "40 sequences are failures and are not aligned" in capsys.readouterr().err
    fitted = ar.AlignRudder.load(model)
    goals = {goal.symbol for goal in fitted.subgoals_}
    assert one.step in goals
    assert run("redistribute", model, folder / "runs" / "b.jsonl", "--json", folder / "r.json") == 0
    rows = json.loads((folder / "r.json").read_text())
    assert len(rows) == 30
    assert run("report", model, folder / "runs" / "b.jsonl", "-o", folder / "r.html") == 0
    assert run("fit", folder / "runs", "-o", model, "--log-events", "message") == 0
    assert "user says" in capsys.readouterr().out
