"""What is made up for tests stays apart: the package itself does without it."""

import ast
from pathlib import Path

import pytest

from align_rudder import minerl

MODULES = sorted(Path(minerl.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_module_imports_what_is_made_up(path):
    """The small world is found by its name, and only when a user asks for it."""
    tree = ast.parse(path.read_text("utf-8"))
    imported = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    imported += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    assert not [name for name in imported if "minerl.testing" in name]
