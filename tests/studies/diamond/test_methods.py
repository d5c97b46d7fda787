"""Methods differ in what they say and in nothing else."""

from collections import Counter
from dataclasses import replace

import pytest

pytest.importorskip("jax")
from align_rudder.studies.diamond.methods import (
    METHODS,
    OURS,
    label_of,
    order_of,
    training_of,
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [8_000_000, 240_000_000])
def test_methods_differ_from_ours_in_what_they_say_only(method, steps):
    ours, theirs = training_of(OURS, steps), training_of(method, steps)
    said = METHODS[method]
    back = {name: getattr(ours, name) for name in said.training}
    ppo = replace(theirs.ppo, **{name: getattr(ours.ppo, name) for name in said.ppo})
    assert replace(theirs, ppo=ppo, name=OURS, **back) == ours
    assert theirs.name == method
    assert all(getattr(theirs, name) == value for name, value in said.training.items())
    assert all(getattr(theirs.ppo, name) == value for name, value in said.ppo.items())
    assert theirs.plain == said.baseline


def test_baselines_know_nothing_of_the_demonstrations():
    for method in (name for name, method in METHODS.items() if method.baseline):
        theirs = training_of(method)
        assert theirs.pay in ("task", "dense")
        assert theirs.ppo.fresh == 1.0
        assert theirs.clone == theirs.manager == theirs.ppo.bc_coef == 0


def test_options_change_training_and_ppo_and_none_leaves_them():
    base = training_of("separate")
    assert training_of("separate", gamma=None, hidden=None) == base
    changed = training_of("separate", gamma=0.9, hidden=(8,), pool=3)
    assert changed == replace(base, ppo=replace(base.ppo, gamma=0.9), hidden=(8,), pool=3)
    with pytest.raises(TypeError, match="no_such_field"):
        training_of("separate", no_such_field=1)


def test_methods_look_different_and_stand_in_order():
    assert len({method.marker for method in METHODS.values()}) == len(METHODS)
    colors = Counter(method.color for method in METHODS.values())
    assert max(colors.values()) == 2  # there are fewer colors than methods
    assert colors[METHODS[OURS].color] == 1
    assert sorted(METHODS, key=order_of) == list(METHODS)
    assert order_of("something else") == len(METHODS)
    assert label_of("no-cloning") == "Align-RUDDER, without cloning"
    assert label_of("no-cloning", alone=False) == "… without cloning"


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match=r"no method 'dqn'.*align-rudder"):
        training_of("dqn")
