"""Damaged files and odd command lines, in large: `python tools/fuzz.py files -n 100000`."""

import os
import sys
from pathlib import Path

TESTS = str(Path(__file__).parents[1] / "tests")

if __name__ == "__main__":
    sys.path.insert(0, TESTS)
    os.environ["PYTHONPATH"] = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])
    from fuzzing.__main__ import main

    sys.exit(main())
