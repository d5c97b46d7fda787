"""A task with the tracker inside: the tables it needs, and sub-goals as the model has them."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations

pytest.importorskip("jax")
import equinox as eqx
import workshop
from workshop import K

from align_rudder.hierarchy.aligned import tables_of


def test_the_tables_hold_what_subgoals_are_worth():
    model = ar.AlignRudder(ar.DeltaEvents(), strategies=1).fit(crafting_demonstrations(8))
    tables = tables_of(model)
    assert (tables.n_subtasks, tables.n_cells) == (len(model.subgoals_), model.scorer_.n_cells)
    np.testing.assert_allclose(tables.worth, [goal.reward for goal in model.subgoals_], rtol=1e-6)


def test_the_name_of_an_alignment_tells_alignments_apart():
    names = {
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=1, **options).fit(demos)).digest
        for demos in (crafting_demonstrations(8), crafting_demonstrations(8, 3))
        for options in ({}, {"subgoal_conservation": 1.0})
    }
    assert len(names) == 4


def test_models_that_cannot_be_used_are_refused(model):
    with pytest.raises(ValueError, match="DeltaEvents, not StateEvents"):
        tables_of(model)
    demos = crafting_demonstrations(4)
    with pytest.raises(ValueError, match="2 strategies; sub-tasks are those of one"):
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=2).fit(demos))
    with pytest.raises(ValueError, match="no sub-goals; lower its subgoal_threshold"):
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=1, subgoal_threshold=9).fit(demos))


def items(*changes):
    """Return what is held after each of the changes, from nothing on."""
    one = {"wood": [1, 0, 0], "tool": [-2, 1, 0], "gem": [0, 0, 1]}
    return np.cumsum([[0, 0, 0], *(one.get(change, [0, 0, 0]) for change in changes)], axis=0)


@pytest.mark.parametrize(
    ("changes", "subtasks", "reached"),
    [
        (["wood", "", "wood", "tool", "gem"], [1, 1, 2, 3, 4], [True] * K),
        (["wood", "wood", "wood", "tool"], [1, 2, 2, 3], [True] * 3 + [False]),
        # A gem that was found without the tool: what this world does not have is passed by.
        (["wood", "wood", "gem"], [1, 2, 4], [True, True, False, True]),
        (["", "wood"], [0, 1], [True] + [False] * 3),
    ],
)
def test_subtask_and_goals_reached_are_those_of_the_tracker(changes, subtasks, reached):
    known = workshop.known()
    features, follow = items(*changes), eqx.filter_jit(known.task.follow)
    s, stream = known.task.start(None), known.model.stream()
    stream.reset(dict(zip(workshop.FEATURES, features[0], strict=True)))
    goal_at = {goal.column: k for k, goal in enumerate(known.model.subgoals_)}
    for t, subtask in enumerate(subtasks):
        before = int(s.subtask)
        s, out = follow(s, features[t], features[t + 1])
        old, new = (dict(zip(workshop.FEATURES, features[t + i], strict=True)) for i in (0, 1))
        gain = stream.step(old, 0, 0.0, new, {})
        assert int(s.subtask) == stream.subgoal == subtask
        assert int(out.goal) == goal_at.get(stream.column, -1)
        assert bool(out.reached) == (subtask > before)
        assert float(out.gain) == pytest.approx(gain, abs=1e-5)
    assert s.reached.tolist() == reached
