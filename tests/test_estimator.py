"""Estimators: what scikit-learn makes of them, and what importing them loads."""

import subprocess
import sys

import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import align_rudder as ar
from align_rudder._estimator import Estimator

RUNS = ["KDC", "KxDC", "KDyC"]


class Outer(Estimator):
    def __init__(self, inner=None, size=1):
        self.inner = inner
        self.size = size


def test_scikit_learn_takes_it_as_an_estimator():
    model = ar.AlignRudder(gap=0.5).fit_events(RUNS)
    check_is_fitted(model)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "strategies_")
    assert get_tags(copy).estimator_type is None
    assert make_pipeline(copy).set_params(alignrudder__gap=0.0).named_steps["alignrudder"].gap == 0
    for parameters in ParameterGrid({"hidden": [4, 8]}):
        assert clone(ar.LstmRudder()).set_params(**parameters).hidden == parameters["hidden"]


def test_a_model_can_be_cloned_and_set_by_its_parameters():
    model = ar.AlignRudder(gap=0.5, top_n=3).fit_events(RUNS)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "strategies_")
    assert copy.set_params(gap=0.0).gap == 0.0


def test_parameters_of_parameters():
    outer = Outer(Outer(size=2))
    assert outer.get_params(deep=False) == {"inner": outer.inner, "size": 1}
    assert outer.get_params()["inner__size"] == 2
    assert outer.set_params(inner__size=3, size=4).inner.size == 3
    assert repr(outer) == "Outer(inner=Outer(size=3), size=4)"
    copy = clone(outer)
    assert copy.inner is not outer.inner
    assert repr(copy) == repr(outer)


def test_an_unknown_parameter_is_named():
    with pytest.raises(ValueError, match=r"'width' for estimator Outer.*inner.*size"):
        Outer().set_params(width=1)


def test_importing_model_tasks_and_wrappers_loads_nothing_heavy():
    modules = [f"align_rudder.{name}" for name in ("model", "events", "tasks", "gym.vector")]
    heavy = {"matplotlib", "sklearn", "scipy.stats", "scipy.cluster", "jax", "align_rudder.show"}
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded >= set(modules)
    assert not heavy & loaded
