"""Make an interpreter that has minerl's client code, without building Minecraft.

    python tools/minerl_client.py 0.4.4 minerl-client --python python3.8
    export ALIGN_RUDDER_MINERL_CLIENT=$PWD/minerl-client/bin/python

Installing minerl builds Minecraft, with plugins that cannot be had any more. Its Python part alone
needs no build: the source distribution is unpacked beside what it requires. That is enough for the
tests in which only the Java process is replaced (`tests/minerl/test_real_client.py`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

OLD = ("pip<24", "setuptools<60", "wheel<0.40")  # what builds a gym of 2021
GYM = "gym==0.19.0"
NEEDED = ("numpy<1.24", "attrs", "protobuf<4")


@dataclass
class Arguments:
    """Make an interpreter that has minerl's client code."""

    version: Annotated[Literal["0.3.7", "0.4.4"], tyro.conf.Positional]
    """Version of minerl."""
    folder: Annotated[Path, tyro.conf.Positional]
    """The virtual environment; it is made."""
    python: str = "python3.8"
    """An old Python, 3.6 to 3.8."""


def make(version: str, folder: Path, python: str) -> Path:
    """Return the interpreter of a new virtual environment that can import minerl."""
    if folder.exists():
        raise SystemExit(f"{folder} is there already; delete it or give another folder")
    if shutil.which(python) is None:
        raise SystemExit(f"there is no {python}; give an old Python, 3.6 to 3.8, with --python")
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = folder / "bin" / "python"

    def pip(*arguments: str) -> None:
        subprocess.run([str(own), "-m", "pip", *arguments], check=True)

    pip("install", "-q", *OLD)
    pip("install", "-q", *NEEDED, GYM)
    with tempfile.TemporaryDirectory() as scratch:
        source = f"minerl=={version}"
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*download, "--no-binary", ":all:", "-d", scratch, source], check=True)
        with tarfile.open(Path(scratch) / f"minerl-{version}.tar.gz") as archive:
            archive.extractall(scratch, filter="data")
        unpacked = Path(scratch) / f"minerl-{version}"
        required = [
            line
            for line in (unpacked / "requirements.txt").read_text().splitlines()
            if line and not line.startswith(("gym", "setuptools", "numpy", "pytest"))
        ]
        pip("install", "-q", *required)
        (packages,) = (folder / "lib").glob("python*/site-packages")
        shutil.copytree(unpacked / "minerl", packages / "minerl")
    subprocess.run([str(own), "-c", "import minerl"], check=True)
    return own


if __name__ == "__main__":
    given = tyro.cli(Arguments)
    print(f"{make(given.version, given.folder, given.python)} can import minerl {given.version}")
