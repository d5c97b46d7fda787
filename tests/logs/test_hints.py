"""What is said of the choice of events where it does not tell, or cannot."""

import pytest
from logs.small import log_of

from align_rudder.data.logs import Entry, Message, Run, RunLog
from align_rudder.logs import LogModel, report_data
from align_rudder.logs.hints import repeating_arguments
from align_rudder.logs.text import as_text

NOTHING = "nothing tells with --events tool; "


def deployed(i, success, error=False, talk=False):
    """Return a run that succeeds if it deploys to staging; the tools are always the same."""
    arguments = {"env": "staging" if success else "prod", "n": i, "always": True}
    entries = [
        Entry("call", "edit", 0, {"path": f"file {i}"}),
        Entry("call", "deploy", 1, arguments),
    ]
    entries += [Entry("call", "wait", 2, error=True)] if error else []
    entries += [Entry("message", "assistant", 2)] if talk else []
    messages = (Message("assistant", "…"),) * 3
    return Run(f"run {i}", tuple(entries), messages, success=success, ret=float(success))


def hints_of(log, events="tool"):
    data = report_data(LogModel(events).fit(log), log)
    for hint in data["hints"]:
        assert f"\n\n{hint}" in as_text(data)
    return data["hints"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "--events tool:env adds arguments"),
        ({"error": True}, "--events tool:env adds arguments, --events tool+error whether results"),
        ({"talk": True}, "--events tool:env adds arguments, --events tool+message plain messages"),
    ],
)
def test_where_tools_do_not_tell_what_else_could_is_named(options, said):
    log = RunLog(tuple(deployed(i, i % 2 == 0, **options) for i in range(20)))
    (hint,) = hints_of(log)
    assert hint.startswith(NOTHING + said)
    assert ("error" in options) == ("tool+error" in hint)
    assert ("talk" in options) == ("tool+message" in hint)
    assert hints_of(log, "tool:env") == []


def test_symbols_that_come_in_one_run_only_are_told():
    log = RunLog(tuple(deployed(i, i % 2 == 0) for i in range(20)))
    (hint,) = hints_of(log, "tool:env,n")
    assert hint.startswith("20 of 21 symbols come in one run only, so that runs can hardly be")
    assert hint.endswith("leave out arguments whose values seldom come again (--events tool:env,n)")


def test_nothing_is_said_where_something_tells_or_nothing_else_is_there():
    assert hints_of(log_of(("a b", True, 9), ("a", False, 9))) == []
    assert hints_of(log_of(("a b", True, 9), ("a b", False, 9))) == []
    assert hints_of(RunLog(tuple(deployed(i, True) for i in range(20)))) == []


def test_arguments_that_are_named_vary_and_come_again():
    runs = [
        Run(f"{i}", (Entry("call", "a", 0, {"b": i % 2, "c": i % 3, "d": [i % 4], "e": i % 5}),))
        for i in range(30)
    ]
    assert repeating_arguments(runs) == ["b", "c", "d"]
    odd = {"one": 1, "with space": 0, "x,y": 1}
    assert repeating_arguments([Run("", (Entry("call", "a", 0, odd),))] * 9) == []
    assert repeating_arguments([Run("", (Entry("activity", "a", 0, {"b": 1}),))] * 9) == []
