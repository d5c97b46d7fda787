"""Rows are on disk when they are added, whole or not at all, whatever happens to the process."""

import resource
import signal
import subprocess
import sys

import pytest

from align_rudder.runs.rows import JsonRows, Rows, read_rows

COLUMNS = ["phase", "updates", "steps"]
FIRST = {"phase": "agents", "updates": "1", "steps": "10"}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "a.csv", COLUMNS)


def test_rows_come_back_as_they_were_added(rows):
    assert rows.read() == []
    rows.append(["agents", 1, 10])
    rows.append(['a, "b"', 2, 0.1 + 0.2])
    assert rows.read() == [FIRST, {"phase": 'a, "b"', "updates": "2", "steps": str(0.1 + 0.2)}]
    assert read_rows(rows.path, ["steps"]) == rows.read()
    with pytest.raises(ValueError, match="3 entries"):
        rows.append([1, 2])
    rows.write([["agents", 1, 10]])
    assert rows.read() == [FIRST]


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_last_line_is_dropped_and_the_next_one_is_whole(rows, cut):
    """However much of the last row is missing, be it the end of its last number."""
    rows.append(["agents", 1, 10])
    rows.append(["agents", 2, 2048])
    whole = rows.path.read_bytes()
    rows.path.write_bytes(whole[:-cut])
    left = whole[:-cut].count(b"\n") - 1
    assert len(rows.read()) == len(read_rows(rows.path)) == max(left, 0)
    if left < 1:
        rows.append(["agents", 1, 10])
    rows.append(["agents", 2, 2048])
    assert rows.path.read_bytes() == whole


def test_a_header_cut_short_is_written_again(rows):
    rows.path.write_text("phase,upd")
    assert rows.read() == []
    rows.append(["agents", 1, 10])
    assert rows.read() == [FIRST]


def test_only_some_rows_are_kept(rows):
    rows.keep(lambda row: True)
    assert rows.path.read_text() == "phase,updates,steps\n"
    for i in range(4):
        rows.append(["agents", i, 10 * i])
    rows.keep(lambda row: int(row["updates"]) == 1)
    assert rows.read() == [FIRST]


ADD = """
import sys
from align_rudder.runs.rows import Rows
rows = Rows(sys.argv[1], ["phase", "updates", "steps"])
for i in range(100_000):
    rows.append(["x" * 50, i, i])
    print(i, flush=True)
"""


def test_a_killed_process_loses_no_row_that_it_had_added(rows):
    process = subprocess.Popen(
        [sys.executable, "-c", ADD, str(rows.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 200:
            process.send_signal(signal.SIGKILL)
            break
    said = [200, *(int(line) for line in process.stdout.read().split("\n")[:-1])]
    process.wait()
    found = rows.read()
    assert [int(row["updates"]) for row in found] == list(range(len(found)))
    assert said[-1] + 1 <= len(found) <= said[-1] + 2


@pytest.mark.parametrize("room", [0, 7])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_full_disk_takes_back_what_it_took(tmp_path, room, kind):
    rows = Rows(tmp_path / "a", ["n"]) if kind == "csv" else JsonRows(tmp_path / "a")
    row = [[123_456_789], {"n": 123_456_789}][kind == "json"]

    rows.append(row)
    before = rows.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
    try:
        with pytest.raises(ValueError, match=r"cannot write to .*safe; make room"):
            rows.append(row)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert rows.path.read_bytes() == before
    rows.append(row)
    assert len(rows.read()) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"other,x\n", "columns other, x; phase, updates are needed"),
        (b"phase,updates\nagents,1\nagents,one\n", "line 3 of .*damaged: updates is 'one', not a"),
        (b"phase,updates\nagents\n", "line 2 of .*damaged: it has 1 values for 2 columns"),
        (b"phase,updates\nagents,1,2\n", "line 2 of .*damaged: it has 3 values for 2 columns"),
        (b"phase,updates\nfoo,1\n", "is damaged .*not in tuple"),
        (b"phase,updates\nagents,nan\n", "is damaged .*nan"),
        (b"phase,updates\n\x88\x99,1\n", "is not a text file in UTF-8"),
        (b"phase,updates\n" + b"9" * 200_000 + b",1\n", "is damaged .*field larger"),
    ],
)
def test_a_damaged_file_is_named_and_stays_as_it_is(tmp_path, content, says):
    path = tmp_path / "updates.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)updates\.csv.*{says}|{says}"):
        Rows(path, ["phase", "updates"]).keep(
            lambda row: ("agents",).index(row["phase"]) <= int(row["updates"])
        )
    assert path.read_bytes() == content


def test_a_file_that_is_not_there_or_has_other_columns_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"updates\.csv is not there; put back a copy"):
        read_rows(tmp_path / "updates.csv")
    (tmp_path / "updates.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"updates\.csv is damaged: it has no column phase"):
        read_rows(tmp_path / "updates.csv", ["phase"])


def test_json_rows_come_back_and_a_torn_one_is_dropped(tmp_path):
    rows = JsonRows(tmp_path / "a.jsonl")
    assert rows.read() == []
    kept = [{"method": "bc", "curve": [[1, 0], [2, 1]]}, {"method": "ppo ±"}]
    for row in kept:
        rows.append(row)
    assert rows.read() == kept
    whole = rows.path.read_bytes()
    rows.path.write_bytes(whole[:-1])
    assert rows.read() == kept[:1]
    rows.append(kept[1])
    assert rows.path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{", "[]", "3", "[" * 100_000])
def test_a_damaged_json_row_is_named(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f'{{"a": 1}}\n{line}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*a\.jsonl is damaged"):
        JsonRows(tmp_path / "a.jsonl").read()
