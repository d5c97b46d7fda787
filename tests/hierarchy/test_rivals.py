"""What the study of the diamond compares with can be trained: here in the workshop."""

from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import workshop  # noqa: E402

import align_rudder as ar  # noqa: E402
from align_rudder.hierarchy.aligned import tables_of  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate, new_worlds  # noqa: E402
from align_rudder.hierarchy.folder import load_agent, load_manager  # noqa: E402
from align_rudder.hierarchy.trainer import train  # noqa: E402
from align_rudder.hierarchy.unordered import kinds_of  # noqa: E402
from align_rudder.presets import PAPER  # noqa: E402
from align_rudder.runs.rows import read_rows  # noqa: E402
from align_rudder.studies.diamond.methods import METHODS  # noqa: E402

SMALL = replace(workshop.TRAINING, steps=14_000, worlds=16, evaluations=1, manager=0.4)
NEW = ("no-starts", "one-demonstration", "kinds", "backplay")  # the others differ in numbers alone


def tables_for(goals, known):
    """Return the tables; the workshop counts nothing but items, so that "items" are the same."""
    if goals == "kinds":
        return kinds_of(known.model)[0]
    if goals == "one":
        states, actions = known.runs[0]
        observations = {n: states.items[:, i] for i, n in enumerate(workshop.FEATURES)}
        rewards = np.eye(len(actions))[-1]
        one = ar.Episode(observations, actions, rewards, terminated=True)
        return tables_of(
            ar.AlignRudder(
                ar.DeltaEvents(keys=workshop.FEATURES),
                strategies=1,
                subgoal_threshold=0.0,
                **PAPER,
            ).fit([one, one])
        )
    return known.tables


@pytest.mark.slow
@pytest.mark.parametrize("method", NEW)
def test_each_can_be_trained_and_loaded(method, known, tmp_path, compiled_quickly):
    differs = METHODS[method]
    ppo = replace(SMALL.ppo, **differs.ppo, revisit=7)
    training = replace(SMALL, ppo=ppo, name=method, **differs.training)
    tables, task = tables_for(training.goals, known), workshop.Workshop()
    train(task, tables, known.runs, training, tmp_path, progress=False)
    rows = read_rows(tmp_path / "updates.csv", text=("phase",))
    assert {row["phase"] for row in rows} == {"agents", *(["manager"] if training.manager else [])}
    agents = [row for row in rows if row["phase"] == "agents"]
    fresh = [int(row["ended_fresh"]) / int(row["ended"]) for row in agents if int(row["ended"])]
    assert (min(fresh) == 1) == (method == "no-starts")

    aligned = training.aligned(task, tables)
    agent = load_agent(tmp_path, aligned, training)
    if training.manager:
        aligned, agent = load_manager(tmp_path, aligned, training)
    worlds = new_worlds(aligned, jax.random.key(1), 8)
    found = eqx.filter_jit(evaluate)(aligned, agent, worlds, jax.random.key(0), 60)
    named = np.array(["gem", "time"])[found.ending]
    np.testing.assert_array_equal(named == "gem", found.solved)
    assert found.reached.shape == (8, tables.n_subtasks)
