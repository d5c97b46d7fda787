"""Who succeeded: conditions, functions, and what is said where neither can work."""

import json
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.data.logs import Entry, read_log
from align_rudder.data.logs.outcomes import as_written, condition, with_outcome
from align_rudder.data.logs.runs import Run

SIGNS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
NUMBERS = st.one_of(st.integers(-9, 9), st.floats(-9, 9).map(lambda x: round(x, 2)))


def lines(path, *runs):
    path.write_text("\n".join(map(json.dumps, runs)))
    return path


@given(NUMBERS, NUMBERS, st.sampled_from(list(SIGNS)), st.booleans())
def test_numbers_are_compared_as_numbers_however_they_are_written(there, wanted, sign, as_text):
    run = Run("x", (), fields={"n": str(there) if as_text else there})
    (met,) = (with_outcome(run, condition(f"n {sign} {wanted}"), None).success,)
    assert met is SIGNS[sign](there, wanted)


@pytest.mark.parametrize("sign", [">=", "==", "!="])
def test_csv_and_json_say_the_same(tmp_path, sign):
    rewards = ["1.0", "0.0", "0.5", "1", "1e0"]
    table = "case,activity,reward\n" + "".join(f"{i},a,{r}\n" for i, r in enumerate(rewards))
    (tmp_path / "x.csv").write_text(table)
    texts = lines(tmp_path / "text.jsonl", *({"events": ["a"], "reward": r} for r in rewards))
    floats = [{"events": ["a"], "reward": float(r)} for r in rewards]
    numbers = lines(tmp_path / "number.jsonl", *floats)
    found = [
        [run.success for run in read_log(path, f"reward {sign} 1").runs]
        for path in (tmp_path / "x.csv", texts, numbers)
    ]
    assert found[0] == found[1] == found[2]
    assert found[0] == [SIGNS[sign](float(r), 1) for r in rewards]


def test_tasks_are_named_as_they_are_written(tmp_path):
    """Fields become numbers, but version 1.10 is not version 1.1."""
    runs = [{"events": ["a"], "v": v, "n": v} for v in ("1.10", "1.1", "007")]
    log = read_log(lines(tmp_path / "x.jsonl", *runs), group="v")
    assert [run.group for run in log.runs] == ["1.10", "1.1", "007"]
    assert [run.fields["n"] for run in log.runs] == [1.1, 1.1, "007"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), (" -0.5 ", -0.5), ("2e3", 2000.0), (".5", 0.5), ("1" * 400, None), ("1e999", None)]
    + [(text, None) for text in ("", "007", "nan", "inf", "1_000", "0x1", "1,5", "-", "٣")],
)
def test_what_is_written_as_a_number(text, number):
    assert as_written(text) == (text if number is None else number)


@pytest.mark.parametrize(
    ("text", "there", "why"),
    [
        ("f >= 1", "high", "f is the text 'high', and cannot be compared with the number 1"),
        ("f == 1", "high", "write f == TEXT"),
        ("f != abc", 0.5, "f is the number 0.5, and cannot be compared with the text 'abc'"),
        ('f == "1"', 1, "write f == NUMBER, not in quotes"),
        ("f == yes", True, "write f == true"),
        ("f", "approved", "neither true nor false"),
        ("f == true", 0.4, "neither true nor false"),
        ("f > 1", float("nan"), "mend the value"),
        ("f has x", True, "write f == true"),
        ("f == 3", {"a": 1}, "is an object"),
        ("names == a", 0, "names is a list, .*; write names has VALUE"),
    ],
)
def test_what_cannot_be_compared_is_said(text, there, why):
    run = Run("x", (Entry("call", "a", 0),), fields={"f": there})
    with pytest.raises(ValueError, match=why):
        condition(text)(run)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reward => 1", "cannot be read; write FIELD >= VALUE"),
        ("reward >= 1 and length > 5", "cannot be read"),
        ("reward >= 1 and done", "one comparison, without and, or, not"),
        ("state == salt or pepper", "stands in quotes"),
        ("x == 'a", "cannot be read"),
        ("done > true", "true has no order"),
        ("done == null", "null is no value"),
        ("names has", "cannot be read"),
    ],
)
def test_conditions_are_read_strictly(text, why):
    with pytest.raises(ValueError, match=why):
        condition(text)
    words = Run("x", (), fields={"state": "salt or pepper"})
    assert condition("state == 'salt or pepper'")(words) is True


def chat(*tools):
    """Return messages with tools, a greeting before and a farewell after them."""
    calls = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": name}}]}
        for name in tools
    ]
    ends = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "bye"}
    return [ends[0], *calls, ends[1]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("last == close", [True, False, False]),
        ("last != close", [False, True, True]),
        ("last == ''", [False, False, True]),
        ("length == 2", [True, False, False]),
        ("length == 0", [False, False, True]),
        ("names has close", [True, True, False]),
        ("names has assistant", [False, False, False]),
    ],
)
def test_last_length_and_names_are_those_of_tools(tmp_path, text, wanted):
    runs = [chat("open", "close"), chat("open", "close", "wait"), chat()]
    path = lines(tmp_path / "x.jsonl", *runs)
    assert [run.success for run in read_log(path, text).runs] == wanted


RUNS = [
    {"events": ["a"], "reward": 0.4, "outcome": "approved", "who": {"by": "me"}},
    {"events": ["b"], "reward": 0.2, "outcome": "declined"},
]


@pytest.mark.parametrize("text", ["nope >= 1", "1 <= who.by", "__import__('os')", "reward.x"])
def test_an_unknown_field_is_named_with_those_there(tmp_path, text):
    with pytest.raises(ValueError, match="no run has the field") as error:
        read_log(lines(tmp_path / "x.jsonl", *RUNS), success=text)
    for said in ("reward (0.4, 0.2)", "outcome (approved, declined)", "last, length and names"):
        assert said in str(error.value)


def test_an_unknown_task_is_named_with_those_there(tmp_path):
    path = lines(tmp_path / "x.jsonl", *RUNS)
    with pytest.raises(ValueError, match=r"group='kind': no run has this field; .*reward \(0.4"):
        read_log(path, group="kind")
    with pytest.raises(ValueError, match="group='last'"):
        read_log(path, group="last")
    assert {run.group for run in read_log(path, group="").runs} == {None}


def test_a_value_that_cannot_be_compared_leaves_out_its_run(tmp_path):
    path = lines(tmp_path / "x.jsonl", *RUNS, {"events": ["c"], "reward": "n/a"})
    log = read_log(path, success="reward > 0.3")
    assert [run.success for run in log.runs] == [True, False]
    (fault,) = log.faults
    assert "x.jsonl: 3 is left out: reward is the text 'n/a'" in fault
    with pytest.raises(ValueError, match="can be told of no run: outcome is the text 'approved'"):
        read_log(path, success="outcome > 3")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (True, True),
        (np.bool_(True), True),
        (1.0, True),
        (np.int64(1), True),
        (0, False),
        (np.float32(0), False),
        (None, None),
    ],
)
def test_what_a_function_may_say(tmp_path, said, wanted):
    (run, _) = read_log(lines(tmp_path / "x.jsonl", *RUNS), success=lambda run: said).runs
    assert run.success is wanted


@pytest.mark.parametrize("said", [0.4, "yes", float("nan"), 2, [True], np.array([1, 1])])
def test_what_a_function_may_not_say(tmp_path, said):
    with pytest.raises(ValueError, match=r"function of success returned .* for x\.jsonl: 1; True"):
        read_log(lines(tmp_path / "x.jsonl", *RUNS), success=lambda run: said)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([1, 0.5, 0.5, 0], "2 runs have reward 0.5, neither 0 nor 1: {} 'reward >= 1'"),
        ([0.9, 0.2], "2 runs have reward from 0.2 to 0.9, neither 0 nor 1: {} 'reward >= 0.9'"),
        ([0, 7, "1.0"], "1 run has reward 7, neither 0 nor 1: {} 'reward >= 1'"),
        ([0, "half"], "1 run has reward half, neither true nor false: {} 'reward == VALUE'"),
    ],
)
def test_outcomes_that_say_neither_are_said(tmp_path, values, note):
    path = lines(tmp_path / "x.jsonl", *({"events": ["a"], "reward": value} for value in values))
    log = read_log(path)
    assert log.notes == (note.format("say which succeeded, such as --success"),)
    assert str(len(log.unknown)) == note[0]
    assert read_log(path, success="reward == 1").notes == ()
