"""The methods of the recipes: the same budget for each, and what is drawn for it."""

import json
from inspect import signature

import pytest

from align_rudder.baselines import learn_align_rudder, learn_rounds, learn_unordered
from align_rudder.studies.recipes.methods import (
    BUDGET,
    METHODS,
    OURS,
    TUNED,
    chosen_parameters,
    read_parameters,
)
from align_rudder.studies.recipes.settings import AXES, settings_of
from align_rudder.studies.recipes.trials import LEARNERS

UNTUNED = ["defaults", "consensus-alone", "replayed", "median-replayed", "collect-told-defaults"]


@pytest.mark.parametrize("name", TUNED)
def test_every_method_has_the_same_number_of_configurations_and_all_values_come(name):
    method = METHODS[name]
    found = method.configurations()
    assert found == method.configurations()
    assert len({json.dumps(c) for c in found}) == len(found) == BUDGET
    assert found[0] == method.first
    for parameter, values in method.grid.items():
        assert {c[parameter] for c in found} == {*values}
        assert {"gamma", "trace"} <= method.grid.keys()
    assert chosen_parameters()[name] in found


def test_what_is_not_tuned_has_the_defaults_of_the_library():
    chosen = chosen_parameters()
    told = chosen.pop("collect-told")
    assert [name for name in chosen if name not in TUNED] == UNTUNED
    assert all(chosen[name] == {} for name in UNTUNED)
    assert told == chosen["collect"]


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        (OURS, learn_align_rudder),
        ("shortest-log", learn_align_rudder),
        ("common-subsequence", learn_align_rudder),
        ("unordered", learn_unordered),
        ("rounds", learn_rounds),
        ("collect", learn_rounds),
    ],
)
def test_all_that_learn_as_ours_does_are_tried_with_the_defaults_first(name, learner):
    arguments, method = signature(learner).parameters, METHODS[name]
    assert all(arguments[key].default == value for key, value in method.first.items())
    assert method.grid.items() >= METHODS[OURS].grid.items()


def test_methods_can_be_told_apart_and_all_are_learned():
    assert [*LEARNERS] == [*METHODS]
    for what in ("label", "color", "marker"):
        assert len({getattr(method, what) for method in METHODS.values()}) == len(METHODS)


def test_a_file_of_parameters_replaces_those_of_its_methods(tmp_path):
    path = tmp_path / "h.json"
    ours = {**METHODS[OURS].first, "gamma": 0.5}
    path.write_text(json.dumps({"parameters": {OURS: ours}}))
    assert chosen_parameters(path) == {**chosen_parameters(), OURS: ours}
    path.write_text(json.dumps({"parameters": {OURS: {**ours, "settlement": "none"}}}))
    with pytest.raises(ValueError, match="tune recipes"):
        read_parameters(path)


def test_settings_are_there_once_and_may_be_a_part():
    every = settings_of()
    with_logs = AXES[-1].methods
    without_logs = {"q-memory", "rrd", "ircr-absorbing", "gail-inventory"}
    replayed, told = {"replayed", "median-replayed"}, {"collect-told", "collect-told-defaults"}
    assert without_logs | replayed | told == {*METHODS} - {*with_logs}
    everywhere = len(METHODS) - 4
    assert len({*every}) == len(every) == 18 * everywhere + 7 * 2 + 3 * 2 + 8 * len(with_logs)
    assert {s.wrong for s in every if s.method in told} == {"undo"}
    assert {s.wrong for s in every if s.method in replayed} == {"nothing"}
    assert {s.length for s in settings_of(["rrd"], [50])} == {12}
    assert sum(len(axis.tasks) for axis in AXES) == 19 + 3 + 12
    with pytest.raises(ValueError, match="3 logs were asked for"):
        settings_of([], [3])
    with pytest.raises(ValueError, match="'dqfd' is not known"):
        settings_of(["dqfd"])
