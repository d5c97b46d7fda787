"""Where failed runs leave the road, in logs small enough to say it by hand."""

import pytest
from logs.small import log_of

from align_rudder.logs import LogModel, report_data

ROAD = "look read plan edit test send"


def table(*failures, extra=()):
    """Return the table of a log of 20 good runs and the given failures."""
    log = log_of((ROAD, True, 20), *extra, *((words, False, n) for words, n in failures))
    return report_data(LogModel(strategies=1).fit(log), log)


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        ("look read edit test send", "leave out plan: 12 go on without it"),
        ("look read plan", "stop before edit"),
        ("look read guess edit test send", "leave out plan: 12 do guess instead"),
        ("look read plan edit give_up", "leave out test: 12 do give_up instead"),
        ("look plan read edit test send", "do plan before read"),
        ("read look plan edit test send", "do read before look"),
        ("look read plan edit delete test send", "do delete where test is due"),
        ("look read plan edit test send delete", "do delete at the end"),
    ],
)
def test_a_divergence_is_said_as_one_would(failure, says):
    (row,) = table((failure, 12))["divergences"]
    assert row["says"] == f"12 of 12 failures (0 of 20 successes) {says}"
    assert row["telling"]
    assert row["p"] < 1e-6


def test_what_explains_most_comes_first_and_runs_are_counted_once():
    data = table(("look read edit test send", 12), ("look read plan", 7), (ROAD, 3))
    rows = data["divergences"]
    assert [row["failures"]["count"] for row in rows] == [12, 7]
    assert [data["symbols"][row["symbol"]] for row in rows] == ["plan", "edit"]
    assert data["explained"] == {"telling": 19, "other": 0, "none": 3, "alone": 0}
    assert rows[1]["to_come"] == [3, 4, 5]


def test_what_successes_do_as_often_does_not_tell():
    data = table(
        ("look read plan edit test", 2),
        ("look read edit test send", 12),
        extra=[("look read plan edit test", True, 4)],
    )
    tells = {data["symbols"][row["symbol"]]: row["telling"] for row in data["divergences"]}
    assert tells == {"plan": True, "send": False}


def test_ways_of_leaving_are_counted():
    data = table(
        ("look read guess edit test send", 9), ("look read edit test send", 6), ("look read", 2)
    )
    (row,) = (r for r in data["divergences"] if data["symbols"][r["symbol"]] == "plan")
    ways = [
        (w["way"], None if w["symbol"] is None else data["symbols"][w["symbol"]], w["failures"])
        for w in row["instead"]
    ]
    assert ways == [("event", "guess", 9), ("goes on", None, 6), ("stops", None, 2)]


def test_an_event_without_a_place_is_found_missing():
    orders = ["a b call", "a call b", "call a b"]
    good = [(words, True, 8) for words in orders]
    log = log_of(*good, ("a b", False, 15))
    data = report_data(LogModel(strategies=1).fit(log), log)
    row = data["divergences"][0]
    assert data["symbols"][row["symbol"]] == "call"
    assert row["failures"]["count"] == 15
