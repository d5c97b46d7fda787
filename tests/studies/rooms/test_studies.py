"""A study reports what its trials say."""

import csv
import json

import numpy as np

from align_rudder.baselines import Protocol
from align_rudder.runs.workers import Workers
from align_rudder.studies.rooms.methods import chosen_parameters
from align_rudder.studies.rooms.studies import run_study
from align_rudder.studies.trials import Scope


def test_a_study_reports_what_its_trials_say(tmp_path):
    report = run_study(
        "four-rooms",
        chosen_parameters(),
        tmp_path,
        Scope(3, ["align-rudder", "control"], [2], Workers(1), progress=False),
        Protocol(max_episodes=800),
    )
    with open(tmp_path / "four-rooms" / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    for cell in report.data:
        mine = [int(r["episodes"]) for r in rows if r["method"] == cell["method"]]
        assert cell["mean"] == np.mean(mine)
        assert cell["capped"] == sum(n == 800 for n in mine)
    assert report.data == json.loads((tmp_path / "four-rooms" / "summary.json").read_text())
    for name in ("episodes", "curves"):
        assert (tmp_path / "four-rooms" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
