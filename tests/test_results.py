"""What README and docs say is what the files under results/ say."""

import csv
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_of_results_holds_the_tables_of_the_results():
    page = runpy.run_path(str(ROOT / "tools" / "results_page.py"))
    assert page["page"]() == (ROOT / "docs" / "reproduction.md").read_text()


@pytest.mark.parametrize("study", ["four-rooms", "eight-rooms"])
def test_the_main_tables_follow_from_their_trials(study):
    with open(ROOT / "results" / study / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    for cell in json.loads((ROOT / "results" / study / "summary.json").read_text()):
        mine = [
            r for r in rows if r["method"] == cell["method"] and int(r["demos"]) == cell["demos"]
        ]
        assert sorted(int(r["seed"]) for r in mine) == list(range(100))
        assert cell["mean"] == np.mean([int(r["episodes"]) for r in mine])
        assert cell["capped"] == sum(r["solved"] == "0" for r in mine)


def test_the_readme_shows_the_means():
    text = (ROOT / "README.md").read_text()
    means = {
        (study, cell["demos"]): cell["mean"]
        for study in ("four-rooms", "eight-rooms")
        for cell in json.loads((ROOT / "results" / study / "summary.json").read_text())
        if cell["method"] == "align-rudder"
    }
    shown = [
        f"**{means[study, n]:,.0f}**" for study in ("four-rooms", "eight-rooms") for n in (2, 5, 10)
    ]
    assert f"| **Align-RUDDER** | {' | '.join(shown)} |" in text
