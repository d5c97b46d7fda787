"""The page of a log: safe, whole, and what its top says."""

import json
import re

import pytest
from show.logs.pages import HOSTILE, LONG, MADE, data_of
from show.parsed import Parsed

from align_rudder.show.logs import page, page_data, write_page
from align_rudder.show.logs.letters import initials


@pytest.mark.parametrize("name", MADE)
def test_the_page_holds_the_data_unchanged(name, tmp_path):
    data = data_of(name)
    write_page(tmp_path / "p.html", data)
    parsed = Parsed((tmp_path / "p.html").read_text("utf-8"))
    shown = json.loads(parsed.scripts["data"], parse_constant=pytest.fail)  # no NaN
    assert shown["log"] == data
    assert [event["name"] for event in shown["events"]] == data["symbols"]
    counts = sum(len(run["events"]) * run["count"] for run in data["runs"])
    assert sum(event["count"] for event in shown["events"]) == counts


def test_no_text_and_no_title_can_leave_its_place():
    text = page(page_data(data_of("hostile"), title=HOSTILE))
    plain = page(page_data(data_of("planted")))
    parsed = Parsed(text)
    assert [tag for tag, _ in parsed.tags] == [tag for tag, _ in Parsed(plain).tags]
    assert parsed.title == HOSTILE
    assert "<img" not in text
    assert text.count("<!--") == 0
    assert LONG in text


def test_page_refers_to_nothing_outside():
    text = page(page_data(data_of("grouped")))
    assert set(re.findall(r"https?://[^\"'\s<)]+", text)) == {"http://www.w3.org/2000/svg"}
    for tag, attributes in Parsed(text).tags:
        assert "src" not in attributes
        assert tag != "link"
        assert attributes.get("href", "#").startswith("#")
    assert "innerHTML" not in text


@pytest.mark.parametrize(
    ("name", "state", "says"),
    [
        ("planted", "good", "40 of 40 failures"),
        ("grouped", "good", "leave out"),
        ("no failures", "fair", "No run failed: there is nothing to explain"),
        ("no successes", "bad", "No run succeeded"),
        ("one run", "fair", "No run failed"),
        ("no runs", "bad", "There is no run to look at"),
        ("no outcome", "fair", "No run has an outcome"),
        ("nothing in common", "fair", "No failure leaves the road"),
    ],
)
def test_the_finding_in_a_sentence(name, state, says):
    finding = page_data(data_of(name))["finding"]
    assert finding["state"] == state
    assert says in finding["headline"]


def test_what_is_done_instead_has_a_sentence_of_its_own():
    data = data_of("planted")
    finding = page_data(data)["finding"]
    step = data["symbols"][data["divergences"][0]["symbol"]]
    assert finding["headline"].endswith(f"leave out {step}")
    joined = f"{finding['headline']}: {finding['more']}"
    assert joined.startswith(data["divergences"][0]["says"] + ". ")


def test_what_may_be_chance_is_no_headline():
    data = dict(data_of("planted"))
    data["divergences"] = [{**data["divergences"][0], "q": 0.2, "telling": False}]
    finding = page_data(data)["finding"]
    assert finding["state"] == "fair"
    assert finding["headline"] == "Nothing tells beyond chance why runs fail"
    assert data["divergences"][0]["says"] in finding["more"]


def test_letters_are_initials_each_once():
    names = ["verify_identity", "lookup_order", "validate", "verify order", "", "→", "v", "vE"]
    found = initials([*names, *(f"v{i}" for i in range(40))], range(100, 52, -1))
    assert len(set(found)) == 48
    assert found[:4] == ["V", "L", "VA", "VO"]
    assert all(len(letters) <= 2 for letters in found[:8])
    assert "?" not in found


def test_the_headline_is_of_tasks_with_both_outcomes():
    finding = page_data(data_of("tasks"))["finding"]
    assert finding["headline"].startswith("Within tasks, 30 of 30 failures (0 of 30 successes)")
    assert finding["headline"].endswith("do book where send is due")
    assert "6 failures are of 1 task without any success" in finding["warnings"][0]["what"]


def test_what_was_left_out_is_told():
    data = data_of("grouped")
    finding = page_data(data)["finding"]
    whats = " ".join(warning["what"] for warning in finding["warnings"])
    assert whats.count("broken.json") + len(finding["left_out"]) == 5
    assert "1 of 62 runs have no event" in whats
    assert "1 of 62 runs have no outcome" in whats


def test_what_was_assumed_and_what_else_could_tell_are_told():
    hints = ["nothing tells with --events tool; --events tool:x adds arguments", "all are alone"]
    data = {**data_of("grouped"), "notes": ["by its name"], "hints": hints}
    finding = page_data(data)["finding"]
    assert finding["notes"] == ["by its name"]
    told = [(one["what"], one["do"]) for one in finding["warnings"]]
    assert ("Nothing tells with --events tool.", "--events tool:x adds arguments.") in told
    assert ("All are alone.", "") in told


def test_data_of_another_form_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="data of version 9 is not known"):
        write_page(tmp_path / "p.html", {**data_of("planted"), "version": 9})
    with pytest.raises(ValueError, match="data of version None is not known"):
        write_page(tmp_path / "p.html", {})
    nan = {**data_of("planted"), "faults": [float("nan")]}
    with pytest.raises(ValueError, match="JSON compliant"):
        write_page(tmp_path / "p.html", nan)
    assert list(tmp_path.iterdir()) == []
