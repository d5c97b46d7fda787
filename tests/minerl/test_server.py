"""The server of a MineRL environment: messages, and that an old Python can run it."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from align_rudder.minerl import server
from align_rudder.minerl.server import pack, unpack
from align_rudder.minerl.testing import scripted


def test_messages_are_read_back_exactly():
    arrays = [("pov", np.arange(24, dtype=np.uint8).reshape(2, 4, 3)), ("x", np.float32(2.5))]
    header, found = unpack(pack({"do": "step", "ä": [1, None]}, arrays))
    assert header == {"do": "step", "ä": [1, None]}
    for name, array in arrays:
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("module", [server, scripted])
def test_the_other_side_runs_on_python_3_6(module):
    tree = ast.parse(Path(module.__file__).read_text(), feature_version=(3, 6))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert outside <= {"numpy", "gym", "minerl", "pkg_resources"}
