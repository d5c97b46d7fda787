"""What environments return, as wrappers and recording check it."""

import numpy as np
import pytest

from align_rudder.gym.checks import paid_by_environment, paid_to_each


@pytest.mark.parametrize("reward", [1, 1.0, True, np.float32(1), np.array(1.0), np.int64(1)])
def test_numbers_are_rewards(reward):
    paid = paid_by_environment(reward)
    assert (paid, type(paid)) == (1.0, float)
    each = paid_to_each([reward, 0.0], 2)
    assert (each.tolist(), each.dtype) == ([1.0, 0.0], np.float64)


@pytest.mark.parametrize("wrong", ["1", b"1", None, np.nan, -np.inf, 1e60, 1j])
def test_what_is_no_reward_is_refused_from_one_environment_and_from_many(wrong):
    with pytest.raises(ValueError, match="the environment paid"):
        paid_by_environment(wrong)
    with pytest.raises(ValueError, match="the environment paid"):
        paid_to_each([wrong, wrong], 2)


def test_many_environments_pay_one_number_each():
    for wrong in (0.0, [0.0], [[0.0], [0.0]]):
        with pytest.raises(ValueError, match=r"rewards of shape \(2,\), a number for each"):
            paid_to_each(wrong, 2)
