"""MineRL: environments that play, and sub-agents that train, at the same time."""

import json
import shutil
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("av")
from small_networks import contents, first_subtasks, opened, small_networks

from align_rudder.hierarchy import practice
from align_rudder.hierarchy.fine_tuning import FineTuning
from align_rudder.hierarchy.ppo import PPO
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.playing import open_game
from align_rudder.minerl.sub_agents import clone_apart
from align_rudder.minerl.training import Games, MineRLTraining, frames_of, train
from align_rudder.runs.checkpoint import notes_of
from align_rudder.runs.workers import Workers

TUNING = FineTuning(
    steps=128,
    burn_in=32,
    patience=12,
    evaluate_every=64,
    trials=5,
    enough=2.0,
    ppo=PPO(n_envs=1, n_steps=16, n_epochs=1, n_minibatches=1, bc_coef=0.0),
)
TRAINING = MineRLTraining(
    frames=2, cloning=Cloning(epochs=3, batch=8, evaluate_every=1), tuning=TUNING, managing=TUNING
)
WORLD = {"distance": 1, "spread": 90, "hits": 1}

pytestmark = pytest.mark.filterwarnings("ignore:agent-")


@pytest.fixture(autouse=True, scope="module")
def linear_agents(compiled_quickly):
    with small_networks():
        yield


@pytest.fixture(scope="module")
def model(filmed):
    return fit_events(filmed, 5)


@pytest.fixture(scope="module")
def subtasks(filmed, model):
    return first_subtasks(filmed, model, 3)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return ArrayCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def games(model):
    return Games(partial(open_game, model, module="scripted", world=WORLD, frames=2), n=2)


@dataclass(frozen=True)
class Backwards(Workers):
    """Does the jobs in this process, the last one first; as networks are small in this one only."""

    given: tuple = ()

    def results(self, jobs):
        for call, arguments in list(jobs)[::-1]:
            k = arguments[0].k if call is clone_apart else arguments[1]
            self.given[0].append((call.__name__, k))
            yield call(*arguments)


@pytest.fixture(scope="module")
def trained(subtasks, cache, games, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    found = train(subtasks, folder, cache, TRAINING, games)
    return folder, found


def test_the_result_does_not_depend_on_who_trains_when(trained, subtasks, cache, games, tmp_path):
    folder, found = trained
    order = []
    apart = train(subtasks, tmp_path / "run", cache, TRAINING, games, Backwards(2, given=(order,)))
    assert order[:3] == [("clone_apart", k) for k in (2, 1, 0)]
    assert ("tune_apart", 0) in order
    assert apart[:2] == found[:2]
    assert contents(tmp_path / "run") == contents(folder)
    assert apart.crashes.steps == found.crashes.steps


def test_environments_that_take_turns_come_to_the_same(
    trained, subtasks, cache, games, tmp_path, monkeypatch
):
    monkeypatch.setattr(practice, "together", lambda calls: [call() for call in calls])
    train(subtasks, tmp_path / "run", cache, TRAINING, games)
    assert contents(tmp_path / "run") == contents(trained[0])


def test_every_frame_is_counted_by_what_it_was_for(trained):
    folder, found = trained
    frames = frames_of(folder, TRAINING.skip)
    practised = {
        path.name: notes_of(path)["counts"]["practised"] for path in folder.glob("agent-*")
    }
    assert practised["agent-0.npz"] == TUNING.steps
    assert frames["practised"] == 4 * (
        sum(practised.values()) + notes_of(folder / "manager.npz")["counts"]["practised"]
    )
    assert {"judged", "practised"} <= set(frames)
    # Scouting between the stages is all that no agent's file tells of.
    assert 0 <= found.crashes.steps - sum(frames.values()) / 4 <= 6 * 4 * 3 * 2 * TUNING.patience


def test_clones_are_chosen_by_their_trials(trained, subtasks):
    for k in range(len(subtasks)):
        rows = [row.split(",") for row in (trained[0] / f"cloning-{k}.csv").read_text().split()[1:]]
        scores = {int(epoch): float(score) for epoch, _, score in rows}
        chosen = notes_of(trained[0] / f"cloned-{k}.npz")["epoch"]
        assert sorted(scores) == [1, 2, 3]
        if not np.isnan(list(scores.values())).any():
            assert chosen == max(scores, key=lambda epoch: (scores[epoch], epoch))
    assert not list(trained[0].glob("candidate*"))


def test_what_one_of_them_meets_does_not_throw_away_the_work_of_others(
    trained, subtasks, cache, games, model, tmp_path
):
    """The game of sub-task 1 cannot be opened; sub-task 0, which comes after it, is saved first."""
    folder, calls = tmp_path / "run", []

    def open_it():
        calls.append(0)
        if len(calls) in (7, 8):  # two for judging, two for scouting, two of sub-task 2
            raise RuntimeError("no screen")
        return games.open()

    with pytest.raises(RuntimeError, match="no screen"):
        train(subtasks, folder, cache, TRAINING, Games(open_it, 2), Backwards(2, given=([],)))
    assert not (folder / "agent-1.npz").exists()
    assert not (folder / ".stop").exists()
    train(subtasks, folder, cache, TRAINING, games)
    assert contents(folder).keys() == contents(trained[0]).keys()


def test_a_round_that_was_begun_goes_on_with_the_same_players(
    trained, subtasks, cache, games, tmp_path
):
    """As if it had been killed when the first sub-agent of the round was done."""
    folder = tmp_path / "run"
    shutil.copytree(trained[0], folder)
    players = ["cloned-0.npz", "cloned-1.npz", "cloned-2.npz"]
    (folder / "round.json").write_text(json.dumps({"players": players}))
    for name in ("agent-1.npz", "agent-2.npz", "manager.npz"):
        (folder / name).unlink()
    before = contents(folder)
    train(subtasks, folder, cache, TRAINING, opened(*[games.open() for _ in range(2)]))
    after = contents(folder)
    assert after["agent-0.npz"] == before["agent-0.npz"]
    assert not (folder / "round.json").exists()
