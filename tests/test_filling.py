"""Columns that an alignment missed are found, and nothing of the sequences is lost by that."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import align_rudder as ar
from align_rudder.evidence import kept_columns
from align_rudder.filling import filled
from align_rudder.null import Null
from align_rudder.tasks import RecipesEnv


@settings(deadline=None, derandomize=True)
@given(
    arrays(np.int32, st.tuples(st.integers(2, 8), st.integers(1, 12)), elements=st.integers(-1, 3))
)
def test_sequences_stay_and_evidence_does_not_fall(matrix):
    sequences = [row[row != -1] for row in matrix]
    null = Null.of(sequences, np.full(4, 0.25))
    before = kept_columns(matrix, null)
    new, after = filled(matrix, before, null)
    for row, sequence in zip(new, sequences, strict=True):
        np.testing.assert_array_equal(row[row != -1], sequence)
    assert after.evidence >= before.evidence
    found = kept_columns(new, null)
    np.testing.assert_array_equal(found.columns, after.columns)


def test_an_event_that_is_torn_apart_gets_a_column():
    rng = np.random.default_rng(0)
    chain = [0, 1, 2, 3, 4, 5]
    sequences = [
        np.array([x for e in chain for x in (e, *rng.integers(6, 12, 2))]) for _ in "x" * 8
    ]
    apart = np.full((8, 64), -1, np.int32)
    for i, sequence in enumerate(sequences):  # event 3, the tenth, is nowhere at the same place
        places = [*range(9), 9 + 2 * i, *range(40, 48)]
        apart[i, places] = sequence
    null = Null.of(sequences, np.full(12, 1 / 12))
    before = kept_columns(apart, null)
    _, after = filled(apart, before, null)
    assert before.events.tolist() == [0, 1, 2, 4, 5]
    assert after.events.tolist() == chain


@pytest.mark.parametrize("seed", [0, 1, 3, 30])
def test_recipes_are_found_in_logs_with_detours(seed):
    """In the alignments of the last two, an item is torn apart."""
    envs = [RecipesEnv(12, seed=[seed, j], recipe_seed=seed) for j in range(10)]
    model = ar.AlignRudder().fit_events([env.log(j) for j, env in enumerate(envs)])
    (strategy,) = model.strategies_
    found = [str(goal.symbol).removesuffix(", paid") for goal in strategy.subgoals]
    assert found == [envs[0].symbols[item] for item in envs[0].recipe]


def test_the_shortest_of_a_few_logs_is_paid_in_order():
    logs = [["key", *"xyxz", "door", *"zyx", "key"], ["key", "x", "door", "key"]]
    with pytest.warns(
        ar.AlignRudderWarning, match="2 demonstrations are.*shortest, demonstration 1,"
    ):
        model = ar.AlignRudder().fit_events(logs)
    assert "too few to show what they share" in model.summary()
    assert not len(model.outliers_)
    paid = model.redistribute_events(["door", "key", "y", "x", "door", "key"], ret=1.0).rewards
    assert (paid > 0).tolist() == [False, True, False, True, True, True]


@pytest.mark.parametrize("logs", [["ab", "cd"], ["abcdef", "xyzxyzxyz"]])
def test_what_the_others_do_not_hold_is_not_paid(logs):
    with pytest.warns(ar.AlignRudderWarning, match="share no strategy beyond chance"):
        assert not ar.AlignRudder().fit_events(logs).strategies_


def test_of_many_logs_none_is_picked():
    rng = np.random.default_rng(0)
    logs = [rng.integers(5, size=30).tolist() for _ in range(6)]
    with warnings.catch_warnings(action="ignore", category=ar.AlignRudderWarning):
        assert not ar.AlignRudder().fit_events(logs).strategies_
