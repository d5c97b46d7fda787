"""CSV: bad lines leave out their case, outcomes are not guessed from events, times are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.data.logs import read_log
from align_rudder.data.logs.times import seconds

GOOD = ["a,begin,1,x", "a,end,2,x", "b,begin,1,y", "b,end,2,y", "c,begin,5,z", "c,end,6,z"]


def table(path, *lines, head="case,activity,time,note"):
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("b,middle,,y", "line 4: the time '' cannot be read"),
        ("b,middle", "line 4: it has 2 columns, the first line 4"),
        ("b,middle,1,y,z", "line 4: it has 5 columns"),
        ("b,,1,y", "line 4: its activity is empty"),
        ("b,middle,nan,y", "line 4: the time 'nan'"),
        ('b,"mid"dle,1,y', "line 4: its quotes are damaged"),
    ],
)
def test_a_bad_line_leaves_out_its_case(tmp_path, line, why):
    log = read_log(table(tmp_path / "x.csv", *GOOD[:2], line, *GOOD[2:]))
    assert [run.name for run in log.runs] == ["x.csv: a", "x.csv: c"]
    (fault,) = log.faults
    assert f"x.csv, case 'b' is left out, as of {why}" in fault
    assert log.runs == read_log(table(tmp_path / "x.csv", *GOOD[:2], *GOOD[4:])).runs


def test_a_line_of_nobody_is_left_out_alone(tmp_path):
    log = read_log(table(tmp_path / "x.csv", *GOOD, ",begin,1,x", "d"))
    assert len(log) == 3
    for line, fault in zip((8, 9), log.faults, strict=True):
        assert f"line {line} is left out" in fault


def test_fields_may_be_long_but_not_endless(tmp_path):
    path = table(tmp_path / "x.csv", *GOOD, "d,begin,1," + "w" * 200_000)
    log = read_log(path)
    assert len(log) == 4
    assert len(log.runs[3].fields["note"]) == 200_000
    with pytest.raises(ValueError, match=r"line 8 has a field of more than 16,777,216"):
        read_log(table(path, *GOOD, "d,begin,1," + "w" * (2**24 + 1)))


def test_an_outcome_is_not_guessed_from_a_column_of_events(tmp_path):
    lines = ["a,get,200", "a,put,404", "b,get,200"]
    log = read_log(table(tmp_path / "x.csv", *lines, head="case,activity,result"))
    assert [run.success for run in log.runs] == [None, None]
    assert "outcome" not in log.runs[1].fields
    assert any("'result' is not taken as the outcome, as case 'a' has" in n for n in log.notes)
    # One that is the same in each case is taken, and that is said.
    lines = ["a,get,200,yes", "a,put,404,", "b,get,200,no"]
    path = table(tmp_path / "x.csv", *lines, head="case,activity,result,success")
    log = read_log(path)
    assert [run.success for run in log.runs] == [True, False]
    assert any("the outcome is the column 'success'" in note for note in log.notes)
    assert [r.success for r in read_log(path, columns={"outcome": ""}).runs] == [None, False]


def test_where_a_column_is_named_cases_with_two_outcomes_are_left_out(tmp_path):
    lines = ["a,get,yes", "a,put,no", "b,get,yes", "b,put,", "c,get,no"]
    path = table(tmp_path / "x.csv", *lines, head="case,activity,outcome")
    log = read_log(path, columns={"outcome": "outcome"})
    assert [(run.name, run.success) for run in log.runs] == [
        ("x.csv: b", True),
        ("x.csv: c", False),
    ]
    (fault,) = log.faults
    assert "case 'a' is left out: it has several outcomes: no, yes" in fault


def test_the_order_of_lines_may_be_asked_for(tmp_path):
    path = table(tmp_path / "x.csv", "a,late,noon", "a,soon,dawn", head="case,activity,time")
    with pytest.raises(ValueError, match="--column time=\\)"):
        read_log(path)
    (run,) = read_log(path, columns={"time": ""}).runs
    assert [entry.name for entry in run.entries] == ["late", "soon"]


@pytest.mark.parametrize("columns", [{"case": ""}, {"dates": "ymd"}, {"who": "x"}])
def test_columns_that_cannot_be(tmp_path, columns):
    with pytest.raises(ValueError, match="columns"):
        read_log(table(tmp_path / "x.csv", *GOOD), columns=columns)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-20T13:45:00Z",
        "2024-05-20T13:45:00+00:00",
        "2024-05-20 13:45:00 UTC",
        "2024-05-20 13:45:00.000 GMT",
        "2024-05-20 15:45 +0200",
        "2024/05/20 13:45",
        "2024/5/20 13:45:00",
        "20240520T134500",
        " 2024-05-20 13:45:00,0 ",
        "1716212700",
    ],
)
def test_times_in_usual_forms(text):
    assert seconds(text) == 1716212700.0


@given(st.dates(), st.sampled_from("/.-"))
def test_dates_with_the_year_last_need_an_order(date, sep):
    day, month = f"{date.day}", f"{date.month:02}"
    wanted = seconds(date.isoformat())
    assert seconds(sep.join([day, month, f"{date.year:04}"]), "dmy") == wanted
    assert seconds(sep.join([month, day, f"{date.year:04}"]), "mdy") == wanted
    with pytest.raises(ValueError, match="dates=dmy or dates=mdy"):
        seconds(sep.join([day, month, f"{date.year:04}"]))


@pytest.mark.parametrize("text", ["", "noon", "nan", "inf", "-inf", "2024-13-01", "2024/02/30"])
def test_times_that_have_no_place(text):
    with pytest.raises(ValueError, match="the time"):
        seconds(text)


def test_dates_say_their_order_in_a_table(tmp_path):
    lines = ["a,last,03/02/2024", "a,first,04/01/2024"]
    path = table(tmp_path / "x.csv", *lines, head="case,activity,date")
    for order, wanted in (("dmy", ["first", "last"]), ("mdy", ["last", "first"])):
        (run,) = read_log(path, columns={"dates": order}).runs
        assert [entry.name for entry in run.entries] == wanted


def test_times_with_and_without_zone_in_one_case_are_said(tmp_path):
    times = {"a": "2024-01-01 08:30", "b": "2024-01-01T10:00+02:00"}
    lines = [f"{case},{name},{when},x" for case in range(3) for name, when in times.items()]
    note = read_log(table(tmp_path / "x.csv", *lines)).notes[-1]
    assert "case '0' has times with a zone and times without, as have 2 more cases" in note
    assert "taken as UTC" in note
    notes = read_log(table(tmp_path / "y.csv", lines[0], lines[3])).notes
    assert not any("zone" in note for note in notes)
