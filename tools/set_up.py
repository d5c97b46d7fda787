"""Set up .venv with the package and some of its extras; used by the Makefile.

    python3 tools/set_up.py test

Safe to interrupt and to run in two terminals at once: one sets up, the other waits. Nothing is done
if the same set-up was finished before and pyproject.toml and constraints.txt have not changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
HAVE = {"": ("test", "bench", "dev"), "test": ("bench", "dev")}
"""Extras that hold all of another one."""


def works() -> bool:
    """Return whether the virtual environment is there and has pip."""
    command = [str(PYTHON), "-m", "pip", "--version"]
    return PYTHON.exists() and subprocess.run(command, capture_output=True).returncode == 0


def main(extra: str) -> None:
    """Create the environment if need be and install the package with one extra ("" for none)."""
    files = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    wanted = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()
    stamp = VENV / f".set-up-{extra or 'core'}"
    with open(ROOT / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamps = [stamp, *(VENV / f".set-up-{more}" for more in HAVE.get(extra, ()))]
        if any(s.exists() and s.read_text() == wanted for s in stamps) and works():
            return
        if not works():
            print("creating .venv", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        target = f"{ROOT}[{extra}]" if extra else str(ROOT)
        print("installing the package and what it needs; minutes the first time", flush=True)
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), "-e", target], check=True)
        stamp.write_text(wanted)


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
    except KeyboardInterrupt:
        sys.exit("interrupted; run the same command again to go on")
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up failed: {error}")
