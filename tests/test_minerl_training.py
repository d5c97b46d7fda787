"""MineRL: from data and an environment to agents, and the commands."""

import json

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("av")
from align_rudder.hierarchy.external import Followed  # noqa: E402
from align_rudder.hierarchy.fine_tuning import FineTuning  # noqa: E402
from align_rudder.hierarchy.improvement import PPO  # noqa: E402
from align_rudder.minerl.cache import ArrayCache  # noqa: E402
from align_rudder.minerl.cloning import Cloning  # noqa: E402
from align_rudder.minerl.dataset import load_pool  # noqa: E402
from align_rudder.minerl.environment import MineRLEnv  # noqa: E402
from align_rudder.minerl.pipeline import fit_events, segments  # noqa: E402
from align_rudder.minerl.synthetic import write_dataset  # noqa: E402
from align_rudder.minerl.training import (  # noqa: E402
    MineRLTraining,
    evaluate,
    load_players,
    train,
)
from align_rudder.minerl.view import PictureView  # noqa: E402

SMALL = FineTuning(
    steps=16,
    burn_in=8,
    patience=6,
    evaluate_every=16,
    trials=1,
    ppo=PPO(n_envs=1, n_steps=8, epochs=1, minibatches=1, cloning=0.0),
)
TRAINING = MineRLTraining(cloning=Cloning(epochs=1, batch=8), tuning=SMALL, managing=SMALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write_dataset(root, 3, 3, diamonds=3, seed=0)
    pool = load_pool(root)
    model = fit_events(pool, 3)
    parts = [[tuple(s)[:3] for s in task.segments] for task in segments(pool, model)]
    goals = [str(goal.symbol) for goal in model.subgoals_]
    return root, model, parts, goals


def few(parts):
    """Return the segments of two sub-tasks with few steps, so that a test is quick."""
    return [[(t, max(stop - 8, start), stop) for t, start, stop in part[:2]] for part in parts[:2]]


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Two sub-tasks through all stages; the second cannot be reached with so little training."""
    _, model, parts, goals = data
    folder, cache = tmp_path_factory.mktemp("run"), ArrayCache(tmp_path_factory.mktemp("cache"))
    options = {"distance": 1, "spread": 90, "hits": 30}
    with MineRLEnv(module="scripted", module_options=options, frame_skip=4) as env:
        followed = Followed(env, model, PictureView())
        with pytest.warns(match="sub-agent 1 stays as it was cloned"):
            train(few(parts), goals[:2], folder, cache, TRAINING, [followed], progress=False)
        players, names = load_players(folder, "manager")
        found = evaluate(players, followed, 2, max_steps=10, progress=False)
    return folder, cache, names, found


def test_all_stages_leave_agents_and_curves(trained, data):
    folder, _, names, found = trained
    there = {path.name for path in folder.iterdir()}
    assert there >= {
        "training.json",
        "cloned-0.npz",
        "cloned-1.npz",
        "agent-0.npz",
        "agent-1.npz",
        "manager.npz",
        "cloning-0.csv",
        "tuning-0.csv",
        "tuning-manager.csv",
    }
    assert names == data[3][:2]
    assert found["episodes"] == 2
    assert found["solved"] == 0
    assert found["episode_steps"] <= 20
    curve = (folder / "tuning-0.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]


def test_cloning_moved_the_agents_and_ppo_the_first(trained):
    folder = trained[0]
    cloned, tuned = load_players(folder, "cloned")[0].agents, load_players(folder)[0].agents

    def same(a, b):
        pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
        return all(np.array_equal(x, y) for x, y in pairs)

    assert not same(cloned[0], cloned[1])
    assert not same(cloned[0].critic, tuned[0].critic) or same(cloned[0], tuned[0])
    assert same(cloned[1], tuned[1])


def test_a_finished_training_is_left_alone_and_a_missing_agent_is_made_again(trained, data):
    folder, cache, _, _ = trained
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    gone = (folder / "cloned-1.npz").read_bytes()
    (folder / "cloned-1.npz").unlink()
    train(few(data[2]), data[3][:2], folder, cache, TRAINING, [], progress=False)
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    assert {name for name in before if before[name] != after[name]} == {"cloned-1.npz"}
    with np.load(folder / "cloned-1.npz") as now:
        (folder / "old.npz").write_bytes(gone)
        with np.load(folder / "old.npz") as then:
            assert set(now.files) == set(then.files)
            for name in now.files:
                np.testing.assert_array_equal(now[name], then[name])
    (folder / "old.npz").unlink()


def test_another_configuration_is_refused(trained, data):
    folder, cache, _, _ = trained
    other = MineRLTraining(seed=1, cloning=TRAINING.cloning, tuning=SMALL, managing=SMALL)
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        train(few(data[2]), data[3][:2], folder, cache, other, [], progress=False)
    with pytest.raises(ValueError, match=r"no training\.json"):
        load_players(cache.folder)


def test_commands(data, tmp_path, capsys, monkeypatch):
    """With agents that were never trained: what is counted and shown is what matters here."""
    from align_rudder.cli import main
    from align_rudder.hierarchy.checkpoints import save_tree
    from align_rudder.minerl.networks import new_sub_agent

    monkeypatch.chdir(tmp_path)
    root, model, _, goals = data
    model.save(tmp_path / "model.npz")
    configuration = MineRLTraining().configuration(goals)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/training.json").write_text(json.dumps(configuration))
    for k in range(len(goals)):
        agent = new_sub_agent(jax.random.key(k))
        save_tree(tmp_path / f"run/agent-{k}.npz", agent, configuration)
    args = ["--environment.module", "scripted", "--episodes", "1", "--max-steps", "5"]
    assert main(["minerl", "evaluate", "run", "model.npz", *args, "--json", "found.json"]) == 0
    shown = capsys.readouterr().out
    assert "0 of 1 episodes found a diamond" in shown
    assert all(goal in shown for goal in goals)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["goals"] == goals
    assert found["episode_steps"] == 5
    assert main(["minerl", "evaluate", str(root), "model.npz"]) == 2
    assert "no training.json" in capsys.readouterr().err


def test_a_model_of_other_sub_goals_is_refused(trained, data, tmp_path, capsys):
    from align_rudder.cli import main

    data[1].save(tmp_path / "model.npz")
    assert main(["minerl", "evaluate", str(trained[0]), str(tmp_path / "model.npz")]) == 2
    assert "trained for 2 sub-goals" in capsys.readouterr().err
