"""The folder of a training: what does not belong there, is lost or damaged is named."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
from workshop import TRAINING, train_in  # noqa: E402

from align_rudder.hierarchy.folder import load_agent, steps_so_far  # noqa: E402
from align_rudder.runs.checkpoint import load_tree, save_tree  # noqa: E402
from align_rudder.runs.lock import only_here  # noqa: E402

OLD_NAMES = {
    "n_epochs": "epochs",
    "n_minibatches": "minibatches",
    "gae_lambda": "trace",
    "clip_eps": "clip",
    "ent_coef": "entropy",
    "vf_coef": "value_weight",
    "max_grad_norm": "max_norm",
    "bc_coef": "cloning",
}


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of a finished training."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def test_a_finished_training_is_left_as_it_is(trained, folder, known):
    train_in(folder)
    for path in trained.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name
    assert steps_so_far(folder, TRAINING, known.tables) is None


def test_a_folder_of_another_training_is_refused(folder, known):
    other = replace(TRAINING, ppo=replace(TRAINING.ppo, gamma=0.9), seed=3)
    with pytest.raises(ValueError, match=r"ppo\.gamma is 0\.98 there and 0\.9 here; seed is 0 the"):
        train_in(folder, other)
    backwards = [(states, actions[::-1]) for states, actions in known.runs]
    with pytest.raises(ValueError, match="belongs to a training with other demonstrations"):
        train_in(folder, runs=backwards)
    with only_here(folder), pytest.raises(ValueError, match="another run is writing to"):
        train_in(folder)


@pytest.mark.parametrize("name", ["agent.npz", "manager.npz"])
def test_lost_agents_of_a_finished_training_are_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"agents are lost: .*{name}.*train again in another"):
        train_in(folder)


def test_damaged_files_are_named(folder):
    text = (folder / "training.json").read_text()
    (folder / "training.json").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"training.json is damaged .* give another folder"):
        train_in(folder)
    (folder / "training.json").write_text(text)
    (folder / "checkpoint.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"checkpoint.npz cannot be read .* begin anew in another"):
        train_in(folder)
    logs = {name: (folder / name).read_bytes() for name in ("updates.csv", "evaluations.csv")}
    (folder / "checkpoint.npz").unlink()
    with pytest.raises(ValueError, match="has the logs of a training but no checkpoint"):
        train_in(folder)
    assert logs == {name: (folder / name).read_bytes() for name in logs}


# Version 0.1


def as_of_0_1(configuration):
    ppo = {OLD_NAMES.get(name, name): value for name, value in configuration["ppo"].items()}
    return {**configuration, "ppo": ppo}


def test_agents_of_version_0_1_are_loaded(folder, known):
    agent = load_agent(folder, known.task, TRAINING)
    configuration = TRAINING.configuration(known.tables)
    save_tree(folder / "old.npz", agent, as_of_0_1(configuration))
    with pytest.raises(ValueError, match=r"ppo\.clip is 0\.2 there and not known"):
        load_tree(folder / "old.npz", agent, configuration)
    found = load_agent(folder, known.task, TRAINING, "old.npz")
    for a, b in zip(jax.tree.leaves(agent), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(a, b)
    other = replace(TRAINING, ppo=replace(TRAINING.ppo, gae_lambda=0.9))
    with pytest.raises(ValueError, match=r"ppo\.gae_lambda is 0\.95 there and 0\.9 here"):
        load_agent(folder, known.task, other, "old.npz")


def test_trainings_of_version_0_1_do_not_go_on(folder, known):
    configuration = as_of_0_1(TRAINING.configuration(known.tables))
    (folder / "training.json").write_text(json.dumps(configuration))
    save_tree(folder / "checkpoint.npz", (), configuration, {"phase": "agents", "steps": 7})
    with pytest.raises(ValueError, match=r"ppo\.clip is 0\.2 there and not known.*another folder"):
        train_in(folder)
    assert steps_so_far(folder, TRAINING, known.tables) == 7
