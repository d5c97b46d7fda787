"""Sub-agents and main agent on a small task: they learn, and every part does what it says."""

import os
import shutil
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from align_rudder.runs.lock import only_here

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy import training as training_module  # noqa: E402
from align_rudder.hierarchy.agents import new_agent  # noqa: E402
from align_rudder.hierarchy.aligned import AlignedTask  # noqa: E402
from align_rudder.hierarchy.devices import Devices, find_devices  # noqa: E402
from align_rudder.hierarchy.evaluation import Evaluation, evaluate  # noqa: E402
from align_rudder.hierarchy.loading import load_agent, load_manager  # noqa: E402
from align_rudder.hierarchy.ppo import PPO, Metrics  # noqa: E402
from align_rudder.hierarchy.training import Training, train  # noqa: E402
from align_rudder.runs.rows import Rows, read_rows  # noqa: E402

TASK = workshop.Workshop()
K, A = workshop.K, workshop.A


@pytest.fixture(scope="module", autouse=True)
def _compiled_once(tmp_path_factory):
    """The same training is run several times: keep what was compiled."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]
    for name, value in zip(names, (str(tmp_path_factory.mktemp("compiled")), 0.1)):
        jax.config.update(name, value)
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    for name, value in zip(names, before):
        jax.config.update(name, value)


@pytest.fixture(scope="module")
def runs():
    return workshop.known().runs


@pytest.fixture(scope="module")
def tables():
    return workshop.known().tables


@pytest.fixture(scope="module")
def task():
    return workshop.known().task


@pytest.fixture(scope="module")
def worlds():
    return workshop.known().worlds


# Learning

TRAINING = Training(
    steps=40_000,
    ppo=PPO(
        n_envs=64,
        n_steps=32,
        minibatches=4,
        learning_rate=3e-3,
        gamma=0.98,
        entropy=0.01,
        burn_in=1,
        cloning=0.05,
    ),
    hidden=(32, 32),
    clone=60,
    pool=256,
    buffer=64,
    evaluations=3,
    worlds=64,
    horizon=60,
    manager=0.2,
    patience=40,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tables, runs):
    folder = tmp_path_factory.mktemp("trained") / "whole"
    train(TASK, tables, runs, TRAINING, folder, progress=False)
    return folder


def test_ppo_learns_what_cloning_did_not(trained):
    rows = read_rows(trained / "evaluations.csv")
    share = {(row["phase"], row["updates"]): int(row["solved"]) / 64 for row in rows}
    assert share["agents", "0"] < 0.3
    assert max(v for (phase, _), v in share.items() if phase == "agents") > 0.8
    assert share["manager", "0"] > 0.8


def test_the_best_agent_is_what_is_stored(trained, task, worlds):
    """The stored agents solve new worlds, drawn with other seeds than those of the training."""
    whole, manager = load_manager(trained, task, TRAINING)
    found = eqx.filter_jit(evaluate)(whole, manager, worlds, jax.random.key(1), 60)
    assert found.solved.mean() > 0.8
    agent = load_agent(trained, task, TRAINING)
    for a, b in zip(jax.tree.leaves(whole.agent), jax.tree.leaves(agent), strict=True):
        np.testing.assert_array_equal(a, b)
    cloned = load_agent(trained, task, TRAINING, "cloned.npz")
    assert (cloned.actor.out.weight != agent.actor.out.weight).any()


class Interrupted(BaseException):
    """Ctrl-C, or worse."""


def interrupt(monkeypatch, phase, updates):
    """Make the training fall when it logs that update."""
    write = Rows.append

    def failing(log, row):
        write(log, row)
        if log.path.name == "updates.csv" and list(row[:2]) == [phase, updates]:
            raise Interrupted

    monkeypatch.setattr(Rows, "append", failing)


def test_an_interrupted_training_ends_as_if_it_had_not_been(
    trained, tmp_path, tables, runs, monkeypatch
):
    """Fallen in both phases, some updates after a checkpoint; the last row is half written."""
    for phase, extra in (("agents", 1), ("manager", 1)):
        updates = [int(r["updates"]) for r in read_rows(trained / "updates.csv")]
        judged = [r for r in read_rows(trained / "evaluations.csv") if r["phase"] == phase]
        at = int(judged[1 if phase == "agents" else 0]["updates"]) + extra
        assert at in updates
        with monkeypatch.context() as patch:
            interrupt(patch, phase, at)
            with pytest.raises(Interrupted):
                train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
        assert read_rows(tmp_path / "updates.csv")[-1]["updates"] == str(at)
        with (tmp_path / "updates.csv").open("a") as file:
            file.write(f"{phase},{at + 1},12")
    train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    for name in ("updates.csv", "evaluations.csv", "cloning.csv", "training.json"):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()
    for name in ("cloned.npz", "agent.npz", "manager.npz"):
        with np.load(trained / name) as one, np.load(tmp_path / name) as other:
            assert set(one.files) == set(other.files)
            for leaf in one.files:
                np.testing.assert_array_equal(one[leaf], other[leaf])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_loses_no_update(number, trained, tmp_path, tables, runs, monkeypatch):
    """The update that runs is saved, the next one is not begun, and the handlers are put back."""
    write, handler = Rows.append, signal.getsignal(number)

    def interrupted(log, row):
        write(log, row)
        if log.path.name == "updates.csv" and list(row[:2]) == ["agents", 2]:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    assert signal.getsignal(number) is handler
    assert [row["updates"] for row in read_rows(tmp_path / "updates.csv")] == ["1", "2"]
    interrupt(monkeypatch, "agents", 4)
    with pytest.raises(Interrupted):
        train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    rows = read_rows(tmp_path / "updates.csv")
    assert rows == read_rows(trained / "updates.csv")[:4]


def test_damaged_files_are_made_again_or_named(trained, tmp_path, tables, runs, monkeypatch):
    """Stopped early: broken results are written again, a broken checkpoint is named."""
    with monkeypatch.context() as patch:
        interrupt(patch, "agents", 8)
        with pytest.raises(Interrupted):
            train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    for name in ("training.json", "agent.npz"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    other = [(states, actions[::-1]) for states, actions in runs]
    with pytest.raises(ValueError, match="belongs to a training with other demonstrations"):
        train(TASK, tables, other, TRAINING, tmp_path, progress=False)
    with only_here(tmp_path), pytest.raises(ValueError, match="another run is writing to"):
        train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    assert (tmp_path / "training.json").read_bytes() == (trained / "training.json").read_bytes()
    load_agent(tmp_path, AlignedTask(TASK, tables), TRAINING)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"checkpoint.npz cannot be read .* begin anew in another"):
        train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    logs = {name: (tmp_path / name).read_bytes() for name in ("updates.csv", "evaluations.csv")}
    (tmp_path / "checkpoint.npz").unlink()
    with pytest.raises(ValueError, match="has the logs of a training but no checkpoint"):
        train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    assert logs == {name: (tmp_path / name).read_bytes() for name in logs}


def test_too_few_steps_are_refused(tmp_path, tables, runs):
    shown = sum(len(actions) for _, actions in runs)
    with pytest.raises(ValueError, match=f"100 steps are too few: the .* have {shown} and an upda"):
        train(TASK, tables, runs, replace(TRAINING, steps=100), tmp_path, progress=False)


def test_ctrl_c_before_the_first_update_stops_there(trained, tmp_path, tables, runs, monkeypatch):
    """While cloning; then in the first evaluation, after which all is kept."""
    for file, name, kept in (("cloning.csv", "write", False), ("evaluations.csv", "append", True)):
        sent, write = [], getattr(Rows, name)

        def interrupted(log, row, file=file, sent=sent, write=write):
            write(log, row)
            if log.path.name == file and not sent:
                sent.append(file)
                os.kill(os.getpid(), signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(Rows, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
        assert read_rows(tmp_path / "updates.csv") == []
        assert (tmp_path / "checkpoint.npz").exists() == kept
    cloned = (tmp_path / "cloned.npz").stat().st_mtime_ns
    interrupt(monkeypatch, "agents", 2)
    with pytest.raises(Interrupted):
        train(TASK, tables, runs, TRAINING, tmp_path, progress=False)
    assert (tmp_path / "cloned.npz").stat().st_mtime_ns == cloned  # not cloned again
    assert read_rows(tmp_path / "updates.csv") == read_rows(trained / "updates.csv")[:2]


def test_a_finished_training_is_left_as_it_is(trained, tmp_path, tables, runs):
    shutil.copytree(trained, tmp_path / "again")
    train(TASK, tables, runs, TRAINING, tmp_path / "again", progress=False)
    for name in ("updates.csv", "evaluations.csv", "agent.npz", "manager.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (trained / name).read_bytes()


@pytest.mark.parametrize("name", ["agent.npz", "manager.npz"])
def test_lost_agents_of_a_finished_training_are_named(name, trained, tmp_path, tables, runs):
    shutil.copytree(trained, tmp_path / "again")
    (tmp_path / "again" / name).unlink()
    with pytest.raises(ValueError, match=rf"agents are lost: .*{name}.*train again in another"):
        train(TASK, tables, runs, TRAINING, tmp_path / "again", progress=False)


def test_another_seed_is_another_training(trained, tmp_path, tables, runs, monkeypatch, caplog):
    interrupt(monkeypatch, "agents", 2)
    with caplog.at_level("INFO", "align_rudder"), pytest.raises(Interrupted):
        train(TASK, tables, runs, replace(TRAINING, seed=1), tmp_path, progress=False)
    told = [message.rpartition(": ")[2] for message in caplog.messages]
    rows = read_rows(tmp_path / "evaluations.csv")
    assert told == [f"{row['solved']} of {row['worlds']} new worlds solved" for row in rows] != []
    for name in ("updates.csv", "evaluations.csv", "cloning.csv"):
        one, other = read_rows(trained / name), read_rows(tmp_path / name)
        assert all(a != b for a, b in zip(one[:2], other[:2]))


def test_a_folder_of_another_training_is_refused(trained, tables, runs):
    other = replace(TRAINING, ppo=replace(TRAINING.ppo, gamma=0.9), seed=3)
    with pytest.raises(ValueError, match=r"ppo\.gamma is 0\.98 there and 0\.9 here; seed is 0 the"):
        train(TASK, tables, runs, other, trained, progress=False)


# The budget


def test_the_budget_is_kept(trained):
    rows = read_rows(trained / "evaluations.csv")
    steps = [int(row["steps"]) for row in rows]
    assert steps == sorted(steps)
    assert 0.8 * TRAINING.steps < steps[-1] <= TRAINING.steps


def test_an_evaluation_stops_before_it_takes_more_steps_than_it_may(task, worlds):
    agent = new_agent(task, jax.random.key(0), (8,), symmetric=False)
    play, key = eqx.filter_jit(evaluate), jax.random.key(1)
    whole = play(task, agent, worlds, key, jnp.int32(60), most=jnp.int32(10**6))
    assert int(whole.steps.max()) == 60
    for most in (0, 64, 1000, 1023):
        found = play(task, agent, worlds, key, jnp.int32(60), most=jnp.int32(most))
        assert most - 64 < int(found.steps.sum()) <= most
        assert (found.steps <= whole.steps).all()


@pytest.mark.parametrize(
    ("steps", "manager", "evaluations", "growth"),
    [(10_000, 0.3, 50, 1.1), (10_000, 0.0, 1, 1.0), (10_000, 0.02, 7, 3.0)],
)
def test_any_budget_is_kept(
    monkeypatch, tmp_path, tables, runs, steps, manager, evaluations, growth
):
    """Without playing: evaluations take longer and longer, or less and less."""
    length = [5.0]

    def judged(task, agent, worlds, key, max_steps, most):
        return {"most": most}

    def gathered(self, tree):
        if not isinstance(tree, dict):
            return tree
        length[0] *= growth
        taken = np.full(8, min(int(length[0]), int(tree["most"]) // 8))
        return Evaluation(taken, np.zeros((8, tables.n_events), int), taken > 0, taken, taken)

    def nothing(task, ppo, total, learner, examples):
        zero, by_goal = jnp.int32(0), jnp.zeros(K)
        metrics = Metrics(jnp.zeros(K + 1), by_goal, by_goal, zero, zero, zero, zero, jnp.zeros(3))
        return learner, metrics

    monkeypatch.setattr(training_module, "evaluate", judged)
    monkeypatch.setattr(training_module, "update", nothing)
    monkeypatch.setattr(training_module, "save_tree", lambda *args: None)
    monkeypatch.setattr(
        training_module, "load_agent", lambda folder, task, training: workshop.WHOLE
    )
    monkeypatch.setattr(Devices, "gather", gathered)
    small = replace(
        TRAINING,
        steps=steps,
        manager=manager,
        evaluations=evaluations,
        ppo=replace(TRAINING.ppo, n_envs=8, n_steps=16),
        hidden=(4,),
        clone=0,
        pool=2,
        buffer=1,
        worlds=8,
    )
    train(TASK, tables, runs, small, tmp_path, progress=False)
    rows = read_rows(tmp_path / "evaluations.csv")
    played = read_rows(tmp_path / "updates.csv")
    shown = sum(len(actions) for _, actions in runs)
    judged_steps = sum(int(row["episode_steps"]) for row in rows)
    assert int(rows[-1]["steps"]) == shown + judged_steps + len(played) * small.ppo.batch
    assert int(rows[-1]["steps"]) <= steps
    # What is left over is not enough for another update and a somewhat longer evaluation.
    assert steps - int(rows[-1]["steps"]) < small.ppo.batch + 1.25 * int(rows[-1]["episode_steps"])


# Errors


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps=0: at least 1"),
        ({"worlds": 0}, "worlds=0: at least 1"),
        ({"clone": -1}, "clone=-1"),
        ({"manager": 1.0}, r"manager=1\.0 is a share"),
        ({"manager": -0.1}, r"manager=-0\.1 is a share"),
        ({"plain": True}, "plain learner is paid 'task' or 'dense', not 'subgoal'"),
        ({"pay": "nothing"}, "pay='nothing' is not one of subgoal, step"),
    ],
)
def test_trainings_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Training(**fields)


def test_batches_and_devices_must_divide(tables):
    with pytest.raises(ValueError, match="3 × 5 steps cannot be split into 4 equal minibatches"):
        PPO(n_envs=3, n_steps=5, minibatches=4)
    assert PPO(n_envs=4, n_steps=5, minibatches=4).batch == 20
    with pytest.raises(ValueError, match="is not one of subgoal"):
        AlignedTask(TASK, tables, "nothing")
    devices = Devices()
    devices.check(n_envs=devices.n, worlds=3 * devices.n)
    devices.mesh = SimpleNamespace(size=2)
    with pytest.raises(ValueError, match="worlds=3 cannot be spread evenly over 2 devices"):
        devices.check(n_envs=2, worlds=3)
    for wrong, says in (
        ({"n_envs": 0}, "n_envs=0: at least 1"),
        ({"gamma": 1.5}, "gamma=1.5 is a discount"),
        ({"entropy": float("nan")}, "entropy=nan is a weight"),
    ):
        with pytest.raises(ValueError, match=says):
            PPO(**wrong)


def test_devices_that_are_not_there_are_refused():
    if jax.default_backend() == "cpu":
        with pytest.raises(ValueError, match="a GPU was asked for, and JAX finds only cpu"):
            find_devices("gpu")
    with pytest.raises(ValueError, match="process 0 of 2 needs the address"):
        find_devices(processes=2)
    with pytest.raises(ValueError, match="process 1 of 1 needs the address"):
        find_devices(index=1)
    with pytest.raises(ValueError, match="process 2 of 2: give one from 0 to 1"):
        find_devices(coordinator="localhost:1", processes=2, index=2)
