"""Public names: all reachable, old modules where they were, and nothing heavy loaded for them."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import align_rudder as ar
from align_rudder import _moved

INIT = Path(ar.__file__)
# The public names of each module of version 0.1, by the module where they are now.
OLD = json.loads((Path(__file__).parents[1] / "data/v0.1/modules.json").read_text("utf-8"))
HEAVY = ["matplotlib", "scipy", "sklearn", "numba", "jax", "torch", "align_rudder.baselines"]


def printed_by(code):
    """Return the lines that a fresh interpreter prints; what it says of an error is our own."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def loaded_by(code):
    """Return the names of all modules that a fresh interpreter holds after running code."""
    code = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    return set(json.loads(printed_by(code)[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_by("import align_rudder") & set(HEAVY)


@pytest.mark.parametrize("name", ar.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(ar)
    thing = getattr(ar, name)
    assert getattr(thing, "__module__", getattr(thing, "__name__", "")).startswith("align_rudder")


def test_modules_are_called_as_their_folders_are_and_as_they_were():
    assert ar.baselines is ar.tabular is importlib.import_module("align_rudder.baselines")
    assert ar.tasks is ar.envs is importlib.import_module("align_rudder.tasks")
    assert ar.figures is ar.plot is importlib.import_module("align_rudder.show.figures")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'aline'"):
        _ = ar.aline


def test_type_checkers_see_the_names_where_they_are_imported_from():
    """The block for type checkers and the table that is used say the same."""
    tree = ast.parse(INIT.read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in block.body
        for alias in node.names
    }
    for name, (module, inner) in seen.items():
        found = importlib.import_module(module)
        inside = getattr(found, inner, None) or importlib.import_module(f"{module}.{inner}")
        assert getattr(ar, name) is inside
    assert {*seen, "AlignRudderWarning"} == set(ar.__all__)


def import_or_skip(module):
    """Import a module of the package, unless an optional library that it needs is missing."""
    for part, library in {"diamond": "craftax", "hierarchy": "jax", "minerl": "jax"}.items():
        if part in module:
            pytest.importorskip(library)
    return importlib.import_module(module)


@pytest.mark.parametrize("old", OLD)
def test_old_modules_are_the_new_ones(old):
    """Not copies of them: a class of one is that of the other, and so is what is changed in it."""
    module = import_or_skip(f"align_rudder.{old}")
    for home, names in OLD[old].items():
        new = importlib.import_module(f"align_rudder.{home}")
        for name in names:
            assert getattr(module, name) is getattr(new, name), name
    if len(OLD[old]) == 1:
        assert module.__name__ == f"align_rudder.{next(iter(OLD[old]))}"
        assert module is sys.modules[module.__name__]


def test_what_is_loaded_already_does_not_stand_for_a_module_that_became_several():
    found = printed_by("""
import align_rudder.studies.rooms.studies
import align_rudder.experiments
from align_rudder.experiments.studies import run_key_chest
print(run_key_chest.__module__)
""")
    assert found == ["align_rudder.studies.key_chest"]


@pytest.mark.parametrize("old", sorted(_moved.MOVED))
def test_old_modules_have_one_name_and_what_left_them_is_found(old):
    module = import_or_skip(old)
    left = _moved.NAMES.get(old.removeprefix("align_rudder."), {})
    assert module.__name__ == (old if left else _moved.MOVED[old])
    assert {*left} <= {*dir(module), *getattr(module, "__all__", ())}
    with pytest.raises(AttributeError, match="nonsense"):
        _ = module.nonsense


@pytest.mark.parametrize("old", ["align_rudder.envs.nonsense", "align_rudder.wrappers.nonsense"])
def test_what_never_was_is_not_found_below_an_old_name(old):
    with pytest.raises(ModuleNotFoundError, match="nonsense"):
        importlib.import_module(old)


def test_an_old_module_does_not_take_the_place_of_a_function_of_its_name():
    found = printed_by(
        "from align_rudder.plot.curves import curves\n"
        "import align_rudder as ar\n"
        "print(ar.plot.curves is curves, type(ar.plot.curves).__name__)"
    )
    assert found == ["True function"]


def test_old_modules_are_found_by_every_form_of_import():
    found = printed_by(
        "import align_rudder.envs, align_rudder.plot as plot\n"
        "from align_rudder.integrations.minari import load_minari\n"
        "from align_rudder.report import write_report\n"
        "import align_rudder as ar\n"
        "print(ar.envs is align_rudder.envs, ar.plot is plot, ar.write_report is write_report)\n"
        "print(ar.envs.__name__, plot.__name__, load_minari.__module__)"
    )
    assert found == [
        "True True True",
        "align_rudder.tasks align_rudder.show.figures align_rudder.data.minari",
    ]
