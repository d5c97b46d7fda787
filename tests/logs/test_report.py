"""The data of a page, counted again from the runs."""

import json
from dataclasses import replace

import pytest
from logs.planted import conversation, planted
from logs.small import case, log_of

from align_rudder.data.logs import Message, RunLog
from align_rudder.logs import LogModel, report_data, table
from align_rudder.logs.text import as_text


@pytest.fixture(scope="module")
def made():
    log = planted(3, "wrong tool").log
    log = RunLog((*log.runs, conversation("open", ["tool_a"], None)), ("bad.json: why",))
    return log, report_data(LogModel().fit(log), log)


def test_all_runs_are_there_once(made):
    log, data = made
    assert sum(run["count"] for run in data["runs"]) == len(log) == 101
    by_outcome = {
        name: sum(r["count"] for r in data["runs"] if r["outcome"] == name)
        for name in ("success", "failure", "unknown")
    }
    assert by_outcome == {"success": 60, "failure": 40, "unknown": 1}
    assert data["counts"]["unknown"] == 1
    assert data["faults"] == ["bad.json: why"]
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_shares_of_columns_and_funnel_are_those_of_the_runs(made):
    _, data = made
    for k, road in enumerate(data["roads"]):
        for outcome, name in (("success", "successes"), ("failure", "failures")):
            on = [r for r in data["runs"] if r["road"] == k and r["outcome"] == outcome]
            for j, column in enumerate(road["columns"]):
                held = sum(r["count"] for r in on if j in r["columns"])
                assert column[name]["count"] == held
                assert column[name]["of"] == sum(r["count"] for r in on) == road[name]
            for step in road["funnel"]:
                far = [max((c for c in r["columns"] if c is not None), default=-1) for r in on]
                got = sum(r["count"] for r, c in zip(on, far, strict=True) if c >= step["column"])
                assert step[name]["count"] == got


def test_rows_count_the_runs_that_point_at_them(made):
    _, data = made
    for i, row in enumerate(data["divergences"]):
        at = [r for r in data["runs"] if r["divergence"] and r["divergence"]["row"] == i]
        for outcome, name in (("success", "successes"), ("failure", "failures")):
            assert row[name]["count"] == sum(r["count"] for r in at if r["outcome"] == outcome)
        assert sum(way["failures"] for way in row["instead"]) == row["failures"]["count"]
        assert sum(part["failures"] for part in row["parts"]) == row["failures"]["count"]
    order = [(not r["telling"], -r["excess"]) for r in data["divergences"]]
    assert order == sorted(order)
    left = sum(row["failures"]["count"] for row in data["divergences"])
    assert left + data["explained"]["none"] == data["counts"]["failures"]


def test_every_run_has_its_events_rewards_and_texts(made):
    log, data = made
    model = LogModel().fit(log)
    named = {
        name: (shown, one)
        for shown in data["runs"]
        for one in shown["each"]
        for name in one["names"]
    }
    assert sum(len(one["names"]) for shown in data["runs"] for one in shown["each"]) == len(log)
    for run in log.runs:
        shown, one = named[run.name]
        assert [data["symbols"][e] for e in shown["events"]] == [e.name for e in run.entries]
        assert one["messages"] == [e.message for e in run.entries]
        assert len(shown["chances"]) == len(run.entries) + 2
        assert [text for _, text in one["texts"]] == [m.text for m in run.messages]
        if shown["outcome"] == "unknown":
            assert one["turns"] is None
        else:
            rewards = model.turn_rewards(run)
            assert one["turns"] == [[t, round(rewards[t], 6)] for t in run.turns]


def test_equal_events_hide_no_run():
    """Runs of one row that say other things, or more, keep their own turns and texts."""
    runs = []
    for i in range(12):
        run = conversation(f"run {i}", ["look", "read"][: 1 + i % 2], i % 2 == 1)
        talk = (Message("user", f"I am {i}"),) * (i % 3)
        entries = tuple(replace(e, message=e.message + len(talk)) for e in run.entries)
        runs.append(replace(run, entries=entries, messages=(*talk, *run.messages)))
    log = RunLog((*runs, conversation("again", ["look"], False)))
    model = LogModel().fit(log)
    data = report_data(model, log)
    assert [run["count"] for run in data["runs"]] == [6, 7]
    each = {name: one for row in data["runs"] for one in row["each"] for name in one["names"]}
    assert set(each) == {run.name for run in log.runs}
    for run in log.runs:
        assert [text for _, text in each[run.name]["texts"]] == [m.text for m in run.messages]
        rewards = model.turn_rewards(run)
        assert each[run.name]["turns"] == [[t, round(rewards[t], 6)] for t in run.turns]
    assert ["run 0", "run 6"] not in [one["names"] for one in each.values()]  # others speak
    assert any("again" in one["names"] for one in each.values())


def test_texts_are_cut_and_end_where_there_is_no_room_left():
    log = log_of(("a b", True, 4), ("a", False, 4))
    runs = [conversation(f"{i}", ["look"] * (i + 1), i % 2 == 0) for i in range(6)]
    log = RunLog((*log.runs, *runs))
    data = report_data(LogModel().fit(log), log, most_text=3, all_text=40)
    texts = [one["texts"] for r in data["runs"] for one in r["each"] if one["texts"]]
    assert texts
    assert all(len(text) <= 3 for one in texts for _, text in one)
    assert sum(len(text) for one in texts for _, text in one) <= 40
    assert len(texts) < 6


def test_the_tables_of_a_terminal_say_what_the_data_says(made):
    _, data = made
    text = as_text(data)
    assert "101 runs: 60 succeeded, 40 failed, 1 without outcome" in text
    assert "left out: bad.json: why" in text
    assert data["divergences"][0]["says"].split(") ", 1)[1] in text
    bars = [line for line in text.splitlines() if "█" in line]
    assert len(bars) == len(data["roads"][0]["funnel"])


def test_notes_are_in_the_data():
    log = log_of(("a b", True, 4), ("a", False, 4))
    noted = replace(log, notes=("the order is that of the lines",))
    assert report_data(LogModel().fit(log), noted)["notes"] == ["the order is that of the lines"]


def test_an_event_that_the_model_does_not_know_is_called_so():
    model = LogModel().fit(log_of(("a b c", True, 6), ("a c", False, 6)))
    (run,) = report_data(model, RunLog((case("a new c", False),)))["runs"]
    assert run["events"] == [0, 3, 2]
    assert run["columns"] == [0, None, 2]


def test_what_cannot_be_fitted_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"no run succeeded \(3 failed, of 0 it is not known\)"):
        LogModel().fit(log_of(("a b", False, 3)))
    with pytest.raises(ValueError, match="makes no event of any run that succeeded"):
        LogModel("message").fit(log_of(("a b", True, 3)))
    with pytest.raises(ValueError, match="not fitted"):
        LogModel().score(case("a", True))
    with pytest.raises(ValueError, match="not fitted"):
        report_data(LogModel(), log_of(("a b", True, 3)))


def test_only_successes_have_a_road_and_nothing_that_tells():
    log = log_of(("a b c", True, 9))
    model = LogModel().fit(log)
    data = report_data(model, log)
    assert data["divergences"] == []
    assert [c["successes"]["share"] for c in data["roads"][0]["columns"]] == [1.0] * 3
    assert data["roads"][0]["columns"][0]["failures"]["share"] is None
    assert "no failure leaves the road" in as_text(data)
    assert model.turn_rewards(log.runs[0]) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("sure", [table._SURE, -1.0])
def test_failures_leave_where_it_tells_only_if_their_row_does(made, monkeypatch, sure):
    """Also where all rows may be chance, whatever was found to be a cause."""
    log, _ = made
    monkeypatch.setattr(table, "_SURE", sure)
    data = report_data(LogModel().fit(log), log)
    tells = {i for i, row in enumerate(data["divergences"]) if row["telling"]}
    assert bool(tells) == (sure > 0)
    counts = dict.fromkeys(data["explained"], 0)
    for run in data["runs"]:
        left = run["divergence"]
        assert left is None or left["telling"] == (left["row"] in tells)
        if run["outcome"] == "failure":
            wanted = "none" if left is None else "telling" if left["telling"] else "other"
            assert run["explains"] == wanted
            counts[wanted] += run["count"]
    assert counts == data["explained"]
    told = sum(data["divergences"][i]["failures"]["count"] for i in tells)
    assert f"of the failures {told} leave where it tells" in as_text(data)
