"""Text and JSON are read with limits, and what is wrong is said with the file's name."""

import json
import os
import re

import pytest

from align_rudder.files import Whole, check_file, parse_json, read_json, read_text


def test_text_in_utf_8_is_read_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "é\n".encode())
    assert read_text(path) == "é\n"
    path.write_bytes("é".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.txt is not a text file in UTF-8: .* at byte 0"):
        read_text(path)


def test_a_line_not_written_to_its_end_can_be_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1\n2\n\xc3")
    assert read_text(path, whole_lines=True) == "1\n2\n"
    path.write_bytes(b"")
    assert read_text(path, whole_lines=True) == ""


def test_what_is_no_file_is_said_and_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", "pipe"):
        with pytest.raises(FileNotFoundError, match=f"there is no file .*{name}"):
            check_file(tmp_path / name)
    for folder in (".", str(tmp_path)):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(folder)} is a folder; a file is"):
            check_file(folder)
    with pytest.raises(ValueError, match=r"cannot read .*too long"):
        check_file(tmp_path / ("x" * 300))
    (tmp_path / "large").write_bytes(bytes(100))
    with pytest.raises(ValueError, match="large has 100 bytes; at most 10 are read"):
        check_file(tmp_path / "large", 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 1000 + "]" * 1000, "nested 1000 levels deep; at most 200"),
        ("[" * 10**6, "nested 1000000 levels"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested 500 levels"),
        ("NaN", "it holds NaN, which JSON does not know"),
        ("[-Infinity]", "it holds -Infinity"),
        ('{"a": 1, "a": 2}', "has the entry 'a' twice"),
        ('"\\ud800"', "it is no JSON text"),
        ("1" * 5000, "digits"),
        ("{", "Expecting"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_hostile_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.json is damaged .*{message}.*; write it again"):
        read_json(tmp_path / "a.json", remedy="write it again")


def test_json_comes_as_it_is(tmp_path):
    value = {"deep": [[["[[[[", {"}": '\\"'}]]], "n": [1, -2.5, None, True], "é": "\U0001f600"}
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False)) == value
    assert parse_json("[" * 200 + "]" * 200)
    assert parse_json("[Infinity]", constants=True) == [float("inf")]
    (tmp_path / "a.json").write_text("3")
    assert read_json(tmp_path / "a.json", Whole()) == 3
    with pytest.raises(ValueError, match=r"a\.json is damaged .*its content is 3; a whole number"):
        read_json(tmp_path / "a.json", Whole(4))
    with pytest.raises(FileNotFoundError, match=r"b\.json; put back a copy"):
        read_json(tmp_path / "b.json")
