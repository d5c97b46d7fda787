"""MineRL: from data and an environment to agents, and the commands.

What is trained here are small networks in the place of the paper's, which take a minute to compile;
the paper's own are cloned in test_minerl_learning.py and improved by PPO at the end of this file.
"""

import json
import os
import shutil
import signal

import equinox as eqx
import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("av")
import jax.numpy as jnp  # noqa: E402

from align_rudder._warnings import AlignRudderWarning  # noqa: E402
from align_rudder.cli.main import main  # noqa: E402
from align_rudder.hierarchy.external import Followed  # noqa: E402
from align_rudder.hierarchy.fine_tuning import FineTuning  # noqa: E402
from align_rudder.hierarchy.ppo import (  # noqa: E402
    PPO,
    Transition,
    new_train_state,
    update_agent,
)
from align_rudder.minerl import training  # noqa: E402
from align_rudder.minerl.cache import ArrayCache  # noqa: E402
from align_rudder.minerl.cloning import Cloning  # noqa: E402
from align_rudder.minerl.dataset import load_pool  # noqa: E402
from align_rudder.minerl.environment import MineRLEnv  # noqa: E402
from align_rudder.minerl.networks import HEAD_SIZES, Manager, new_manager, split_heads  # noqa: E402
from align_rudder.minerl.pipeline import fit_events, segments  # noqa: E402
from align_rudder.minerl.samples import Samples  # noqa: E402
from align_rudder.minerl.testing.synthetic import write_dataset  # noqa: E402
from align_rudder.minerl.training import MineRLTraining, evaluate, load_players, train  # noqa: E402
from align_rudder.minerl.view import PictureView  # noqa: E402
from align_rudder.runs.lock import only_here  # noqa: E402

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
UNITS = sum(1 if size == 2 else size for size in HEAD_SIZES.values())


class Linear(eqx.Module):
    """Logits and value as linear functions of the last picture, 4×4 pixels of it."""

    heads: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(self, key):
        k_heads, k_value = jax.random.split(key)
        self.heads = eqx.nn.Linear(48, UNITS, key=k_heads)
        self.value = eqx.nn.Linear(48, 1, key=k_value)

    def __call__(self, task, observation, subtask, cell):
        seen = observation[-1].reshape(4, 12, 4, 12, 3).mean(axis=(1, 3)).ravel() / 255
        return split_heads(self.heads(seen)), self.value(seen)[0]

    def clone(self, observations, learning=True):
        return jax.vmap(self, (None, 0, None, None))(None, observations, 0, 0)[0], self


class LinearManager(eqx.Module):
    own: Linear
    who: eqx.nn.Linear

    def __init__(self, key, n):
        self.own, self.who = Linear(key), eqx.nn.Linear(1, n + 1, key=key)

    def __call__(self, task, observation, subtask, cell):
        logits, value = self.own(task, observation, subtask, cell)
        return {**logits, "who": self.who(jnp.ones(1) * subtask)}, value


@pytest.fixture(autouse=True, scope="module")
def small_networks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "new_sub_agent", Linear)
        patch.setattr(training, "new_manager", LinearManager)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write_dataset(root, 3, 3, diamonds=3, seed=0)
    pool = load_pool(root)
    model = fit_events(pool, 3)
    parts = [[tuple(s)[:3] for s in task.segments] for task in segments(pool, model)]
    goals = [str(goal.symbol) for goal in model.subgoals_]
    return root, model, parts, goals


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return ArrayCache(tmp_path_factory.mktemp("cache"))


def few(parts):
    """Return the segments of two sub-tasks with few steps, so that a test is quick."""
    return [[(t, max(stop - 8, start), stop) for t, start, stop in part[:2]] for part in parts[:2]]


def clone(data, folder, cache, settings=TRAINING):
    train(few(data[2]), data[3][:2], folder, cache, settings, [], progress=False)


@pytest.fixture(scope="module")
def trained(data, cache, tmp_path_factory):
    """Two sub-tasks through all stages; the second cannot be reached with so little training."""
    _, model, parts, goals = data
    folder = tmp_path_factory.mktemp("run")
    options = {"distance": 1, "spread": 90, "hits": 30}
    with MineRLEnv(module="scripted", module_options=options, frame_skip=4) as env:
        followed = Followed(env, model, PictureView(2))
        with pytest.warns(match="sub-agent 1 stays as it was cloned"):
            train(few(parts), goals[:2], folder, cache, TRAINING, [followed], progress=False)
        players, configuration = load_players(folder, "manager")
        found = evaluate(players, followed, 2, max_steps=10, progress=False)
    return folder, configuration, found


@pytest.fixture
def copy(trained, tmp_path):
    """A copy of the folder that may be harmed."""
    return shutil.copytree(trained[0], tmp_path / "copy")


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def same(path, other):
    a, b = arrays(path), arrays(other)
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


# Stages


def test_all_stages_leave_agents_and_curves(trained, data):
    folder, configuration, found = trained
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "training.json",
        *(f"{kind}-{k}.npz" for kind in ("cloned", "agent") for k in range(2)),
        *(f"{kind}-{k}.csv" for kind in ("cloning", "tuning") for k in range(2)),
        "manager.npz",
        "tuning-manager.csv",
    }
    assert configuration["goals"] == data[3][:2]
    assert (configuration["skip"], configuration["frames"]) == (4, 2)
    assert found["episodes"] == 2
    assert found["solved"] == 0
    assert found["episode_steps"] <= 20
    curve = (folder / "tuning-0.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]


def test_cloning_moved_the_policies_and_ppo_both(trained):
    cloned, tuned = load_players(trained[0], "cloned")[0].agents, load_players(trained[0])[0].agents

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


def test_the_value_alone_is_learned_at_first(data, cache, tmp_path):
    """All steps are burn-in: PPO leaves the policy as it was cloned."""
    tuning = FineTuning(**{**vars(SMALL), "burn_in": 1000})
    settings = MineRLTraining(frames=2, cloning=TRAINING.cloning, tuning=tuning, managing=SMALL)
    with MineRLEnv(module="scripted", frame_skip=4) as env:
        followed = Followed(env, data[1], PictureView(2))
        args = (tmp_path / "run", cache, settings, [followed])
        with pytest.warns(AlignRudderWarning, match="stays as it was cloned"):
            train(few(data[2]), data[3][:2], *args, progress=False)
    cloned = load_players(tmp_path / "run", "cloned")[0].agents[0]
    tuned = load_players(tmp_path / "run")[0].agents[0]
    np.testing.assert_array_equal(cloned.heads.weight, tuned.heads.weight)
    assert not np.array_equal(cloned.value.weight, tuned.value.weight)


# Stopping, going on, what lies in the folder


def test_a_finished_training_is_left_alone_and_a_missing_agent_is_made_again(
    trained, copy, data, cache, tmp_path
):
    before = {path.name: path.stat().st_mtime_ns for path in copy.glob("*.npz")}
    (copy / "cloned-1.npz").unlink()
    clone(data, copy, cache)
    after = {path.name: path.stat().st_mtime_ns for path in copy.glob("*.npz")}
    assert {name for name in before if before[name] != after[name]} == {"cloned-1.npz"}
    assert same(copy / "cloned-1.npz", trained[0] / "cloned-1.npz")


def test_ctrl_c_saves_what_is_under_way_and_the_result_is_the_same(
    trained, data, cache, tmp_path, monkeypatch
):
    folder, batches = tmp_path / "run", []

    class Interrupted(Samples):
        def batch(self, indices):
            batches.append(len(indices))
            if len(batches) == 8:  # in the second of three epochs of the second sub-agent
                os.kill(os.getpid(), signal.SIGINT)
            return super().batch(indices)

    with monkeypatch.context() as patch:
        patch.setattr(training, "Samples", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            clone(data, folder, cache)
    there = {path.name for path in folder.glob("*.npz")}
    assert there == {"cloned-0.npz", "unfinished-cloned-1.npz"}
    interrupted = len(batches)
    with monkeypatch.context() as patch:
        patch.setattr(training, "Samples", Interrupted)
        clone(data, folder, cache)
    assert 0 < len(batches) - interrupted < interrupted  # not from the beginning
    assert {path.name for path in folder.glob("*.npz")} == {"cloned-0.npz", "cloned-1.npz"}
    for name in ("cloned-0.npz", "cloned-1.npz"):
        assert same(folder / name, trained[0] / name)


def test_ctrl_c_in_the_environment_keeps_steps_and_recordings(data, cache, tmp_path, monkeypatch):
    """PPO is interrupted after its first batch and goes on with the second."""
    folder, played = tmp_path / "run", []
    clone(data, folder, cache)

    class Interrupted(Followed):
        def step(self, choice):
            played.append(choice)
            if len(played) == 12:
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(choice)

    with MineRLEnv(module="scripted", frame_skip=4) as env:
        followed = Interrupted(env, data[1], PictureView(2))
        args = (few(data[2]), data[3][:2], folder, cache, TRAINING, [followed])
        with pytest.raises(KeyboardInterrupt):
            train(*args, progress=False)
        with np.load(folder / "unfinished-agent-0.npz") as file:
            notes = json.loads(file["header"].tobytes())["notes"]
        assert notes["steps"] == 8
        with pytest.warns(AlignRudderWarning, match="stays as it was cloned"):
            train(*args, progress=False)
    assert not (folder / "unfinished-agent-0.npz").exists()
    curve = (folder / "tuning-0.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in curve] == ["steps", "0", "16"]


def test_two_terminals_do_not_write_to_one_folder(copy, data, cache):
    with only_here(copy), pytest.raises(ValueError, match=r"another run is writing to .*--out"):
        clone(data, copy, cache)
    clone(data, copy, cache)


def test_another_configuration_is_refused(trained, data, cache):
    other = MineRLTraining(1, 4, 2, TRAINING.cloning, SMALL, SMALL)
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        clone(data, trained[0], cache, other)
    with pytest.raises(ValueError, match=r"no training\.json\. Give the --out of"):
        load_players(cache.folder)


def test_other_data_and_another_world_are_refused(copy, data, cache):
    fewer = [part[:1] for part in few(data[2])]
    with pytest.raises(ValueError, match=r"segments is .* there and .* here"):
        train(fewer, data[3][:2], copy, cache, TRAINING, progress=False)
    (copy / "world.json").write_text('{"hits": 2}')
    with MineRLEnv(module="scripted", frame_skip=4) as env:
        args = (
            few(data[2]),
            data[3][:2],
            copy,
            cache,
            TRAINING,
            [Followed(env, data[1], PictureView(2))],
        )
        with pytest.raises(ValueError, match="hits is 2 there and 3 here"):
            train(*args, progress=False, world={"hits": 3})


@pytest.mark.parametrize("name", ["cloned-1.npz", "unfinished-cloned-1.npz", "replays.npz"])
def test_a_file_that_is_half_written_is_named_and_can_be_made_again(copy, data, cache, name):
    (copy / "cloned-1.npz").rename(copy / "whole.npz")
    (copy / name).write_bytes((copy / "whole.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=rf"{name} .*Delete that file: the same command"):
        clone(data, copy, cache)
    (copy / name).unlink()
    clone(data, copy, cache)
    assert same(copy / "cloned-1.npz", copy / "whole.npz")


def test_a_half_written_configuration(copy, data, cache):
    text = (copy / "training.json").read_text()
    for part in (text[:100], "[]", "{}"):
        (copy / "training.json").write_text(part)
        with pytest.raises(ValueError, match=r"training\.json is damaged .*another folder"):
            clone(data, copy, cache)
        with pytest.raises(ValueError, match=r"training\.json is damaged"):
            load_players(copy)


def test_stages_that_were_not_reached_say_so(data, cache, tmp_path):
    clone(data, tmp_path / "run", cache)
    assert len(load_players(tmp_path / "run", "cloned")[0].agents) == 2
    for stage in ("agent", "manager"):
        with pytest.raises(ValueError, match=rf"no agent-0\.npz.*stage '{stage}'.*--environments"):
            load_players(tmp_path / "run", stage)
    with pytest.raises(ValueError, match="stage='best' is not known"):
        load_players(tmp_path / "run", "best")


def test_wrong_settings_are_refused(data, cache, tmp_path):
    with pytest.raises(ValueError, match="frames=0"):
        MineRLTraining(frames=0)
    with pytest.raises(ValueError, match="batch=0; at least 1"):
        Cloning(batch=0)
    for name, value in {"trials": 0, "steps": 0, "burn_in": -1, "enough": float("nan")}.items():
        with pytest.raises(ValueError, match=f"{name}={value}"):
            FineTuning(**{name: value})
    with pytest.raises(ValueError, match=r"no trajectory reaches the sub-goal 'b'"):
        train([few(data[2])[0], []], ["a", "b"], tmp_path / "run", cache, TRAINING)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write into .*file/run: Not a directory"):
        clone(data, tmp_path / "file" / "run", cache)
    with pytest.raises(ValueError, match=r"cannot keep pictures-1 of v3_.* MB\) in the cache"):
        clone(data, tmp_path / "run", ArrayCache(tmp_path / "file" / "cache"))


def test_damage_found_while_cloning_is_named_and_left_out(data, tmp_path):
    """As it shows only when frames are decoded, checking by packets does not find it."""
    root = shutil.copytree(data[0], tmp_path / "data")
    pool = load_pool(root)
    parts = [[tuple(s)[:3] for s in task.segments] for task in segments(pool, data[1])]
    victim = parts[0][0][0]
    content = victim.video.read_bytes()
    os.truncate(victim.video, len(content) // 2)
    with pytest.warns(AlignRudderWarning, match=rf"does without a damaged .*{victim.name}"):
        found = Samples(parts[0], ArrayCache(tmp_path / "cache"), frames=2)
    assert len(found) == sum(stop - start for t, start, stop in parts[0] if t != victim)
    with pytest.raises(ValueError, match=r"all 1 trajectories .* damaged"), pytest.warns():
        Samples(parts[0][:1], ArrayCache(tmp_path / "cache"))


# Commands


def test_evaluate_counts_and_shows(data, tmp_path, capsys, monkeypatch):
    """With agents that were never trained: what is counted and shown is what matters here."""
    from align_rudder.runs.checkpoint import save_tree

    monkeypatch.chdir(tmp_path)
    root, model, _, goals = data
    model.save(tmp_path / "model.npz")
    configuration = MineRLTraining(frames=3).configuration(goals, [])
    (tmp_path / "run").mkdir()
    (tmp_path / "run/training.json").write_text(json.dumps(configuration))
    for k in range(len(goals)):
        save_tree(tmp_path / f"run/agent-{k}.npz", Linear(jax.random.key(k)), configuration)
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
    assert main(["minerl", "evaluate", "run", "model.npz", "--environment.world", "hits"]) == 2
    assert "write NAME=VALUE" in capsys.readouterr().err
    assert main(["minerl", "evaluate", "run", "model.npz", *args, "--autoencoder", "a.npz"]) == 2
    assert "fitted without features of an auto-encoder; leave it out" in capsys.readouterr().err


def test_a_model_of_other_sub_goals_is_refused(trained, data, tmp_path, capsys):
    data[1].save(tmp_path / "model.npz")
    assert main(["minerl", "evaluate", str(trained[0]), str(tmp_path / "model.npz")]) == 2
    assert "trained for 2 sub-goals" in capsys.readouterr().err


def test_without_minecraft_the_commands_say_how_to_install_it(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALIGN_RUDDER_MINERL_PYTHON", raising=False)
    data[1].save("model.npz")
    # Before anything is read or computed: the folder of the data is not even there.
    assert main(["minerl", "train", "nowhere", "model.npz", "--environments", "1"]) == 2
    shown = capsys.readouterr().err
    assert 'pip install "gym==0.19.0" "minerl==0.3.7"' in shown
    assert "ALIGN_RUDDER_MINERL_PYTHON" in shown
    assert not (tmp_path / "runs").exists()
    assert main(["minerl", "train", "nowhere", "model.npz"]) == 2
    assert (
        "nowhere does not exist; give the folder of the MineRL dataset" in capsys.readouterr().err
    )


def test_from_recording_to_agents_by_commands_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = ["--world", "hits=1", "distance=1", "spread=90"]
    assert main(["minerl", "demos", "data", "--n", "3", "--noise", "0", *world]) == 0
    assert main(["minerl", "demos", "data", "--n", "3", "--noise", "0.1", *world]) == 2
    assert "recordings of other settings" in capsys.readouterr().err
    assert main(["minerl", "events", "data", "--n", "3"]) == 0
    events = capsys.readouterr().out
    assert "3 trajectories" in events
    assert "diamond+1" in events
    options = ["--frames", "2", "--epochs", "1", "--batch", "16", "-o", "run"]
    assert main(["minerl", "train", "data", "model.npz", *options]) == 0
    shown = capsys.readouterr().out
    assert "trained; agents and logs are in run" in shown
    assert main(["minerl", "train", "data", "model.npz", *options]) == 0
    assert "nothing was trained" in capsys.readouterr().out
    with only_here("run"):
        assert main(["minerl", "train", "nowhere", "model.npz", *options]) == 2
    assert "another run is writing" in capsys.readouterr().err
    goals = json.loads((tmp_path / "run/training.json").read_text())["goals"]
    assert goals[0] == "log+1"
    assert goals[-1] == "diamond+1"
    assert len(load_players("run", "cloned")[0].agents) == len(goals)


# The paper's networks


def test_ppo_improves_the_papers_networks():
    """An action that is always paid becomes likelier, what is not paid for stays as it is."""
    manager = new_manager(jax.random.key(0), 3)
    assert isinstance(manager, Manager)
    ppo = PPO(n_envs=1, n_steps=8, n_minibatches=1, learning_rate=3e-3, ent_coef=0.0, burn_in=0)
    rng = np.random.default_rng(0)
    seen = jnp.asarray(rng.integers(0, 256, (8, 1, 2, 48, 48, 3)), jnp.uint8)
    chosen = {head: np.full((8, 1), -1) for head in (*HEAD_SIZES, "who")}
    chosen["who"][:, 0] = np.arange(8) % 4
    zero = jnp.zeros((8, 1), int)
    act = jax.jit(jax.vmap(lambda m, x: m(None, x, jnp.array(0), jnp.array(0)), (None, 0)))

    def who(manager):
        logits, value = act(manager, seen[:, 0])
        return jax.nn.log_softmax(logits["who"]), value

    log_p, value = who(manager)
    at = jnp.asarray(chosen["who"][:, 0])
    taken = jnp.take_along_axis(log_p, at[:, None], axis=1)
    paid = (at == 2).astype(jnp.float32)[:, None]
    played = Transition(
        seen,
        zero,
        zero,
        {head: jnp.asarray(x) for head, x in chosen.items()},
        taken,
        value[:, None],
        paid,
        jnp.ones((8, 1), bool),
    )
    state = new_train_state(manager, ppo, 1, jax.random.key(0))
    better = eqx.filter_jit(update_agent)(None, ppo, 1, state, played, jnp.zeros(1))[0].agent
    after, value_after = who(better)
    assert (after[:, 2] > log_p[:, 2]).all()
    error = ((value[:, None] - paid) ** 2).mean()
    assert ((value_after[:, None] - paid) ** 2).mean() < error
    # Running means of the batch norms are not learned.
    for a, b in zip(manager.own.actor.norms, better.own.actor.norms, strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.variance, b.variance)
