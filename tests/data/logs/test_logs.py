"""Logs in all forms: what is read, what becomes an event, who succeeded, what is refused."""

import gzip
import json
import random

import pytest

from align_rudder.data.logs import Entry, LogOptions, event_chooser, read_log
from align_rudder.data.logs.events import check_arguments
from align_rudder.data.logs.outcomes import condition
from align_rudder.data.logs.runs import Run


def call(name, arguments=None, number="1"):
    given = json.dumps({} if arguments is None else arguments)
    function = {"name": name, "arguments": given}
    return {"id": number, "type": "function", "function": function}


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Book me a flight."},
    {"role": "assistant", "content": "Where to?"},
    {"role": "user", "content": [{"type": "text", "text": "Seattle"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("search", {"to": "SEA", "n": 2}), call("prices", number="2")],
    },
    {"role": "tool", "tool_call_id": "2", "name": "prices", "content": "Error: no prices"},
    {"role": "tool", "tool_call_id": "1", "name": "search", "content": "[HAT1]"},
    {"role": "assistant", "content": "", "tool_calls": [call("book", {"cabin": "economy"}, "3")]},
]
TAU = {"task_id": 7, "reward": 1.0, "info": {"task": {"user_id": "mia"}}, "traj": CHAT, "trial": 0}
STEPS = {
    "trajectory": [
        {"action": "ls -F\n", "observation": "a.py", "thought": "look", "state": "{}"},
        {"action": "edit 3:4 <<EOF\nx\nEOF", "observation": "Error: no", "response": "mend"},
        {"action": "submit", "observation": ""},
    ],
    "history": [{"role": "system", "content": "long"}],
    "info": {"exit_status": "submitted"},
    "instance_id": "django-1",
}
XES = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a loan -->
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <global scope="event"><string key="concept:name" value="none"/></global>
  <trace>
    <string key="concept:name" value="173"/><int key="amount" value="2000"/>
    <boolean key="success" value="true"/>
    <event><string key="concept:name" value="submit &amp; wait"/>
      <string key="lifecycle:transition" value="start"/></event>
    <event><string key="concept:name" value="submit &amp; wait"/>
      <string key="lifecycle:transition" value="COMPLETE"/>
      <list key="who"><string key="concept:name" value="nested"/></list></event>
    <event><string key="concept:name" value="offer"/></event>
  </trace>
  <trace><string key="concept:name" value="174"/><boolean key="success" value="false"/>
    <event><string key="concept:name" value="decline"/></event></trace>
</log>"""
CSV = """Case ID;Activity;Time;Outcome;clerk
b;end;2024-01-02T10:00:00;no;ann
a;begin;2024-01-01T09:00:00;yes;bob
a;end;2024-01-01T10:00:00+00:00;yes;bob
b;begin;2024-01-02T09:00:00;;ann
"""


def written(path, content):
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text)
    return path


def names(run):
    return [entry.name for entry in run.entries]


def test_messages_with_tool_calls(tmp_path):
    (run,) = read_log(written(tmp_path / "chat.json", CHAT)).runs
    assert names(run) == ["user", "assistant", "user", "search", "prices", "book"]
    assert [entry.message for entry in run.entries] == [1, 2, 3, 4, 4, 7]
    search, prices, book = run.entries[3:]
    assert search.arguments == {"to": "SEA", "n": 2}
    assert (search.result, search.error) == ("[HAT1]", False)
    assert (prices.result, prices.error) == ("Error: no prices", True)
    assert (book.result, book.error) == ("", None)  # nobody answered
    assert run.turns == [2, 4, 7]
    assert run.messages[3].text == "Seattle"
    assert run.success is None
    assert run.ret is None


ANTHROPIC = [
    {"role": "user", "content": "Book me a flight."},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "1", "name": "search", "input": {"to": "SEA"}},
            {"type": "tool_use", "id": "2", "name": "prices", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "2", "is_error": True, "content": "no"},
            {
                "type": "tool_result",
                "tool_use_id": "1",
                "content": [{"type": "text", "text": "[HAT1]"}],
            },
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "9", "content": "late"},
            {"type": "text", "text": "Go on."},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]


def test_messages_with_parts_that_use_tools(tmp_path):
    """Anthropic's form: calls and answers are parts of contents."""
    (run,) = read_log(written(tmp_path / "chat.json", ANTHROPIC)).runs
    assert names(run) == ["user", "search", "prices", "user", "assistant"]
    assert [entry.message for entry in run.entries] == [0, 1, 1, 3, 4]
    search, prices = run.entries[1:3]
    assert search.arguments == {"to": "SEA"}
    assert (search.result, search.error) == ("[HAT1]", False)
    assert (prices.result, prices.error) == ("no", True)
    assert run.turns == [1, 4]
    assert [m.role for m in run.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert [m.text for m in run.messages[1:4]] == ["Let me see.", "no\n[HAT1]", "late\nGo on."]
    odd = [{"role": "user", "content": content} for content in (5, {"a": 1}, [], True, [[]])]
    (run,) = read_log(written(tmp_path / "x.json", odd)).runs
    assert names(run) == ["user"] * 5
    nameless = {"role": "assistant", "content": [{"type": "tool_use", "input": {}}]}
    with pytest.raises(ValueError, match="a tool_use of message 0 has no name"):
        read_log(written(tmp_path / "x.json", [nameless]))


def test_a_file_may_hold_one_run_or_several_or_one_a_line(tmp_path):
    one = written(tmp_path / "one.json", {"messages": CHAT, "success": False})
    several = written(tmp_path / "several.json", [CHAT, {"messages": CHAT, "success": True}])
    lines = written(
        tmp_path / "lines.jsonl",
        "\n".join(map(json.dumps, [CHAT, {"conversation": CHAT}, ["a", "b"]])),
    )
    log = read_log([one, several, lines])
    assert [run.success for run in log.runs] == [False, None, True, None, None, None]
    assert [names(run) for run in log.runs[:5]] == [names(log.runs[0])] * 5
    assert names(log.runs[5]) == ["a", "b"]
    assert read_log(tmp_path) == read_log(sorted(tmp_path.iterdir()))
    assert repr(log) == "RunLog(6 runs, 1 succeeded, 1 failed, 4 without outcome)"


def test_results_of_tau_bench(tmp_path):
    log = read_log(written(tmp_path / "tau.json", [TAU, {**TAU, "reward": 0.0, "task_id": 8}]))
    assert [run.success for run in log.runs] == [True, False]
    assert [run.ret for run in log.runs] == [1.0, 0.0]
    assert [run.group for run in log.runs] == ["7", "8"]
    assert log.runs[0].fields["info.task.user_id"] == "mia"
    assert log.runs[0].name == "tau.json: 1"


def test_trajectories_of_swe_agent(tmp_path):
    (run,) = read_log(written(tmp_path / "x.traj", STEPS)).runs
    assert names(run) == ["ls", "edit", "submit"]
    assert [entry.error for entry in run.entries] == [False, True, False]
    assert run.entries[1].arguments["action"].startswith("edit 3:4")
    assert [m.text for m in run.messages[:3]] == [
        "look\nls -F",
        "a.py",
        "mend\nedit 3:4 <<EOF\nx\nEOF",
    ]
    assert run.turns == [0, 2, 4]
    assert run.group == "django-1"
    assert run.success is None  # the file does not say whether tests pass
    (run,) = read_log(tmp_path, success="info.exit_status == submitted").runs
    assert run.success is True


@pytest.mark.parametrize("zipped", [False, True])
def test_xes_also_zipped(tmp_path, zipped):
    path = tmp_path / ("log.xes.gz" if zipped else "log.xes")
    path.write_bytes(gzip.compress(XES.encode()) if zipped else XES.encode())
    log = read_log(path)
    assert [names(run) for run in log.runs] == [["submit & wait", "offer"], ["decline"]]
    assert [run.success for run in log.runs] == [True, False]
    assert log.runs[0].fields["amount"] == 2000
    assert log.runs[0].turns == [0, 1]
    assert log.runs[0].name == f"{path.name}: 173"


def test_csv_in_the_order_of_times(tmp_path):
    log = read_log(written(tmp_path / "log.csv", CSV))
    assert {run.name: names(run) for run in log.runs} == {
        "log.csv: b": ["begin", "end"],
        "log.csv: a": ["begin", "end"],
    }
    assert [run.success for run in log.runs] == [False, True]
    assert log.runs[1].fields["clerk"] == "bob"
    assert log.runs[1].entries[0].arguments["clerk"] == "bob"
    columns = {"case": "clerk", "activity": "Case ID"}
    other = read_log(tmp_path / "log.csv", success="clerk == ann", columns=columns)
    assert {run.name: names(run) for run in other.runs} == {
        "log.csv: ann": ["b", "b"],
        "log.csv: bob": ["a", "a"],
    }
    assert [run.success for run in other.runs] == [True, False]


# Events and outcomes

ENTRIES = [
    Entry("message", "user", 0),
    Entry("call", "book", 1, {"cabin": "economy", "bags": [1, 2]}, error=True),
    Entry("call", "book", 2, {"bags": []}, error=False),
    Entry("activity", "wait", 3),
]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ("tool", ["book", "book", "wait"]),
        ("tool:cabin", ["book(cabin=economy)", "book", "wait"]),
        ("tool:cabin,bags", ["book(cabin=economy, bags=[1, 2])", "book(bags=[])", "wait"]),
        ("tool+error", ["book, error", "book", "wait"]),
        ("tool:cabin+error+message", ["user says", "book(cabin=economy), error", "book", "wait"]),
        ("message", ["user says"]),
        (lambda entry: entry.message if entry.error else None, [1]),
    ],
)
def test_one_option_says_what_becomes_an_event(events, wanted):
    symbols, at = Run("x", tuple(ENTRIES)).events(event_chooser(events))
    assert symbols == wanted
    assert [event_chooser(events)(ENTRIES[i]) for i in at] == wanted


@pytest.mark.parametrize("symbol", [["a"], {"a": 1}, ("a", [])])
def test_a_function_returns_what_can_be_hashed(symbol):
    choose = event_chooser(lambda entry: symbol)
    with pytest.raises(ValueError, match=r"function of events returned .* for call book; a symbol"):
        choose(ENTRIES[1])


def test_an_argument_that_no_tool_has_is_named_with_those_there():
    check_arguments("tool:bags,cabin+error", [RUN])
    with pytest.raises(ValueError, match="the argument 'nope'; there are: cabin, bags"):
        check_arguments("tool:cabin,nope", [RUN])
    with pytest.raises(ValueError, match="there are: none at all"):
        check_arguments("tool:cabin", [Run("x", tuple(ENTRIES[3:]))])


@pytest.mark.parametrize("events", ["", "tools", "error", "tool:", "message:x", "tool+", 3])
def test_choices_that_are_none_are_refused(events):
    with pytest.raises(ValueError, match="give 'tool'"):
        event_chooser(events)


RUN = Run(
    "x",
    tuple(ENTRIES),
    fields={"score": 0.7, "state": "Done", "info.ok": True, "n": "12", "flag": "no"},
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("score >= 0.7", True),
        ("score>0.7", False),
        ("state == Done", True),
        ("state == 'Done'", True),
        ("state != Done", False),
        ("info.ok", True),
        ("info.ok == false", False),
        ("flag", False),
        ("n == 12", True),
        ("n > 3", True),  # what is written as a number is one
        ("nothing > 3", None),
        ("last == wait", True),
        ("length < 5", True),
        ("names has book", True),
        ("names has pay", False),
    ],
)
def test_conditions_of_success(text, wanted):
    assert condition(text)(RUN) is wanted


@pytest.mark.parametrize("text", ["", ">= 1", "reward >=", "= 3"])
def test_conditions_that_cannot_be_read_are_refused(text):
    with pytest.raises(ValueError, match="cannot be read; write FIELD"):
        condition(text)


@pytest.mark.parametrize(
    ("fields", "success", "ret"),
    [
        ({"reward": 1}, True, 1.0),
        ({"reward": 0.4}, None, 0.4),  # who succeeded is not guessed
        ({"score": "1.0"}, True, 1.0),
        ({"success": "Failed", "reward": 1}, False, 1.0),
        ({"outcome": "accepted"}, None, None),
        ({"resolved": True}, True, 1.0),
        ({"reward": float("nan")}, None, None),
        ({"reward": True}, True, 1.0),
        ({"reward": "false"}, None, None),
    ],
)
def test_outcomes_are_read_and_not_guessed(tmp_path, fields, success, ret):
    (run,) = read_log(written(tmp_path / "x.json", [{"events": ["a"], **fields}])).runs
    assert run.success is success
    assert run.ret == ret


def test_groups_are_named_by_a_field(tmp_path):
    runs = [{"events": ["a"], "who": who, "group": "g"} for who in ("x", "y")]
    path = written(tmp_path / "x.jsonl", "\n".join(map(json.dumps, runs)))
    assert [run.group for run in read_log(path).runs] == ["g", "g"]
    assert [run.group for run in read_log(path, group="who").runs] == ["x", "y"]


# What is bad is named, and the rest is read


def test_bad_files_and_runs_are_named_and_the_others_go_on(tmp_path):
    written(tmp_path / "good.json", CHAT)
    written(tmp_path / "cut.json", json.dumps(CHAT)[:-30])
    written(tmp_path / "none.json", {"a": 1})
    written(tmp_path / "half.json", [CHAT, {"x": 1}, [{"role": "user"}, 3]])
    written(tmp_path / "lines.jsonl", '["a"]\n{"events": [\n["b"]\n{"event": 1}')
    (tmp_path / "cut.xes.gz").write_bytes(gzip.compress(XES.encode())[:40])
    log = read_log(tmp_path)
    assert len(log) == 1 + 1 + 2
    assert len(log.faults) == 1 + 1 + 2 + 2 + 1
    for name in ("cut.json", "none.json", "cut.xes.gz"):
        assert sum(name in fault for fault in log.faults) == 1
    assert sum("half.json, run 2" in fault for fault in log.faults) == 1
    assert sum("half.json, run 3" in fault for fault in log.faults) == 1
    assert sum("lines.jsonl, line 2: it ends in the middle of" in f for f in log.faults) == 1
    assert sum("lines.jsonl, line 4" in fault for fault in log.faults) == 1


GOOD = [{"messages": CHAT, "reward": i % 2} for i in range(4)]
BAD = {
    "an entry twice": '{"messages": [], "x": 1, "x": 2}',
    "a number that is too long": '{"messages": [], "x": ' + "9" * 5000 + "}",
    "too deep": '{"messages": [], "x": ' + "[" * 300 + "]" * 300 + "}",
    "no run": '{"x": "a, \\"b\\"], [c"}',
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("form", ["[{}]", '{{"n": [1, "]"], "results": [{}], "x": {{}}}}', "lines"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_one_bad_run_of_a_list_leaves_the_others(tmp_path, bad, form, at):
    texts = [json.dumps(run) for run in GOOD]
    texts.insert(at, bad)
    if form == "lines":
        path = written(tmp_path / "x.jsonl", "\n".join(texts))
    else:
        path = written(tmp_path / "x.json", form.format(" ,\n".join(texts)))
    log = read_log(path)
    assert [run.ret for run in log.runs] == [0, 1, 0, 1]
    numbers = [i for i in range(1, 6) if i != at + 1]
    assert [run.name for run in log.runs] == [f"{path.name}: {i}" for i in numbers]
    (fault,) = log.faults
    assert f"{'line' if form == 'lines' else 'run'} {at + 1}: " in fault


def test_a_bad_message_is_no_reason_to_read_half_a_run(tmp_path):
    text = json.dumps(CHAT).replace('"Where to?"', "9" * 5000)
    with pytest.raises(ValueError, match="a whole number of more than"):
        read_log(written(tmp_path / "x.json", text))


@pytest.mark.parametrize("form", ["x.json", "x.jsonl", "x.traj"])
def test_half_an_emoji_is_no_reason_to_lose_a_run(tmp_path, form):
    """Loggers that cut a text may cut a surrogate pair, in JSON and in the arguments in it."""
    half = "\\ud83d"
    steps = [
        {"role": "assistant", "content": "ok \U0001f600 @", "tool_calls": [call("a@", {"q@": "@"})]}
    ]
    if form == "x.traj":
        steps = [{"action": "ls @", "observation": "@", "thought": "ok \U0001f600 @"}]
    text = json.dumps({"trajectory" if form == "x.traj" else "messages": steps, "by@": "@"})
    text = text.replace('\\"@', f'\\"\\{half}').replace("@", half)
    log = read_log(written(tmp_path / form, text))
    assert log.faults == ()
    (run,) = log.runs
    assert run.fields == {"by\ufffd": "\ufffd"}
    assert run.messages[0].text.startswith("ok \U0001f600 \ufffd")
    (entry,) = run.entries
    if form != "x.traj":
        assert (entry.name, entry.arguments) == ("a\ufffd", {"q\ufffd": "\ufffd"})
    assert "ls \ufffd" in entry.arguments.values() or form != "x.traj"
    json.dumps(repr(run), ensure_ascii=False).encode()


def test_a_line_that_is_no_text_leaves_the_others(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'["a"]\n["\xff"]\n["b"]')
    log = read_log(tmp_path / "x.jsonl")
    assert [names(run) for run in log.runs] == [["a"], ["b"]]
    assert "line 2: it is no text in UTF-8" in log.faults[0]


# Names, and files that are there twice


def test_runs_of_equal_files_have_names_of_their_own(tmp_path):
    for folder in ("A/x", "B/x", "C"):
        (tmp_path / folder).mkdir(parents=True)
        written(tmp_path / folder / "r.json", [CHAT, CHAT])
    written(tmp_path / "s.json", CHAT)
    log = read_log(tmp_path)
    wanted = [f"{title}: {i}" for title in ("A/x/r.json", "B/x/r.json", "C/r.json") for i in (1, 2)]
    assert [run.name for run in log.runs] == [*wanted, "s.json"]
    assert [run.name for run in read_log(tmp_path / "C").runs] == ["r.json: 1", "r.json: 2"]


def test_traces_of_one_name_are_told_apart(tmp_path):
    trace = '<trace><string key="concept:name" value="{}"/><event>{}</event></trace>'
    event = '<string key="concept:name" value="e"/>'
    traces = "".join(trace.format(name, event) for name in ("t", "t (2)", "t", "t", "t (2)"))
    log = read_log(written(tmp_path / "x.xes", f"<log>{traces}</log>"))
    assert len({run.name for run in log.runs}) == 5
    assert [run.name for run in log.runs[:2]] == ["x.xes: t", "x.xes: t (2)"]


def test_a_file_that_is_given_twice_is_read_once_and_said(tmp_path):
    path = written(tmp_path / "r.json", [CHAT, CHAT])
    (tmp_path / "link.json").symlink_to(path)
    log = read_log([path, tmp_path])
    assert len(log) == 2
    assert len(log.notes) == 2
    assert all("is the same file as" in note for note in log.notes)
    assert log.faults == ()


def test_how_a_log_was_read_is_kept(tmp_path):
    path = written(tmp_path / "x.csv", CSV)
    log = read_log(path, "clerk == ann", "clerk", {"time": ""})
    assert log.options == LogOptions("clerk == ann", "clerk", {"time": ""})
    assert read_log(path, lambda run: True).options == LogOptions(function=True)
    assert read_log(path).options == LogOptions()


BOMB = """<?xml version="1.0"?><!DOCTYPE log [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<log><trace><string key="x" value="&b;"/></trace></log>"""


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.xes", BOMB, "declares the entity 'a'"),
        ("a.xes", "<html></html>", "begins with <html>"),
        ("a.xes", XES.split("</trace>")[0], "damaged or no XES"),
        ("a.xes", "<log></log>", "a.xes: it holds no run"),
        ("a.csv", "", "none of its columns"),
        ("a.csv", "case,activity\n", "holds no event"),
        ("a.csv", "who,what\na,b\n", "is known as the case"),
        ("a.csv", "case,activity\na\n", "line 2 is left out: it has 1 columns, the first line 2"),
        ("a.csv", "case,activity,time\na,b,noon\n", "'noon' cannot be read"),
        ("a.csv", "case,activity,time\na,b,nan\n", "'nan' is no number that has an order"),
        ("a.csv", "case,activity,time\na,b,20/05/2024\n", "--column dates=dmy"),
        ("a.csv", 'case,activity\na,"b\nc,d\n', "line 2 has a quote that is not closed"),
        ("a.json", "[]", "holds no run"),
        ("a.json", " \n", "it is empty; write it again"),
        ("a.json", json.dumps([CHAT])[:300], "\"fun'; write it again, whole"),
        ("a.json", '["a"]\n["b"]', "a file with one in each line is named .jsonl"),
        ("a.json", '{"messages": tr', "it ends in the middle of '{\"messages\": tr'"),
        ("a.json", "{'messages': []}", "it is no JSON: Expecting property name"),
        ("a.json", "[[]]", "run 1"),
        ("a.json", '[{"role": "assistant", "tool_calls": [{"id": 1}]}]', "no function with a name"),
        ("a.json", '[{"role": "assistant", "tool_calls": 5}]', "are no list"),
        ("a.jsonl", "\n\n", "a.jsonl: it holds no run"),
        ("a.jsonl", '["a", ' + "9" * 5000 + "]", "a whole number of more than"),
        ("a.traj", '{"trajectory": [{"action": "ls"}, {"x": 1}]}', "step 1 has no action"),
        ("a.json", '{"kind": "align-rudder-log-model"}', "it is a model of a log"),
        ("a.txt", "x", "ending that is not known"),
    ],
)
def test_where_nothing_can_be_read_it_is_said_why(tmp_path, name, content, word):
    with pytest.raises(ValueError, match="no run could be read") as error:
        read_log(written(tmp_path / name, content))
    assert word in str(error.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_log(tmp_path / "x.json")
    with pytest.raises(ValueError, match="has no file that ends with"):
        read_log(tmp_path)
    with pytest.raises(ValueError, match="no file was given"):
        read_log([])
    for empty in ("", [""], [tmp_path, ""]):
        with pytest.raises(ValueError, match=r"one is empty; give a file or folder, '\.' for"):
            read_log(empty)
    for given, said in ((None, "None"), (3, "3"), ([tmp_path, 3], "3"), (b"x", "b'x'")):
        with pytest.raises(ValueError, match=f"paths: {said} is no path; give a file or folder"):
            read_log(given)


def test_several_faults_are_told_apart(tmp_path):
    for i in range(7):
        written(tmp_path / f"{i}.json", "")
    with pytest.raises(ValueError, match="no run could be read") as error:
        read_log(tmp_path)
    _, *lines, last = str(error.value).split("\n  ")
    assert lines == [
        f"({i + 1}) {tmp_path / f'{i}.json'}: it is empty; write it again, with its runs"
        for i in range(5)
    ]
    assert last == "and 2 more"


@pytest.mark.parametrize("name", ["chat.json", "tau.json", "x.traj", "x.xes", "x.csv", "x.jsonl"])
def test_damaged_files_are_read_or_refused(tmp_path, name):
    """Bytes changed, cut out or doubled: a log or a ValueError, nothing else."""
    contents = {
        "chat.json": json.dumps(CHAT),
        "tau.json": json.dumps([TAU, TAU]),
        "x.traj": json.dumps(STEPS),
        "x.xes": XES,
        "x.csv": CSV,
        "x.jsonl": json.dumps(CHAT) + '\n["a", {"b": 1}, null]',
    }
    whole, rng, path = contents[name].encode(), random.Random(name), tmp_path / name
    read = refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at, n = rng.randrange(len(data)), rng.randint(1, 12)
            change = rng.choice(("byte", "cut", "double", "swap"))
            if change == "byte":
                data[at] = rng.choice(b'0"{}[],:<>\x00\xff \n')
            elif change == "cut":
                del data[at : at + n]
            elif change == "double":
                data[at:at] = data[at : at + n]
            else:
                data[at : at + n] = data[at : at + n][::-1]
        path.write_bytes(data)
        said = outcome(path)
        read, refused = read + (said is None), refused + (said is not None)
        assert said is None or str(path) in said
    assert read + refused == 300
    assert refused > 0


def outcome(path):
    """Return the error of reading a file, None if it has runs."""
    try:
        assert len(read_log(path))
    except ValueError as error:
        return str(error)
