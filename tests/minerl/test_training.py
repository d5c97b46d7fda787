"""MineRL: from segments and an environment to agents; stopping, going on, playing."""

import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("av")
import jax
from small_networks import Linear, first_subtasks, opened, small_networks

from align_rudder import AlignRudderWarning
from align_rudder.hierarchy import practice
from align_rudder.hierarchy.external import TrackedEnv
from align_rudder.hierarchy.fine_tuning import FineTuning
from align_rudder.hierarchy.ppo import PPO
from align_rudder.minerl import sub_agents
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.playing import evaluate, load_players
from align_rudder.minerl.samples import Samples
from align_rudder.minerl.training import MineRLTraining, train
from align_rudder.minerl.view import PictureView
from align_rudder.runs.lock import only_here

SMALL = FineTuning(
    steps=16,
    burn_in=8,
    patience=6,
    evaluate_every=16,
    trials=1,
    ppo=PPO(n_envs=1, n_steps=8, n_epochs=1, n_minibatches=1, bc_coef=0.0),
)
TRAINING = MineRLTraining(
    frames=2, cloning=Cloning(epochs=3, batch=8, evaluate_every=1), tuning=SMALL, managing=SMALL
)
WORLD = {"distance": 1, "spread": 90, "hits": 30}


pytestmark = pytest.mark.filterwarnings("ignore:agent-1.npz is the best so far")


@pytest.fixture(autouse=True, scope="module")
def linear_agents(compiled_quickly):
    with small_networks():
        yield


@pytest.fixture(scope="module")
def model(filmed):
    return fit_events(filmed, 5)


@pytest.fixture(scope="module")
def subtasks(filmed, model):
    return first_subtasks(filmed, model, 2)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return ArrayCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def game(model):
    with MineRLEnv(module="scripted", module_options=WORLD, frame_skip=4) as env:
        yield TrackedEnv(env, model, PictureView(2))


@pytest.fixture(scope="module")
def trained(subtasks, cache, game, tmp_path_factory):
    """Two sub-tasks through all stages; the second cannot be reached with so little training."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.warns(match="agent-1.npz is not finished after 0 of 16 steps"):
        assert train(subtasks, folder, cache, TRAINING, opened(game)).made == 4
    return folder


@pytest.fixture(scope="module")
def cloned(subtasks, cache, tmp_path_factory):
    """The same without an environment: clones alone, judged by held-out loss."""
    folder = tmp_path_factory.mktemp("cloned")
    assert train(subtasks, folder, cache, TRAINING).made == 2
    return folder


@pytest.fixture
def copy(trained, tmp_path):
    """A copy of the folder that may be harmed."""
    return shutil.copytree(trained, tmp_path / "copy")


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def same(path, other):
    a, b = arrays(path), arrays(other)
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


# Stages


def test_all_stages_leave_agents_and_curves(trained, subtasks, game):
    assert {path.name for path in trained.iterdir()} == {
        ".lock",
        "training.json",
        *(f"{kind}-{k}.npz" for kind in ("cloned", "agent") for k in range(2)),
        *(f"{kind}-{k}.csv" for kind in ("cloning", "tuning") for k in range(2)),
        "manager.npz",
        "tuning-manager.csv",
        "unfinished-agent-1.npz",
    }
    curve = (trained / "tuning-0.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]
    players, configuration = load_players(trained, "manager")
    assert configuration["goals"] == [str(task.goal.symbol) for task in subtasks]
    assert (configuration["skip"], configuration["frames"]) == (4, 2)
    found = evaluate(players, [game], 2, max_steps=10, progress=False)
    assert found["episodes"] == 2
    assert found["solved"] == 0
    assert found["episode_steps"] <= 20


def test_cloning_moved_the_policies_and_ppo_both(trained):
    cloned, tuned = (load_players(trained, s)[0].agents for s in ("cloned", "agent"))

    def equal(a, b):
        pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
        return all(np.array_equal(x, y) for x, y in pairs)

    fresh = [
        Linear(jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 0), k)) for k in (0, 1)
    ]
    for before, after in zip(fresh, cloned, strict=True):
        assert not equal(before.heads, after.heads)
        assert equal(before.value, after.value)
    assert not equal(cloned[0].value, tuned[0].value)
    assert not equal(cloned[0].heads, tuned[0].heads)
    assert equal(cloned[1], tuned[1])


def test_the_value_alone_is_learned_at_first(subtasks, cache, game, tmp_path):
    """All steps are burn-in: PPO leaves the policy as it was cloned."""
    settings = replace(TRAINING, tuning=replace(SMALL, burn_in=1000))
    with pytest.warns(AlignRudderWarning, match="agent-1.npz is not finished"):
        train(subtasks, tmp_path / "run", cache, settings, opened(game))
    cloned = load_players(tmp_path / "run", "cloned")[0].agents[0]
    tuned = load_players(tmp_path / "run")[0].agents[0]
    np.testing.assert_array_equal(cloned.heads.weight, tuned.heads.weight)
    assert not np.array_equal(cloned.value.weight, tuned.value.weight)


def test_a_sub_agent_that_was_not_reached_is_taken_up_again(
    copy, subtasks, cache, game, monkeypatch
):
    """The clone plays for it until then, and says so; its manager learns on with the new one."""
    with pytest.warns(match=r"agent-1\.npz is the best so far .* no episode came to sub-task 2"):
        load_players(copy)
    manager = arrays(copy / "manager.npz")
    with pytest.warns(match="agent-1.npz is not finished"):
        assert train(subtasks, copy, cache, TRAINING, opened(game)).made == 0
    assert all(
        np.array_equal(arrays(copy / "manager.npz")[name], manager[name]) for name in manager
    )

    def begin(env, subtask, replays, *args):  # now there is a way
        env.begin(0)
        env.idle = 0
        return 0

    monkeypatch.setattr(practice, "begin_at", begin)
    assert train(subtasks, copy, cache, TRAINING, opened(game)).made == 2
    assert not (copy / "unfinished-agent-1.npz").exists()
    curve = (copy / "tuning-1.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]
    assert train(subtasks, copy, cache, TRAINING, opened(game)).made == 0
    assert not np.array_equal(arrays(copy / "manager.npz")["header"], manager["header"])


# Stopping, going on, what lies in the folder


def test_a_finished_training_is_left_alone_and_a_missing_agent_is_made_again(
    cloned, copy, subtasks, cache
):
    before = {path.name: path.stat().st_mtime_ns for path in copy.glob("*.npz")}
    assert train(subtasks, copy, cache, TRAINING).made == 0
    (copy / "cloned-1.npz").unlink()
    assert train(subtasks, copy, cache, TRAINING).made == 1
    after = {path.name: path.stat().st_mtime_ns for path in copy.glob("*.npz")}
    assert {name for name in before if before[name] != after[name]} == {"cloned-1.npz"}
    assert same(copy / "cloned-1.npz", cloned / "cloned-1.npz")


def test_ctrl_c_saves_what_is_under_way_and_the_result_is_the_same(
    cloned, subtasks, cache, tmp_path, monkeypatch
):
    folder, batches = tmp_path / "run", []

    class Interrupted(Samples):
        def __init__(self, *args):
            super().__init__(*args)
            batches.append(0)

        def batch(self, indices):
            batches[-1] += 1
            if batches[1:] == [1]:  # in the first of three epochs of the second sub-agent
                os.kill(os.getpid(), signal.SIGINT)
            return super().batch(indices)

    monkeypatch.setattr(sub_agents, "Samples", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(subtasks, folder, cache, TRAINING)
    there = {path.name for path in folder.glob("*.npz")}
    assert there == {"cloned-0.npz", "unfinished-cloned-1.npz"}
    train(subtasks, folder, cache, TRAINING)
    assert 0 < batches[2] < batches[0]  # not from the beginning
    assert {path.name for path in folder.glob("*.npz")} == {"cloned-0.npz", "cloned-1.npz"}
    for name in ("cloned-0.npz", "cloned-1.npz"):
        assert same(folder / name, cloned / name)


def test_ctrl_c_in_the_environment_keeps_steps_and_recordings(
    subtasks, model, cache, game, tmp_path
):
    """PPO is interrupted after its first batch and goes on with the second."""
    folder, played = tmp_path / "run", []
    train(subtasks, folder, cache, TRAINING)

    class Interrupted(TrackedEnv):
        def step(self, choice):
            if self._purpose == "practised":
                played.append(choice)
            if len(played) == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(choice)

    args = (subtasks, folder, cache, TRAINING, opened(Interrupted(game.env, model, PictureView(2))))
    with pytest.raises(KeyboardInterrupt):
        train(*args)
    with np.load(folder / "unfinished-agent-0.npz") as file:
        notes = json.loads(file["header"].tobytes())["notes"]
    assert notes["steps"] == 8
    with pytest.warns(AlignRudderWarning, match="agent-1.npz is not finished"):
        train(*args)
    assert not (folder / "unfinished-agent-0.npz").exists()
    curve = (folder / "tuning-0.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]


def test_two_terminals_do_not_write_to_one_folder(copy, subtasks, cache):
    with only_here(copy), pytest.raises(ValueError, match=r"another run is writing to .*--out"):
        train(subtasks, copy, cache, TRAINING)
    train(subtasks, copy, cache, TRAINING)


def test_another_configuration_other_data_and_another_world_are_refused(
    copy, subtasks, cache, game
):
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        train(subtasks, copy, cache, replace(TRAINING, seed=1))
    fewer = [replace(task, segments=task.segments[:1]) for task in subtasks]
    with pytest.raises(ValueError, match="segments is another one there"):
        train(fewer, copy, cache, TRAINING)
    (copy / "world.json").write_text('{"hits": 2}')
    with pytest.raises(ValueError, match="hits is 2 there and 3 here"):
        train(subtasks, copy, cache, TRAINING, opened(game), world={"hits": 3})


@pytest.mark.parametrize("name", ["cloned-1.npz", "unfinished-cloned-1.npz", "replays.npz"])
def test_a_file_that_is_half_written_is_named_and_can_be_made_again(
    copy, cloned, subtasks, cache, name
):
    (copy / "cloned-1.npz").unlink()
    shutil.copy(cloned / "cloned-1.npz", copy / "whole.npz")
    (copy / name).write_bytes((copy / "whole.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=rf"{name} .*Delete that file: the same command"):
        train(subtasks, copy, cache, TRAINING)
    (copy / name).unlink()
    train(subtasks, copy, cache, TRAINING)
    assert same(copy / "cloned-1.npz", copy / "whole.npz")


def test_a_half_written_configuration(copy, subtasks, cache):
    text = (copy / "training.json").read_text()
    for part in (text[:100], "[]"):
        (copy / "training.json").write_text(part)
        with pytest.raises(ValueError, match=r"training\.json is damaged .*another folder"):
            train(subtasks, copy, cache, TRAINING)
        with pytest.raises(ValueError, match=r"training\.json is damaged"):
            load_players(copy)


def test_wrong_settings_are_refused(subtasks, cache, tmp_path):
    with pytest.raises(ValueError, match="frames is 0"):
        MineRLTraining(frames=0)
    for name, value in {"trials": 0, "steps": 0, "burn_in": -1, "enough": float("nan")}.items():
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            FineTuning(**{name: value})
    empty = [subtasks[0], replace(subtasks[1], segments=())]
    with pytest.raises(ValueError, match=r"no trajectory reaches the sub-goal '.*'"):
        train(empty, tmp_path / "run", cache, TRAINING)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write into .*file/run: Not a directory"):
        train(subtasks, tmp_path / "file" / "run", cache, TRAINING)


def test_stages_that_were_not_reached_say_so(subtasks, model, cache, copy):
    for name in ("agent-0.npz", "manager.npz"):
        (copy / name).unlink()
    assert len(load_players(copy, "cloned")[0].agents) == 2
    for stage in ("agent", "manager"):
        with pytest.raises(ValueError, match=rf"no agent-0\.npz.*stage '{stage}'.*--environments"):
            load_players(copy, stage)
    with pytest.raises(ValueError, match="stage is 'best'; one of 'cloned', 'agent'"):
        load_players(copy, "best")
    with pytest.raises(ValueError, match=r"no training\.json\. Give the --out of"):
        load_players(cache.folder)
    with pytest.raises(ValueError, match="trained for 2 sub-goals that are not those of the model"):
        load_players(copy, "cloned", model)
