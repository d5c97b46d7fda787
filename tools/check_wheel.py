"""Build the package, install the wheel alone into an empty environment, and use it there.

    python tools/check_wheel.py
    python tools/check_wheel.py --keep dist --version 0.1.0     # as the release workflow does

Needs only `build` (pip install build). The wheel is built from the source distribution, so both are
checked. Nothing is written into the repository unless --keep says where.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "align_rudder"
MADE_BY_RUNNING = {".pyc", ".nbi", ".nbc"}
RUNS = [
    ["key", "door", "chest"],
    ["key", "lamp", "door", "chest"],
    ["cat", "key", "door", "chest"],
    ["key", "door", "cat", "chest"],
]


def package_files() -> set[str]:
    """Return the files that a wheel must hold, as they lie in src/."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file())
    kept = (path for path in found if path.suffix not in MADE_BY_RUNNING)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in kept}


def wheel_files(wheel: Path) -> set[str]:
    """Return the files of the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("align_rudder/")}


def build(folder: Path, *options: str) -> Path:
    """Build source distribution and wheel into a folder; return the wheel."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), *options, str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    """Stop if the wheel lacks a file of the package, or holds one more."""
    there, needed = wheel_files(wheel), package_files()
    if there != needed:
        sys.exit(
            f"{wheel.name} is not the package: missing {sorted(needed - there)}, "
            f"too many {sorted(there - needed)}"
        )
    print(f"{wheel.name}: {len(there)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment and run what a new user runs."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    work = folder / "work"
    work.mkdir()
    # Nothing of the repository or of the caller's environment may help.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*command: str, stops: bool = False) -> str:
        print("$", " ".join(Path(part).name if "/" in part else part for part in command))
        done = subprocess.run(command, cwd=work, env=clean, capture_output=True, text=True)
        if (done.returncode != 0) != stops or "Traceback" in done.stderr:
            wanted = ", but should stop with a message" if stops else ""
            sys.exit(f"ended with {done.returncode}{wanted}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    run(str(python), "-m", "pip", "install", "--quiet", str(wheel))
    run(str(python), "-m", "pip", "check")
    program = str(folder / "venv" / "bin" / "align-rudder")
    run(program, "--help")
    shown = run(program, "demo")
    must_hold(shown, "consensus (80 %)", "Align-RUDDER")
    for name in ("align-rudder-demo.png", "align-rudder-demo-learning.png"):
        if not (work / "demo" / name).stat().st_size:
            sys.exit(f"the demo wrote nothing into {name}")

    lines = [json.dumps({"events": events, "return": 1.0}) for events in RUNS]
    (work / "runs.jsonl").write_text("\n".join(lines) + "\n")
    must_hold(run(program, "fit", "runs.jsonl", "-o", "model.npz"), "key", "chest")
    must_hold(run(program, "show", "model.npz"), "sub-goal")
    run(program, "report", "model.npz", "runs.jsonl", "-o", "report.html")
    page = (work / "report.html").read_text(encoding="utf-8")
    must_hold(page, "<!doctype html>", "</html>", "function ", "--good:", '"chest"')

    # What needs an extra says which, in place of a traceback of an import.
    run(program, "diamond", "evaluate", "nowhere", stops=True)


def must_hold(text: str, *parts: str) -> None:
    """Stop if the text lacks one of the parts."""
    for part in parts:
        if part not in text:
            sys.exit(f"{part!r} is missing in:\n{text[:2000]}")


def main() -> None:
    """Build, look inside, install, use."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", help="folder for the source distribution and the wheel")
    parser.add_argument("--version", help="the version that the wheel must have")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        if args.version and f"-{args.version}-" not in wheel.name:
            sys.exit(f"{wheel.name} is not of version {args.version}; was pyproject.toml changed?")
        check_content(wheel)
        use(wheel, folder)
        if args.keep:
            shutil.copytree(folder / "dist", args.keep, dirs_exist_ok=True)
    print("the wheel installs into an empty environment and works there")


if __name__ == "__main__":
    main()
