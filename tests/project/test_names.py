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
HEAVY = ["matplotlib", "scipy", "sklearn", "numba", "jax", "torch", "align_rudder.baselines"]


def loaded_by(code):
    """Return the names of all modules that a fresh interpreter holds after running code."""
    code = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_by("import align_rudder") & set(HEAVY)


@pytest.mark.parametrize("name", ar.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(ar)
    thing = getattr(ar, name)
    assert getattr(thing, "__module__", getattr(thing, "__name__", "")).startswith("align_rudder")


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


@pytest.mark.parametrize("old", _moved.MOVED)
def test_old_modules_are_the_new_ones(old):
    if "diamond" in old:
        pytest.importorskip("craftax")
    assert importlib.import_module(old) is importlib.import_module(_moved.MOVED[old])
    assert importlib.import_module(old).__name__ == _moved.MOVED[old]


def test_old_modules_are_found_by_every_form_of_import():
    found = loaded_by(
        "import align_rudder.envs, align_rudder.plot as plot\n"
        "from align_rudder.integrations.minari import load_minari\n"
        "from align_rudder.report import write_report\n"
        "import align_rudder as ar\n"
        "assert ar.envs is align_rudder.envs and ar.plot is plot\n"
        "assert ar.write_report is write_report"
    )
    assert "align_rudder.tasks" in found
