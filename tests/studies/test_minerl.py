"""The study in MineRL's small world: its commands and its table."""

import pytest

pytest.importorskip("jax")
from align_rudder.studies import minerl


def test_what_is_there_is_not_made_again(tmp_path):
    def names():
        return [command[1] for command in minerl.data_chain(tmp_path)]

    assert names() == ["demos", "events"]
    (tmp_path / "data").mkdir()
    assert names() == ["events"]
    (tmp_path / "model.npz").write_bytes(b"x")
    assert names() == []


def test_the_papers_preset_leaves_the_papers_settings_as_they_are(tmp_path):
    from align_rudder.cli.minerl_agents import Train
    from align_rudder.minerl.training import MineRLTraining

    (command,) = minerl.training_chain(tmp_path, "paper", 3, 1)
    given = dict(zip(command[4::2], command[5::2]))
    named = {k: v for k, v in given.items() if k.startswith("--")}
    assert set(named) == {
        "--cache",
        "--manager-steps",
        "--seed",
        "--jobs",
        "--environments",
        "--environment.module",
        "--environment.world",
    }
    training, default = Train("data", "model")._training(), MineRLTraining()
    assert training == default
    assert (default.frames, default.cloning.epochs, default.cloning.batch) == (32, 300, 256)
    assert (default.tuning.burn_in, default.tuning.least_steps) == (50_000, 50_000)
    assert (default.tuning.steps, default.tuning.trials) == (500_000, 12)


def played(reached, solved, episodes=20):
    return {"episodes": episodes, "solved": solved, "reached": reached, "episode_steps": 9}


def test_the_table_has_means_ranges_and_what_pooled_worlds_say():
    runs = [
        {"played": {stage: played([2 * k + seed, k], k) for k, stage in enumerate(minerl.STAGES)}}
        for seed in range(3)
    ]
    table = minerl.results_table({"runs": runs, "training": {"goals": ["log+1", "diamond+1"]}})
    assert table.header[1:] == ["acting at random", "cloned", "fine-tuned", "with their manager"]
    assert table.rows[0] == [
        "log",
        "5% (0%–10%)",
        "15% (10%–20%)",
        "25% (20%–30%)",
        "35% (30%–40%)",
    ]
    assert table.rows[1][0] == "diamond"
    assert "of 60 in all" in table.text()
    assert "Diamonds: cloned 5.0% (1.7%–13.7%), fine-tuned 10.0% (4.7%–20.1%)" in table.text()


def test_rates_are_those_of_the_log_of_fine_tuning(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tuning-0.csv").write_text("steps,rate\n0,0.25\n512,0.75\n1024,0.5\n")
    (tmp_path / "run" / "tuning-1.csv").write_text("steps,rate\n")
    assert minerl.success_rates(tmp_path / "run", 0) == {
        "steps": 1024,
        "cloned": 0.25,
        "tuned": 0.75,
    }
    assert minerl.success_rates(tmp_path / "run", 1) == {"steps": 0}
