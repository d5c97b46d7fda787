"""The study in MineRL's small world: its commands, and the table of its committed results."""

import json
from pathlib import Path

import pytest

pytest.importorskip("jax")
from align_rudder.studies import minerl

RESULTS = Path(__file__).parents[2] / "results" / "minerl" / "scripted.json"


def test_what_is_there_is_not_made_again(tmp_path):
    def names():
        return [command[1] for command in minerl.training_chain(tmp_path)]

    assert names() == ["demos", "events", "train", "train"]
    (tmp_path / "data").mkdir()
    assert names() == ["events", "train", "train"]
    (tmp_path / "model.npz").write_bytes(b"x")
    assert names() == ["train", "train"]
    alone, played = minerl.training_chain(tmp_path)
    assert played[: len(alone)] == alone
    assert played[len(alone) :][:2] == ["--environments", "4"]


def test_the_table_shows_the_committed_counts():
    found = json.loads(RESULTS.read_text())
    table = minerl.results_table(found)
    assert table.header[1:5] == list(found["played"])
    assert len(table.rows) == len(found["training"]["goals"]) + 1
    for k, row in enumerate(table.rows[:-1]):
        shares = [who["reached"][k] / who["episodes"] for who in found["played"].values()]
        assert row[1:5] == [f"{share:.0%}" for share in shares]
    assert "manager" in table.text()


def test_rates_are_those_of_the_log_of_fine_tuning(tmp_path):
    found = json.loads(RESULTS.read_text())
    assert found["subtasks"][0].keys() <= {"steps", "cloned", "tuned"}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tuning-0.csv").write_text("steps,rate\n0,0.25\n512,0.75\n1024,0.5\n")
    (tmp_path / "run" / "tuning-1.csv").write_text("steps,rate\n")
    assert minerl.success_rates(tmp_path / "run", 0) == {
        "steps": 1024,
        "cloned": 0.25,
        "tuned": 0.75,
    }
    assert minerl.success_rates(tmp_path / "run", 1) == {"steps": 0}
