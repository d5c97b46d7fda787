"""Configurations of trainings: what cannot be is refused, what was published is read."""

import json
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
from workshop import TRAINING  # noqa: E402

from align_rudder.hierarchy.ppo import PPO  # noqa: E402
from align_rudder.hierarchy.settings import Training  # noqa: E402

PUBLISHED = sorted((Path(__file__).parents[2] / "results/diamond").glob("*/*/training.json"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps is 0; a whole number from 1"),
        ({"worlds": 0}, "worlds is 0; a whole number of at least 1"),
        ({"clone": -1}, "clone is -1"),
        ({"manager": 1.0}, r"manager is 1\.0; a number at least 0 and below 1"),
        ({"manager": -0.1}, r"manager is -0\.1"),
        ({"plain": True}, "plain learner is paid 'task' or 'dense', not 'subgoal'"),
        ({"pay": "nothing"}, "pay is 'nothing'; one of 'subgoal', 'step'"),
        ({"ppo": PPO(own_subtask=True), "pay": "task"}, r"own_subtask .* pay='task' cannot"),
    ],
)
def test_trainings_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Training(**fields)


def test_a_configuration_is_read_as_it_was_written(known):
    found = TRAINING.configuration(known.tables)
    assert Training.from_configuration(json.loads(json.dumps(found))) == TRAINING


@pytest.mark.skipif(not PUBLISHED, reason="results are not part of the package")
def test_published_trainings_of_version_0_1_are_read():
    for path in PUBLISHED:
        written = json.loads(path.read_text())
        training = Training.from_configuration(written)
        assert training.ppo.gae_lambda == written["ppo"]["trace"]
        assert training.ppo.ent_coef == written["ppo"]["entropy"]
        assert (training.steps, training.name) == (written["steps"], written["name"])
