"""The trainings of the diamond study: what is published is not trained again."""

import json
from pathlib import Path

import pytest

pytest.importorskip("jax")
from align_rudder.studies.diamond import study

RESULTS = Path(__file__).parents[3] / "results" / "diamond"


def test_what_is_published_is_not_trained_again(tmp_path):
    assert study.study_chains(RESULTS, 8e6, ["align-rudder"], (0, 1, 2), 10_000) == []
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
