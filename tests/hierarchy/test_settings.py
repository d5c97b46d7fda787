"""Configurations of trainings: what cannot be is refused, what was published is read."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
from workshop import TRAINING, Workshop  # noqa: E402

from align_rudder.hierarchy.ppo import LATER, PPO  # noqa: E402
from align_rudder.hierarchy.settings import Training  # noqa: E402
from align_rudder.hierarchy.unordered import kinds_of  # noqa: E402

PUBLISHED = sorted((Path(__file__).parents[2] / "results/diamond-0.1").glob("*/*/training.json"))


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
        (
            {"goals": "none"},
            "goals is 'none'; one of 'alignment', 'flags', 'checklist', 'one', 'kinds'",
        ),
        ({"goals": "kinds", "plain": True, "pay": "task"}, "plain learner has no sub-goals"),
        ({"goals": "checklist", "plain": True, "pay": "task"}, "plain learner has no sub-goals"),
        ({"goals": "kinds", "ppo": PPO(own_subtask=True)}, "no sub-goal is an agent's own"),
        (
            {"beside": 0.3, "pay": "task"},
            r"beside=0\.3 is paid .* with pay='task' it cannot be had",
        ),
        ({"beside": -0.3}, r"beside is -0\.3"),
        ({"beside": 1.0, "ppo": PPO(own_subtask=True)}, "with own_subtask it cannot be had"),
    ],
)
def test_trainings_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Training(**fields)


def test_a_configuration_is_read_as_it_was_written(known):
    later = replace(TRAINING, beside=0.3, goals="one", ppo=PPO(revisit=9, backplay=True))
    for training in (TRAINING, later):
        found = training.configuration(known.tables)
        assert Training.from_configuration(json.loads(json.dumps(found))) == training


def test_a_configuration_without_the_fields_of_later_is_what_trainings_were_before(known):
    """Whatever the defaults are today."""
    ppo = PPO(**{name: value for name, value in LATER.items() if hasattr(PPO, name)})
    before = Training(ppo=ppo, beside=LATER["beside"], goals=LATER["goals"])
    found = before.configuration(known.tables)
    assert not {*found, *found["ppo"]} & {*LATER}
    assert Training.from_configuration(found) == before != Training()
    whole = {**asdict(before), "alignment": "x"}  # one that has them says the same
    assert Training.from_configuration(json.loads(json.dumps(whole))) == before


def test_tables_of_other_subgoals_are_refused(known):
    kinds = kinds_of(known.model)[0]
    with pytest.raises(ValueError, match="goals is 'alignment', and the tables are Checklist"):
        TRAINING.aligned(Workshop(), kinds)
    with pytest.raises(ValueError, match="goals is 'kinds', and the tables are AlignmentTables"):
        replace(TRAINING, goals="kinds").aligned(Workshop(), known.tables)


@pytest.mark.skipif(not PUBLISHED, reason="results are not part of the package")
def test_published_trainings_of_version_0_1_are_read():
    for path in PUBLISHED:
        written = json.loads(path.read_text())
        training = Training.from_configuration(written)
        assert training.ppo.gae_lambda == written["ppo"]["trace"]
        assert training.ppo.ent_coef == written["ppo"]["entropy"]
        assert (training.steps, training.name) == (written["steps"], written["name"])
