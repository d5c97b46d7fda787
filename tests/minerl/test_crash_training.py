"""One hundred crashes at random moments in a training of the small world change nothing."""

import hashlib
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("av")
import jax
from small_networks import contents, first_subtasks, opened, small_networks

from align_rudder.hierarchy import fine_tuning
from align_rudder.hierarchy.external import TrackedEnv
from align_rudder.hierarchy.fine_tuning import FineTuning
from align_rudder.hierarchy.ppo import PPO
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning
from align_rudder.minerl.crashes import CrashRecovery, GameLostError, Restarts
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.playing import episode_rows, evaluate, load_players
from align_rudder.minerl.process import ServerProcess
from align_rudder.minerl.training import MineRLTraining, train
from align_rudder.minerl.view import PictureView
from align_rudder.runs.rows import read_rows

TUNING = FineTuning(
    steps=384,
    burn_in=32,
    patience=12,
    evaluate_every=96,
    trials=4,
    enough=2.0,
    ppo=PPO(n_envs=1, n_steps=16, n_epochs=1, n_minibatches=1, bc_coef=0.0),
)
TRAINING = MineRLTraining(
    frames=2, cloning=Cloning(epochs=3, batch=8, evaluate_every=1), tuning=TUNING, managing=TUNING
)
PATIENT = Restarts(in_a_row=10_000, at_one_step=10_000, first=0)


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


class Killer:
    """Kills the game's process before, during or after every n-th answer or so.

    Args:
        seed: Seed of the moments.
        share: Share of the requests around which it kills.
        most: How often it does.
    """

    def __init__(self, seed, share, most=10_000):
        self.rng, self.share, self.most, self.kills = np.random.default_rng(seed), share, most, 0

    def __call__(self, ask, server, request, timeout):
        if self.rng.random() >= self.share or self.kills >= self.most:
            return ask(server, request, timeout)
        self.kills += 1
        when = self.rng.choice(["before", "during", "after"])
        if when == "before":
            self.kill(server)
        elif when == "during":
            threading.Timer(self.rng.uniform(0, 0.004), self.kill, [server]).start()
        answer = ask(server, request, timeout)
        if when == "after":
            self.kill(server)
        return answer

    @staticmethod
    def kill(server):
        if server.process.poll() is None:
            os.kill(server.process.pid, signal.SIGKILL)


@pytest.fixture
def learned_from(monkeypatch):
    """Every batch that PPO learns from, as a digest."""
    digests, update = [], fine_tuning._update

    def noted(ppo, total, state, batch, last):
        parts = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((batch, last))]
        digests.append((hashlib.sha256(b"".join(parts)).hexdigest(), batch.reward.size))
        return update(ppo, total, state, batch, last)

    monkeypatch.setattr(fine_tuning, "_update", noted)
    return digests


def game(model, restarts=PATIENT, **options):
    world = {"distance": 1, "spread": 90, "hits": 1}
    env = MineRLEnv(module="scripted", module_options=world, frame_skip=4, **options)
    return TrackedEnv(CrashRecovery(env, restarts), model, PictureView(2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:agent-")
def test_one_hundred_crashes(subtasks, model, tmp_path, monkeypatch, learned_from):
    cache, found, books, batches = ArrayCache(tmp_path / "cache"), [], [], []
    killer, ask = Killer(1, 0.03), ServerProcess.ask
    for name in ("undisturbed", "disturbed"):
        env = game(model)
        with env.env:
            if name == "disturbed":
                monkeypatch.setattr(ServerProcess, "ask", lambda *args: killer(ask, *args))
            train(subtasks, tmp_path / name, cache, TRAINING, opened(env))
            players, _ = load_players(tmp_path / name, "manager")
            played = evaluate(players, [env], 5, max_steps=20, progress=False)
        found.append(contents(tmp_path / name) | {"evaluation": played})
        books.append(env.env)
        batches.append(list(learned_from))
        learned_from.clear()
    calm, wild = books
    assert calm.crashes == calm.repeated == calm.lost == wild.lost == 0
    assert wild.crashes >= 100
    assert wild.steps == calm.steps  # nothing lost, nothing doubled
    assert batches[0] == batches[1]  # what was learned from, frame by frame
    assert sum(n for _, n in batches[0]) >= 2 * TUNING.steps  # one sub-agent and the manager
    assert found[0] == found[1]  # agents, recordings, curves, evaluation
    rows = read_rows(tmp_path / "disturbed" / "crashes.csv", text=("time", "reason"))
    assert len(rows) == wild.crashes
    assert not (tmp_path / "undisturbed" / "crashes.csv").exists()


@pytest.mark.filterwarnings("ignore:agent-")
def test_at_the_limit_all_is_saved_and_the_same_training_goes_on(
    subtasks, model, tmp_path, monkeypatch, learned_from
):
    """The game dies for good in the third batch of PPO; nothing was due to be saved then."""
    short = replace(TUNING, steps=64, evaluate_every=32, trials=1)
    training = replace(TRAINING, tuning=short, managing=short)
    cache, folder, ask = ArrayCache(tmp_path / "cache"), tmp_path / "run", ServerProcess.ask

    def die(server, request, timeout):
        if len(learned_from) == 2:
            Killer.kill(server)
        return ask(server, request, timeout)

    monkeypatch.setattr(ServerProcess, "ask", die)
    env = game(model, Restarts(in_a_row=3, at_one_step=5, first=0))
    with env.env, pytest.raises(GameLostError, match=r"3 times in a row.*saved.*same command"):
        train(subtasks[:1], folder, cache, training, opened(env))
    assert len(read_rows(folder / "crashes.csv", text=("time", "reason"))) == 3
    assert {path.name for path in folder.glob("*agent-*")} == {"unfinished-agent-0.npz"}
    monkeypatch.setattr(ServerProcess, "ask", ask)
    env = game(model)
    with env.env:
        learned_from.clear()
        train(subtasks[:1], folder, cache, training, opened(env))
    assert not (folder / "unfinished-agent-0.npz").exists()
    assert len(learned_from) == 2 + 4  # the last two of the sub-agent, and the manager
    assert (folder / "tuning-0.csv").read_text().split()[1:][-1].startswith("64,")


def test_an_evaluation_goes_on_with_the_episode_that_was_not_finished(
    subtasks, model, tmp_path, monkeypatch
):
    cache, folder, ask = ArrayCache(tmp_path / "cache"), tmp_path / "run", ServerProcess.ask
    train(subtasks, folder, cache, TRAINING)
    players, _ = load_players(folder, "cloned")
    asked = []

    def count(server, request, timeout):
        asked.append(request["do"])
        if len(asked) > 50:
            Killer.kill(server)
        return ask(server, request, timeout)

    def rows():
        return episode_rows(folder, players, "cloned", {"seed": 1})

    with game(model).env as env:
        env = TrackedEnv(env, model, PictureView(2))
        whole = evaluate(players, [env], 4, max_steps=20, progress=False)
    monkeypatch.setattr(ServerProcess, "ask", count)
    env = game(model, Restarts(in_a_row=2, first=0))
    with env.env, pytest.raises(GameLostError):
        evaluate(players, [env], 4, max_steps=20, progress=False, rows=rows())
    assert len(rows().read()) == 2  # of 20 steps and a reset each
    monkeypatch.setattr(ServerProcess, "ask", ask)
    with game(model).env as env:
        env = TrackedEnv(env, model, PictureView(2))
        again = evaluate(players, [env], 4, max_steps=20, progress=False, rows=rows())
        assert env.env.steps == 40
    assert again == whole
    assert episode_rows(folder, players, "cloned", {"seed": 2}).read() == []
    other = players._replace(agents=players.agents[::-1])
    assert episode_rows(folder, other, "cloned", {"seed": 1}).read() == []
