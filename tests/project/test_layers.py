"""A lower layer of the package imports nothing from a higher one, and no imports go in circles."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "align_rudder"

# From the lowest to the highest; a unit is a module or a folder. Only `__init__` and `__main__`
# stand above all.
LAYERS = [
    {
        "_compile",
        "_display",
        "_interrupted",
        "_estimator",
        "_moved",
        "_registration",
        "_warnings",
        "files",
        "presets",
        "sequences",
    },
    {"text"},
    {"episodes", "fasta"},
    {"events", "scoring", "kernels"},
    {"clustalw", "alignment"},
    {"null", "evidence", "agreement", "groups", "sampling", "subsequence"},
    {"orders", "branches", "filling", "realignment"},
    {"strategies", "profile"},
    {"settlement"},
    {"redistribution", "undo"},
    {"returns", "chance"},
    {"tracking", "tracking_jax", "streams"},
    {"subtasks"},
    {"choice", "demonstrations", "fitting", "model", "storage", "summary", "validation"},
    {"data", "runs"},
    {"logs"},
    {"tasks"},
    {"baselines"},
    {"gym"},
    {"show"},
    {"hierarchy"},
    {"minerl"},
    {"studies"},
    {"cli"},
    {"__init__", "__main__"},
]
RANK = {unit: rank for rank, units in enumerate(LAYERS) for unit in units}


def modules():
    """Return the tree of every module by its name without the package's."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): (
            ast.parse(path.read_text("utf-8"))
        )
        for path in sorted(PACKAGE.rglob("*.py"))
    }


MODULES = modules()


def imported(tree):
    """Yield the modules of the package that a module imports anywhere, and on which line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("align_rudder."):
                name = name.removeprefix("align_rudder.")
                yield (name if name in MODULES else name.rpartition(".")[0]), node.lineno


def for_types_only(tree):
    """Return the lines under `if TYPE_CHECKING:`."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_lower_layers(name):
    unit = name.split(".")[0]
    upwards = [
        f"line {line}: {other}"
        for other, line in imported(MODULES[name])
        if other.split(".")[0] != unit and RANK[other.split(".")[0] or "__init__"] > RANK[unit]
    ]
    assert not upwards


def test_no_imports_go_in_circles():
    graph = {}
    for name, tree in MODULES.items():
        skipped = for_types_only(tree)
        graph[name] = {
            other for other, line in imported(tree) if line not in skipped and other != name
        }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1][::-1]))
