"""`align-rudder report`: it writes the page of `write_report`, and tells mistakes in one line."""

import json
import re

import pytest

import align_rudder as ar
from align_rudder.cli.main import main
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.show.report import report_data


@pytest.fixture(scope="module")
def crafting():
    return ar.AlignRudder().fit(crafting_demonstrations(6))


def data_of(path):
    text = path.read_text("utf-8")
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text)
    return json.loads(data)


def test_the_page_holds_what_was_asked_for(tmp_path, capsys, monkeypatch, crafting):
    monkeypatch.chdir(tmp_path)
    crafting.save("m.npz")
    episodes = [crafting_episode(500), crafting_episode(500, success=False)]
    ar.save_episodes("new.npz", episodes)
    assert main(["report", "m.npz"]) == 0
    assert "report.html" in capsys.readouterr().out
    given = ["--title", "Crafting", "--max-episodes", "1"]
    assert main(["report", "m.npz", "new.npz", "-o", "two.html", *given]) == 0
    wanted = report_data(crafting, episodes, title="Crafting", max_episodes=1)
    assert data_of(tmp_path / "two.html") == json.loads(json.dumps(wanted))


def test_episodes_may_be_symbols_and_environments_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs.jsonl").write_text('["a", "b"]\n{"events": ["a"], "return": 0.5}\n')
    ar.AlignRudder().fit_events(["ab", "ab"]).save("s.npz")
    assert main(["report", "s.npz", "logs.jsonl", "-o", "s.html"]) == 0
    assert [e["ret"] for e in data_of(tmp_path / "s.html")["episodes"]] == [1, 0.5]
    walks = [ar.Episode([0, 4, 8, 9, 13, 14, 15], [1, 1, 2, 1, 2, 2], [0, 0, 0, 0, 0, 1])] * 2
    ar.AlignRudder(ar.StateEvents()).fit(walks).save("lake.npz")
    ar.save_episodes("walks.npz", walks)
    assert main(["report", "lake.npz", "walks.npz", "-o", "l.html", "--env", "FrozenLake-v1"]) == 0
    assert data_of(tmp_path / "l.html")["map"]["shape"] == [4, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "none.npz"),
        (["m.npz", "none.jsonl"], "there is no file"),
        (["m.npz", "-o", "missing/r.html"], "missing does not exist; create it"),
        (["m.npz", "--max-episodes", "-1"], "at least 0"),
        (["m.npz", "--env", "Nowhere-v0"], "no environment Nowhere-v0"),
        (["m.npz", "logs.jsonl"], r"redistribute\(episode\)"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, monkeypatch, capsys, crafting, arguments, message):
    monkeypatch.chdir(tmp_path)
    crafting.save("m.npz")
    (tmp_path / "logs.jsonl").write_text('["a", "b"]\n')
    before = sorted(p.name for p in tmp_path.iterdir())
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.strip().splitlines()) == 1
    assert re.search(message, error)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_the_terminal_says_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ar.AlignRudder().fit_events(["abc", "abc", "abc"]).save("m.npz")
    (tmp_path / "logs.jsonl").write_text('["x", "y"]\n')
    assert main(["report", "m.npz", "logs.jsonl"]) == 0
    assert "Episode 0: no event that the model knows" in capsys.readouterr().err
