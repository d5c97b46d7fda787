"""`align-rudder minerl`: from recording to agents by commands alone."""

import json

import pytest

pytest.importorskip("jax")
pytest.importorskip("av")
import jax
from small_networks import Linear, small_networks

from align_rudder.cli.main import main
from align_rudder.events.names import goal_names
from align_rudder.minerl.autoencoder import AutoEncoder
from align_rudder.minerl.playing import load_players
from align_rudder.minerl.testing.recording import record_dataset
from align_rudder.minerl.training import MineRLTraining
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import save_tree
from align_rudder.runs.lock import only_here

WORLD = ["hits=1", "distance=1", "spread=90"]


@pytest.fixture(autouse=True, scope="module")
def linear_agents(compiled_quickly):
    with small_networks():
        yield


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A folder with a recorded dataset and what `minerl events` made of it."""
    folder = tmp_path_factory.mktemp("found")
    record_dataset(folder / "data", 3, noise=0.0, world={"hits": 1, "distance": 1, "spread": 90})
    call = [str(folder / "data"), "-o", str(folder / "model.npz"), "--n", "3"]
    assert main(["minerl", "events", *call, "--subgoal-threshold", "43"]) == 0
    return folder


def test_demonstrations_are_recorded_for_one_world(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["minerl", "demos", "data", "--n", "1", "--noise", "0", "--world", *WORLD]) == 0
    assert "1 trajectories are in data" in capsys.readouterr().out
    assert main(["minerl", "demos", "data", "--n", "1", "--noise", "0.1", "--world", *WORLD]) == 2
    assert "noise is 0.0 there and 0.1 here" in capsys.readouterr().err
    assert main(["minerl", "demos", "other", "--world", "hits"]) == 2
    assert "write NAME=VALUE" in capsys.readouterr().err


def test_events_are_found_saved_and_shown(found, tmp_path, capsys):
    out = tmp_path / "model.npz"
    call = ["minerl", "events", str(found / "data"), "-o", str(out), "--n", "3", "--workers", "2"]
    train = ["--train-autoencoder", "--steps", "2", "--frame-size", "8", "--latent", "3"]
    assert main([*call, *train]) == 0
    assert "of that of the mean picture" in capsys.readouterr().out
    encoder = tmp_path / "model-autoencoder.npz"
    assert AutoEncoder.load(encoder).latent == 3
    extra = ["--json", str(tmp_path / "found.json"), "--figure", str(tmp_path / "drawn.png")]
    cache = ["--cache", str(tmp_path / "cache")]
    assert main([*call, "--autoencoder", str(encoder), *cache, *extra]) == 0
    shown = capsys.readouterr().out
    for needed in ("0 damaged", "3 shortest", "consensus", "diamond+1", "model-segments.npz"):
        assert needed in shown
    data = json.loads((tmp_path / "found.json").read_text())
    assert len(data["demonstrations"]) == 3
    assert data["subtasks"][-1]["event"] == "diamond+1"
    assert len(data["subtasks"][-1]["segments"]) == 3
    assert (tmp_path / "drawn.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["show", str(out)]) == 0
    assert "diamond+1" in capsys.readouterr().out


def test_events_that_cannot_be_found(found, tmp_path, capsys):
    call = ["minerl", "events", str(found / "data"), "-o", str(tmp_path / "model.npz")]
    for options, message in [
        (["--autoencoder", "x.npz", "--train-autoencoder"], "both given"),
        (["--cache", str(tmp_path / "cache")], "needs an auto-encoder"),
        (["--n", "10"], "3 of 3 trajectories mined a diamond"),
        (["--subgoal-share", "0"], "--subgoal-share is 0"),
    ]:
        assert main([*call, *options]) == 2
        assert message in capsys.readouterr().err
    assert main(["minerl", "events", str(tmp_path), *call[3:]]) == 2
    assert "there are no trajectories" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_dataset_is_checked(found, tmp_path, capsys):
    kept = tmp_path / "damaged.json"
    assert main(["minerl", "check", str(found / "data"), "--json", str(kept)]) == 0
    assert "3 trajectories" in capsys.readouterr().out
    assert json.loads(kept.read_text()) == {"trajectories": 3, "damaged": []}


def test_agents_are_trained_from_saved_segments_as_from_the_data(
    found, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    data, model = str(found / "data"), str(found / "model.npz")
    options = ["--frames", "2", "--epochs", "1", "--batch", "16", "-o", "run"]
    assert main(["minerl", "train", data, model, *options]) == 0
    assert "trained; agents and logs are in run" in capsys.readouterr().out
    assert main(["minerl", "train", data, model, *options]) == 0
    assert "nothing was trained" in capsys.readouterr().out
    # A model without segments beside it, as version 0.1 wrote them: the same segments are cut.
    (tmp_path / "model.npz").write_bytes((found / "model.npz").read_bytes())
    assert main(["minerl", "train", data, "model.npz", *options]) == 0
    shown = capsys.readouterr().out
    assert "3 trajectories" in shown
    assert "nothing was trained" in shown
    segments = ["--segments", str(found / "model-segments.npz")]
    assert main(["minerl", "train", data, "model.npz", *options, *segments]) == 0
    assert "nothing was trained" in capsys.readouterr().out
    with only_here("run"):
        assert main(["minerl", "train", "nowhere", model, *options]) == 2
    assert "another run is writing" in capsys.readouterr().err
    goals = [str(goal.symbol) for goal in AlignRudder.load(model).subgoals_]
    assert goals[-1] == "diamond+1"
    assert len(load_players("run", "cloned")[0].agents) == len(goals)


def test_segments_of_another_model_are_refused(found, tmp_path, capsys):
    call = [str(found / "data"), "-o", str(tmp_path / "model.npz"), "--n", "2"]
    assert main(["minerl", "events", *call]) == 0
    segments = ["--segments", str(tmp_path / "model-segments.npz")]
    model, out = str(found / "model.npz"), str(tmp_path / "run")
    assert main(["minerl", "train", str(found / "data"), model, *segments, "-o", out]) == 2
    assert "belongs to another model" in capsys.readouterr().err


def test_evaluate_counts_and_shows(found, tmp_path, capsys, monkeypatch):
    """With agents that were never trained: what is counted and shown is what matters here."""
    monkeypatch.chdir(tmp_path)
    model = str(found / "model.npz")
    goals = [str(goal.symbol) for goal in AlignRudder.load(model).subgoals_]
    configuration = {**MineRLTraining(frames=3).configuration([]), "goals": goals}
    (tmp_path / "run").mkdir()
    (tmp_path / "run/training.json").write_text(json.dumps(configuration))
    for k in range(len(goals)):
        for kind in ("agent", "cloned"):
            path = tmp_path / f"run/{kind}-{k}.npz"
            save_tree(path, Linear(jax.random.key(k)), configuration)
    args = ["--environment.module", "scripted", "--episodes", "1", "--max-steps", "5"]
    assert main(["minerl", "evaluate", "run", model, *args, "--json", "found.json"]) == 0
    shown = capsys.readouterr().out
    assert "1 new worlds" in shown
    assert "solved" in shown
    assert all(name in shown for name in goal_names(goals))
    counts = json.loads((tmp_path / "found.json").read_text())
    assert counts["goals"] == goals
    assert counts["stages"]["agent"]["episode_steps"] == 5
    assert counts["stages"].keys() == {"cloned", "agent"}
    args += ["--stage", "random", "--environments", "2", "--figures", "figures"]
    assert main(["minerl", "evaluate", "run", model, *args]) == 0
    assert "acting at random" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "subgoals.png",
        "agents.png",
    }
    for options, message in [
        (["nowhere", model], "no training.json"),
        (["run", model, "--environment.world", "hits"], "write NAME=VALUE"),
        (["run", model, *args, "--autoencoder", "a.npz"], "fitted without features of pictures"),
        (["run", model, *args[:-1], "run/training.json/x"], "--figures run/training.json/x: there"),
    ]:
        assert main(["minerl", "evaluate", *options]) == 2
        assert message in capsys.readouterr().err
    (path,) = (tmp_path / "run").glob("evaluation-random-*.jsonl")
    path.write_text('{"solved": "no"}\n')
    assert main(["minerl", "evaluate", "run", model, *args]) == 2
    assert f"{path.name}" in (error := capsys.readouterr().err)
    assert "line 1" in error
    assert "put back a copy" in error


def test_too_few_steps_are_told_before_the_data_is_read(found, capsys):
    options = ["--environments", "2", "--rollout", "64", "--steps", "127"]
    assert main(["minerl", "train", "nowhere", str(found / "model.npz"), *options]) == 2
    assert "127 steps of PPO are fewer than one batch" in (error := capsys.readouterr().err)
    assert "give at least 128" in error


def test_without_minecraft_the_commands_say_how_to_install_it(found, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALIGN_RUDDER_MINERL_PYTHON", raising=False)
    (tmp_path / "model.npz").write_bytes((found / "model.npz").read_bytes())
    # Before anything is read or computed: the folder of the data is not even there.
    assert main(["minerl", "train", "nowhere", "model.npz", "--environments", "1"]) == 2
    shown = capsys.readouterr().err
    assert 'pip install "gym==0.19.0" "minerl==0.3.7"' in shown
    assert "ALIGN_RUDDER_MINERL_PYTHON" in shown
    assert not (tmp_path / "runs").exists()
    assert main(["minerl", "train", "nowhere", "model.npz"]) == 2
    assert "nowhere does not exist; give the folder of the MineRL" in capsys.readouterr().err
