"""What the methods of all studies have in common."""

import pytest

from align_rudder.studies.method import check_methods
from align_rudder.studies.rooms.methods import METHODS


def test_a_choice_at_an_end_is_told():
    method = METHODS["q-lambda"]
    inside = {"initial_mean": 0.05, "gamma": 0.99, "learning_rate": 0.2, "trace": 0.7}
    assert method.edges({**inside, "initial_scale": 0.3}) == []
    outside = {**inside, "initial_scale": 1.0, "learning_rate": 0.7, "gamma": 1.0, "trace": 0.0}
    assert method.edges(outside) == ["learning_rate=0.7"]
    assert method.edges({**outside, "gamma": 0.8}) == ["gamma=0.8", "learning_rate=0.7"]


def test_a_method_that_is_not_known_is_refused():
    check_methods(["b"], "ab")
    with pytest.raises(ValueError, match="method 'c' is not known; use some of a, b"):
        check_methods(["b", "c"], "ab")
