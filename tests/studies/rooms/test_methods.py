"""The table of methods: same budget for each, and what tuning chose."""

import json
import subprocess
import sys

from align_rudder import baselines, events
from align_rudder.studies.rooms.fair import SAMPLE
from align_rudder.studies.rooms.methods import (
    COMPARED,
    FAIR,
    LONGER,
    METHODS,
    MODELS,
    POOR,
    VARIANTS,
    chosen_parameters,
)


def test_every_method_has_a_learner_and_the_same_budget():
    for method in METHODS.values():
        assert method.function in [getattr(baselines, name) for name in baselines.__all__]
    assert {len(METHODS[name].configurations()) for name in COMPARED} == {24}
    for name in FAIR:
        drawn = METHODS[name].configurations()
        assert len({str(c) for c in drawn}) == len(drawn) == SAMPLE
        for key, values in METHODS[name].grid.items():  # each value is tried about as often
            tried = [sum(c[key] == v for c in drawn) for v in values]
            assert min(tried) >= SAMPLE // len(values) // 2


def test_models_have_events():
    for model in MODELS.values():
        assert model.events is None or hasattr(events, model.events[0])


def test_methods_of_one_figure_can_be_told_apart():
    for drawn in (COMPARED, ("align-rudder", *VARIANTS), FAIR, POOR, LONGER):
        assert len({METHODS[name].color for name in drawn}) == len(drawn)
        assert len({METHODS[name].marker for name in drawn}) == len(drawn)
        assert len({METHODS[name].label for name in drawn}) == len(drawn)


def test_the_chosen_parameters_come_from_the_grids():
    chosen = chosen_parameters()
    assert set(chosen) == set(METHODS)
    for name in (*COMPARED, *FAIR):
        assert chosen[name] in METHODS[name].configurations()
    poor = chosen_parameters(study="poor")
    for name in FAIR:
        assert poor[name] in METHODS[name].configurations()
    assert poor["top-5"] == {**poor["default"], "options": {"top_n": 5}}
    assert chosen["undiscounted"] == chosen["control"]
    assert chosen["kappa"] == {**chosen["align-rudder"], "method": "kappa"}


def test_methods_that_a_file_does_not_hold_have_the_packages_parameters(tmp_path):
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"parameters": {"bc-q": {"learning_rate": 0.5}}}))
    found = chosen_parameters(path)
    assert found["bc-q"] == {"learning_rate": 0.5}
    assert found["dqfd"] == chosen_parameters()["dqfd"]


def test_names_for_the_command_line_come_without_what_learns():
    code = (
        "import sys, align_rudder.studies.rooms.settings as s; print(*s.EXPERIMENTS)\n"
        "assert not {'numba', 'scipy', 'matplotlib', 'jax', 'sklearn'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "four-rooms" in done.stdout
