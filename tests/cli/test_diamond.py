"""The commands on real Craftax: the expert's demonstrations, a short training, its evaluation."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.cli.main import main

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
from diamond_training import SMALL, at, setup, trained  # noqa: E402, F401

from align_rudder.cli import diamond as commands  # noqa: E402
from align_rudder.studies.diamond.methods import training_of  # noqa: E402
from align_rudder.tasks.diamond import demos as demos_module  # noqa: E402
from align_rudder.tasks.diamond.demos import load_demonstrations  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")


# Demonstrations


def test_demonstrations_by_command(tmp_path, monkeypatch, capsys):
    """They become a file for training, episodes for everything else, and a model."""
    task, committed, *_ = setup()
    failed = committed[0]._replace(solved=False)
    runs = [failed, *committed[::-1]]
    monkeypatch.setattr(demos_module, "play_expert", lambda *args: runs)
    monkeypatch.chdir(tmp_path)
    options = ["--episodes", "episodes.npz", "--model", "model.npz", "--json", "found.json"]
    assert main(["diamond", "demos", "--choose", "shortest", "--n", "4", *options]) == 0
    shown = capsys.readouterr().out
    assert "10 of 11 runs found a diamond (90.9%)" in shown
    lengths = sorted(len(demo.actions) for demo in committed)[:4]
    assert json.loads((tmp_path / "found.json").read_text())["lengths"] == lengths
    kept = load_demonstrations("demonstrations.npz", task)
    assert [len(demo.actions) for demo in kept] == lengths
    assert all(demo.solved for demo in kept)

    episodes = ar.load_episodes("episodes.npz")
    model = ar.AlignRudder.load("model.npz")
    env = ar.RedistributeReward(gym.make("AlignRudder/Diamond-v0"), model, observe_progress=False)
    items = [demo.episode(task) for demo in kept]
    other = ar.AlignRudder(ar.DeltaEvents(), strategies=1).fit(items)
    with pytest.raises(ValueError, match=r"fitted on observations without \['vector'\], .*keys"):
        ar.RedistributeReward(gym.make("AlignRudder/Diamond-v0"), other)
    for demo, episode in zip(kept, episodes, strict=True):
        assert episode.rewards.sum() == episode.rewards[-1] == 1
        np.testing.assert_array_equal(episode.actions, demo.actions)
        rr = model.redistribute(episode)
        assert rr.rewards.sum() + rr.correction == pytest.approx(1.0)
    obs, _ = env.unwrapped.reset(options={"state": at(kept[0], 30)})
    assert env.observation_space.contains(obs)
    for name, value in obs.items():
        np.testing.assert_allclose(value, episodes[0].observations[name][30], atol=1e-6)


def test_the_runs_of_the_first_worlds_by_command(tmp_path, monkeypatch, capsys):
    given, runs = [], setup().demos[::-1]
    monkeypatch.setattr(demos_module, "play_expert", lambda *args: given.append(args) or runs)
    monkeypatch.chdir(tmp_path)
    options = ["--noise", "0.1", "--max-steps", "700", "--n", "3"]
    assert main(["diamond", "demos", *options, "--json", "found.json"]) == 0
    (_, *rest), lengths = given[0], [len(demo.actions) for demo in runs[:3]]
    assert rest == [9, 0, 700, 700, False, 0.1]
    assert json.loads((tmp_path / "found.json").read_text())["lengths"] == lengths
    assert f"the 3 first, of {lengths} steps" in capsys.readouterr().out
    kept = load_demonstrations("demonstrations.npz", setup().task)
    assert [len(demo.actions) for demo in kept] == lengths
    assert main(["diamond", "demos", "--n", "3", "--choose", "shortest"]) == 0
    assert given[1][1:] == (512, 0, 2500, 200, False, 0.0)


def test_too_few_demonstrations_are_kept_all_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demos_module, "play_expert", lambda *args: setup().demos[:3])
    monkeypatch.chdir(tmp_path)
    assert main(["diamond", "demos"]) == 2
    assert "3 of them short enough to be kept (in demonstrations.npz)" in capsys.readouterr().err
    assert len(load_demonstrations("demonstrations.npz", setup().task)) == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["demos", "--n", "1"], "--n is 1"),
        (["demos", "--noise", "1"], "--noise is 1.0; a number at least 0 and below 1"),
        (["train", "--steps", "1e30"], "a whole number from 1 to 1e12"),
        (["train", "--set", "beside"], "--set beside: NAME=VALUE is needed, with one of backplay"),
        (["train", "--set", "seed=1"], "--set seed=1: NAME=VALUE is needed"),
        (["train", "--set", "beside=true"], "--set beside is True; a finite number"),
        (["train", "--set", "beside=x"], "--set beside=x: a number, true, false or a list"),
        (["train", "--set", "revisit=2", "revisit=3"], "--set revisit=3: revisit is given twice"),
        (["train", "--gamma", "0.9", "--set", "gamma=0.8"], "--set gamma=0.8: gamma is given twic"),
        (["train", "--set", "revisit=-1"], "revisit is -1; a whole number of at least 0"),
        (["train", "--set", "goals=none"], "goals is 'none'; one of 'alignment'"),
        (["train", "--process", "3"], "process 3 of 1 needs the address of the first"),
        (["evaluate", "done", "--markdown", "done/evaluation.json"], "would be overwritten"),
        (["evaluate", "done", "--figures", "done/training.json/x"], "training.json is a file"),
        (["evaluate", "done", "--video", "x.gif"], "done has no agents to record"),
        (["evaluate", "done", "--seed", "2"], "nor counts of 10,000 worlds of seed 2"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(given, says, tmp_path, monkeypatch, capsys):
    published = Path(__file__).parents[2] / "results" / "diamond" / "8m" / "align-rudder-0"
    shutil.copytree(published, tmp_path / "done")
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert main(["diamond", *given]) == 2
    assert says in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_fields_of_a_training_are_set_by_name(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(commands, "train_method", lambda training, *rest: seen.append(training))
    fields = ["beside=0.3", "goals=checklist", "revisit=50", "hidden=[64,64]", "gamma=1"]
    options = ["--out", str(tmp_path / "run"), "--evaluations", "3", "--set", *fields]
    assert main(["diamond", "train", *options, "symmetric=False"]) == 0
    (training,) = seen
    plain = training_of("align-rudder", evaluations=3)
    ppo = replace(plain.ppo, revisit=50, gamma=1.0)
    told = {"beside": 0.3, "goals": "checklist", "hidden": (64, 64), "symmetric": False}
    assert training == replace(plain, ppo=ppo, **told)


# Training and evaluation


@pytest.fixture
def run(trained, tmp_path, monkeypatch):  # noqa: F811
    """A copy of the shared training, in the current folder."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


@pytest.mark.slow
def test_a_training_leaves_agents_and_is_not_made_twice(run, capsys):
    for name in ("cloned.npz", "agent.npz", "manager.npz", "training.json"):
        assert (run / name).is_file()
    before = (run / "updates.csv").read_text()
    assert before.count("agents,") >= 2
    train = ["diamond", "train", *SMALL, "--demos", "demos.npz", "-o", "run"]
    assert main(train) == 0
    assert (run / "updates.csv").read_text() == before
    assert main([*train, "--seed", "1"]) == 2
    assert "another configuration" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_trained_is_counted_once_and_drawn(run, tmp_path, monkeypatch, capsys):
    counts = ["--worlds", "4", "--max-steps", "60", "--demos", "demos.npz"]
    evaluate = ["diamond", "evaluate", "run", *counts]
    assert main([*evaluate, "--json", "found.json", "--figures", "figures"]) == 0
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert {"cloned", "agent", "manager"} == found["stages"].keys()
    for stage in found["stages"].values():
        assert stage["worlds"] == sum(stage["deepest"].values()) == 4
        assert 0 < stage["episode_steps"] <= 240
        assert sum(stage["endings"].values()) <= 4
    assert found["demonstrations"]["solved"] == found["demonstrations"]["worlds"] == 4
    shown = capsys.readouterr().out
    assert "Behavioural cloning alone" in shown
    assert "4 new worlds, at most 60 steps in each" in shown
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    every = {"curves.png", "alignment.png", "endings.png", "run-subgoals.png", "run-agents.png"}
    assert drawn == every
    assert "How episodes ended" in shown

    def played_again(*args):
        raise AssertionError("what was counted is counted again")

    monkeypatch.setattr("align_rudder.studies.diamond.results.count_worlds", played_again)
    assert main([*evaluate, "--json", "again.json"]) == 0
    assert json.loads((tmp_path / "again.json").read_text()) == [found]


def test_a_gpu_that_is_not_there_is_said(tmp_path, capsys):
    if any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("there is a GPU")
    assert main(["diamond", "train", "--device", "gpu", "-o", str(tmp_path / "run")]) == 2
    assert "GPU" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
