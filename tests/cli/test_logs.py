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


def test_an_empty_path_is_refused(files, capsys):
    folder, _ = files
    assert run("logs", folder / "runs", "") == 2
    assert "one is empty; give a file or folder" in capsys.readouterr().err


def test_what_was_assumed_is_told_in_terminal_page_and_json(tmp_path, capsys):
    rewards = [1.0] * 6 + [0.5] * 6 + [0.0] * 6
    path, page, out = tmp_path / "x.jsonl", tmp_path / "x.html", tmp_path / "x.json"
    path.write_text("\n".join(json.dumps({"events": ["a"], "reward": r}) for r in rewards))
    assert run("logs", path, "-o", page, "--json", out) == 0
    note = "6 runs have reward 0.5, neither 0 nor 1: say which succeeded, such as --success "
    note += "'reward >= 1'"
    assert f"note: {note}\n" in capsys.readouterr().out
    assert json.loads(out.read_text())["notes"] == [note]
    shown = json.loads(Parsed(page.read_text("utf-8")).scripts["data"])
    assert shown["finding"]["notes"] == [note]
    path.write_text(path.read_text().replace("1.0", "0.9"))
    assert run("logs", path) == 2
    assert "12 runs have reward from 0.5 to 0.9" in capsys.readouterr().out


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


def turns_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def wanted_turns(model, log):
    return [
        {"run": r.name, "group": r.group, "return": r.ret, "rewards": model.turn_rewards(r)}
        for r in log.runs
    ]


def test_turns_are_read_as_the_log_of_the_model(files, capsys):
    """Tasks of another field, roads of each: redistribute finds them by itself."""
    folder, _ = files
    runs = [json.loads(line) for line in (folder / "runs" / "b.jsonl").read_text().splitlines()]
    runs += json.loads((folder / "runs" / "a.json").read_text())
    for i, one in enumerate(runs):
        one["kind"], one["grade"] = "xy"[i % 3 > 0], "pass" if one.pop("reward") else "2 of 5"
    path = folder / "kinds.json"
    path.write_text(json.dumps(runs))
    model, out = folder / "m.json", folder / "turns.jsonl"
    said = ("--group", "kind", "--success", "grade == pass", "--per-task")
    assert run("logs", path, *said, "--model", model) == 0
    assert run("redistribute", model, path, "--turns", "-o", out) == 0
    log = ar.read_log(path, "grade == pass", "kind")
    rows = turns_of(out)
    assert rows == wanted_turns(ar.LogModel(per_group=True).fit(log), log)
    assert {row["group"] for row in rows} == {"x", "y"}
    # What is said anew takes the place of what the file says.
    other = ("--group", "task_id", "--success", "grade != pass")
    assert run("redistribute", model, path, "--turns", "-o", out, *other) == 0
    log = ar.read_log(path, "grade != pass", "task_id")
    assert turns_of(out) == wanted_turns(ar.LogModel.load(model), log)


def test_turns_of_a_csv_with_columns_of_its_own(files, capsys):
    folder, _ = files
    path, model, out = folder / "cases.csv", folder / "m.json", folder / "turns.jsonl"
    columns = {"case": "order", "activity": "step"}
    names = ("--column", "case=order", "activity=step")
    assert run("logs", path, *names, "--success", "verdict == yes", "--model", model) == 0
    assert run("redistribute", model, path, "--turns", "-o", out) == 0
    log = ar.read_log(path, "verdict == yes", columns=columns)
    assert turns_of(out) == wanted_turns(ar.LogModel().fit(log), log)
    text = path.read_text().replace("order,step", "id,step", 1)
    (folder / "other.csv").write_text(text)
    assert run("redistribute", model, folder / "other.csv", "--turns") == 2
    assert "it has no column 'order'; it has id, step, verdict" in capsys.readouterr().err
    again = ("--column", "case=id")
    assert run("redistribute", model, folder / "other.csv", "--turns", "-o", out, *again) == 0
    assert [row["rewards"] for row in turns_of(out)] == [
        model_row["rewards"] for model_row in wanted_turns(ar.LogModel().fit(log), log)
    ]
    # The same columns for a model of `fit`.
    plain, success = folder / "m.npz", ("--success", "verdict == yes")
    assert run("fit", path, "-o", plain, *names, *success) == 0
    assert run("redistribute", plain, path, "--json", folder / "r.json", *names, *success) == 0
    assert len(json.loads((folder / "r.json").read_text())) == 100
    assert run("report", plain, path, "-o", folder / "r.html", *names, *success) == 0


def test_a_field_that_another_log_lacks_is_said_to_be_the_models(files, capsys):
    folder, _ = files
    model = folder / "m.json"
    assert run("logs", folder / "runs", "--success", "reward > 0", "--model", model) == 0
    (folder / "other.json").write_text(json.dumps([["a", "b"]]))
    assert run("redistribute", model, folder / "other.json", "--turns") == 2
    said = capsys.readouterr().err
    assert "no run could be read" in said or "no run has the field 'reward'" in said
    assert "read as that of the model (--success 'reward > 0')" in said


def test_a_function_of_success_must_be_said_again(files, capsys):
    folder, _ = files
    log = ar.read_log(folder / "runs", success=lambda r: r.ret == 1)
    ar.LogModel().fit(log).save(folder / "m.json")
    args = ("redistribute", folder / "m.json", folder / "runs", "--turns")
    assert run(*args) == 2
    assert "was said by a function" in capsys.readouterr().err
    assert run(*args, "--success", "reward == 1") == 0


def test_a_log_of_other_tools_is_warned_of(files, capsys):
    folder, _ = files
    model = folder / "m.json"
    assert run("logs", folder / "runs", "--model", model) == 0
    other = [{"events": ["p", "q", "r"], "reward": 1}, {"events": ["p"], "reward": 0}]
    (folder / "other.jsonl").write_text("\n".join(map(json.dumps, other)))
    capsys.readouterr()
    assert run("redistribute", model, folder / "other.jsonl", "--turns") == 0
    assert "the model knows 0 of the 3 different events of the log" in capsys.readouterr().err
    assert run("redistribute", model, folder / "runs", "--turns") == 0
    assert "different events" not in capsys.readouterr().err


def test_what_was_written_into_the_folder_is_not_read(files, capsys):
    folder, _ = files
    runs = folder / "runs"
    out = ("--json", runs / "found.json", "--model", runs / "m.json", "-o", runs / "r.html")
    assert run("logs", runs, *out) == 0
    first = json.loads((runs / "found.json").read_text())
    turns = ("-o", runs / "turns.jsonl", "--json", runs / "turns.json")
    assert run("redistribute", runs / "m.json", runs, "--turns", *turns) == 0
    assert len(turns_of(runs / "turns.jsonl")) == 100
    capsys.readouterr()
    assert run("logs", runs, *out) == 0
    shown = capsys.readouterr().out
    again = json.loads((runs / "found.json").read_text())
    assert sum("is not read" in note for note in again.pop("notes")) == 4
    assert first.pop("notes") == []
    assert again == first
    assert "left out" not in shown
    for name in ("found.json", "m.json", "turns.json", "turns.jsonl"):
        assert f"{name} is not read" in shown


def test_signs_that_steer_a_terminal_are_escaped(tmp_path, capsys):
    odd = "rm\x1b[2J\u202e\nx\x07"
    runs = [{"events": [odd, "b"], "reward": 1, "group": odd}] * 9
    runs += [{"events": ["b"], "reward": 0, "group": "\x1b[31m"}] * 9
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, [*runs, [odd, {"role": odd}, 1]])))
    assert run("logs", path, "--per-task", "--json", tmp_path / "x.json") == 0
    assert run("logs", path, "--success", f"{odd} > 1") == 2
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert not {"\x1b", "\u202e", "\x07"} & set(text)
    assert r"rm\x1b[2J\u202e\nx\x07" in shown.out


def test_what_no_tool_and_no_run_has_is_named(files, capsys):
    folder, _ = files
    for command, option in (("logs", "--events"), ("fit", "--log-events")):
        assert run(command, folder / "runs", option, "tool:nope") == 2
        assert "no tool or activity has the argument 'nope'" in capsys.readouterr().err
    assert run("logs", folder / "runs", "--group", "nope") == 2
    assert "there are: reward (" in capsys.readouterr().err
    assert run("logs", folder / "runs", "--success", "last == nope") == 2
    assert "'last == nope' is true of none; last there: tool_" in capsys.readouterr().err


def test_order_of_lines_on_the_command_line(tmp_path, capsys):
    text = "case,activity,time,outcome\n"
    text += "".join(f"{i},a,?,{o}\n{i},b,?,{o}\n" for i, o in enumerate(["yes", "no"] * 9))
    (tmp_path / "x.csv").write_text(text)
    assert run("logs", tmp_path / "x.csv") == 2
    assert "--column time=" in capsys.readouterr().err
    assert run("logs", tmp_path / "x.csv", "--column", "time=") == 0
    shown = capsys.readouterr().out
    assert "18 runs: 9 succeeded" in shown
    assert "by its name, the outcome is the column 'outcome'" in shown
