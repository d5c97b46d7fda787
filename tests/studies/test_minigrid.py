"""The study on MiniGrid: what is run, kept and shown."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from align_rudder.runs.rows import JsonRows
from align_rudder.runs.workers import Workers
from align_rudder.studies import minigrid

ROOT = Path(__file__).parents[2]


@dataclass
class Options:
    """Options of a trial that is quickly done."""

    clone: bool = False
    redistribute: bool = False
    progress: bool = False
    n_steps: int = 0
    learning_rate: float = 0.0
    ent_coef: float = 0.0
    steps: int = 240_000
    seed: int = 0
    out: str = "ignored"


def trial(method, options):
    """Succeed more often with clones, and with the second setting of the grid."""
    won = 40 + 20 * options.clone + 10 * (options.n_steps == 128) + options.seed
    return {
        "method": method,
        "seed": options.seed,
        "curve": [[100, won]] * 23,
        "final": won / 100,
        "seconds": 1,
        "settings": minigrid.settings_in(options),
    }


def test_the_best_settings_are_taken_and_finished_trials_are_not_run_again(tmp_path, capsys):
    tuned, kept = tmp_path / "out" / "tune.jsonl", tmp_path / "out" / "trials.jsonl"
    methods, workers = ["bc", "ppo"], Workers(1)
    with pytest.raises(ValueError, match="bc is not tuned yet; run with --tune first"):
        list(minigrid.trials(Options(), methods, 1, []))
    minigrid.run_trials(tuned, minigrid.trials(Options(), methods, 0, ()), trial, workers)
    found = JsonRows(tuned).read()
    assert len(found) == 8
    assert minigrid.best_settings(found, "bc")["n_steps"] == 128
    for seeds, new in ((2, 4), (3, 2)):
        wanted = minigrid.trials(Options(), methods, seeds, found)
        minigrid.run_trials(kept, wanted, trial, workers)
        assert f"{new} trials to run" in capsys.readouterr().out
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-20])  # killed while it wrote the last
    minigrid.run_trials(kept, minigrid.trials(Options(), methods, 3, found), trial, workers)
    assert kept.read_bytes() == whole
    rows = JsonRows(kept).read()
    assert [(row["seed"], row["method"]) for row in rows] == [
        (seed, method) for seed in range(3) for method in methods
    ]
    table = minigrid.success_table(rows)
    assert table.rows[0] == ["cloned", *["71 ± 1"] * 5, "70, 71, 72"]
    (ax,) = minigrid.success_figure(rows).axes
    assert [line.get_label() for line in ax.lines] == ["cloned", "PPO"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.71)


def test_the_committed_trials_are_all_there_and_chosen_by_the_committed_grid():
    tuned, rows = (
        JsonRows(ROOT / "results" / "minigrid" / name).read()
        for name in ("tune.jsonl", "trials.jsonl")
    )
    for method in minigrid.METHODS:
        mine = [row for row in rows if row["method"] == method]
        assert sorted(row["seed"] for row in mine) == list(range(5))
        best = minigrid.best_settings(tuned, method)
        assert all({key: row["settings"][key] for key in best} == best for row in mine)


def test_the_pages_hold_the_table_of_the_raw_results(tmp_path):
    rows = JsonRows(ROOT / "results" / "minigrid" / "trials.jsonl").read()
    page = (ROOT / "docs" / "own-environment.md").read_text("utf-8")
    (tmp_path / "page.md").write_text(page, "utf-8")
    minigrid.put_table(rows, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text("utf-8") == page


@pytest.mark.slow
def test_trials_of_the_example_are_the_same_in_any_process(tmp_path):
    """The tool's own trial, made short; in a process that has run another one before it, too."""
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("minigrid")
    import importlib.util
    import sys

    spec = importlib.util.spec_from_file_location(
        "minigrid_study", ROOT / "tools/minigrid_study.py"
    )
    assert spec is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    assert spec.loader is not None
    spec.loader.exec_module(tool)
    base = tool.example.Args(steps=6_000, worlds=4, envs=4, value_first=1_000, epochs=5)
    tuned = JsonRows(ROOT / "results" / "minigrid" / "tune.jsonl").read()
    jobs = list(minigrid.trials(base, ["bc+redistributed"], 2, tuned))
    again = [tool.trial(*job) for job in (jobs[1], jobs[0], jobs[1])]
    for row in again:
        row.pop("seconds")
    assert again[0] == again[2] != again[1]
    assert again[0]["subgoals"]
    json.dumps(again)
