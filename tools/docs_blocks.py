"""Run the Python blocks of the documentation and put what they print below them.

    python tools/docs_blocks.py                      # all pages
    python tools/docs_blocks.py docs/start.md        # one

The blocks of a page run from top to bottom in one namespace and an empty folder. A `text` block
directly after a Python block holds what that block prints. A block after the comment
`<!-- not run -->` is left alone. A `sh` block of one line, "python examples/…", is run only after
the comment `<!-- run -->`. The tests run the same and compare.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHOWN = r"(?P<shown>\n*```text\n.*?```\n)"
BLOCK = re.compile(
    rf"(?P<mark><!-- not run -->\n+)?```python\n(?P<code>.*?)```\n{SHOWN}?", re.DOTALL
)
COMMAND = re.compile(
    rf"(?P<call><!-- run -->\n+```sh\npython (?P<script>examples/\S+\.py)\n```\n){SHOWN}", re.DOTALL
)


def pages() -> list[Path]:
    """Return the pages that hold a Python block."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if "```python\n" in page.read_text(encoding="utf-8")]


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """Work in a new folder and come back."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(text: str, name: str = "page") -> tuple[str, dict[str, object]]:
    """Return a page with the output of its blocks as it is now, and the names they defined."""
    names: dict[str, object] = {"__name__": name}

    def ran(block: re.Match[str]) -> str:
        if block["mark"]:
            return block[0]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block["code"], name, "exec"), names)
        if block["shown"] is None:
            return block[0]
        return f"```python\n{block['code']}```\n" + shown(out.getvalue())

    with empty_folder():
        return COMMAND.sub(called, BLOCK.sub(ran, text)), names


def called(block: re.Match[str]) -> str:
    """Return a command with what the example prints."""
    command = [sys.executable, str(ROOT / block["script"])]
    return block["call"] + shown(
        subprocess.run(command, check=True, text=True, capture_output=True).stdout
    )


def shown(printed: str) -> str:
    """Return what was printed as a text block."""
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    return "\n```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    for page in [Path(given).resolve() for given in sys.argv[1:]] or pages():
        before = page.read_text(encoding="utf-8")
        after, _ = run(before, page.name)
        if after != before:
            page.write_text(after, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'changed' if after != before else 'as it was'}")
