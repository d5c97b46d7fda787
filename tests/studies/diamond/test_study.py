"""The trainings of the diamond study: what is published is not trained again."""

import json
from pathlib import Path

import pytest

pytest.importorskip("jax")
from align_rudder.runs.rows import read_rows
from align_rudder.studies.diamond import study

RESULTS = Path(__file__).parents[3] / "results" / "diamond"


def test_what_is_published_is_not_trained_again(tmp_path):
    assert study.study_chains(RESULTS, 8e6, ["align-rudder", "ppo-dense"], (0, 1), 10_000) == []
    (train, judge), (other, last) = study.study_chains(
        tmp_path, 8e6, ["align-rudder", "ppo-dense"], (3,), 500
    )
    folder = str(tmp_path / "8m" / "align-rudder-3")
    assert train == [
        *("diamond", "train", "align-rudder", "--steps", "8000000"),
        *("--seed", "3", "--out", folder),
    ]
    assert judge == ["diamond", "evaluate", folder, "--worlds", "500"]
    assert "ppo-dense" in other
    assert last[-1] == "--last"
    assert len(study.study_chains(tmp_path, 8e6, ["separate"], (3,), 0)[0]) == 1


def test_counts_of_other_worlds_or_beside_agents_are_made_again(tmp_path):
    folder = tmp_path / "8m" / "separate-0"
    folder.mkdir(parents=True)
    path = folder / "evaluation.json"

    def missing(worlds):
        return len(study.study_chains(tmp_path, 8e6, ["separate"], (0,), worlds))

    path.write_text(json.dumps({"worlds": 500}))
    assert (missing(500), missing(0), missing(600)) == (0, 0, 1)
    (folder / "agent.npz").write_bytes(b"x")
    assert missing(500) == 1
    (folder / "agent.npz").unlink()
    path.write_text("[")
    with pytest.raises(ValueError, match=r"evaluation\.json is damaged"):
        missing(500)


def test_the_grid_is_read_from_the_last_evaluations(tmp_path):
    chains = study.tuning_chains(tmp_path, 8e6)
    folders = [Path(command[command.index("--out") + 1]) for (command,) in chains]
    committed = read_rows(RESULTS / "tune.csv", text=("method",))
    assert len(set(folders)) == len(chains) == len(committed)
    for folder, row in zip(folders, committed, strict=True):
        folder.mkdir()
        reached = round(float(row["subgoals_per_world"]) * int(row["worlds"]))
        (folder / "evaluations.csv").write_text(
            "phase,updates,steps,worlds,solved,episode_steps,reached_0,reached_1\n"
            "agents,0,10,512,0,5,0,0\n"
            f"agents,9,{row['steps']},{row['worlds']},{row['diamonds']},5,{reached - 7},7\n"
        )
    table = study.tuning_table(tmp_path, tmp_path / "new" / "tune.csv")
    assert (tmp_path / "new" / "tune.csv").read_bytes() == (RESULTS / "tune.csv").read_bytes()
    assert [row[0] for row in table.rows] == [row["method"] for row in committed]
