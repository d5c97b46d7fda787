"""The course of a training: it learns, keeps its budget, and goes on wherever it was stopped."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
from workshop import TRAINING, K, train_in  # noqa: E402

from align_rudder.hierarchy import ppo, trainer  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate  # noqa: E402
from align_rudder.hierarchy.folder import load_agent, load_manager  # noqa: E402
from align_rudder.hierarchy.ppo import Losses, Metrics  # noqa: E402
from align_rudder.runs.rows import Rows, read_rows  # noqa: E402

LOGS = ("updates.csv", "evaluations.csv", "cloning.csv")
AGENTS = ("cloned.npz", "agent.npz", "manager.npz")


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


class Crash(BaseException):
    """Worse than Ctrl-C."""


def crash():
    raise Crash


def once_written(monkeypatch, file, start, do):
    """Let something be done when a row that starts so has been written to a file."""

    def patch(name, rows_of):
        write, done = getattr(Rows, name), []

        def patched(rows, given):
            given = given if name == "append" else list(given)
            write(rows, given)
            hit = any(list(row[: len(start)]) == start for row in rows_of(given))
            if rows.path.name == file and hit and not done:
                done.append(file)
                do()

        monkeypatch.setattr(Rows, name, patched)

    patch("append", lambda row: [row])
    patch("write", lambda rows: rows)


def interrupted(monkeypatch, folder, file, start, number):
    """Train until that row is written, and let a signal come then."""
    handler = signal.getsignal(number)
    with monkeypatch.context() as patch:
        once_written(patch, file, start, lambda: os.kill(os.getpid(), number))
        with pytest.raises(KeyboardInterrupt):
            train_in(folder)
    assert signal.getsignal(number) is handler


def crashed(monkeypatch, folder, file, start):
    """Train until that row is written, and fall then."""
    with monkeypatch.context() as patch:
        once_written(patch, file, start, crash)
        with pytest.raises(Crash):
            train_in(folder)


def test_wherever_it_is_stopped_it_ends_as_if_it_had_not_been(trained, tmp_path, monkeypatch):
    """By signals while cloning, evaluating and updating; then it falls in both phases."""
    interrupted(monkeypatch, tmp_path, "cloning.csv", [], signal.SIGINT)
    assert read_rows(tmp_path / "updates.csv") == []
    assert not (tmp_path / "checkpoint.npz").exists()

    interrupted(monkeypatch, tmp_path, "evaluations.csv", ["agents", 0], signal.SIGINT)
    assert read_rows(tmp_path / "updates.csv") == []
    assert (tmp_path / "checkpoint.npz").exists()
    cloned = (tmp_path / "cloned.npz").stat().st_mtime_ns

    interrupted(monkeypatch, tmp_path, "updates.csv", ["agents", 2], signal.SIGTERM)
    assert (tmp_path / "cloned.npz").stat().st_mtime_ns == cloned  # not cloned again
    assert read_rows(tmp_path / "updates.csv") == read_rows(trained / "updates.csv")[:2]

    for phase, updates in (("agents", 6), ("manager", 1)):
        crashed(monkeypatch, tmp_path, "updates.csv", [phase, updates])
        assert read_rows(tmp_path / "updates.csv")[-1]["updates"] == str(updates)
        with (tmp_path / "updates.csv").open("a") as file:
            file.write(f"{phase},{updates + 1},12")  # the next row is half written

    train_in(tmp_path)
    for name in (*LOGS, *AGENTS, "training.json"):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes(), name


def test_a_lost_agent_is_written_again_by_the_next_evaluation(tmp_path, monkeypatch, task):
    crashed(monkeypatch, tmp_path, "updates.csv", ["agents", 8])
    whole = (tmp_path / "agent.npz").read_bytes()
    (tmp_path / "agent.npz").write_bytes(whole[: len(whole) // 2])
    crashed(monkeypatch, tmp_path, "evaluations.csv", ["manager", 0])
    load_agent(tmp_path, task, TRAINING)


def test_another_seed_is_another_training(trained, tmp_path, monkeypatch, caplog):
    once_written(monkeypatch, "updates.csv", ["agents", 2], crash)
    with caplog.at_level("INFO", "align_rudder"), pytest.raises(Crash):
        train_in(tmp_path, replace(TRAINING, seed=1))
    told = [message.rpartition(": ")[2] for message in caplog.messages]
    rows = read_rows(tmp_path / "evaluations.csv")
    assert told == [f"{row['solved']} of {row['worlds']} new worlds solved" for row in rows] != []
    for name in LOGS:
        one, other = read_rows(trained / name), read_rows(tmp_path / name)
        assert all(a != b for a, b in zip(one[:2], other[:2]))


def test_too_few_steps_are_refused(tmp_path, known):
    shown = sum(len(actions) for _, actions in known.runs)
    with pytest.raises(ValueError, match=f"100 steps are too few: the .* have {shown} and an upda"):
        train_in(tmp_path, replace(TRAINING, steps=100))


# The budget


def test_the_budget_is_kept(trained):
    rows = read_rows(trained / "evaluations.csv")
    steps = [int(row["steps"]) for row in rows]
    assert steps == sorted(steps)
    assert 0.8 * TRAINING.steps < steps[-1] <= TRAINING.steps


@pytest.mark.parametrize(
    ("manager", "evaluations", "growth"), [(0.3, 50, 1.1), (0.0, 1, 1.0), (0.02, 7, 3.0)]
)
def test_any_budget_is_kept(monkeypatch, tmp_path, known, manager, evaluations, growth):
    """Without playing: evaluations take longer and longer, or always as long."""
    length = [5.0]

    def played(task, agent, worlds, key, max_steps, most):
        def taken(most):
            length[0] *= growth
            return np.full(8, min(int(length[0]), int(most) // 8), np.int32)

        steps = jax.pure_callback(taken, jax.ShapeDtypeStruct((8,), jnp.int32), most)
        like = jax.eval_shape(lambda: evaluate(task, agent, worlds, key, 0))
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        return nothing._replace(steps=steps, solved=steps > 0)

    def nothing(task, settings, total, runner, examples):
        zero, by_goal = jnp.int32(0), jnp.zeros(K)
        metrics = Metrics(by_goal, by_goal, zero, zero, zero, zero)
        return runner, metrics, Losses(jnp.float32(0), jnp.float32(0), jnp.float32(0))

    monkeypatch.setattr(trainer, "evaluate", played)
    monkeypatch.setattr(ppo, "train_step", nothing)
    small = replace(
        TRAINING,
        steps=10_000,
        manager=manager,
        evaluations=evaluations,
        ppo=replace(TRAINING.ppo, n_envs=8, n_steps=16),
        hidden=(4,),
        clone=0,
        pool=2,
        buffer=1,
        worlds=8,
    )
    train_in(tmp_path, small)
    rows = read_rows(tmp_path / "evaluations.csv")
    updates = read_rows(tmp_path / "updates.csv")
    shown = sum(len(actions) for _, actions in known.runs)
    evaluated, last = sum(int(row["episode_steps"]) for row in rows), int(rows[-1]["steps"])
    assert last == shown + evaluated + len(updates) * small.ppo.batch_size
    assert last <= small.steps
    # What is left over is not enough for another update and a somewhat longer evaluation.
    needed = small.ppo.batch_size + 1.25 * int(rows[-1]["episode_steps"])
    assert small.steps - last < needed
