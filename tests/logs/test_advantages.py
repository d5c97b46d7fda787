"""Advantages of turns for trainers that compare rollouts of one task."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_rudder.logs import turn_advantages

rollouts = st.lists(
    st.lists(st.floats(-10, 10).map(lambda x: round(x, 6)), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(rollouts, st.floats(0, 3))
def test_the_mean_over_turns_is_the_advantage_of_grpo(group, beta):
    returns = np.array([sum(row) for row in group])
    scale = returns.std() if returns.std() > 1e-12 else 1.0
    for row, ret in zip(turn_advantages(group, beta), returns, strict=True):
        expected = (ret - returns.mean()) / scale
        assert np.mean(row) == pytest.approx(expected, abs=1e-6 * (1 + abs(expected)))


@given(rollouts, st.data())
def test_turns_have_no_advantage_for_their_index(group, data):
    orders = [data.draw(st.permutations(range(len(row)))) for row in group]
    moved = [[row[i] for i in order] for row, order in zip(group, orders, strict=True)]
    straight = turn_advantages(group, normalise=False)
    for row, order, there in zip(
        straight, orders, turn_advantages(moved, normalise=False), strict=True
    ):
        np.testing.assert_allclose([row[i] for i in order], there, atol=1e-9)


@pytest.mark.parametrize(
    ("group", "beta", "why"),
    [
        ([[1.0], [float("nan")]], 1.0, "reward 0 of rollout 1 is nan"),
        ([[None, float("inf")]], 1.0, "reward 1 of rollout 0 is inf"),
        ([["1.0"]], 1.0, "reward 0 of rollout 0 is '1.0'"),
        ([[True]], 1.0, "reward 0 of rollout 0 is True"),
        ([1.0], 1.0, "rollout 0 is 1.0; a list of numbers is needed"),
        ([[1.0]], float("nan"), "beta is nan"),
        ([[1.0]], None, "beta is None"),
    ],
)
def test_what_is_no_number_is_refused(group, beta, why):
    with pytest.raises(ValueError, match=why):
        turn_advantages(group, beta)


def test_arrays_of_numpy_will_do():
    rows = [[1.0, 0.0], [-0.5, 0.5]]
    assert turn_advantages(list(np.array(rows, np.float32))) == turn_advantages(rows)


def test_messages_that_are_no_turns_have_none_and_failed_groups_still_tell():
    rows = turn_advantages([[None, 0.5, None, -0.5], [None, 0.0, 0.0, None]])
    assert rows == [[None, 0.5, None, -0.5], [None, 0.0, 0.0, None]]
    assert turn_advantages([]) == []
    with pytest.raises(ValueError, match=r"rollouts \[1\] have no turn"):
        turn_advantages([[1.0], [None]])
